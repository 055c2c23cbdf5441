/* SPDX-License-Identifier: Apache-2.0 */
/* rules/templates/<stem>.j2, parsed once per environment. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "compiler/codegen/codegen.h"

#define TEMPLATE_MAX (1u << 20)

static int by_name(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_stems(struct af_arena *arena, const char *dir, const char ***ret_names, uint32_t *ret_n) {
        DIR *d = opendir(dir);
        uint32_t cap = 0;
        int r = 0;
        if (!d)
                return -errno;
        *ret_names = NULL;
        *ret_n = 0;
        for (struct dirent *e; !r && (e = readdir(d));) {
                size_t n = strlen(e->d_name);
                if (n <= 3 || strcmp(e->d_name + n - 3, ".j2") != 0 || e->d_name[0] == '.')
                        continue;
                r = af_arena_grow(arena, ret_names, &cap, *ret_n + 1, sizeof(**ret_names));
                if (!r && !((*ret_names)[(*ret_n)++] = af_arena_memdup(arena, e->d_name, n - 3)))
                        r = -ENOMEM;
        }
        closedir(d);
        if (!r && *ret_n)
                qsort(*ret_names, *ret_n, sizeof(**ret_names), by_name);
        return r;
}

int af_templates_load_dir(struct af_arena *arena, const char *dir, struct af_templates *ret, struct af_diags *diags) {
        const char **names;
        uint32_t n = 0;
        int r = list_stems(arena, dir, &names, &n);
        if (r)
                return r;
        const struct af_template **templates = af_arena_calloc(arena, n, sizeof(*templates));
        if (!templates)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
                const char *path = af_arena_printf(arena, "%s/%s.j2", dir, names[i]);
                if (!path)
                        return -ENOMEM;
                r = af_io_read_file(path, TEMPLATE_MAX, &text);
                if (!r)
                        r = af_jinja_parse(arena, path, (const char *)text.data, text.size, &templates[i], diags);
                if (r)
                        return r < 0 ? r : AF_CODEGEN_E_TEMPLATE;
        }
        *ret = (struct af_templates){.names = names, .templates = templates, .n = n};
        return 0;
}
