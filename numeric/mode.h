/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding and compare modes, in the order of Ascend C's RoundMode and CMPMODE. Common subset of C17 and C++17. */
#pragma once

enum af_round {
        AF_ROUND_NONE, /* exact where the target holds every value, else as RINT */
        AF_ROUND_RINT, /* nearest, ties to even */
        AF_ROUND_FLOOR,
        AF_ROUND_CEIL,
        AF_ROUND_ROUND, /* nearest, ties away from zero */
        AF_ROUND_TRUNC
};

enum af_cmp { AF_CMP_LT, AF_CMP_GT, AF_CMP_EQ, AF_CMP_LE, AF_CMP_GE, AF_CMP_NE };
