/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "hot/pack_format.h"

#define MAX_TARGETS       4096u
#define MAX_MACHINE_BYTES 65536u

struct af_pack {
        int fd;
        struct pack_header header;
        struct pack_target *targets;
        uint8_t *index; /* the entry table, verified: packs opened with a key; NULL: read from the file */
        bool keyed;
};

/* Exactly n bytes. 0, AF_PACK_E_DAMAGED where the file ends before them, -errno. */
static int read_at(int fd, void *p, size_t n, uint64_t at) {
        uint8_t *to = p;

        while (n > 0) {
                ssize_t got = pread(fd, to, n, (off_t)at);

                if (got == 0)
                        return AF_PACK_E_DAMAGED;
                if (got < 0 && errno != EINTR)
                        return -errno;
                if (got > 0) {
                        to += got;
                        at += (uint64_t)got;
                        n -= (size_t)got;
                }
        }
        return 0;
}

static int read_new(int fd, uint64_t n, uint64_t at, uint8_t **ret_p) {
        uint8_t *p = malloc(n + 1);
        int r = p ? read_at(fd, p, n, at) : -ENOMEM;

        if (r) {
                free(p);
                return r;
        }
        p[n] = 0;
        *ret_p = p;
        return 0;
}

static bool inside(const struct pack_header *h, uint64_t at, uint64_t n, uint64_t size) {
        return at >= PACK_HEADER_BYTES && at <= h->file_bytes && n <= (h->file_bytes - at) / size;
}

static int check_owner(const struct stat *st) {
        bool ours = st->st_uid == 0 || st->st_uid == geteuid();

        return S_ISREG(st->st_mode) && ours && !(st->st_mode & (S_IWGRP | S_IWOTH)) ? 0 : AF_PACK_E_OWNER;
}

/* Every word of what the pack needs is among this host's. */
static bool machine_suits(const char *needs) {
        AF_CLEANUP(af_buf_deinit) struct af_buf have = AF_BUF_INIT;
        char word[66];

        af_buf_put_u8(&have, ' ');
        af_pack_machine(&have);
        af_buf_put(&have, " ", 2);
        if (af_buf_error(&have))
                return false;
        while (*needs) {
                size_t n = strcspn(needs, " ");

                if (n > 62)
                        return false;
                if (n) {
                        word[0] = ' ';
                        memcpy(word + 1, needs, n);
                        memcpy(word + 1 + n, " ", 2);
                        if (!strstr((const char *)have.data, word))
                                return false;
                }
                needs += n + (needs[n] == ' ');
        }
        return true;
}

/* Targets, machine, and with a key all that the digest covers. */
static int load(struct af_pack *p, const uint8_t head[PACK_HEADER_BYTES], const uint8_t *public_key) {
        const struct pack_header *h = &p->header;
        AF_CLEANUP(af_freep) uint8_t *machine = NULL;
        AF_CLEANUP(af_freep) uint8_t *targets = NULL;
        struct af_digest digest;
        int r;

        r = read_new(p->fd, h->machine_bytes, h->machine_at, &machine);
        if (r == 0)
                r = read_new(p->fd, h->n_targets * PACK_TARGET_BYTES, h->targets_at, &targets);
        if (r == 0 && public_key)
                r = read_new(p->fd, h->n_entries * PACK_ENTRY_BYTES, h->entries_at, &p->index);
        if (r)
                return r;
        if (public_key) {
                pack_digest(head, p->index, h->n_entries * PACK_ENTRY_BYTES, targets, h->n_targets * PACK_TARGET_BYTES, machine,
                            h->machine_bytes, &digest);
                if (!(h->flags & PACK_SIGNED) || !af_digest_equal(&digest, &h->digest) ||
                    crypto_sign_verify_detached(h->signature, digest.bytes, sizeof(digest.bytes), public_key) != 0)
                        return AF_PACK_E_SIGNATURE;
        }
        p->targets = calloc(h->n_targets + 1, sizeof(*p->targets));
        if (!p->targets)
                return -ENOMEM;
        for (uint64_t i = 0; i < h->n_targets; i++)
                pack_target_read(targets + i * PACK_TARGET_BYTES, &p->targets[i]);
        return machine_suits((const char *)machine) ? 0 : AF_PACK_E_MACHINE;
}

/* trusted: whoever owns the file. */
static int open_checked(struct af_pack *p, bool trusted, uint32_t canon_version, const uint8_t *public_key) {
        uint8_t head[PACK_HEADER_BYTES];
        struct pack_header *h = &p->header;
        uint64_t bytes;
        struct stat st;
        int r;

        p->keyed = public_key;
        if (fstat(p->fd, &st) < 0)
                return -errno;
        bytes = (uint64_t)st.st_size;
        r = trusted ? 0 : check_owner(&st);
        if (r == 0)
                r = read_at(p->fd, head, sizeof(head), 0);
        if (r == 0)
                r = pack_header_read(head, h);
        if (r)
                return r;
        if (h->canon_version != canon_version)
                return AF_PACK_E_VERSION;
        if (h->file_bytes != bytes || bytes > PACK_MAX_BYTES || h->n_targets > MAX_TARGETS || h->machine_bytes > MAX_MACHINE_BYTES ||
            !inside(h, h->entries_at, h->n_entries, PACK_ENTRY_BYTES) || !inside(h, h->targets_at, h->n_targets, PACK_TARGET_BYTES) ||
            !inside(h, h->machine_at, h->machine_bytes, 1))
                return AF_PACK_E_DAMAGED;
        return load(p, head, public_key);
}

static const char *why(int r) {
        switch (r) {
        case AF_PACK_E_DAMAGED:
                return "it is not a pack, or it is damaged";
        case AF_PACK_E_VERSION:
                return "it has another version";
        case AF_PACK_E_SIGNATURE:
                return "it is not signed by the key that was given";
        case AF_PACK_E_OWNER:
                return "it is not a plain file of root or of this user that nobody else may write";
        case AF_PACK_E_MACHINE:
                return "its kernels need processor features that this host lacks";
        default:
                return strerrordesc_np(-r);
        }
}

/* Takes fd; errno is valid where it is negative. */
static int open_new(int fd, bool trusted, uint32_t canon_version, const uint8_t *public_key, struct af_pack **ret_pack,
                    const char **ret_why) {
        int r = fd < 0 ? -errno : -ENOMEM;
        struct af_pack *p = fd < 0 ? NULL : calloc(1, sizeof(*p));

        if (p) {
                p->fd = fd;
                r = open_checked(p, trusted, canon_version, public_key);
        } else if (fd >= 0) {
                close(fd);
        }
        if (r) {
                *ret_why = why(r);
                af_pack_close(p);
                return r;
        }
        *ret_pack = p;
        return 0;
}

int af_pack_open(const char *path, uint32_t canon_version, const uint8_t *public_key, struct af_pack **ret_pack, const char **ret_why) {
        return open_new(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), false, canon_version, public_key, ret_pack, ret_why);
}

int af_pack_open_fd(int fd, uint32_t canon_version, const uint8_t *public_key, struct af_pack **ret_pack, const char **ret_why) {
        return open_new(fcntl(fd, F_DUPFD_CLOEXEC, 3), true, canon_version, public_key, ret_pack, ret_why);
}

int af_pack_read_key(const char *path, size_t n, uint8_t *ret_key) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        int r = af_io_read_file(path, 4096, &buf);

        if (r < 0)
                return r == -EFBIG ? AF_PACK_E_DAMAGED : r;
        while (buf.size > 0 && (buf.data[buf.size - 1] == '\n' || buf.data[buf.size - 1] == '\r'))
                buf.size--;
        return buf.size == 2 * n && af_unhex((const char *)buf.data, buf.size, ret_key, n) ? 0 : AF_PACK_E_DAMAGED;
}

void af_pack_close(struct af_pack *p) {
        if (!p)
                return;
        close(p->fd);
        free(p->targets);
        free(p->index);
        free(p);
}

uint64_t af_pack_count(const struct af_pack *p) {
        return p->header.n_entries;
}

bool af_pack_signed(const struct af_pack *p) {
        return p->header.flags & PACK_SIGNED;
}

uint64_t af_pack_target_count(const struct af_pack *p) {
        return p->header.n_targets;
}

void af_pack_target(const struct af_pack *p, uint64_t i, char *soc, char *toolchain, uint32_t *ret_twin,
                    struct af_digest *ret_environment) {
        const struct pack_target *t = &p->targets[i];

        memcpy(soc, t->soc, sizeof(t->soc));
        memcpy(toolchain, t->toolchain, sizeof(t->toolchain));
        *ret_twin = t->twin;
        *ret_environment = t->environment;
}

int af_pack_environment(const struct af_pack *p, const char *soc, const char *toolchain, uint32_t twin, struct af_digest *ret_environment) {
        for (uint64_t i = 0; i < p->header.n_targets; i++) {
                const struct pack_target *t = &p->targets[i];

                if (t->twin == twin && strcmp(t->soc, soc) == 0 && strcmp(t->toolchain, toolchain) == 0) {
                        *ret_environment = t->environment;
                        return 0;
                }
        }
        return AF_PACK_E_MISS;
}

/* ---- entries ---- */

static int entry_at(const struct af_pack *p, uint64_t i, struct pack_entry *ret_e) {
        uint8_t bytes[PACK_ENTRY_BYTES];
        int r;

        if (p->index) {
                pack_entry_read(p->index + i * PACK_ENTRY_BYTES, ret_e);
                return 0;
        }
        r = read_at(p->fd, bytes, sizeof(bytes), p->header.entries_at + i * PACK_ENTRY_BYTES);
        if (r == 0)
                pack_entry_read(bytes, ret_e);
        return r;
}

static int piece(const struct af_pack *p, uint64_t at, uint64_t n, struct af_buf *buf) {
        uint8_t *to;
        int r;

        if (n == 0)
                return 0;
        if (!inside(&p->header, at, n, 1))
                return AF_PACK_E_DAMAGED;
        to = af_buf_reserve(buf, n);
        if (!to)
                return af_buf_error(buf);
        r = read_at(p->fd, to, n, at);
        if (r == 0)
                buf->size += n;
        return r;
}

/* The entry's bytes, verified as far as the pack was: with a key against the digest that was signed. */
static int take(const struct af_pack *p, const struct pack_entry *e, struct af_buf *canon, struct af_buf *bundle) {
        AF_CLEANUP(af_buf_deinit) struct af_buf own_canon = AF_BUF_INIT, own_bundle = AF_BUF_INIT;
        size_t canon_from, bundle_from;
        struct af_digest content;
        struct af_check check;
        bool sound;
        int r;

        canon = canon ? canon : &own_canon;
        bundle = bundle ? bundle : &own_bundle;
        canon_from = canon->size;
        bundle_from = bundle->size;
        r = piece(p, e->canon_at, e->n_canon, canon);
        if (r == 0)
                r = piece(p, e->bundle_at, e->n_bundle, bundle);
        if (r)
                return r;
        if (p->keyed) {
                pack_entry_content(e, canon->data + canon_from, bundle->data + bundle_from, &content);
                sound = af_digest_equal(&content, &e->content);
        } else {
                pack_entry_check(e, canon->data + canon_from, bundle->data + bundle_from, &check);
                sound = memcmp(check.bytes, e->check.bytes, sizeof(check.bytes)) == 0;
        }
        if (sound)
                return 0;
        canon->size = canon_from;
        bundle->size = bundle_from;
        return AF_PACK_E_DAMAGED;
}

int af_pack_get(const struct af_pack *p, const struct af_digest *fragment, const struct af_digest *environment, struct af_buf *canon,
                struct af_buf *bundle) {
        uint64_t low = 0, high = p->header.n_entries;

        while (low < high) {
                uint64_t middle = low + (high - low) / 2;
                struct pack_entry e;
                int r = entry_at(p, middle, &e), c;

                if (r)
                        return r;
                c = pack_entry_compare(&e, fragment, environment);
                if (c == 0)
                        return take(p, &e, canon, bundle);
                if (c < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return AF_PACK_E_MISS;
}

int af_pack_entry(const struct af_pack *p, uint64_t i, struct af_pack_entry *ret_entry, struct af_buf *canon, struct af_buf *bundle) {
        struct pack_entry e;
        int r;

        if (i >= p->header.n_entries)
                return AF_PACK_E_MISS;
        r = entry_at(p, i, &e);
        if (r == 0 && (canon || bundle))
                r = take(p, &e, canon, bundle);
        if (r == 0)
                *ret_entry = (struct af_pack_entry){e.fragment, e.environment, e.n_canon, e.n_bundle};
        return r;
}
