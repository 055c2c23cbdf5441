/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of bench_hits: what is measured (hits.c) and what it is held against (hits_peers.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/autofuse.h"

#define HITS_LMDB_RECORDS 200u /* as large as the bundle, around the one that is read */

/* Three chains with a node of the framework between them: three kernels, a bundle of about 64 KiB. small: the last chain alone. */
struct autofuse_fragment *hits_fragment_make(bool small);
/* Ends the program where status is not OK. */
void hits_must(enum autofuse_status status, struct autofuse_error *error);
/* Ends the program with a line on stderr. */
_Noreturn void hits_die(const char *what);
/* Microseconds of CLOCK_MONOTONIC. */
double hits_now_us(void);
/* Sorts; the value at the share q of 0..1. */
double hits_quantile(double *values, uint32_t n, double q);

/* An echo of 256 bytes over a Unix socket: a server for any number of clients, until its parent is gone. Returns its process. */
int hits_echo_serve(const char *path);
int hits_echo_connect(const char *path);
void hits_echo_ask(int fd);
/* Maps fd (n bytes), verifies XXH3-128 over it, unmaps. */
void hits_map_and_verify(int fd, size_t n);

struct hits_lmdb;
/* Writes dir with HITS_LMDB_RECORDS records of n bytes, the one at hits_lmdb_key(0) being p. */
void hits_lmdb_make(const char *dir, const void *p, size_t n);
struct hits_lmdb *hits_lmdb_open(const char *dir);
/* Record i: get and copy to `into`, or to memory of its own that the caller frees; nothing is verified. */
void *hits_lmdb_get(struct hits_lmdb *db, uint32_t i, void *into, size_t *ret_n);
