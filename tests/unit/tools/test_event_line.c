/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/event_line.h"

/* The line of an event, malloc'd, behind its clock. */
static char *line(const char *json, bool color) {
        char *text = NULL, *body;
        size_t n;
        FILE *out = open_memstream(&text, &n);
        cJSON *e = cJSON_Parse(json);

        cr_assert(e, "%s", json);
        af_event_line(e, color, out);
        fclose(out);
        cJSON_Delete(e);
        body = strdup(text + strlen(color ? "\033[2m00:00:00.000\033[0m " : "00:00:00.000 "));
        free(text);
        return body;
}

static void expect(const char *json, const char *wanted) {
        char *text = line(json, false);

        cr_expect_str_eq(text, wanted);
        free(text);
}

Test(event_line, kinds) {
        expect("{\"event\":\"request.hit\",\"fragment\":\"0123456789abcdef0123\",\"peer\":\"torch\",\"pid\":7,\"us\":1500}",
               "request.hit      0123456789ab torch[7] 1.5 ms\n");
        expect("{\"event\":\"request.miss\",\"fragment\":\"0123456789abcdef\",\"why\":\"a new fragment\"}",
               "request.miss     0123456789ab a new fragment\n");
        expect("{\"event\":\"request.done\",\"fragment\":\"01\",\"peer\":\"p\",\"pid\":1,\"us\":1,\"joined\":true}",
               "request.done     01 p[1] 1 us (joined)\n");
        expect("{\"event\":\"request.joined\",\"peer\":\"p\",\"pid\":1,\"waiters\":3}", "request.joined   p[1] waits with 2\n");
        expect("{\"event\":\"job.start\",\"job\":\"compile\",\"what\":\"k\",\"queued_us\":2000}",
               "job.start        compile k after 2.0 ms\n");
        expect("{\"event\":\"job.end\",\"job\":\"plan\",\"what\":\"0123456789abcdef\",\"run_us\":5,\"ok\":false,\"text\":\"was ended\"}",
               "job.end          plan    0123456789ab in 5 us, was ended\n");
        expect("{\"event\":\"fallback\",\"line\":\"Fallback aten.mm $reason: x\"}", "fallback         Fallback aten.mm $reason: x\n");
        expect("{\"event\":\"store.evicted\",\"n\":12}", "store.evicted    12\n");
        expect("{\"event\":\"of.later\",\"n\":12}", "of.later         \n");
        expect("{}", "                 \n");
        expect("{\"event\":5,\"time_ms\":\"x\"}", "                 \n");
}

/* What a client named itself, or a compiler said, does not reach the terminal as more than text. */
Test(event_line, nothing_steers_the_terminal) {
        char *text = line("{\"event\":\"request.failed\",\"peer\":\"\\u001b[2J\",\"pid\":1,\"code\":\"compile\",\"text\":\"a\\nb\\r\\u001b]"
                          "0;x\\u0007\\u009b1m\\u007f\"}",
                          false);

        for (const char *p = text; *p; p++)
                cr_expect((unsigned char)*p >= 0x20 || (*p == '\n' && !p[1]), "%02x", (unsigned char)*p);
        cr_expect_null(strstr(text, "\xc2\x9b"));
        cr_expect_null(strchr(text, 0x7f));
        free(text);
        text = line("{\"event\":\"request.hit\",\"peer\":\"\\u001b[2J\"}", true);
        cr_expect_eq(strncmp(text, "\033[32mrequest.hit", 16), 0);
        cr_expect_null(strstr(text, "\033[2J"));
        free(text);
}

Test(event_line, long_texts_are_cut_between_characters) {
        const char *cut = af_event_safe("\xe5\x8d\x8e\xe4\xb8\xba\xe5\x8d\x8e\xe4\xb8\xba", 4);

        cr_expect_str_eq(cut, "\xe5\x8d\x8e\xe4\xb8\xba");
        cr_expect_str_eq(af_event_safe("abc", 0), "");
        cr_expect_str_eq(af_event_safe("a\xff\xc3", 9), "a  ");
}
