/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "hot/pack_format.h"

struct af_pack_writer {
        int fd;
        uint32_t canon_version;
        char *machine;
        uint64_t at; /* bytes of the file so far */
        struct pack_entry *entries;
        uint64_t n_entries, n_room;
        struct pack_target *targets;
        uint64_t n_targets;
};

void af_pack_make_keys(uint8_t ret_secret[AF_PACK_SECRET_BYTES], uint8_t ret_public[AF_PACK_PUBLIC_BYTES]) {
        crypto_sign_keypair(ret_public, ret_secret);
}

int af_pack_writer_new(int fd, uint32_t canon_version, const char *machine, struct af_pack_writer **ret_writer) {
        struct af_pack_writer *w = calloc(1, sizeof(*w));

        if (!w)
                return -ENOMEM;
        *w = (struct af_pack_writer){
                .fd = fd, .canon_version = canon_version, .at = PACK_HEADER_BYTES, .machine = strdup(machine ? machine : "")};
        if (!w->machine) {
                free(w);
                return -ENOMEM;
        }
        *ret_writer = w;
        return 0;
}

void af_pack_writer_free(struct af_pack_writer *w) {
        if (!w)
                return;
        free(w->machine);
        free(w->entries);
        free(w->targets);
        free(w);
}

uint64_t af_pack_writer_count(const struct af_pack_writer *w) {
        return w->n_entries;
}

static int write_at(int fd, const void *p, size_t n, uint64_t at) {
        const uint8_t *from = p;

        while (n > 0) {
                ssize_t done = pwrite(fd, from, n, (off_t)at);

                if (done < 0 && errno != EINTR)
                        return -errno;
                if (done > 0) {
                        from += done;
                        at += (uint64_t)done;
                        n -= (size_t)done;
                }
        }
        return 0;
}

/* Appends at the next multiple of 64; gaps read as zero. */
static int append(struct af_pack_writer *w, const void *p, size_t n, uint64_t *ret_at) {
        uint64_t at = AF_ALIGN_UP(w->at, (uint64_t)PACK_ALIGN);
        int r;

        if (n > PACK_MAX_BYTES - at)
                return -EFBIG;
        r = write_at(w->fd, p, n, at);
        if (r)
                return r;
        *ret_at = at;
        w->at = at + n;
        return 0;
}

int af_pack_writer_add(struct af_pack_writer *w, const struct af_digest *fragment, const struct af_digest *environment, const void *canon,
                       size_t n_canon, const void *bundle, size_t n_bundle) {
        struct pack_entry e = {.fragment = *fragment, .environment = *environment, .n_canon = n_canon, .n_bundle = n_bundle};
        int r = 0;

        if (w->n_entries == w->n_room) {
                uint64_t room = w->n_room ? 2 * w->n_room : 64;
                struct pack_entry *more = realloc(w->entries, room * sizeof(*more));

                if (!more)
                        return -ENOMEM;
                w->entries = more;
                w->n_room = room;
        }
        pack_entry_check(&e, canon, bundle, &e.check);
        pack_entry_content(&e, canon, bundle, &e.content);
        if (n_canon)
                r = append(w, canon, n_canon, &e.canon_at);
        if (r == 0)
                r = append(w, bundle, n_bundle, &e.bundle_at);
        if (r == 0)
                w->entries[w->n_entries++] = e;
        return r;
}

int af_pack_writer_target(struct af_pack_writer *w, const char *soc, const char *toolchain, uint32_t twin,
                          const struct af_digest *environment) {
        struct pack_target *t = NULL;

        if (strlen(soc) > AF_PACK_MAX_NAME || strlen(toolchain) > AF_PACK_MAX_NAME)
                return -ENAMETOOLONG;
        for (uint64_t i = 0; i < w->n_targets; i++)
                if (w->targets[i].twin == twin && strcmp(w->targets[i].soc, soc) == 0 && strcmp(w->targets[i].toolchain, toolchain) == 0)
                        t = &w->targets[i];
        if (!t) {
                struct pack_target *more = realloc(w->targets, (w->n_targets + 1) * sizeof(*more));

                if (!more)
                        return -ENOMEM;
                w->targets = more;
                t = &more[w->n_targets++];
        }
        *t = (struct pack_target){.environment = *environment, .twin = twin};
        memcpy(t->soc, soc, strlen(soc));
        memcpy(t->toolchain, toolchain, strlen(toolchain));
        return 0;
}

static int by_digests(const void *a, const void *b) {
        const struct pack_entry *y = b;

        return pack_entry_compare(a, &y->fragment, &y->environment);
}

static void sort_entries(struct af_pack_writer *w) {
        uint64_t n = 0;

        if (w->n_entries)
                qsort(w->entries, w->n_entries, sizeof(*w->entries), by_digests);
        for (uint64_t i = 0; i < w->n_entries; i++)
                if (n == 0 || by_digests(&w->entries[n - 1], &w->entries[i]) != 0)
                        w->entries[n++] = w->entries[i];
        w->n_entries = n;
}

/* Both tables and the machine text, as they go into file and digest. */
static void tables_write(const struct af_pack_writer *w, bool is_signed, struct af_buf *entries, struct af_buf *targets) {
        for (uint64_t i = 0; i < w->n_entries; i++) {
                struct pack_entry e = w->entries[i];
                uint8_t *p = af_buf_reserve(entries, PACK_ENTRY_BYTES);

                if (!p)
                        return;
                if (!is_signed)
                        e.content = (struct af_digest){0};
                pack_entry_write(&e, p);
                entries->size += PACK_ENTRY_BYTES;
        }
        for (uint64_t i = 0; i < w->n_targets; i++) {
                uint8_t *p = af_buf_reserve(targets, PACK_TARGET_BYTES);

                if (!p)
                        return;
                pack_target_write(&w->targets[i], p);
                targets->size += PACK_TARGET_BYTES;
        }
}

int af_pack_writer_finish(struct af_pack_writer *w, const uint8_t *secret) {
        AF_CLEANUP(af_buf_deinit) struct af_buf entries = AF_BUF_INIT, targets = AF_BUF_INIT;
        struct pack_header h = {.version = AF_PACK_VERSION, .flags = secret ? PACK_SIGNED : 0, .canon_version = w->canon_version};
        uint8_t head[PACK_HEADER_BYTES];
        int r;

        sort_entries(w);
        tables_write(w, secret, &entries, &targets);
        r = af_buf_error(&entries) ? af_buf_error(&entries) : af_buf_error(&targets);
        h.n_entries = w->n_entries;
        h.n_targets = w->n_targets;
        h.machine_bytes = strlen(w->machine);
        if (r == 0)
                r = append(w, w->machine, h.machine_bytes, &h.machine_at);
        if (r == 0)
                r = append(w, targets.data, targets.size, &h.targets_at);
        if (r == 0)
                r = append(w, entries.data, entries.size, &h.entries_at);
        if (r)
                return r;
        h.file_bytes = w->at;
        pack_header_write(&h, head);
        pack_digest(head, entries.data, entries.size, targets.data, targets.size, w->machine, h.machine_bytes, &h.digest);
        if (secret)
                crypto_sign_detached(h.signature, NULL, h.digest.bytes, sizeof(h.digest.bytes), secret);
        pack_header_write(&h, head);
        if (ftruncate(w->fd, (off_t)w->at) < 0)
                return -errno;
        return write_at(w->fd, head, sizeof(head), 0);
}
