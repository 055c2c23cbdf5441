/* SPDX-License-Identifier: Apache-2.0 */
/* Strides: row-major or not, reach, overlap. Private to compiler/graph. */
#pragma once

#include "compiler/graph/internal.h"

#define AF_LAYOUT_MAX_BYTES ((int64_t)1 << 47) /* of one value; a bundle holds up to AF_BUNDLE_MAX_BYTES in all */

/* Whether strides say row-major contiguous, as expressions (unit axes count too). 0 or -ENOMEM. */
int af_layout_is_contiguous(struct af_expr_pool *exprs, const uint32_t *dims, const uint32_t *strides, uint32_t rank,
                            bool *ret) AF_WARN_UNUSED;
/* Writes the row-major strides of dims out, in arena. 0, -ENOMEM, or AF_EXPR_E_*. */
int af_layout_contiguous(struct af_expr_pool *exprs, struct af_arena *arena, const uint32_t *dims, uint32_t rank,
                         uint32_t **ret) AF_WARN_UNUSED;
/*
 * NULL, or why the elements cannot be addressed: one lies before the pointer or beyond the limit. strides NULL: row-major. offset:
 * expression, or AF_NONE: 0, and negative strides are then fine only where offset is stated. Symbolic layouts are believed.
 */
const char *af_layout_check(const struct af_expr_pool *exprs, const uint32_t *dims, const uint32_t *strides, uint32_t rank, uint32_t offset,
                            unsigned elem_bytes);
/*
 * Whether two indices may share an element. Exact for layouts in which axes nest; others count as overlapping. Symbolic: only a stride of 0
 * on an axis that is not 1 is seen.
 */
bool af_layout_overlaps(const struct af_expr_pool *exprs, const uint32_t *dims, const uint32_t *strides, uint32_t rank);
