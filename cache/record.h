/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frame of a stored record. LMDB has no checksums of its own.
 *
 *   0  u32 magic "AFR1"    4  u32 table    8  u64 payload bytes
 *  16  XXH3-128 over table, key, payload length and payload
 *  32  payload
 *
 * 32 bytes of header put the payload of a large value at page + 48: a copy to a 128-byte aligned destination stays clear of the
 * slow case of memcpy (destination 1 to 31 bytes above the source modulo 4096).
 */
#pragma once

#include <stdbool.h>

#include "base/digest.h"
#include "cache/store.h"

#define AF_RECORD_MAGIC        0x31524641u
#define AF_RECORD_HEADER_BYTES 32u

/* Writes the 32-byte header for r into out. */
void af_record_header_write(const struct af_store_record *r, uint8_t out[AF_RECORD_HEADER_BYTES]);
/*
 * Verifies a stored record (header and payload, n bytes at p) against the table and key that it was read under. On true
 * *ret_payload borrows from p.
 */
bool af_record_verify(enum af_table table, const void *key, uint32_t key_size, const void *p, size_t n, const void **ret_payload,
                      size_t *ret_n) AF_WARN_UNUSED;
