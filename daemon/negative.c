/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/negative.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

struct entry {
        struct af_table_link link;
        struct af_list age;
        uint64_t failed_ns;
        bool proven;
        struct af_digest normal; /* of the text */
        char *text;
};

void af_negatives_init(struct af_negatives *n) {
        *n = (struct af_negatives){0};
        af_list_init(&n->oldest);
}

static void drop(struct af_negatives *n, struct entry *e) {
        af_digest_table_del(&n->table, &e->link);
        af_list_del(&e->age);
        n->n_bytes -= strlen(e->text);
        free(e->text);
        free(e);
}

void af_negatives_clear(struct af_negatives *n) {
        while (!af_list_empty(&n->oldest))
                drop(n, af_list_entry(n->oldest.next, struct entry, age));
}

static struct entry *find(struct af_negatives *n, const struct af_digest *key, uint64_t now_ns) {
        struct entry *e = af_digest_table_get(&n->table, key);

        if (e && now_ns - e->failed_ns > AF_NEGATIVE_NS) {
                drop(n, e);
                return NULL;
        }
        return e;
}

bool af_negative_doubtful(const char *text) {
        static const char *const signs[] = {"no space left",
                                            "disk quota",
                                            "file too large",
                                            "input/output error",
                                            "read-only file system",
                                            "too many open",
                                            "memory",
                                            "killed",
                                            "signal",
                                            "segmentation",
                                            "internal compiler",
                                            "cannot fork",
                                            "resource temporarily"};

        for (size_t i = 0; i < AF_ARRAY_SIZE(signs); i++)
                if (strcasestr(text, signs[i]))
                        return true;
        return false;
}

/* Paths of temporary files and addresses are not what the compiler says. */
static void normalise(const char *text, const char *tmp_dir, struct af_digest *ret) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        size_t n_tmp = tmp_dir ? strlen(tmp_dir) : 0;

        for (const char *p = text; *p;) {
                if (n_tmp && strncmp(p, tmp_dir, n_tmp) == 0) {
                        while (*p && !isspace((unsigned char)*p) && *p != ':')
                                p++;
                        af_buf_put_u8(&buf, 1);
                } else if (p[0] == '0' && p[1] == 'x') {
                        for (p += 2; isxdigit((unsigned char)*p); p++)
                                ;
                        af_buf_put_u8(&buf, 2);
                } else {
                        af_buf_put_u8(&buf, (uint8_t)*p++);
                }
        }
        af_digest_bytes("autofuse.failure/1", buf.data, af_buf_error(&buf) ? 0 : buf.size, ret);
}

void af_negative_note(struct af_negatives *n, const struct af_digest *key, const char *text, bool alone, const char *tmp_dir,
                      uint64_t now_ns) {
        struct entry *before = find(n, key, now_ns), *e;
        struct af_digest normal;
        bool proven;

        if (!text || af_negative_doubtful(text) || strlen(text) > AF_NEGATIVE_MAX_BYTES / 4) {
                af_negative_forget(n, key);
                return;
        }
        normalise(text, tmp_dir, &normal);
        proven = alone && before && af_digest_equal(&before->normal, &normal);
        if (before)
                drop(n, before);
        e = calloc(1, sizeof(*e));
        if (!e || !(e->text = strdup(text))) {
                free(e);
                return;
        }
        e->link.key = *key;
        e->failed_ns = now_ns;
        e->proven = proven;
        e->normal = normal;
        n->n_bytes += strlen(text);
        af_digest_table_add(&n->table, &e->link);
        af_list_append(&n->oldest, &e->age);
        while (n->table.n > AF_NEGATIVE_MAX || n->n_bytes > AF_NEGATIVE_MAX_BYTES)
                drop(n, af_list_entry(n->oldest.next, struct entry, age));
}

void af_negative_forget(struct af_negatives *n, const struct af_digest *key) {
        struct entry *e = af_digest_table_get(&n->table, key);

        if (e)
                drop(n, e);
}

const char *af_negative_get(struct af_negatives *n, const struct af_digest *key, uint64_t now_ns) {
        struct entry *e = find(n, key, now_ns);

        return e && e->proven ? e->text : NULL;
}

bool af_negative_suspected(struct af_negatives *n, const struct af_digest *key, uint64_t now_ns) {
        return find(n, key, now_ns) != NULL;
}
