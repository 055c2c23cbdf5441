/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every scalar primitive: one inline function per primitive and dtype, named af_<dtype>_<primitive>. The reference (prim_eval.c) and
 * the twin's vector calls are loops over these, so that both give the same bits. Common subset of C17 and C++17; see bits.h for
 * the compiler flags that they need.
 *
 * float16 and bfloat16 values are uint16_t bit patterns; a mask element is a uint8_t, 0 or 1.
 */
#pragma once

#include "numeric/prim_cast.h"
#include "numeric/prim_f16.h"
#include "numeric/prim_f32.h"
#include "numeric/prim_int.h"
