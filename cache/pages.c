/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LMDB's file, as liblmdb 0.9 writes it (all little-endian here: store_dir.c refuses other machines):
 *
 *   page    u64 number   u16 -   u16 flags   u16 lower, u16 upper (overflow: u32 pages)   u16 offsets of nodes …   free   nodes …
 *   meta    page header, u32 magic, u32 version, u64 -, u64 map size, database of free pages, main database, u64 last page, u64 transaction
 *   node    u16 lo, u16 hi, u16 flags, u16 key size, key, data: of lo | hi << 16 bytes, or (BIG) the u64 number of its overflow pages.
 *           In a branch lo, hi and flags are the number of the child's page.
 *   db      u32 page size, u16 flags, u16 depth, u64 branch, leaf and overflow pages, u64 entries, u64 root
 *
 * Pages 0 and 1 are metas; the one with the higher transaction counts. The main database has the others as its records (SUBDATA), the
 * first one lists free pages: u64 transaction -> u64 n, n page numbers.
 */
#include "cache/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/le.h"

#define PAGE_HEADER  16u
#define NODE_HEADER  8u
#define DB_BYTES     48u
#define META_BYTES   (PAGE_HEADER + 24 + 2 * DB_BYTES + 16)
#define NO_PAGE      UINT64_MAX
#define MAGIC        0xbeefc0deu
#define MAX_PAGE     32768u
#define MAX_LEVELS   64u /* of the main database and of one below it */
#define MAX_KEY      511u
#define MAX_UNSEEN   (1u << 20) /* pages that the last transaction took and gave back: behind the end of the file */
#define INTEGER_KEYS 0x08u

enum { BRANCH = 0x01, LEAF = 0x02, OVERFLOW = 0x04, META = 0x08 };
enum { BIG = 0x01, SUBDATA = 0x02, DUPLICATES = 0x04 };
enum kind { FREE_PAGES, MAIN, RECORDS };

struct walk {
        int fd;
        uint32_t psize;
        uint64_t n_pages; /* up to the last one */
        uint64_t *seen;   /* a bit per page: in a tree, or free */
        uint8_t *levels;  /* MAX_LEVELS pages: the path at hand */
        unsigned level;
        bool damaged;
        int error;
        af_pages_visit_fn visit;
        void *userdata;
        char db[MAX_KEY]; /* whose records are walked */
        size_t n_db;
};
struct node {
        const uint8_t *key, *data;
        uint32_t n_key, n_data, flags;
        uint64_t child;
};

static uint32_t get16(const uint8_t *p) {
        return (uint32_t)af_le_get(p, 2);
}

static uint32_t get32(const uint8_t *p) {
        return (uint32_t)af_le_get(p, 4);
}

static uint64_t get64(const uint8_t *p) {
        return af_le_get(p, 8);
}

/* What lies behind the end of the file reads as zeros. */
static bool read_at(struct walk *w, void *p, size_t n, uint64_t at) {
        size_t done = 0;

        while (done < n) {
                ssize_t got = pread(w->fd, (uint8_t *)p + done, n - done, (off_t)(at + done));

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0) {
                        if (errno != EIO)
                                w->error = -errno;
                        return false;
                }
                if (got == 0)
                        break;
                done += (size_t)got;
        }
        memset((uint8_t *)p + done, 0, n - done);
        return true;
}

/* False: out of range, or another has one of them. */
static bool claim(struct walk *w, uint64_t page, uint64_t n) {
        if (page < 2 || page >= w->n_pages || n > w->n_pages - page)
                return false;
        for (uint64_t i = page; i < page + n; i++) {
                uint64_t bit = 1ull << (i % 64);

                if (w->seen[i / 64] & bit)
                        return false;
                w->seen[i / 64] |= bit;
        }
        return true;
}

/* ---- nodes ---- */

/* Bits of a page's halfwords: false where two nodes share one. */
static bool claim_bytes(uint64_t *used, uint32_t from, uint32_t to) {
        uint32_t end = (to + 1) / 2;
        bool clear = true;

        for (uint32_t i = from / 2; i < end; i = (i / 64 + 1) * 64) {
                uint32_t n = AF_MIN(end - i, 64 - i % 64);
                uint64_t bits = (UINT64_MAX >> (64 - n)) << (i % 64);

                clear &= !(used[i / 64] & bits);
                used[i / 64] |= bits;
        }
        return clear;
}

/* Node i of a page whose header holds. False: not within the page. */
static bool node_read(const struct walk *w, const uint8_t *page, uint32_t i, bool branch, uint64_t *used, struct node *ret) {
        uint32_t at = get16(page + PAGE_HEADER + 2 * i), room;
        const uint8_t *p = page + at;
        struct node n;

        if (at < get16(page + 14) || at % 2 || at + NODE_HEADER > w->psize)
                return false;
        room = w->psize - at - NODE_HEADER;
        n = (struct node){.key = p + NODE_HEADER, .n_key = get16(p + 6), .flags = get16(p + 4)};
        if (n.n_key > room || n.n_key > MAX_KEY || (n.n_key == 0 && !branch))
                return false;
        n.data = n.key + n.n_key;
        n.n_data = get32(p);
        n.child = n.n_data | (uint64_t)n.flags << 32;
        room -= n.n_key;
        uint32_t inside = branch ? 0 : n.flags & BIG ? 8 : n.n_data;
        if (inside > room || !claim_bytes(used, at, at + NODE_HEADER + n.n_key + inside))
                return false;
        *ret = n;
        return true;
}

/* A value in overflow pages: they are claimed, and read where somebody looks. malloc'd or NULL. */
static uint8_t *read_big(struct walk *w, const struct node *n, bool wanted) {
        uint64_t page = get64(n->data), pages;
        uint8_t head[PAGE_HEADER], *p;

        if (page >= w->n_pages || !read_at(w, head, sizeof(head), page * w->psize))
                goto damaged;
        pages = get32(head + 12);
        if (get64(head) != page || get16(head + 10) != OVERFLOW || pages * w->psize < PAGE_HEADER + (uint64_t)n->n_data ||
            !claim(w, page, pages))
                goto damaged;
        if (!wanted)
                return NULL;
        p = malloc((size_t)n->n_data + 1);
        if (!p)
                w->error = -ENOMEM;
        else if (read_at(w, p, n->n_data, page * w->psize + PAGE_HEADER))
                return p;
        free(p);
damaged:
        w->damaged = true;
        return NULL;
}

static void free_pages(struct walk *w, const uint8_t *p, size_t n) {
        uint64_t count = n >= 8 ? get64(p) : UINT64_MAX;
        bool holds = count <= (n - 8) / 8;

        for (uint64_t i = 0; i < count && holds; i++) {
                uint64_t page = get64(p + 8 + 8 * i);

                holds = claim(w, page, 1) && (i == 0 || page < get64(p + 8 * i));
        }
        w->damaged |= !holds;
}

/* ---- trees ---- */

static void walk_db(struct walk *w, const uint8_t *db, enum kind kind);

static void leaf(struct walk *w, enum kind kind, const struct node *n) {
        if (kind == MAIN) {
                if (n->flags != SUBDATA || n->n_data != DB_BYTES) {
                        w->damaged = true;
                        return;
                }
                memcpy(w->db, n->key, n->n_key);
                w->n_db = n->n_key;
                walk_db(w, n->data, RECORDS);
                return;
        }
        bool big = n->flags & BIG, wanted = kind == FREE_PAGES || w->visit;
        uint8_t *copy = big ? read_big(w, n, wanted) : NULL;
        const uint8_t *value = big ? copy : n->data;
        w->damaged |= (n->flags & ~(uint32_t)BIG) != 0 || (kind == FREE_PAGES && n->n_key != 8);
        if (kind == FREE_PAGES && value)
                free_pages(w, value, n->n_data);
        else if (kind == RECORDS && value && w->visit)
                w->visit(w->userdata, w->db, w->n_db, n->key, n->n_key, value, n->n_data);
        free(copy);
}

/* A branch has two children at least, a leaf a node; nodes lie side by side from upper to the end. */
static bool page_holds(const struct walk *w, const uint8_t *page, uint64_t number) {
        uint32_t flags = get16(page + 10), lower = get16(page + 12), upper = get16(page + 14);

        return get64(page) == number && (flags == BRANCH || flags == LEAF) && lower % 2 == 0 && upper % 2 == 0 && lower <= upper &&
               upper <= w->psize && lower >= PAGE_HEADER + 2 * (flags == BRANCH ? 2u : 1u);
}

static void walk_page(struct walk *w, uint64_t number, unsigned below, enum kind kind) {
        uint64_t used[MAX_PAGE / 128], bits = 0;
        uint8_t *page = w->levels + (size_t)w->level * w->psize;

        if (w->level == MAX_LEVELS || !claim(w, number, 1) || !read_at(w, page, w->psize, number * w->psize) ||
            !page_holds(w, page, number)) {
                w->damaged = true;
                return;
        }
        const bool branch = get16(page + 10) == BRANCH;
        w->damaged |= branch != (below > 0);
        w->level++;
        memset(used, 0, w->psize / 16);
        for (uint32_t i = 0; i < (get16(page + 12) - PAGE_HEADER) / 2 && !w->error; i++) {
                struct node n;

                if (!node_read(w, page, i, branch, used, &n))
                        w->damaged = true;
                else if (branch)
                        walk_page(w, n.child, below ? below - 1 : 0, kind);
                else
                        leaf(w, kind, &n);
        }
        w->level--;
        for (uint32_t i = 0; i < w->psize / 128; i++)
                bits += (uint64_t)__builtin_popcountll(used[i]);
        w->damaged |= 2 * bits != w->psize - get16(page + 14);
}

static void walk_db(struct walk *w, const uint8_t *db, enum kind kind) {
        uint32_t flags = get16(db + 4), depth = get16(db + 6);
        uint64_t root = get64(db + 40);

        /* Of the first database's flags some are of the environment. */
        if (kind == FREE_PAGES ? (flags & 0x1fu) != INTEGER_KEYS : flags != 0)
                w->damaged = true;
        if (root == NO_PAGE) {
                w->damaged |= depth != 0;
                return;
        }
        w->damaged |= depth == 0 || depth > MAX_LEVELS / 2;
        walk_page(w, root, depth ? depth - 1 : 0, kind);
}

/* ---- the file ---- */

static bool meta_holds(const uint8_t *p) {
        return get16(p + 10) == META && get32(p + PAGE_HEADER) == MAGIC && get32(p + PAGE_HEADER + 4) == 1;
}

/* The meta that counts. False: one of the two is none. */
static bool pick_meta(struct walk *w, uint64_t file_bytes, uint8_t ret_meta[META_BYTES]) {
        const size_t dbs = PAGE_HEADER + 24, last = META_BYTES - 16, txn = META_BYTES - 8;
        uint8_t other[META_BYTES];

        if (!read_at(w, ret_meta, META_BYTES, 0) || !meta_holds(ret_meta))
                return false;
        w->psize = get32(ret_meta + dbs);
        if (w->psize < 512 || w->psize > MAX_PAGE || (w->psize & (w->psize - 1)))
                return false;
        if (!read_at(w, other, META_BYTES, w->psize) || !meta_holds(other) || get32(other + dbs) != w->psize)
                return false;
        if (get64(other + txn) > get64(ret_meta + txn))
                memcpy(ret_meta, other, META_BYTES);
        w->n_pages = get64(ret_meta + last) + 1;
        return w->n_pages >= 2 && w->n_pages <= file_bytes / w->psize + MAX_UNSEEN;
}

int af_pages_walk(int fd, af_pages_visit_fn visit, void *userdata) {
        struct walk w = {.fd = fd, .visit = visit, .userdata = userdata};
        uint8_t meta[META_BYTES];
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size == 0)
                return 0;
        if (!pick_meta(&w, (uint64_t)st.st_size, meta))
                return w.error ? w.error : AF_PAGES_E_DAMAGED;
        w.seen = calloc(w.n_pages / 64 + 1, sizeof(*w.seen));
        w.levels = malloc((size_t)MAX_LEVELS * w.psize);
        if (w.seen && w.levels) {
                walk_db(&w, meta + PAGE_HEADER + 24 + DB_BYTES, MAIN);
                walk_db(&w, meta + PAGE_HEADER + 24, FREE_PAGES);
        } else {
                w.error = -ENOMEM;
        }
        free(w.seen);
        free(w.levels);
        return w.error ? w.error : w.damaged ? AF_PAGES_E_DAMAGED : 0;
}
