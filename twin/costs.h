/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modelled cycles, as published for NPU arch 2201 (rules/soc has the same figures for the schedule; a test compares them): per transfer
 * bytes / (a + b / blocks) + h, per vector call k * elements + c, per pipe and block a head.
 */
#pragma once

#include <stdint.h>

namespace AscendC::chk {
struct DmaCost {
        double a, b, h;
};
struct VecCost {
        double k, c;
};
inline constexpr DmaCost LOAD{9.9074, 15.896, 27.01}, LOAD_SMALL{7.9052, 7.31, 27.01}, STORE{9.96, 3.79, 12.09};
inline constexpr uint64_t SMALL_BYTES = 25000; /* of a load; of all that a block loads, for the head */
inline constexpr VecCost VEC_F32{0.0206, 22.5}, VEC_F16{0.0103, 22.5}, UNARY_F32{0.0147, 20}, UNARY_F16{0.0077, 20}, WIDE{0.0332, 18.9},
        CAST_U8_F16{0.0102, 46.5}, CAST_F32_F16{0.0087, 20.4};
inline constexpr double HEAD_V = 37.37, HEAD_MTE3 = 497.36, SYNC_ALL = 1500; /* the last is assumed: no figure is published */

inline double dma_cycles(bool load, uint64_t bytes, double blocks) {
        const DmaCost &c = !load ? STORE : bytes < SMALL_BYTES ? LOAD_SMALL : LOAD;
        return static_cast<double>(bytes) / (c.a + c.b / blocks) + c.h;
}
/* Start-up of a block's loads: more where it loads more. */
inline double head_mte2(uint64_t bytes, double blocks) {
        return bytes < SMALL_BYTES ? 882.09 + 15.89 * blocks : 1575.03 + 32.72 * blocks;
}
/* One source at most and neither compare, select nor reduction: `unary`. Element sizes of the first source and of the result. */
inline double vector_cycles(bool unary, uint32_t from, uint32_t to, uint64_t n) {
        const VecCost &c = from == 8 || to == 8   ? WIDE
                           : from == 1 && to == 2 ? CAST_U8_F16
                           : from == 4 && to == 2 ? CAST_F32_F16
                           : from <= 2 && to <= 2 ? (unary ? UNARY_F16 : VEC_F16)
                           : unary                ? UNARY_F32
                                                  : VEC_F32;
        return c.k * static_cast<double>(n) + c.c;
}
} // namespace AscendC::chk
