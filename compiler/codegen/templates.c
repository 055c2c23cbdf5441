/* SPDX-License-Identifier: Apache-2.0 */
/* rules/templates/<stem>.j2, parsed once per environment. */
#include <errno.h>
#include <string.h>

#include "compiler/codegen/codegen.h"

int af_templates_parse(struct af_arena *arena, const struct af_io_file *files, uint32_t n, struct af_templates *ret,
                       struct af_diags *diags) {
        const char **names = af_arena_calloc(arena, n, sizeof(*names));
        const struct af_template **templates = af_arena_calloc(arena, n, sizeof(*templates));
        if (!names || !templates)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                names[i] = af_arena_memdup(arena, files[i].name, strlen(files[i].name) - strlen(AF_TEMPLATE_SUFFIX));
                if (!names[i])
                        return -ENOMEM;
                int r = af_jinja_parse(arena, files[i].path, files[i].text, files[i].size, &templates[i], diags);
                if (r)
                        return r < 0 ? r : AF_CODEGEN_E_TEMPLATE;
        }
        *ret = (struct af_templates){.names = names, .templates = templates, .n = n};
        return 0;
}

int af_templates_load_dir(struct af_arena *arena, const char *dir, struct af_templates *ret, struct af_diags *diags) {
        struct af_io_file *files;
        uint32_t n;
        int r = af_io_load_dir(arena, dir, AF_TEMPLATE_SUFFIX, AF_TEMPLATE_MAX_BYTES, &files, &n);
        return r ? r : af_templates_parse(arena, files, n, ret, diags);
}
