/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reply: u32 "AFG1", u32 bytes of JSON, u64 bytes of bundle, the JSON object, zeros up to a multiple of 64, the bundle. Little-endian.
 */
#include <errno.h>
#include <string.h>

#include "base/json_text.h"
#include "daemon/gate.h"
#include "numeric/op.h"
#include "proto/bundle.h"

#define MAX_TEXT (256u << 10)

static size_t bundle_at(const struct af_gate_reply *r) {
        return AF_ALIGN_UP(AF_GATE_REPLY_HEAD + r->n_json, AF_GATE_REPLY_ALIGN);
}

size_t af_gate_reply_bytes(const struct af_gate_reply *r) {
        return bundle_at(r) + r->n_bundle;
}

void af_gate_reply_write(const struct af_gate_reply *r, uint8_t *out) {
        uint64_t head[] = {AF_GATE_REPLY_MAGIC | (uint64_t)r->n_json << 32, r->n_bundle};

        for (size_t i = 0; i < AF_GATE_REPLY_HEAD; i++)
                out[i] = (uint8_t)(head[i / 8] >> (i % 8 * 8));
        memcpy(out + AF_GATE_REPLY_HEAD, r->json, r->n_json);
        memset(out + AF_GATE_REPLY_HEAD + r->n_json, 0, bundle_at(r) - AF_GATE_REPLY_HEAD - r->n_json);
        if (r->n_bundle)
                memcpy(out + bundle_at(r), r->bundle, r->n_bundle);
}

/* ---- the objects ---- */

static void begin(struct af_buf *buf, const char *status) {
        af_buf_put_u8(buf, '{');
        af_json_add_string(buf, "status", status);
}

static void add_text(struct af_buf *buf, const char *key, const char *text, size_t n) {
        af_json_key(buf, key);
        af_json_string_n(buf, text, AF_MIN(n, (size_t)MAX_TEXT));
}

void af_gate_json_error(struct af_buf *buf, const char *code, bool retryable, const char *text, size_t n) {
        begin(buf, "error");
        af_json_add_string(buf, "code", code);
        af_json_add_bool(buf, "retryable", retryable);
        add_text(buf, "text", text, n);
        af_buf_put_u8(buf, '}');
}

void af_gate_json_pending(struct af_buf *buf, uint64_t elapsed_ms, uint32_t waiters, const char *text, size_t n) {
        begin(buf, "pending");
        af_json_add_bool(buf, "retryable", true);
        af_json_add_u64(buf, "elapsed_ms", elapsed_ms);
        af_json_add_u64(buf, "waiters", waiters);
        add_text(buf, "text", text, n);
        af_buf_put_u8(buf, '}');
}

void af_gate_json_stats(struct af_buf *buf, const char *stats, size_t n) {
        begin(buf, "ok");
        af_json_key(buf, "stats");
        af_buf_put(buf, stats, n);
        af_buf_put_u8(buf, '}');
}

static void add_slots(struct af_buf *buf, const char *key, const uint32_t *slots, uint32_t n) {
        af_json_key(buf, key);
        af_buf_put_u8(buf, '[');
        for (uint32_t i = 0; i < n; i++) {
                af_json_item(buf);
                if (slots[i] == AF_NONE)
                        af_buf_put_str(buf, "null");
                else
                        af_buf_printf(buf, "%u", slots[i]);
        }
        af_buf_put_u8(buf, ']');
}

static int add_slot_map(struct af_buf *buf, const struct af_field *f) {
        struct af_slot_map map;
        int r = af_slot_map_read(f->p, f->n, &map);

        if (r)
                return r < 0 ? r : AF_GATE_E_INVALID;
        af_json_key(buf, "slot_map");
        af_buf_put_u8(buf, '{');
        add_slots(buf, "inputs", map.inputs, map.n_inputs);
        add_slots(buf, "nodes", map.nodes, map.n_nodes);
        add_slots(buf, "symbols", map.symbols, map.n_symbols);
        af_buf_put_u8(buf, '}');
        af_slot_map_deinit(&map);
        return 0;
}

/* Nodes that stay with the framework, by canonical number. */
static void add_fallbacks(struct af_buf *buf, const struct af_bundle *b) {
        af_json_key(buf, "fallbacks");
        af_buf_put_u8(buf, '[');
        for (uint32_t i = 0; i < af_bundle_count(b, AF_SECTION_STEPS); i++) {
                const struct af_bundle_step *step = af_bundle_at(b, AF_SECTION_STEPS, i);

                if (step->kind != AF_STEP_FRAMEWORK)
                        continue;
                af_json_item(buf);
                af_buf_put_u8(buf, '{');
                af_json_add_u64(buf, "node", step->node);
                af_json_add_string(buf, "op", step->op < AF_N_OPS ? af_op_info(step->op)->name : "?");
                af_json_add_string(buf, "reason", af_bundle_str(b, step->reason));
                af_buf_put_u8(buf, '}');
        }
        af_buf_put_u8(buf, ']');
}

int af_gate_json_result(struct af_buf *buf, const uint8_t *body, size_t n, const void *bundle, size_t n_bundle) {
        static const char *const hits[] = {[AF_HIT_COMPILED] = "compiled", [AF_HIT_JOINED] = "joined", [AF_HIT_STORE] = "store"};
        struct af_field key, hit, us, map;
        struct af_bundle view;
        char hex[129];

        if (!af_frame_find(body, n, AF_TAG_KEY, 64, &key) || !af_frame_find(body, n, AF_TAG_HIT, 1, &hit) ||
            hit.p[0] >= AF_ARRAY_SIZE(hits) || af_bundle_open(bundle, n_bundle, &view, NULL))
                return AF_GATE_E_INVALID;
        begin(buf, "ok");
        af_hex(key.p, 64, hex);
        af_json_add_string(buf, "key", hex);
        af_json_add_string(buf, "hit", hits[hit.p[0]]);
        if (af_frame_find(body, n, AF_TAG_COMPILE_US, 8, &us))
                af_json_add_u64(buf, "compile_us", af_field_u64(&us));
        af_json_add_u64(buf, "kernels", af_bundle_count(&view, AF_SECTION_KERNELS));
        af_json_add_u64(buf, "bundle_bytes", n_bundle);
        add_fallbacks(buf, &view);
        if (af_frame_find(body, n, AF_TAG_SLOT_MAP, 0, &map)) {
                int r = add_slot_map(buf, &map);

                if (r)
                        return r;
        }
        af_buf_put_u8(buf, '}');
        return af_buf_error(buf);
}
