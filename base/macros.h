/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and small helpers that every folder uses. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* sys/socket.h numbers its address families with this name; ours is the larger of two. */
#undef AF_MAX

#define AF_WARN_UNUSED       __attribute__((warn_unused_result))
#define AF_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define AF_CLEANUP(fn)       __attribute__((cleanup(fn)))
#define AF_ARRAY_SIZE(a)     (sizeof(a) / sizeof((a)[0]))
#define AF_MIN(a, b)         ((a) < (b) ? (a) : (b))
#define AF_MAX(a, b)         ((a) > (b) ? (a) : (b))
#define AF_ALIGN_UP(x, a)    (((x) + (a)-1) / (a) * (a))

/* The invalid 32-bit id. Links between objects of a job are ids, never pointers. */
#define AF_NONE UINT32_MAX
