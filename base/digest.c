/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BLAKE2b-256 field layout: u32 bytes of the tag, tag, u64 bytes of the value, value. The domain is the first field, with the tag "domain".
 */
#include "base/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/io.h"
#include "base/le.h"

_Static_assert(sizeof(((struct af_hasher *)0)->state) >= sizeof(crypto_generichash_state), "af_hasher must hold libsodium's state");
_Static_assert(_Alignof(struct af_hasher) >= _Alignof(crypto_generichash_state), "af_hasher must be aligned as libsodium's state");

#define READ_BYTES (256u << 10)

static crypto_generichash_state *state_of(struct af_hasher *h) {
        return (crypto_generichash_state *)(void *)h->state;
}

static void put_le(struct af_hasher *h, uint64_t v, unsigned n) {
        uint8_t bytes[8];

        af_le_put(bytes, v, n);
        crypto_generichash_update(state_of(h), bytes, n);
}

void af_hasher_init(struct af_hasher *h, const char *domain) {
        crypto_generichash_init(state_of(h), NULL, 0, sizeof(struct af_digest));
        af_hasher_field(h, "domain", domain, strlen(domain));
}

/* Everything of a field but the value itself. */
static void field_head(struct af_hasher *h, const char *tag, uint64_t n) {
        size_t n_tag = strlen(tag);

        put_le(h, n_tag, 4);
        crypto_generichash_update(state_of(h), (const uint8_t *)tag, n_tag);
        put_le(h, n, 8);
}

void af_hasher_field(struct af_hasher *h, const char *tag, const void *p, size_t n) {
        field_head(h, tag, n);
        if (n > 0)
                crypto_generichash_update(state_of(h), p, n);
}

void af_hasher_str(struct af_hasher *h, const char *tag, const char *s) {
        if (s) {
                af_hasher_field(h, tag, s, strlen(s));
                return;
        }
        /* Absent differs from empty: the tag carries a question mark that no caller's tag has. */
        size_t n_tag = strlen(tag);
        put_le(h, n_tag + 1, 4);
        crypto_generichash_update(state_of(h), (const uint8_t *)tag, n_tag);
        crypto_generichash_update(state_of(h), (const uint8_t *)"?", 1);
        put_le(h, 0, 8);
}

void af_hasher_u64(struct af_hasher *h, const char *tag, uint64_t v) {
        field_head(h, tag, 8);
        put_le(h, v, 8);
}

void af_hasher_final(struct af_hasher *h, struct af_digest *ret_digest) {
        crypto_generichash_final(state_of(h), ret_digest->bytes, sizeof(ret_digest->bytes));
}

void af_digest_bytes(const char *domain, const void *p, size_t n, struct af_digest *ret_digest) {
        struct af_hasher h;

        af_hasher_init(&h, domain);
        af_hasher_field(&h, "bytes", p, n);
        af_hasher_final(&h, ret_digest);
}

static int digest_fd(int fd, struct af_digest *ret_digest) {
        AF_CLEANUP(af_freep) uint8_t *chunk = malloc(READ_BYTES);
        struct af_hasher h;
        uint64_t total = 0;

        if (!chunk)
                return -ENOMEM;
        /* The length is known only at the end (a file may be read while it grows), so the content goes in first, as a domain of its own. */
        af_hasher_init(&h, "autofuse.file/1");
        for (;;) {
                ssize_t n = read(fd, chunk, READ_BYTES);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                crypto_generichash_update(state_of(&h), chunk, (size_t)n);
                total += (uint64_t)n;
        }
        put_le(&h, total, 8);
        af_hasher_final(&h, ret_digest);
        return 0;
}

int af_digest_file(const char *path, struct af_digest *ret_digest) {
        AF_CLEANUP(af_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

        if (fd < 0)
                return -errno;
        return digest_fd(fd, ret_digest);
}

void af_hex(const void *p, size_t n, char *out) {
        static const char digits[] = "0123456789abcdef";
        const uint8_t *bytes = p;

        for (size_t i = 0; i < n; i++) {
                out[2 * i] = digits[bytes[i] >> 4];
                out[2 * i + 1] = digits[bytes[i] & 15];
        }
        out[2 * n] = 0;
}

void af_digest_hex(const struct af_digest *d, char out[AF_DIGEST_HEX_SIZE]) {
        af_hex(d->bytes, sizeof(d->bytes), out);
}

static int hex_value(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

bool af_unhex(const char *hex, size_t n_hex, void *ret_bytes, size_t n) {
        uint8_t *bytes = ret_bytes;

        if (n_hex / 2 != n || n_hex % 2 != 0)
                return false;
        for (size_t i = 0; i < n_hex; i++)
                if (hex_value(hex[i]) < 0)
                        return false;
        for (size_t i = 0; i < n; i++)
                bytes[i] = (uint8_t)(hex_value(hex[2 * i]) << 4 | hex_value(hex[2 * i + 1]));
        return true;
}

static void check_store(XXH128_hash_t hash, struct af_check *ret_check) {
        XXH128_canonical_t canonical;

        XXH128_canonicalFromHash(&canonical, hash);
        memcpy(ret_check->bytes, canonical.digest, sizeof(ret_check->bytes));
}

void af_check_bytes(const void *p, size_t n, struct af_check *ret_check) {
        check_store(XXH3_128bits(n > 0 ? p : "", n), ret_check);
}

void af_check_pieces(const struct af_piece *pieces, size_t n_pieces, struct af_check *ret_check) {
        /* A chain: check = H(check, length, H(piece)). No streaming state: its size is not part of the library's ABI. */
        uint8_t link[16 + 8 + 16] = {0};
        struct af_check check = {0};

        for (size_t i = 0; i < n_pieces; i++) {
                memcpy(link, check.bytes, 16);
                for (size_t j = 0; j < 8; j++)
                        link[16 + j] = (uint8_t)((uint64_t)pieces[i].n >> (8 * j));
                af_check_bytes(pieces[i].p, pieces[i].n, &check);
                memcpy(link + 24, check.bytes, 16);
                af_check_bytes(link, sizeof(link), &check);
        }
        *ret_check = check;
}
