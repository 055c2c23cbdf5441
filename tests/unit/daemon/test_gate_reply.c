/* SPDX-License-Identifier: Apache-2.0 */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/gate.h"
#include "proto/bundle.h"

static const char *member(const cJSON *o, const char *name) {
        const cJSON *m = cJSON_GetObjectItemCaseSensitive(o, name);

        return cJSON_IsString(m) ? m->valuestring : "";
}

Test(gate_reply, layout) {
        uint8_t bundle[100];
        struct af_gate_reply r = {.json = "{\"a\":1}", .n_json = 7, .bundle = bundle, .n_bundle = sizeof(bundle)};
        uint8_t *out = malloc(af_gate_reply_bytes(&r));

        memset(bundle, 0x5a, sizeof(bundle));
        cr_assert_eq(af_gate_reply_bytes(&r), 64 + 100);
        af_gate_reply_write(&r, out);
        cr_expect_eq(memcmp(out, "AFG1\x07\0\0\0\x64\0\0\0\0\0\0\0{\"a\":1}\0", 24), 0);
        cr_expect_eq(out[63], 0);
        cr_expect_eq(memcmp(out + 64, bundle, sizeof(bundle)), 0);
        free(out);
        r.n_bundle = 0;
        r.n_json = 48;
        cr_expect_eq(af_gate_reply_bytes(&r), 64);
}

Test(gate_reply, errors_are_json_whatever_the_text) {
        struct af_buf buf = AF_BUF_INIT;
        cJSON *o;

        af_gate_json_error(&buf, "compile", true, "a \"quote\"\n\xff", 11);
        af_buf_put_u8(&buf, 0);
        o = cJSON_Parse((const char *)buf.data);
        cr_assert(o);
        cr_expect_str_eq(member(o, "status"), "error");
        cr_expect_str_eq(member(o, "code"), "compile");
        cr_expect_str_eq(member(o, "text"), "a \"quote\"\n\xef\xbf\xbd");
        cr_expect(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "retryable")));
        cJSON_Delete(o);
        af_buf_deinit(&buf);
}

/* A bundle with one node left to the framework, and a RESULT's body with a slot map. */
static void make_result(struct af_buf *body, struct af_buf *bundle) {
        struct af_bundle_builder b;
        struct af_bundle_step step = {.kind = AF_STEP_FRAMEWORK, .node = 3};
        uint32_t inputs[] = {1, AF_NONE}, nodes[] = {0};
        struct af_slot_map map = {.inputs = inputs, .n_inputs = 2, .nodes = nodes, .n_nodes = 1};
        struct af_buf bytes = AF_BUF_INIT;
        uint8_t key[64];

        af_bundle_builder_init(&b);
        step.reason = af_bundle_add_str(&b, "no template");
        af_bundle_add(&b, AF_SECTION_STEPS, &step);
        cr_assert_eq(af_bundle_finish(&b, 0, bundle), 0);
        af_bundle_builder_deinit(&b);
        memset(key, 0xab, sizeof(key));
        af_frame_field(body, AF_TAG_KEY, key, sizeof(key));
        af_frame_field_u8(body, AF_TAG_HIT, AF_HIT_JOINED);
        af_frame_field_u64(body, AF_TAG_COMPILE_US, 17);
        af_slot_map_write(&map, &bytes);
        af_frame_field(body, AF_TAG_SLOT_MAP, bytes.data, bytes.size);
        af_buf_deinit(&bytes);
}

Test(gate_reply, result) {
        struct af_buf body = AF_BUF_INIT, bundle = AF_BUF_INIT, json = AF_BUF_INIT;
        cJSON *o, *fallback, *slots;

        make_result(&body, &bundle);
        cr_assert_eq(af_gate_json_result(&json, body.data, body.size, bundle.data, bundle.size), 0);
        af_buf_put_u8(&json, 0);
        o = cJSON_Parse((const char *)json.data);
        cr_assert(o, "%s", (const char *)json.data);
        cr_expect_str_eq(member(o, "hit"), "joined");
        cr_expect_eq(strlen(member(o, "key")), 128);
        fallback = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(o, "fallbacks"), 0);
        cr_expect_eq(cJSON_GetObjectItemCaseSensitive(fallback, "node")->valueint, 3);
        cr_expect_str_eq(member(fallback, "reason"), "no template");
        slots = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(o, "slot_map"), "inputs");
        cr_expect_eq(cJSON_GetArraySize(slots), 2);
        cr_expect(cJSON_IsNull(cJSON_GetArrayItem(slots, 1)));
        cJSON_Delete(o);
        /* A flipped bit is no answer. */
        bundle.data[bundle.size - 1] ^= 1;
        af_buf_clear(&json);
        cr_expect_eq(af_gate_json_result(&json, body.data, body.size, bundle.data, bundle.size), AF_GATE_E_INVALID);
        af_buf_deinit(&json);
        af_buf_deinit(&body);
        af_buf_deinit(&bundle);
}
