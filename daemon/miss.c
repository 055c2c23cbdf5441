/* SPDX-License-Identifier: Apache-2.0 */
/* What a miss tells to watchers and ledger: why it missed, and what its plan leaves to the framework. */
#include <stdio.h>

#include "daemon/core.h"
#include "numeric/op.h"

void af_flight_missed(struct af_flight *f) {
        if (f->missed)
                return;
        f->missed = true;
        af_event_miss(f, "not in the store");
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
                af_core_ledger(f->core, AF_LEDGER_FALLBACK, NULL, &f->link.key, &f->environment, NULL, f->begin_ns, 0, 0, line);
        }
}
