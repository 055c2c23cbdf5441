/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LMDB trusts its file: a page that lies about its nodes makes it read or move bytes that are not its own. So the file's structure is
 * read here first, with nothing trusted, by pread. What does not hold is never opened; what is whole in it can be taken out.
 */
#pragma once

#include "base/buf.h"

/*
 * A record that a whole path of pages leads to: the database's name, key and value (borrowed for the call; the value is not verified).
 */
typedef void (*af_pages_visit_fn)(void *userdata, const char *db, size_t n_db, const uint8_t *key, size_t n_key, const uint8_t *value,
                                  size_t n_value);
enum { AF_PAGES_E_DAMAGED = 1 };
/*
 * Walks every page of the newest commit in an LMDB data file (format 1, 64 bit, little-endian) that nobody writes. visit may be NULL: then
 * values are not read. What is damaged is passed over. 0, -errno, AF_PAGES_E_DAMAGED where anything is.
 */
int af_pages_walk(int fd, af_pages_visit_fn visit, void *userdata) AF_WARN_UNUSED;
