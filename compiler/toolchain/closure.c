/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/toolchain/closure.h"
#include "compiler/toolchain/toolchain.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/spawn.h"

#define TRACE_TIMEOUT_MS 10000

int af_file_id_get(const char *path, struct af_file_id *ret_id) {
        struct stat st;

        if (stat(path, &st) < 0)
                return -errno;
        *ret_id = (struct af_file_id){
                .dev = st.st_dev,
                .inode = st.st_ino,
                .size = (uint64_t)st.st_size,
                .mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec,
                .ctime_ns = st.st_ctim.tv_sec * 1000000000LL + st.st_ctim.tv_nsec,
        };
        return 0;
}

bool af_file_id_equal(const struct af_file_id *a, const struct af_file_id *b) {
        return a->dev == b->dev && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/* The id is taken before the content is read: a change in between shows at the next check. */
static int digest_now(struct af_closure_file *f) {
        int r = af_file_id_get(f->path, &f->id);

        return r < 0 ? r : af_digest_file(f->path, &f->digest);
}

int af_closure_add(struct af_closure *c, const char *role, const char *path, bool optional) {
        struct af_closure_file f;

        for (uint32_t i = 0; i < c->n; i++)
                if (strcmp(c->files[i].path, path) == 0)
                        return 0;
        int r = af_file_id_get(path, &f.id);
        if (r < 0)
                return optional && (r == -ENOENT || r == -ENOTDIR) ? 0 : r;
        r = af_arena_grow(c->arena, &c->files, &c->cap, c->n + 1, sizeof(*c->files));
        if (r < 0)
                return r;
        f.role = af_arena_strdup(c->arena, role);
        f.path = af_arena_strdup(c->arena, path);
        if (!f.role || !f.path)
                return -ENOMEM;
        r = digest_now(&f);
        if (r < 0)
                return r;
        c->files[c->n++] = f;
        return 0;
}

/* One line of the loader's trace: "\tNAME => PATH (0x…)" or "\tPATH (0x…)". */
static int add_traced(struct af_closure *c, char *line) {
        char *arrow = strstr(line, " => "), *path = arrow ? arrow + 4 : line + strspn(line, " \t");
        char *end = strstr(path, " (0x");

        if (!end || path[0] != '/')
                return 0;
        *end = 0;
        const char *slash = strrchr(path, '/');
        char *role = af_arena_printf(c->arena, "lib:%s", slash + 1);
        return role ? af_closure_add(c, role, path, true) : -ENOMEM;
}

int af_closure_add_libraries(struct af_closure *c, const char *program) {
        AF_CLEANUP(af_buf_deinit) struct af_buf out = AF_BUF_INIT;
        const char *argv[] = {program, NULL}, *envp[] = {"LD_TRACE_LOADED_OBJECTS=1", "LC_ALL=C", "PATH=/usr/bin:/bin", NULL};
        struct af_spawn spawn = {.argv = argv, .envp = envp, .timeout_ms = TRACE_TIMEOUT_MS, .lifeline_fd = -1, .new_group = true};
        struct af_spawn_result result;
        int r = af_spawn_run(&spawn, &out, NULL, &result);

        if (r < 0)
                return r;
        /* Half a list would make another digest. One that refuses to be traced has none. */
        if (result.signal || result.timed_out)
                return AF_TOOLCHAIN_E_KILLED;
        af_buf_put_u8(&out, 0);
        if (af_buf_error(&out))
                return -ENOMEM;
        char *save = NULL;
        for (char *line = strtok_r((char *)out.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                r = add_traced(c, line);
                if (r < 0)
                        return r;
        }
        return 0;
}

int af_closure_add_make(struct af_closure *c, const char *text, size_t n, const char *root) {
        size_t n_root = root ? strlen(root) : 0;
        const char *p = memchr(text, ':', n), *end = text + n;

        for (p = p ? p + 1 : end; p < end;) {
                char path[4096];
                size_t len = 0;
                while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || (*p == '\\' && p + 1 < end && p[1] == '\n')))
                        p += *p == '\\' ? 2 : 1;
                for (; p < end && *p != ' ' && *p != '\n' && len + 1 < sizeof(path); p++) {
                        if (*p == '\\' && p + 1 < end && (p[1] == ' ' || p[1] == '#'))
                                p++;
                        path[len++] = *p;
                }
                path[len] = 0;
                if (path[0] != '/') /* the probe's own source */
                        continue;
                bool ours = n_root && strncmp(path, root, n_root) == 0 && path[n_root] == '/';
                char *role = af_arena_printf(c->arena, "header:%s", ours ? path + n_root + 1 : path);
                int r = role ? af_closure_add(c, role, path, false) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int by_role(const void *a, const void *b) {
        const struct af_closure_file *x = a, *y = b;
        int r = strcmp(x->role, y->role);

        return r ? r : memcmp(x->digest.bytes, y->digest.bytes, sizeof(x->digest.bytes));
}

void af_closure_finish(struct af_closure *c, struct af_digest *ret_digest) {
        struct af_hasher h;

        if (c->n)
                qsort(c->files, c->n, sizeof(*c->files), by_role);
        af_hasher_init(&h, "autofused.toolchain/1");
        for (uint32_t i = 0; i < c->n; i++)
                af_hasher_field(&h, c->files[i].role, c->files[i].digest.bytes, sizeof(c->files[i].digest.bytes));
        af_hasher_final(&h, ret_digest);
}

int af_closure_recheck(struct af_closure_file *files, uint32_t n) {
        for (uint32_t i = 0; i < n; i++) {
                struct af_closure_file now = files[i];
                int r = af_file_id_get(now.path, &now.id);
                if (r == -ENOENT || r == -ENOTDIR)
                        return 1;
                if (r < 0)
                        return r;
                if (af_file_id_equal(&now.id, &files[i].id))
                        continue;
                r = digest_now(&now);
                if (r < 0)
                        return r == -ENOENT ? 1 : r;
                if (!af_digest_equal(&now.digest, &files[i].digest))
                        return 1;
                files[i] = now;
        }
        return 0;
}
