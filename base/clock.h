/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC. */
uint64_t af_clock_now_ns(void);
uint64_t af_clock_now_us(void);
/* CLOCK_REALTIME, whole seconds: for the ledger and recency, never in a key. */
uint64_t af_clock_wall_s(void);
