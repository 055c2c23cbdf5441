/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the writer and the reader of the canonical form. Private to compiler/graph. */
#pragma once

#define AF_CANON_MAGIC 0x31434641u /* "AFC1" */
/* Expressions of one fragment; the reader refuses more. */
#define AF_CANON_MAX_EXPRS (4u << 20)
