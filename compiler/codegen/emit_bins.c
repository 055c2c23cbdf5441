/* SPDX-License-Identifier: Apache-2.0 */
/* Phases that put positions in the order of the rows that an index names: one call per tile. */
#include <inttypes.h>

#include "compiler/codegen/emit.h"

#define UB_UNIT 256

static uint32_t up(uint64_t bytes) {
        return (uint32_t)AF_ALIGN_UP(bytes, (uint64_t)UB_UNIT);
}

static void emit_bin(struct emit *e, const struct af_bins *b) {
        uint64_t slice = (uint64_t)(b->n + b->sources - 1) / b->sources;
        const char *type = emit_type(b->dtype);
        emit_use(e, EMIT_LIB_BIN);
        emit_line(e,
                  "BinSlice(View<%s>(calc, 0), View<int32_t>(calc, %u), gm%u, gm%u, tile, %" PRId64 ", %" PRId64 ", %" PRId64
                  ", %u, %u, %u, %u);",
                  type, up(slice * af_dtype_size(b->dtype)), b->index, b->slots, b->offset, b->n, b->extent, b->sources, b->bins, b->words,
                  b->shift);
}

static void emit_group(struct emit *e, const struct af_bins *b) {
        uint32_t all = up(4 * (uint64_t)b->sources * b->words);
        emit_use(e, EMIT_LIB_GROUP);
        emit_line(e,
                  "GroupBin(View<int32_t>(calc, 0), View<int64_t>(calc, %u), View<int32_t>(calc, %u), gm%u, gm%u, tile, %" PRId64
                  ", %u, %u, %u, %u, %u);",
                  all, 3 * all, b->slots, b->entries, b->n, b->sources, b->bins, b->words, b->shift, b->table);
}

void emit_bins(struct emit *e) {
        const struct af_bins *b = &e->phase->bins;
        emit_use(e, EMIT_LIB_AWAIT);
        if (e->phase->kind == AF_PHASE_BIN)
                emit_bin(e, b);
        else
                emit_group(e, b);
}
