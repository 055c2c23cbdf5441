/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The solver of dynamic shapes: a bundle with symbols is a form (proto/bundle.h), and this fills it in. The same code runs wherever a
 * bundle is used, so that no host code is compiled for shapes; callers keep what they solved per tuple of values.
 */
#pragma once

#include "proto/bundle.h"

struct af_solved {
        struct af_bundle view; /* as of a bundle without symbols; borrows from data */
        uint8_t *data;
};
enum { AF_SOLVE_E_GUARD = 1 /* *ret_why */, AF_SOLVE_E_SIZE = 2, AF_SOLVE_E_NODE = 3 /* *ret_why, of the form's bytes */ };
/*
 * symbols: one value per symbol of the form, canonical order. Checks the symbols' guards (range, multiple), evaluates every expression
 * once, checks what nodes want of sizes, fills the fields in, checks the tables again. *ret_which (may be NULL): which symbol broke its
 * guard, or which canonical node has nothing to reduce. *ret_why: static text, or the form's. 0, -ENOMEM, GUARD, NODE, or SIZE: a size
 * overflows or makes the tables wrong. Free with af_solved_deinit.
 */
int af_solve(const struct af_bundle *form, const int64_t *symbols, struct af_solved *ret, uint32_t *ret_which,
             const char **ret_why) AF_WARN_UNUSED;
void af_solved_deinit(struct af_solved *s);
