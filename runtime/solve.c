/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/solve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/expr.h"

/* One step of an expression: floor division and the divisor's sign for the remainder, as in proto/expr.h. False where it overflows. */
static bool combine(uint32_t kind, int64_t a, int64_t b, int64_t *ret) {
        switch (kind) {
        case AF_EXPR_ADD:
                return !__builtin_add_overflow(a, b, ret);
        case AF_EXPR_SUB:
                return !__builtin_sub_overflow(a, b, ret);
        case AF_EXPR_MUL:
                return !__builtin_mul_overflow(a, b, ret);
        case AF_EXPR_FLOORDIV:
        case AF_EXPR_MOD:
                if (b == 0 || (a == INT64_MIN && b == -1))
                        return false;
                *ret = kind == AF_EXPR_MOD ? a % b : a / b;
                if (a % b != 0 && (a < 0) != (b < 0))
                        *ret += kind == AF_EXPR_MOD ? b : -1;
                return true;
        case AF_EXPR_MAX:
                *ret = AF_MAX(a, b);
                return true;
        default:
                *ret = AF_MIN(a, b);
                return true;
        }
}

static bool evaluate(const struct af_bundle *form, const int64_t *symbols, int64_t *values) {
        for (uint32_t i = 0; i < af_bundle_count(form, AF_SECTION_EXPRS); i++) {
                const struct af_bundle_expr *e = af_bundle_at(form, AF_SECTION_EXPRS, i);
                if (e->kind == AF_EXPR_CONST)
                        values[i] = e->value;
                else if (e->kind == AF_EXPR_SYMBOL)
                        values[i] = symbols[e->value];
                else if (!combine(e->kind, values[e->a], values[e->b], &values[i]))
                        return false;
        }
        return true;
}

static int check_guards(const struct af_bundle *form, const int64_t *symbols, uint32_t *ret_which, const char **ret_why) {
        for (uint32_t i = 0; i < af_bundle_count(form, AF_SECTION_SYMBOLS); i++) {
                const struct af_bundle_symbol *s = af_bundle_at(form, AF_SECTION_SYMBOLS, i);
                *ret_why = symbols[i] < s->min                ? "below its least value"
                           : symbols[i] > s->max              ? "above its greatest value"
                           : symbols[i] % s->multiple_of != 0 ? "not a multiple of what was promised"
                                                              : NULL;
                if (ret_which)
                        *ret_which = i;
                if (*ret_why)
                        return AF_SOLVE_E_GUARD;
        }
        return 0;
}

static int check_nodes(const struct af_bundle *form, const int64_t *values, uint32_t *ret_which, const char **ret_why) {
        for (uint32_t i = 0; i < af_bundle_count(form, AF_SECTION_GUARDS); i++) {
                const struct af_bundle_guard *g = af_bundle_at(form, AF_SECTION_GUARDS, i);
                if (values[g->expr] >= g->min)
                        continue;
                *ret_why = af_bundle_str(form, g->why);
                if (ret_which)
                        *ret_which = g->node;
                return AF_SOLVE_E_NODE;
        }
        return 0;
}

static bool fill_in(const struct af_bundle *form, const int64_t *values, uint8_t *data) {
        for (uint32_t i = 0; i < af_bundle_count(form, AF_SECTION_PATCHES); i++) {
                const struct af_bundle_patch *p = af_bundle_at(form, AF_SECTION_PATCHES, i);
                uint8_t *at = data + form->sections[p->section].offset + p->offset;
                int64_t v = values[p->expr];
                uint32_t narrow = (uint32_t)v;
                float f = (float)v;
                if (p->kind == AF_PATCH_U32 && (v < 0 || v > UINT32_MAX))
                        return false;
                if (p->kind == AF_PATCH_I64)
                        memcpy(at, &v, sizeof(v));
                else
                        memcpy(at, p->kind == AF_PATCH_F32 ? (const void *)&f : &narrow, sizeof(narrow));
        }
        return true;
}

int af_solve(const struct af_bundle *form, const int64_t *symbols, struct af_solved *ret, uint32_t *ret_which, const char **ret_why) {
        int r = check_guards(form, symbols, ret_which, ret_why);
        if (r)
                return r;
        int64_t *values = calloc((size_t)af_bundle_count(form, AF_SECTION_EXPRS) + 1, sizeof(*values));
        uint8_t *data = aligned_alloc(64, AF_ALIGN_UP(form->size, 64));
        *ret_why = "a size overflows";
        r = values && data ? AF_SOLVE_E_SIZE : -ENOMEM;
        bool known = values && data && evaluate(form, symbols, values);
        if (known && (r = check_nodes(form, values, ret_which, ret_why)) == 0) {
                r = AF_SOLVE_E_SIZE;
                *ret_why = "a size overflows";
                memcpy(data, form->data, form->size);
                *ret = (struct af_solved){.data = data};
                ret->view =
                        (struct af_bundle){.data = data,
                                           .size = form->size,
                                           .header = (const struct af_bundle_header *)data,
                                           .sections = (const struct af_bundle_section_entry *)(data + sizeof(struct af_bundle_header))};
                if (fill_in(form, values, data)) {
                        *ret_why = af_bundle_check_tables(&ret->view);
                        r = *ret_why ? AF_SOLVE_E_SIZE : 0;
                }
        }
        free(values);
        if (r)
                free(data);
        return r;
}

void af_solved_deinit(struct af_solved *s) {
        free(s->data);
        *s = (struct af_solved){0};
}
