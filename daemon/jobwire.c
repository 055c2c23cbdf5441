/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/jobwire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STRINGS 100000u

static void put_string(struct af_buf *buf, const char *s) {
        if (s)
                af_buf_put_field(buf, s, strlen(s) + 1);
        else
                af_buf_put_u32(buf, 0);
}

/* Borrowed; NULL for NULL, and with the cursor's error set where it is malformed. */
static const char *get_string(struct af_cursor *c) {
        uint32_t n = 0;
        const uint8_t *p = af_cursor_field(c, &n);

        if (c->error || n == 0)
                return NULL;
        if (strnlen((const char *)p, n) + 1 != n) {
                c->error = true;
                return NULL;
        }
        return (const char *)p;
}

static void put_strings(struct af_buf *buf, const char *const *list, uint32_t n) {
        af_buf_put_u32(buf, n);
        for (uint32_t i = 0; i < n; i++)
                put_string(buf, list[i]);
}

static uint32_t count_strings(const char *const *list) {
        uint32_t n = 0;

        while (list && list[n])
                n++;
        return n;
}

/* NULL-terminated array in the arena. */
static const char *const *get_strings(struct af_cursor *c, struct af_arena *arena, uint32_t *ret_n) {
        uint32_t n = af_cursor_u32(c);
        const char **list = c->error || n > MAX_STRINGS ? NULL : af_arena_calloc(arena, n + 1, sizeof(*list));

        if (!list) {
                c->error = true;
                return NULL;
        }
        for (uint32_t i = 0; i < n; i++) {
                list[i] = get_string(c);
                if (!list[i])
                        c->error = true;
        }
        if (ret_n)
                *ret_n = n;
        return list;
}

static void put_toolchain_config(struct af_buf *buf, const struct af_toolchain_config *t) {
        af_buf_put_u32(buf, t->kind);
        put_strings(buf,
                    (const char *const[]){t->id, t->driver, t->extra_flags, t->twin_dir, t->include_root, t->pch_dir, t->ascend_home,
                                          t->tmp_dir},
                    8);
}

static void get_toolchain_config(struct af_cursor *c, struct af_toolchain_config *t) {
        t->kind = af_cursor_u32(c);
        if (af_cursor_u32(c) != 8)
                c->error = true;
        t->id = get_string(c);
        t->driver = get_string(c);
        t->extra_flags = get_string(c);
        t->twin_dir = get_string(c);
        t->include_root = get_string(c);
        t->pch_dir = get_string(c);
        t->ascend_home = get_string(c);
        t->tmp_dir = get_string(c);
        if (!t->id || t->kind > AF_TOOLCHAIN_BISHENG)
                c->error = true;
}

static void put_config(struct af_buf *buf, const struct af_env_config *e) {
        put_string(buf, e->rules_dir);
        put_strings(buf, e->extra_rules, count_strings(e->extra_rules));
        put_string(buf, e->default_soc);
        put_string(buf, e->default_toolchain);
        put_string(buf, e->salt);
        af_buf_put_u32(buf, e->n_toolchains);
        for (uint32_t i = 0; i < e->n_toolchains; i++)
                put_toolchain_config(buf, &e->toolchains[i]);
}

static void get_config(struct af_cursor *c, struct af_arena *arena, struct af_env_config *e) {
        struct af_toolchain_config *list;

        e->rules_dir = get_string(c);
        e->extra_rules = get_strings(c, arena, NULL);
        e->default_soc = get_string(c);
        e->default_toolchain = get_string(c);
        e->salt = get_string(c);
        e->n_toolchains = af_cursor_u32(c);
        list = c->error || e->n_toolchains > 1000 ? NULL : af_arena_calloc(arena, e->n_toolchains, sizeof(*list));
        if (!list) {
                c->error = true;
                return;
        }
        for (uint32_t i = 0; i < e->n_toolchains; i++)
                get_toolchain_config(c, &list[i]);
        e->toolchains = list;
}

static void put_closure_file(struct af_buf *buf, const struct af_closure_file *f) {
        put_string(buf, f->role);
        put_string(buf, f->path);
        af_buf_put_u64(buf, f->id.dev);
        af_buf_put_u64(buf, f->id.inode);
        af_buf_put_u64(buf, f->id.size);
        af_buf_put_u64(buf, (uint64_t)f->id.mtime_ns);
        af_buf_put_u64(buf, (uint64_t)f->id.ctime_ns);
        af_buf_put(buf, f->digest.bytes, sizeof(f->digest.bytes));
}

static void put_toolchain(struct af_buf *buf, const struct af_toolchain *t) {
        af_buf_put_u32(buf, t->kind);
        af_buf_put_u32(buf, t->twin);
        put_string(buf, t->id);
        put_string(buf, t->driver);
        put_string(buf, t->version);
        put_string(buf, t->flags);
        put_string(buf, t->npu_arch);
        put_string(buf, t->ccec_arch);
        put_string(buf, t->linker);
        put_strings(buf, t->argv, count_strings(t->argv));
        af_buf_put_u32(buf, t->n_closure);
        for (uint32_t i = 0; i < t->n_closure; i++)
                put_closure_file(buf, &t->closure_files[i]);
        af_buf_put(buf, t->closure_digest.bytes, sizeof(t->closure_digest.bytes));
        put_toolchain_config(buf, &t->config);
}

static void get_digest(struct af_cursor *c, struct af_digest *d) {
        const uint8_t *p = af_cursor_bytes(c, sizeof(d->bytes));

        if (p)
                memcpy(d->bytes, p, sizeof(d->bytes));
}

static void get_closure(struct af_cursor *c, struct af_arena *arena, struct af_toolchain *t) {
        uint32_t n = af_cursor_u32(c);
        const char **paths = c->error || n > MAX_STRINGS ? NULL : af_arena_calloc(arena, n + 1, sizeof(*paths));

        t->closure_files = paths ? af_arena_calloc(arena, n + 1, sizeof(*t->closure_files)) : NULL;
        if (!t->closure_files) {
                c->error = true;
                return;
        }
        for (uint32_t i = 0; i < n; i++) {
                struct af_closure_file *f = &t->closure_files[i];

                f->role = get_string(c);
                paths[i] = f->path = get_string(c);
                f->id.dev = af_cursor_u64(c);
                f->id.inode = af_cursor_u64(c);
                f->id.size = af_cursor_u64(c);
                f->id.mtime_ns = (int64_t)af_cursor_u64(c);
                f->id.ctime_ns = (int64_t)af_cursor_u64(c);
                get_digest(c, &f->digest);
                if (!f->role || !f->path)
                        c->error = true;
        }
        t->closure = paths;
        t->n_closure = n;
}

static void get_toolchain(struct af_cursor *c, struct af_arena *arena, struct af_toolchain *t) {
        t->kind = af_cursor_u32(c);
        t->twin = af_cursor_u32(c);
        t->id = get_string(c);
        t->driver = get_string(c);
        t->version = get_string(c);
        t->flags = get_string(c);
        t->npu_arch = get_string(c);
        t->ccec_arch = get_string(c);
        t->linker = get_string(c);
        t->argv = get_strings(c, arena, NULL);
        get_closure(c, arena, t);
        get_digest(c, &t->closure_digest);
        get_toolchain_config(c, &t->config);
        if (!t->id || !t->driver || t->kind > AF_TOOLCHAIN_BISHENG)
                c->error = true;
}

static void put_head(struct af_buf *buf, enum af_job_kind kind, const struct af_job_limits *l) {
        af_buf_put_u32(buf, AF_JOBWIRE_MAGIC);
        af_buf_put_u32(buf, kind);
        af_buf_put_u64(buf, l->cpu_s);
        af_buf_put_u64(buf, l->memory_bytes);
        af_buf_put_u32(buf, l->timeout_ms);
        af_buf_put_u32(buf, 0);
}

void af_jobwire_write_env(struct af_buf *buf, const struct af_job_limits *limits, const struct af_env_config *config,
                          const struct af_target *target) {
        put_head(buf, AF_JOB_ENV, limits);
        put_config(buf, config);
        put_string(buf, target->soc[0] ? target->soc : NULL);
        put_string(buf, target->toolchain[0] ? target->toolchain : NULL);
        af_buf_put_u32(buf, target->twin);
}

void af_jobwire_write_plan(struct af_buf *buf, const struct af_job_limits *limits, const struct af_env_config *config, bool is_text,
                           const void *p, size_t n) {
        put_head(buf, AF_JOB_PLAN, limits);
        put_config(buf, config);
        af_buf_put_u32(buf, is_text);
        af_buf_put_field(buf, p, n);
}

void af_jobwire_write_compile(struct af_buf *buf, const struct af_job_limits *limits, const void *toolchain, size_t n_toolchain,
                              const char *symbol, const void *source, size_t n) {
        put_head(buf, AF_JOB_COMPILE, limits);
        af_buf_put_field(buf, toolchain, n_toolchain);
        put_string(buf, symbol);
        af_buf_put_field(buf, source, n);
}

static void get_compile(struct af_cursor *c, struct af_arena *arena, struct af_job_request *r) {
        uint32_t n = 0;
        const uint8_t *p = af_cursor_field(c, &n);
        struct af_cursor t = af_cursor_make(p, c->error ? 0 : n);

        get_toolchain(&t, arena, &r->compile_toolchain);
        r->symbol = get_string(c);
        r->bytes = af_cursor_field(c, &r->n_bytes);
        if (t.error || t.at != t.size || !r->symbol)
                c->error = true;
}

int af_jobwire_read(struct af_arena *arena, const void *p, size_t n, struct af_job_request *ret_request) {
        struct af_cursor c = af_cursor_make(p, n);
        struct af_job_request r = {0};
        bool magic = af_cursor_u32(&c) == AF_JOBWIRE_MAGIC;

        r.kind = af_cursor_u32(&c);
        r.limits.cpu_s = af_cursor_u64(&c);
        r.limits.memory_bytes = af_cursor_u64(&c);
        r.limits.timeout_ms = af_cursor_u32(&c);
        (void)af_cursor_u32(&c);
        switch (r.kind) {
        case AF_JOB_ENV:
                get_config(&c, arena, &r.config);
                r.soc = get_string(&c);
                r.toolchain = get_string(&c);
                r.twin = af_cursor_u32(&c);
                break;
        case AF_JOB_PLAN:
                get_config(&c, arena, &r.config);
                r.is_text = af_cursor_u32(&c);
                r.bytes = af_cursor_field(&c, &r.n_bytes);
                break;
        case AF_JOB_COMPILE:
                get_compile(&c, arena, &r);
                break;
        default:
                c.error = true;
        }
        if (!magic || c.error || c.at != c.size)
                return -EBADMSG;
        *ret_request = r;
        return 0;
}

void af_jobwire_write_key(struct af_buf *buf, const struct af_job_key *key) {
        af_buf_put(buf, key->fragment.bytes, sizeof(key->fragment.bytes));
        af_buf_put(buf, key->environment.bytes, sizeof(key->environment.bytes));
        af_buf_put_u32(buf, key->twin);
        put_string(buf, key->soc);
        put_string(buf, key->toolchain);
        af_buf_put_field(buf, key->slot_map, key->n_slot_map);
        af_buf_put_field(buf, key->canon, key->n_canon);
}

int af_jobwire_read_key(const void *p, size_t n, struct af_job_key *ret_key) {
        struct af_cursor c = af_cursor_make(p, n);
        struct af_job_key k = {0};
        uint32_t twin;

        get_digest(&c, &k.fragment);
        get_digest(&c, &k.environment);
        twin = af_cursor_u32(&c);
        k.twin = (uint8_t)twin;
        k.soc = get_string(&c);
        k.toolchain = get_string(&c);
        k.slot_map = af_cursor_field(&c, &k.n_slot_map);
        k.canon = af_cursor_field(&c, &k.n_canon);
        if (c.error || c.at != c.size || twin > UINT8_MAX)
                return -EBADMSG;
        *ret_key = k;
        return 0;
}

void af_jobwire_write_environment(struct af_buf *buf, const struct af_digest *digest, const struct af_toolchain *toolchain,
                                  const char *const *watch, uint32_t n_watch, const struct af_buf *ingredients) {
        AF_CLEANUP(af_buf_deinit) struct af_buf blob = AF_BUF_INIT;

        af_buf_put(buf, digest->bytes, sizeof(digest->bytes));
        put_string(buf, toolchain->version);
        put_toolchain(&blob, toolchain);
        if (af_buf_error(&blob))
                buf->error = af_buf_error(&blob);
        af_buf_put_field(buf, blob.data, blob.size);
        put_strings(buf, watch, n_watch);
        af_buf_put_field(buf, ingredients->data, ingredients->size);
        if (af_buf_error(ingredients))
                buf->error = af_buf_error(ingredients);
}

int af_jobwire_read_environment(const void *p, size_t n, struct af_job_env *ret_env) {
        struct af_cursor c = af_cursor_make(p, n);
        struct af_job_env e = {0};

        get_digest(&c, &e.digest);
        e.version = get_string(&c);
        e.toolchain = af_cursor_field(&c, &e.n_toolchain);
        e.n_watch = af_cursor_u32(&c);
        if (c.error || e.n_watch > MAX_STRINGS)
                return -EBADMSG;
        e.watch = calloc(e.n_watch + 1, sizeof(*e.watch));
        if (!e.watch)
                return -ENOMEM;
        for (uint32_t i = 0; i < e.n_watch; i++)
                if (!(e.watch[i] = get_string(&c)))
                        c.error = true;
        e.ingredients = af_cursor_field(&c, &e.n_ingredients);
        if (c.error || c.at != c.size) {
                free(e.watch);
                return -EBADMSG;
        }
        *ret_env = e;
        return 0;
}
