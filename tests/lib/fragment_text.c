/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fragment_text.h"

#include <stdio.h>
#include <string.h>

void af_test_graph_parse(struct af_test_graph *t, const char *json, size_t n) {
        memset(t, 0, sizeof(*t));
        af_arena_init(&t->arena, 0);
        t->r = -1000;
        if (af_fragment_init(&t->fragment, &t->arena) == 0 && af_fragment_parse(&t->fragment, json, n, &t->diags) == 0)
                t->r = af_graph_from_fragment(&t->graph, &t->fragment, &t->diags);
}

void af_test_graph_make(struct af_test_graph *t, const char *text) {
        struct af_buf buf = AF_BUF_INIT;

        af_buf_put_str(&buf, "{\"schema\": \"autofuse.fragment/1\", ");
        af_buf_put_str(&buf, text);
        af_buf_put_str(&buf, "}");
        for (size_t i = 0; i < buf.size; i++)
                if (buf.data[i] == '\'')
                        buf.data[i] = '"';
        af_test_graph_parse(t, (const char *)buf.data, buf.size);
        af_buf_deinit(&buf);
}

void af_test_graph_deinit(struct af_test_graph *t) {
        af_diags_deinit(&t->diags);
        af_arena_deinit(&t->arena);
}

bool af_test_diag_has(const struct af_diags *diags, const char *where, const char *what) {
        for (uint32_t i = 0; i < diags->n_items; i++) {
                const struct af_diag *d = &diags->items[i];
                if ((!where || (d->where && strstr(d->where, where))) && (!what || strstr(d->what, what)))
                        return true;
        }
        return false;
}

void af_test_diags_print(const struct af_diags *diags) {
        struct af_buf buf = AF_BUF_INIT;

        af_diags_format(diags, &buf);
        fprintf(stderr, "%.*s", (int)buf.size, buf.data ? (const char *)buf.data : "");
        af_buf_deinit(&buf);
}
