/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/gate.h"

static int read_text(const char *text, struct af_gate_request *r, char why[160]) {
        return af_gate_request_read(text, strlen(text), r, why);
}

Test(gate_request, a_fragment_as_it_is) {
        static const char *const texts[] = {"{\"schema\": \"autofuse.fragment/1\", \"nodes\": [{\"want\": 1}], \"x\": {\"fragment\": {}}}",
                                            "",
                                            "{",
                                            "[1]",
                                            "\"fragment\"",
                                            "{\"a\" \"fragment\": {}}",
                                            "{\"a\":}",
                                            "{\"un"};
        struct af_gate_request r;
        char why[160];

        for (size_t i = 0; i < AF_ARRAY_SIZE(texts); i++) {
                cr_assert_eq(read_text(texts[i], &r, why), 0, "%s", texts[i]);
                cr_expect_eq(r.fragment, texts[i]);
                cr_expect_eq(r.n_fragment, strlen(texts[i]));
                cr_expect_eq(r.want, AF_GATE_WANT_BUNDLE);
                cr_expect_eq(r.max_bytes, 1u << 20);
        }
}

Test(gate_request, an_envelope) {
        struct af_gate_request r;
        char why[160];

        cr_assert_eq(
                read_text(
                        " {\"deadline_ms\": 1500 ,\"wait_ms\":20, \"want\" : \"key\",\"fragment\": {\"a\": \"}\\\"{\", \"b\": [[1], {}]}\n,"
                        "\"lookup_only\":true,\"priority\":255,\"max_bytes\":9000000000} ",
                        &r, why),
                0, "%s", why);
        cr_expect_eq(r.want, AF_GATE_WANT_KEY);
        cr_expect_eq(r.deadline_ms, 1500u);
        cr_expect_eq(r.wait_ms, 20u);
        cr_expect_eq(r.priority, 255);
        cr_expect(r.lookup_only);
        cr_expect_eq(r.max_bytes, 9000000000u);
        cr_expect_eq(strncmp(r.fragment, "{\"a\": \"}\\\"{\", \"b\": [[1], {}]}", r.n_fragment), 0);
        cr_assert_eq(read_text("{\"want\":\"stats\"}", &r, why), 0);
        cr_expect_eq(r.want, AF_GATE_WANT_STATS);
        cr_expect_null(r.fragment);
}

Test(gate_request, mistakes_are_named) {
        static const char *const cases[][2] = {{"{\"want\":\"all\"}", "want"},
                                               {"{\"want\":\"key\"}", "no fragment"},
                                               {"{\"fragment\":1}", "object"},
                                               {"{\"fragment\":{},\"fragment\":{}}", "twice"},
                                               {"{\"fragment\":{},\"deadline_ms\":-1}", "deadline_ms"},
                                               {"{\"fragment\":{},\"deadline_ms\":1e3}", "deadline_ms"},
                                               {"{\"fragment\":{},\"deadline_ms\":4294967296}", "deadline_ms"},
                                               {"{\"fragment\":{},\"priority\":256}", "priority"},
                                               {"{\"fragment\":{},\"lookup_only\":1}", "lookup_only"},
                                               {"{\"fragment\":{},\"user\":\"root\"}", "user"},
                                               {"{\"fragment\":{}} x", "whole"},
                                               {"{\"fragment\":{},}", "whole"},
                                               {"{\"fragment\":{}", "whole"},
                                               {"{\"fragment\":{\"a\":\"", "whole"}};
        struct af_gate_request r;
        char why[160];

        for (size_t i = 0; i < AF_ARRAY_SIZE(cases); i++) {
                cr_assert_eq(read_text(cases[i][0], &r, why), AF_GATE_E_INVALID, "%s", cases[i][0]);
                cr_expect(strstr(why, cases[i][1]), "%s: %s", cases[i][0], why);
        }
}

/* Every prefix of a request, in memory that ends where it ends: nothing is read beyond. */
Test(gate_request, every_truncation) {
        static const char text[] =
                "{\"deadline_ms\": 15,\"want\" : \"bundle\",\"fragment\": {\"a\": \"}\\\"{\", \"b\": [[1], {}]},\"priority\":1}";
        struct af_gate_request r;
        char why[160];

        for (size_t n = 0; n < sizeof(text) - 1; n++) {
                char *copy = malloc(n + 1);

                memcpy(copy, text, n);
                copy[n] = '\\'; /* a step beyond the end would go on */
                if (af_gate_request_read(copy, n, &r, why) == 0) {
                        cr_expect_eq(r.fragment, copy);
                        cr_expect_eq(r.n_fragment, n);
                }
                free(copy);
        }
}

Test(gate_request, random_bytes) {
        static const char alphabet[] = "{}[]\",:\\ 01afragmentw\n";
        uint32_t x = 7;

        for (int round = 0; round < 20000; round++) {
                char text[64] = "{\"fragment\":", why[160];
                struct af_gate_request r;
                size_t n = 12;

                for (; n < sizeof(text); n++) {
                        x = x * 1664525 + 1013904223;
                        text[n] = alphabet[(x >> 20) % (sizeof(alphabet) - 1)];
                }
                if (af_gate_request_read(text, n, &r, why) == 0)
                        cr_assert(r.fragment >= text && r.fragment + r.n_fragment <= text + n);
        }
}
