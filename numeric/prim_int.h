/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scalar primitives on integers: int16, int32 arithmetic wraps; bit operations and shifts on 16- and 32-bit types. Common subset of
 * C17 and C++17. Nothing here can trap.
 */
#pragma once

#include "numeric/bits.h"

AF_FN int16_t af_i16_add(int16_t a, int16_t b) {
        return (int16_t)(uint16_t)((uint32_t)a + (uint32_t)b);
}
AF_FN int16_t af_i16_sub(int16_t a, int16_t b) {
        return (int16_t)(uint16_t)((uint32_t)a - (uint32_t)b);
}
AF_FN int16_t af_i16_mul(int16_t a, int16_t b) {
        return (int16_t)(uint16_t)((uint32_t)a * (uint32_t)b);
}
AF_FN int16_t af_i16_max(int16_t a, int16_t b) {
        return a > b ? a : b;
}
AF_FN int16_t af_i16_min(int16_t a, int16_t b) {
        return a < b ? a : b;
}

AF_FN int32_t af_i32_add(int32_t a, int32_t b) {
        return (int32_t)((uint32_t)a + (uint32_t)b);
}
AF_FN int32_t af_i32_sub(int32_t a, int32_t b) {
        return (int32_t)((uint32_t)a - (uint32_t)b);
}
AF_FN int32_t af_i32_mul(int32_t a, int32_t b) {
        return (int32_t)((uint32_t)a * (uint32_t)b);
}
AF_FN int32_t af_i32_max(int32_t a, int32_t b) {
        return a > b ? a : b;
}
AF_FN int32_t af_i32_min(int32_t a, int32_t b) {
        return a < b ? a : b;
}
AF_FN int32_t af_i32_relu(int32_t a) {
        return a > 0 ? a : 0;
}

/* Shifts by the width or more: zeros, or the sign for an arithmetic shift to the right. */
AF_FN uint16_t af_u16_shl(uint16_t a, uint32_t n) {
        return (uint16_t)(n < 16u ? (uint32_t)a << (n & 15u) : 0u);
}
AF_FN uint16_t af_u16_shr(uint16_t a, uint32_t n) {
        return (uint16_t)(n < 16u ? (uint32_t)a >> (n & 15u) : 0u);
}
AF_FN int16_t af_i16_shl(int16_t a, uint32_t n) {
        return (int16_t)af_u16_shl((uint16_t)a, n);
}
AF_FN int16_t af_i16_shr(int16_t a, uint32_t n) {
        return (int16_t)(a >> (n < 15u ? n : 15u));
}
AF_FN uint32_t af_u32_shl(uint32_t a, uint32_t n) {
        return n < 32u ? a << (n & 31u) : 0u;
}
AF_FN uint32_t af_u32_shr(uint32_t a, uint32_t n) {
        return n < 32u ? a >> (n & 31u) : 0u;
}
AF_FN int32_t af_i32_shl(int32_t a, uint32_t n) {
        return (int32_t)af_u32_shl((uint32_t)a, n);
}
AF_FN int32_t af_i32_shr(int32_t a, uint32_t n) {
        return a >> (n < 31u ? n : 31u);
}

AF_FN uint16_t af_u16_and(uint16_t a, uint16_t b) {
        return (uint16_t)(a & b);
}
AF_FN uint16_t af_u16_or(uint16_t a, uint16_t b) {
        return (uint16_t)(a | b);
}
AF_FN uint16_t af_u16_not(uint16_t a) {
        return (uint16_t)~a;
}
AF_FN uint32_t af_u32_and(uint32_t a, uint32_t b) {
        return a & b;
}
AF_FN uint32_t af_u32_or(uint32_t a, uint32_t b) {
        return a | b;
}
AF_FN uint32_t af_u32_not(uint32_t a) {
        return ~a;
}
AF_FN uint64_t af_u64_and(uint64_t a, uint64_t b) {
        return a & b;
}
AF_FN uint64_t af_u64_or(uint64_t a, uint64_t b) {
        return a | b;
}
AF_FN uint64_t af_u64_not(uint64_t a) {
        return ~a;
}

/* A mask element is a uint8_t 0 or 1. */
AF_FN uint8_t af_mask_and(uint8_t a, uint8_t b) {
        return (uint8_t)(a & b);
}
AF_FN uint8_t af_mask_or(uint8_t a, uint8_t b) {
        return (uint8_t)(a | b);
}
AF_FN uint8_t af_mask_not(uint8_t a) {
        return (uint8_t)(a ^ 1u);
}

AF_FN uint8_t af_i32_eq(int32_t a, int32_t b) {
        return (uint8_t)(a == b);
}

/* Select moves bits: mask 1 takes a. */
AF_FN uint16_t af_u16_select(uint8_t mask, uint16_t a, uint16_t b) {
        return mask ? a : b;
}
AF_FN uint32_t af_u32_select(uint8_t mask, uint32_t a, uint32_t b) {
        return mask ? a : b;
}
