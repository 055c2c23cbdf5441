/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pack: one file of whole bundles, for images and other hosts. Little-endian, versioned, indexed; nothing in it depends on the page size
 * or byte order of the host that wrote it.
 *
 *     0  u32 magic "AFPK"    4  u32 version (1)    8  u32 flags (1: signed)    12  u32 version of the canonical form
 *    16  u64 entries        24  u64 offset of the entry table    32  u64 targets    40  u64 offset of the target table
 *    48  u64 offset of the machine text    56  u64 its bytes    64  u64 bytes of the file    72  zero
 *    96  BLAKE2b-256 over bytes 0..96, both tables and the machine text
 *   128  Ed25519 signature of that digest, or zero
 *   192  entries' bytes, each piece at a multiple of 64; then machine text, target table, entry table
 *
 * entry (192 bytes): 32 fragment digest, 32 environment digest, u64 offset and size of the canonical bytes (size 0: left out), u64 offset
 * and size of the bundle, 16 XXH3-128 over all four, 32 BLAKE2b-256 over the same (zero unless signed), zero. Sorted by the digests.
 * target (192 bytes): 32 environment digest, u32 twin, 28 zero, 64 bytes SoC name, 64 bytes toolchain id (zero-padded): which environment
 * a request for this target has here; "" is the default.
 *
 * A pack is read with pread, never mapped: one that is cut short under a reader gives a miss, not SIGBUS. Readers check what they take.
 */
#pragma once

#include "base/buf.h"
#include "base/digest.h"

#define AF_PACK_MAGIC        0x4b504641u /* "AFPK" */
#define AF_PACK_VERSION      1u
#define AF_PACK_MAX_NAME     63u
#define AF_PACK_SECRET_BYTES 64u
#define AF_PACK_PUBLIC_BYTES 32u

enum {
        AF_PACK_E_MISS = 1,
        AF_PACK_E_DAMAGED = 2,   /* not a pack, or bytes that do not verify */
        AF_PACK_E_VERSION = 3,   /* of the pack or of its canonical form */
        AF_PACK_E_SIGNATURE = 4, /* a key was given, and it did not sign this pack */
        AF_PACK_E_OWNER = 5,     /* not a plain file of root or of this user, or others may write it */
        AF_PACK_E_MACHINE = 6    /* made for a processor that has what this one lacks */
};

/* A new pair: secret is for af_pack_writer_finish, public for af_pack_open. */
void af_pack_make_keys(uint8_t ret_secret[AF_PACK_SECRET_BYTES], uint8_t ret_public[AF_PACK_PUBLIC_BYTES]);
/* A key of n bytes as files hold it: 2 n hex digits, then the end of a line. 0, AF_PACK_E_DAMAGED (no such key), -errno. */
int af_pack_read_key(const char *path, size_t n, uint8_t *ret_key) AF_WARN_UNUSED;
/* What this host's processor can do, as the writer notes it: sorted words, or "" where the system does not say. Appends. */
void af_pack_machine(struct af_buf *buf);

/* ---- writing ---- */

struct af_pack_writer;
/* Writes to fd (a new, empty file; the caller's), from offset 0. machine: what kernels in it need, see af_pack_machine; NULL: nothing. */
int af_pack_writer_new(int fd, uint32_t canon_version, const char *machine, struct af_pack_writer **ret_writer) AF_WARN_UNUSED;
/* canon may be empty (n_canon 0). Of entries with equal digests one is kept. 0 or -errno. */
int af_pack_writer_add(struct af_pack_writer *w, const struct af_digest *fragment, const struct af_digest *environment, const void *canon,
                       size_t n_canon, const void *bundle, size_t n_bundle) AF_WARN_UNUSED;
/* -ENAMETOOLONG beyond AF_PACK_MAX_NAME; the last one for a target holds. */
int af_pack_writer_target(struct af_pack_writer *w, const char *soc, const char *toolchain, uint32_t twin,
                          const struct af_digest *environment) AF_WARN_UNUSED;
uint64_t af_pack_writer_count(const struct af_pack_writer *w);
/* Writes the tables and the header; secret (may be NULL) signs. Not synced. 0 or -errno. */
int af_pack_writer_finish(struct af_pack_writer *w, const uint8_t *secret) AF_WARN_UNUSED;
void af_pack_writer_free(struct af_pack_writer *w); /* NULL is accepted */

/* ---- reading: any number of threads ---- */

struct af_pack;
/* public_key: only a pack that it signed is opened; NULL: signatures are not looked at. 0, -errno, AF_PACK_E_*; *ret_why (static) then. */
int af_pack_open(const char *path, uint32_t canon_version, const uint8_t *public_key, struct af_pack **ret_pack,
                 const char **ret_why) AF_WARN_UNUSED;
/* The same of a file that is open, whoever owns it: where it is from is the caller's business. fd stays the caller's. */
int af_pack_open_fd(int fd, uint32_t canon_version, const uint8_t *public_key, struct af_pack **ret_pack,
                    const char **ret_why) AF_WARN_UNUSED;
void af_pack_close(struct af_pack *p); /* NULL is accepted */

uint64_t af_pack_count(const struct af_pack *p);
bool af_pack_signed(const struct af_pack *p);
/* Which environment a target's bundles are under. 0 or AF_PACK_E_MISS. */
int af_pack_environment(const struct af_pack *p, const char *soc, const char *toolchain, uint32_t twin,
                        struct af_digest *ret_environment) AF_WARN_UNUSED;
uint64_t af_pack_target_count(const struct af_pack *p);
/* The i-th target; soc and toolchain hold AF_PACK_MAX_NAME + 1 bytes. */
void af_pack_target(const struct af_pack *p, uint64_t i, char *soc, char *toolchain, uint32_t *ret_twin, struct af_digest *ret_environment);

/* What an entry is; its bytes are appended to the buffers (either may be NULL), which should be empty for their alignment. */
struct af_pack_entry {
        struct af_digest fragment, environment;
        uint64_t n_canon, n_bundle;
};
/* 0, AF_PACK_E_MISS, AF_PACK_E_DAMAGED, -errno. */
int af_pack_get(const struct af_pack *p, const struct af_digest *fragment, const struct af_digest *environment, struct af_buf *canon,
                struct af_buf *bundle) AF_WARN_UNUSED;
int af_pack_entry(const struct af_pack *p, uint64_t i, struct af_pack_entry *ret_entry, struct af_buf *canon,
                  struct af_buf *bundle) AF_WARN_UNUSED;
