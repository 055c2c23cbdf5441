/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int af_target_init(struct af_target *t, const char *soc, const char *toolchain, uint8_t twin) {
        *t = (struct af_target){.soc = strdup(soc ? soc : ""), .toolchain = strdup(toolchain ? toolchain : ""), .twin = twin};
        if (t->soc && t->toolchain)
                return 0;
        af_target_deinit(t);
        return -ENOMEM;
}

void af_target_deinit(struct af_target *t) {
        free(t->soc);
        free(t->toolchain);
        *t = (struct af_target){0};
}

bool af_target_equal(const struct af_target *a, const struct af_target *b) {
        return a->twin == b->twin && strcmp(a->soc, b->soc) == 0 && strcmp(a->toolchain, b->toolchain) == 0;
}

void af_record_fragment_write(struct af_buf *buf, const struct af_target *target, const void *canon, size_t n) {
        af_buf_put_u32(buf, target->twin);
        af_buf_put_field(buf, target->soc, strlen(target->soc));
        af_buf_put_field(buf, target->toolchain, strlen(target->toolchain));
        af_buf_put_field(buf, canon, n);
}

int af_record_fragment_read(struct af_blob *record, struct af_target *ret_target, struct af_blob **ret_canon) {
        struct af_cursor c = af_cursor_make(record->data, record->size);
        uint32_t twin = af_cursor_u32(&c), n_soc = 0, n_toolchain = 0, n_canon = 0;
        const uint8_t *soc = af_cursor_field(&c, &n_soc), *toolchain = af_cursor_field(&c, &n_toolchain),
                      *canon = af_cursor_field(&c, &n_canon);
        struct af_target t = {.twin = (uint8_t)twin};

        if (c.error || c.at != c.size || twin > UINT8_MAX)
                return AF_RECORD_E_DAMAGED;
        t.soc = strndup((const char *)soc, n_soc);
        t.toolchain = strndup((const char *)toolchain, n_toolchain);
        *ret_canon = t.soc && t.toolchain ? af_blob_slice(record, canon, n_canon) : NULL;
        if (!*ret_canon) {
                af_target_deinit(&t);
                return -ENOMEM;
        }
        *ret_target = t;
        return 0;
}

void af_record_source_write(struct af_buf *buf, const char *toolchain, const char *symbol, const void *source, size_t n) {
        af_buf_put_field(buf, toolchain, strlen(toolchain));
        af_buf_put_field(buf, symbol, strlen(symbol));
        af_buf_put_field(buf, source, n);
}

int af_record_source_read(struct af_blob *record, struct af_record_source *ret_source) {
        struct af_cursor c = af_cursor_make(record->data, record->size);
        uint32_t n_toolchain = 0, n_symbol = 0, n_source = 0;
        const uint8_t *symbol, *source;
        struct af_record_source s;

        af_cursor_field(&c, &n_toolchain);
        symbol = af_cursor_field(&c, &n_symbol);
        source = af_cursor_field(&c, &n_source);
        if (c.error || c.at != c.size)
                return AF_RECORD_E_DAMAGED;
        s.symbol = strndup((const char *)symbol, n_symbol);
        s.source = s.symbol ? af_blob_slice(record, source, n_source) : NULL;
        if (!s.source) {
                free(s.symbol);
                return -ENOMEM;
        }
        *ret_source = s;
        return 0;
}

void af_record_ingredient_write(struct af_buf *buf, const char *name, const char *value) {
        af_buf_put_field(buf, name, strlen(name));
        af_buf_put_field(buf, value, strlen(value));
}

bool af_record_ingredient_next(struct af_cursor *c, struct af_ingredient *ret) {
        if (c->error || c->at == c->size)
                return false;
        ret->name = (const char *)af_cursor_field(c, &ret->n_name);
        ret->value = (const char *)af_cursor_field(c, &ret->n_value);
        return !c->error;
}
