/* SPDX-License-Identifier: Apache-2.0 */
/* Inside numeric/: how the loops over scalar primitives are declared and found. */
#pragma once

#include "numeric/expand.h"

typedef void (*af_loop_fn)(const struct af_prim_ins *ins, const void *const *srcs, void *dst, size_t n);

/*
 * Loops are compiled for several instruction sets and chosen when the program is loaded. The bits are the same with each; thread
 * sanitizer cannot run before the choice, so it gets one version.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_THREAD__)
#define AF_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define AF_CLONES
#endif
#define AF_LOOP_FN AF_CLONES static

/* Iterations are independent: a destination either is a source, element for element, or does not overlap it. */
#if defined(__clang__)
#define AF_LOOP(n) for (size_t i = 0; i < (n); i++)
#else
#define AF_LOOP(n) _Pragma("GCC ivdep") for (size_t i = 0; i < (n); i++)
#endif

/* The loop of a Cast pair that the vector unit has; NULL for others. */
af_loop_fn af_cast_loop(enum af_dtype from, enum af_dtype to);
