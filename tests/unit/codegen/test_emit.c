/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/emit.h"
#include "tests/lib/fragment_text.h"
#include "tests/lib/golden.h"
#include "tests/lib/kernel_group.h"

struct emitted {
        struct af_test_graph t;
        struct af_soc soc;
        struct kernel_users users;
        struct af_group group;
        struct af_kernel *k;
        struct af_templates templates;
        struct af_buf source;
        struct af_tiling tiling;
};

static void emit_graph(struct emitted *e, const char *tmpl) {
        const struct af_graph *g = &e->t.graph;
        char dir[600];
        const char *why = NULL;
        cr_assert_eq(e->t.r, 0);
        kernel_soc(&e->soc);
        snprintf(dir, sizeof(dir), "%s/rules/templates", getenv("AF_SOURCE_ROOT"));
        cr_assert_eq(af_templates_load_dir(g->arena, dir, &e->templates, &e->t.diags), 0);
        uint32_t *nodes = af_arena_calloc(g->arena, g->n_nodes, sizeof(*nodes));
        for (uint32_t i = 0; i < g->n_nodes; i++)
                nodes[i] = i;
        cr_assert_eq(af_graph_users(g, &e->users.first, &e->users.list), 0);
        cr_assert_eq(kernel_group_make(g, &e->users, nodes, g->n_nodes, &e->group), 0);
        e->group.tmpl = tmpl;
        AF_CLEANUP(af_arena_deinit) struct af_arena scratch = {0};
        cr_assert_eq(af_schedule_build(&scratch, g, &e->group, &e->soc, &e->k, &why), 0, "%s", why);
        cr_assert_eq(af_codegen_emit(e->k, &e->templates, &e->source, &e->tiling, &e->t.diags), 0);
}

static void emit_text_graph(struct emitted *e, const char *text, const char *tmpl) {
        *e = (struct emitted){0};
        af_test_graph_make(&e->t, text);
        af_test_diags_print(&e->t.diags);
        emit_graph(e, tmpl);
}

static void emit_file(struct emitted *e, const char *name, const char *tmpl) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        char path[600];
        *e = (struct emitted){0};
        snprintf(path, sizeof(path), "%s/examples/fragments/%s.json", getenv("AF_SOURCE_ROOT"), name);
        cr_assert_eq(af_io_read_file(path, 1 << 20, &text), 0);
        af_test_graph_parse(&e->t, (const char *)text.data, text.size);
        emit_graph(e, tmpl);
}

static void done(struct emitted *e) {
        af_buf_deinit(&e->source);
        af_test_graph_deinit(&e->t);
}

static bool has(const struct emitted *e, const char *text) {
        return memmem(e->source.data, e->source.size, text, strlen(text)) != NULL;
}

Test(codegen_emit, sample_sources) {
        static const char *const samples[][2] = {{"tf_abs_relu_exp", "pointwise_fusion_kernel"},
                                                 {"torch_add_ge", "pointwise_fusion_kernel"},
                                                 {"tf_abs_add_relu_broadcast", "pointwise_fusion_kernel"},
                                                 {"tf_abs_reduce_sum", "reduce_fusion_kernel"},
                                                 {"torch_mul_reducesum", "mixed_fusion_kernel"}};
        for (size_t i = 0; i < AF_ARRAY_SIZE(samples); i++) {
                struct emitted e;
                char file[100];
                emit_file(&e, samples[i][0], samples[i][1]);
                snprintf(file, sizeof(file), "%s.asc", samples[i][0]);
                cr_expect(golden_equal(file, e.source.data, e.source.size));
                done(&e);
        }
}

Test(codegen_emit, same_kernel_same_bytes) {
        struct emitted a, b;
        emit_file(&a, "torch_mul_reducesum", "reduce_fusion_kernel");
        emit_file(&b, "torch_mul_reducesum", "reduce_fusion_kernel");
        cr_assert_eq(a.source.size, b.source.size);
        cr_assert_eq(memcmp(a.source.data, b.source.data, a.source.size), 0);
        done(&a);
        done(&b);
}

/* Names of the sender are in no source. */
Test(codegen_emit, names_do_not_show) {
        struct emitted e;
        emit_text_graph(&e,
                        "'name':'evil','inputs':[{'name':'*/ system(1); /*','dtype':'float32','shape':[70]}],"
                        "'nodes':[{'name':'n\\n#include','op':'abs','origin':'aten.wicked','inputs':['*/ system(1); /*'],"
                        "'outputs':[{'name':'t%s%n','dtype':'float32','shape':[70]}]}],'outputs':['t%s%n']",
                        "pointwise_fusion_kernel");
        static const char *const words[] = {"evil", "system", "wicked", "%s", "n\n#include"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(words); i++)
                cr_expect(!has(&e, words[i]), "%s", words[i]);
        done(&e);
}

Test(codegen_emit, only_what_is_used_is_there) {
        struct emitted e;
        emit_file(&e, "tf_abs_relu_exp", "pointwise_fusion_kernel");
        cr_expect(has(&e, "Move<LOAD>(") && has(&e, "Move<STORE>(") && !has(&e, "FloatBits") && !has(&e, "CopyBits"));
        cr_expect(!has(&e, "RowLanes") && !has(&e, "ExpandRow") && !has(&e, "SyncAll") && !has(&e, "__schedmode__"));
        cr_expect(has(&e, "KERNEL_TYPE_AIV_ONLY"));
        done(&e);
        emit_file(&e, "torch_mul_reducesum", "reduce_fusion_kernel");
        cr_expect(has(&e, "SyncAll<true>();") && has(&e, "KERNEL_TYPE_MIX_AIV_1_0") && has(&e, "__schedmode__(1)"));
        done(&e);
}

Test(codegen_emit, a_missing_template_is_named) {
        struct emitted e;
        emit_file(&e, "tf_abs_relu_exp", "pointwise_fusion_kernel");
        AF_CLEANUP(af_buf_deinit) struct af_buf out = AF_BUF_INIT;
        e.group.tmpl = "no_such_kernel";
        cr_expect_eq(af_codegen_emit(e.k, &e.templates, &out, &e.tiling, &e.t.diags), AF_CODEGEN_E_TEMPLATE);
        cr_expect(af_test_diag_has(&e.t.diags, NULL, "no_such_kernel"));
        done(&e);
}

Test(codegen_emit, symbol_and_instantiate) {
        struct emitted e;
        struct af_digest key = {.bytes = {0xab, 0xcd, 1, 2, 3, 4, 5, 6, 7}};
        AF_CLEANUP(af_buf_deinit) struct af_buf symbol = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf out = AF_BUF_INIT;
        emit_file(&e, "tf_abs_relu_exp", "pointwise_fusion_kernel");
        af_codegen_symbol(e.k, &key, &symbol);
        af_buf_put_u8(&symbol, 0);
        const char *name = (const char *)symbol.data;
        cr_expect_str_eq(name, "autofused_abs_relu_exp_abcd010203040506");
        for (const char *p = name; *p; p++)
                cr_expect(isalnum((unsigned char)*p) || *p == '_');
        cr_expect(has(&e, AF_SYMBOL_PLACEHOLDER));
        af_codegen_instantiate(e.source.data, e.source.size, name, &out);
        cr_expect_null(memmem(out.data, out.size, AF_SYMBOL_PLACEHOLDER, strlen(AF_SYMBOL_PLACEHOLDER)));
        cr_expect_not_null(memmem(out.data, out.size, name, strlen(name)));
        done(&e);
}

static void expect_scalar(enum af_dtype d, uint64_t bits, const char *text) {
        struct emit e = {0};
        af_arena_init(&e.arena, 0);
        cr_expect_str_eq(emit_scalar(&e, d, bits), text);
        af_arena_deinit(&e.arena);
}

/* Each reads back as the same bits. */
Test(codegen_emit, scalars_keep_their_bits) {
        expect_scalar(AF_DTYPE_FLOAT32, 0x3f800000, "1.0f");
        expect_scalar(AF_DTYPE_FLOAT32, 0x80000000, "-0.0f");
        expect_scalar(AF_DTYPE_FLOAT32, 0x7f800000, "FloatBits(0x7f800000)");
        expect_scalar(AF_DTYPE_FLOAT32, 0xffc00001, "FloatBits(0xffc00001)");
        expect_scalar(AF_DTYPE_FLOAT16, 0x3c00, "(half)1.0f");
        expect_scalar(AF_DTYPE_FLOAT16, 0xfc00, "HalfBits(0xfc00)");
        expect_scalar(AF_DTYPE_INT32, 0x80000000, "(int32_t)(-2147483647 - 1)");
        expect_scalar(AF_DTYPE_INT32, 0xffffffff, "(int32_t)-1");
        expect_scalar(AF_DTYPE_INT16, 0x8000, "(int16_t)-32768");
        for (uint64_t i = 0; i < 100000; i++) {
                uint32_t bits = (uint32_t)(i * 2654435761u), back;
                if ((bits >> 23 & 255) == 255)
                        continue;
                struct emit e = {0};
                af_arena_init(&e.arena, 0);
                float f = strtof(emit_scalar(&e, AF_DTYPE_FLOAT32, bits), NULL);
                memcpy(&back, &f, sizeof(back));
                cr_assert_eq(back, bits);
                af_arena_deinit(&e.arena);
        }
}
