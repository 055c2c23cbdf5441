/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC. */
uint64_t af_clock_now_ns(void);
uint64_t af_clock_now_us(void);
/* The same clock a few milliseconds behind, for the price of a load. */
uint64_t af_clock_coarse_ns(void);
/* Processor time of this process: what work costs, however busy the machine is. */
uint64_t af_clock_cpu_ns(void);
/* CLOCK_REALTIME, whole seconds: for the ledger and recency, never in a key. */
uint64_t af_clock_wall_s(void);
