/* SPDX-License-Identifier: Apache-2.0 */
/* Loop tree -> Ascend C source: the skeleton is a template, the body is written by the emitter. Same kernel, same bytes. */
#pragma once

#include "base/digest.h"
#include "base/io.h"
#include "compiler/codegen/jinja.h"
#include "compiler/schedule/kernel.h"

struct af_templates {             /* parsed rules/templates/<name>.j2, sorted by name */
        const char *const *names; /* stems: "pointwise_fusion_kernel" */
        const struct af_template *const *templates;
        uint32_t n;
};
#define AF_TEMPLATE_SUFFIX    ".j2"
#define AF_TEMPLATE_MAX_BYTES (1u << 20)
/* One template per file, sorted by name as af_io_load_dir gives them; the bytes may go afterwards. 0, -ENOMEM, TEMPLATE. */
int af_templates_parse(struct af_arena *arena, const struct af_io_file *files, uint32_t n, struct af_templates *ret,
                       struct af_diags *diags) AF_WARN_UNUSED;
/* Every template of a directory. */
int af_templates_load_dir(struct af_arena *arena, const char *dir, struct af_templates *ret, struct af_diags *diags) AF_WARN_UNUSED;

/* What an entry of a kernel with symbols takes by value behind its pointers: fields in order, each at its alignment. */
#define AF_TILING_MAX_FIELDS 512u
struct af_tiling_field {
        uint32_t type; /* 0: uint32_t, 1: int64_t, 2: float */
        uint32_t x;    /* expression of the graph plus one */
        int64_t value; /* at the hints */
};
struct af_tiling {
        struct af_tiling_field *fields;
        uint32_t n;
};

enum { AF_CODEGEN_E_TEMPLATE = 1 };
#define AF_SYMBOL_PLACEHOLDER "autofused_@SYMBOL@"
/*
 * *ret_tiling: memory of the kernel's graph. Writes the source with AF_SYMBOL_PLACEHOLDER where the entry's name goes (the kernel key is
 * over these bytes). 0, -ENOMEM, TEMPLATE.
 */
int af_codegen_emit(const struct af_kernel *k, const struct af_templates *templates, struct af_buf *out, struct af_tiling *ret_tiling,
                    struct af_diags *diags) AF_WARN_UNUSED;
/* "autofused_<ops>_<16 hex of key>": ops joined by '_', at most 4 of them, a C identifier. */
void af_codegen_symbol(const struct af_kernel *k, const struct af_digest *key, struct af_buf *out);
/* Copies source with symbol wherever AF_SYMBOL_PLACEHOLDER stands. */
void af_codegen_instantiate(const void *source, size_t n, const char *symbol, struct af_buf *out);
