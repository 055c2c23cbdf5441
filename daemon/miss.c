/* SPDX-License-Identifier: Apache-2.0 */
/* What a miss tells to watchers and ledger: why it missed, and what its plan leaves to the framework. */
#include <stdio.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "daemon/core.h"
#include "daemon/why.h"
#include "numeric/op.h"

#define MAX_STAGES 32u

void af_flight_missed(struct af_flight *f, bool has_skeleton) {
        char why[AF_WHY_TEXT];

        if (f->missed)
                return;
        f->missed = true;
        af_why_missed(f->env, &f->link.key, has_skeleton, f->known_fragment, why);
        af_event_miss(f, why);
        af_core_ledger(f->core, AF_LEDGER_MISS,
                       af_list_empty(&f->waiters) ? NULL : af_list_entry(f->waiters.next, struct af_request, in_flight), &f->link.key,
                       &f->env->digest, NULL, af_clock_now_ns(), 0, 0, why);
}

void af_flight_stages(struct af_flight *f) {
        struct af_cursor c = f->stages ? af_cursor_make(f->stages->data, f->stages->size) : af_cursor_make(NULL, 0);
        struct af_buf json = AF_BUF_INIT;
        uint32_t n_words = 0, n;
        const uint8_t *words = f->stages ? af_cursor_field(&c, &n_words) : NULL;
        char text[1024];

        if (!words)
                return;
        snprintf(text, sizeof(text), "%.*s", (int)AF_MIN(n_words, sizeof(text) - 1), (const char *)words);
        af_ledger_describe(f->core->ledger, &f->link.key, text);
        n = af_cursor_u32(&c);
        af_buf_put_u8(&json, '{');
        for (uint32_t i = 0; i < n && i < MAX_STAGES; i++) {
                uint32_t n_name = 0;
                const uint8_t *name = af_cursor_field(&c, &n_name);
                uint64_t us = af_cursor_u64(&c);
                char stage[64];

                if (c.error)
                        break;
                snprintf(stage, sizeof(stage), "%.*s", (int)AF_MIN(n_name, 63u), (const char *)name);
                af_ledger_stage(f->core->ledger, &f->link.key, &f->reported, NULL, stage, us);
                af_json_add_u64(&json, stage, us);
        }
        af_buf_put_u8(&json, '}');
        af_event_plan(f, text, &json);
        af_buf_deinit(&json);
        af_blob_clear(&f->stages);
}

/* The framework's name of a canonical node, where who asked told it; else the op's. */
static void name_of_node(const struct af_flight *f, uint32_t node, uint32_t op, char out[128]) {
        struct af_cursor c = f->origins ? af_cursor_make(f->origins->data, f->origins->size) : af_cursor_make(NULL, 0);
        uint32_t count = f->origins ? af_cursor_u32(&c) : 0, n = 0;
        const uint8_t *p = NULL;

        if (node < count)
                for (uint32_t i = 0; i <= node && !c.error; i++)
                        p = af_cursor_field(&c, &n);
        if (p && !c.error && n > 0)
                snprintf(out, 128, "%.*s", (int)AF_MIN(n, 127u), (const char *)p);
        else
                snprintf(out, 128, "%s", op < AF_N_OPS ? af_op_info(op)->name : "?");
}

void af_flight_fallbacks(struct af_flight *f) {
        struct af_bundle view;

        if (!f->skeleton || af_bundle_open(f->skeleton->data, f->skeleton->size, &view, NULL))
                return;
        for (uint32_t i = 0; i < af_bundle_count(&view, AF_SECTION_STEPS); i++) {
                const struct af_bundle_step *step = af_bundle_at(&view, AF_SECTION_STEPS, i);
                char name[128], line[512];

                if (step->kind != AF_STEP_FRAMEWORK)
                        continue;
                name_of_node(f, step->node, step->op, name);
                snprintf(line, sizeof(line), "Fallback %s $reason: %s", name, af_bundle_str(&view, step->reason));
                af_event_fallback(f, line);
                af_core_ledger(f->core, AF_LEDGER_FALLBACK, NULL, &f->link.key, &f->environment, NULL, af_clock_now_ns(), 0, 0, line);
        }
}
