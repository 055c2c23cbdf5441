/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "numeric/dtype.h"

struct dtype_row {
        const char *name;
        uint8_t bytes;
        char kind;
};

static const struct dtype_row rows[AF_N_DTYPES] = {[AF_DTYPE_INVALID] = {"invalid", 0, 0},
#define AF_X(id, name, bytes, kind) [AF_DTYPE_##id] = {name, bytes, kind},
                                                   AF_DTYPES(AF_X)
#undef AF_X
};

/* The types that only programs know follow MASK. */
static const struct dtype_row program_rows[] = {
        {"mask", 0, 'm'},
        {"uint16", 2, 'u'},
        {"uint32", 4, 'u'},
};

static const struct dtype_row *row_of(enum af_dtype d) {
        unsigned i = (unsigned)d;

        if (i < AF_N_DTYPES)
                return &rows[i];
        if (i >= AF_DTYPE_MASK && i - AF_DTYPE_MASK < sizeof(program_rows) / sizeof(program_rows[0]))
                return &program_rows[i - AF_DTYPE_MASK];
        return &rows[AF_DTYPE_INVALID];
}

unsigned af_dtype_size(enum af_dtype d) {
        return row_of(d)->bytes;
}

char af_dtype_kind(enum af_dtype d) {
        return row_of(d)->kind;
}

const char *af_dtype_name(enum af_dtype d) {
        return row_of(d)->name;
}

enum af_dtype af_dtype_from_name(const char *name) {
        for (unsigned i = 1; i < AF_N_DTYPES; i++)
                if (!strcmp(rows[i].name, name))
                        return (enum af_dtype)i;
        return AF_DTYPE_INVALID;
}
