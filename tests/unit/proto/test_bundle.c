/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/op.h"
#include "proto/bundle_layout.h"
#include "proto/expr.h"
#include "tests/unit/proto/random.h"

/* What may be changed before a sample is finished. */
struct sample {
        struct af_bundle_builder b;
        uint16_t flags;
};

static void add_memory(struct sample *s) {
        static const float constant[4] = {1, 2, 3, 4};
        const struct af_bundle_buffer buffers[] = {
                {.kind = AF_BUFFER_INPUT, .slot = 0, .bytes = 48},
                {.kind = AF_BUFFER_OUTPUT, .slot = 0, .bytes = 48},
                {.kind = AF_BUFFER_TEMP, .bytes = 512, .offset = 1024},
                {.kind = AF_BUFFER_CONST, .bytes = 16, .data = af_bundle_add_blob(&s->b, constant, sizeof(constant), 64)},
                {.kind = AF_BUFFER_OUTPUT, .slot = 1, .bytes = 4},
        };
        const struct af_bundle_tensor tensors[] = {
                {.buffer = 0, .dtype = AF_DTYPE_FLOAT32, .rank = 2, .dims = {3, 4}, .strides = {4, 1}},
                {.buffer = 1, .dtype = AF_DTYPE_FLOAT32, .rank = 2, .dims = {3, 4}, .strides = {4, 1}},
                {.buffer = 3, .dtype = AF_DTYPE_FLOAT32, .rank = 1, .dims = {4}, .strides = {1}},
                {.buffer = 4, .dtype = AF_DTYPE_FLOAT16, .rank = 1, .dims = {2}, .strides = {1}},
        };
        const struct af_bundle_expr exprs[] = {
                {.kind = AF_EXPR_SYMBOL, .a = AF_NONE, .b = AF_NONE, .value = 0},
                {.kind = AF_EXPR_CONST, .a = AF_NONE, .b = AF_NONE, .value = 2},
                {.kind = AF_EXPR_MUL, .a = 1, .b = 0},
        };

        for (size_t i = 0; i < AF_ARRAY_SIZE(buffers); i++)
                cr_assert_eq(af_bundle_add(&s->b, AF_SECTION_BUFFERS, &buffers[i]), i);
        for (size_t i = 0; i < AF_ARRAY_SIZE(tensors); i++)
                cr_assert_eq(af_bundle_add(&s->b, AF_SECTION_TENSORS, &tensors[i]), i);
        for (size_t i = 0; i < AF_ARRAY_SIZE(exprs); i++)
                cr_assert_eq(af_bundle_add(&s->b, AF_SECTION_EXPRS, &exprs[i]), i);
        af_bundle_add(&s->b, AF_SECTION_SYMBOLS, &(struct af_bundle_symbol){.min = 1, .max = 100, .multiple_of = 1});
        af_bundle_add(&s->b, AF_SECTION_PATCHES,
                      &(struct af_bundle_patch){.section = AF_SECTION_BUFFERS,
                                                .kind = AF_PATCH_I64,
                                                .offset = 4 * sizeof(struct af_bundle_buffer) + offsetof(struct af_bundle_buffer, bytes),
                                                .expr = 2});
        af_bundle_add(&s->b, AF_SECTION_GUARDS,
                      &(struct af_bundle_guard){.expr = 2, .node = 1, .min = 1, .why = af_bundle_add_str(&s->b, "nothing")});
        af_bundle_add(&s->b, AF_SECTION_INPUTS, &(struct af_bundle_input){.tensor = 0, .align = 32});
        af_bundle_add(&s->b, AF_SECTION_OUTPUTS, &(struct af_bundle_output){.tensor = 1, .alias_of = AF_NONE});
        af_bundle_add(&s->b, AF_SECTION_OUTPUTS, &(struct af_bundle_output){.tensor = 3, .alias_of = AF_NONE});
}

static void add_steps(struct sample *s) {
        static const uint32_t values[] = {1, 2, 3};
        const struct af_bundle_arg args[] = {
                {.buffer = 0, .access = AF_ACCESS_READ, .range_end = 48},
                {.buffer = 1, .access = AF_ACCESS_WRITE, .byte_offset = 16, .range_end = 32},
                {.buffer = 2, .access = AF_ACCESS_READ | AF_ACCESS_WRITE, .range_end = 512},
        };
        const struct af_bundle_kernel kernel = {
                .key = {{1, 2, 3}},
                .symbol = af_bundle_add_str(&s->b, "autofused_add_0"),
                .toolchain = af_bundle_add_str(&s->b, "host"),
                .ops = af_bundle_add_str(&s->b, "add"),
                .tiling = af_bundle_add_blob(&s->b, "\x00\x01", 2, 8),
                .block_dim = 4,
                .workspace_bytes = 512,
                .workspace_zeroed = 1,
                .n_pointer_args = 3,
                .n_nodes = 1,
        };
        const struct af_bundle_step steps[] = {
                {.kind = AF_STEP_KERNEL, .kernel = 0, .first_arg = 0, .n_args = 3, .node = AF_NONE},
                {.kind = AF_STEP_FRAMEWORK,
                 .kernel = AF_NONE,
                 .node = 1,
                 .first_value = 0,
                 .n_inputs = 2,
                 .n_outputs = 1,
                 .op = AF_OP_OPAQUE,
                 .reason = af_bundle_add_str(&s->b, "no template for op class scan")},
        };

        for (size_t i = 0; i < 3; i++) {
                af_bundle_add(&s->b, AF_SECTION_ARGS, &args[i]);
                af_bundle_add(&s->b, AF_SECTION_FALLBACK_VALUES, &values[i]);
        }
        af_bundle_add(&s->b, AF_SECTION_KERNELS, &kernel);
        for (size_t i = 0; i < 2; i++)
                af_bundle_add(&s->b, AF_SECTION_STEPS, &steps[i]);
        const struct af_bundle_decision decision = {.kind = 0,
                                                    .node_a = 1,
                                                    .node_b = 0,
                                                    .group = 0,
                                                    .rule = af_bundle_add_str(&s->b, "elementwise_chain"),
                                                    .reason = af_bundle_add_str(&s->b, ""),
                                                    .bytes_saved = 96};
        af_bundle_add(&s->b, AF_SECTION_DECISIONS, &decision);
}

static struct sample sample_make(void) {
        struct sample s = {.flags = AF_BUNDLE_SKELETON};

        af_bundle_builder_init(&s.b);
        add_memory(&s);
        add_steps(&s);
        return s;
}

static void *element(struct sample *s, enum af_bundle_section section, uint32_t i) {
        return s->b.sections[section].data + i * af_bundle_elem_size(section);
}

/* Finishes, opens, forgets; *ret_why is static text. */
static int open_sample(struct sample *s, const char **ret_why) {
        struct af_buf out = AF_BUF_INIT;
        struct af_bundle b;

        cr_assert_eq(af_bundle_finish(&s->b, s->flags, &out), 0);
        int r = af_bundle_open(out.data, out.size, &b, ret_why);
        af_buf_deinit(&out);
        af_bundle_builder_deinit(&s->b);
        return r;
}

static struct af_buf finished(void) {
        struct sample s = sample_make();
        struct af_buf out = AF_BUF_INIT;

        cr_assert_eq(af_bundle_finish(&s.b, s.flags, &out), 0);
        af_bundle_builder_deinit(&s.b);
        return out;
}

Test(bundle, opens_what_it_builds) {
        struct af_buf out = finished();
        struct af_bundle b;
        const char *why = "unset";

        cr_assert_eq(af_bundle_open(out.data, out.size, &b, &why), 0, "%s", why);
        cr_assert_null(why);
        cr_assert_eq(af_bundle_open(out.data, out.size, &b, NULL), 0);
        cr_assert_eq(b.header->total_bytes, out.size);
        cr_assert_eq(out.size % 64, 0);
        cr_assert_eq(af_bundle_count(&b, AF_SECTION_BUFFERS), 5);
        cr_assert_eq(af_bundle_count(&b, AF_SECTION_STEPS), 2);
        const struct af_bundle_kernel *k = af_bundle_at(&b, AF_SECTION_KERNELS, 0);
        cr_assert_str_eq(af_bundle_str(&b, k->symbol), "autofused_add_0");
        cr_assert_str_eq(af_bundle_str(&b, k->ops), "add");
        cr_assert_str_eq(af_bundle_str(&b, k->source), "");
        cr_assert_arr_eq(af_bundle_blob(&b, k->tiling), "\x00\x01", 2);
        cr_assert_null(af_bundle_at(&b, AF_SECTION_KERNELS, 1));
        cr_assert_null(af_bundle_at(&b, AF_SECTION_KERNELS, AF_NONE));
        const struct af_bundle_step *s = af_bundle_at(&b, AF_SECTION_STEPS, 1);
        cr_assert_str_eq(af_bundle_str(&b, s->reason), "no template for op class scan");
        cr_assert_str_eq(af_bundle_str(&b, (struct af_blob_ref){UINT32_MAX, UINT32_MAX}), "");
        const struct af_bundle_buffer *c = af_bundle_at(&b, AF_SECTION_BUFFERS, 3);
        cr_assert_eq((uintptr_t)((const uint8_t *)af_bundle_blob(&b, c->data) - out.data) % 64, 0);
        af_buf_deinit(&out);
}

Test(bundle, same_content_gives_same_bytes) {
        struct af_buf a = finished(), b = finished();

        cr_assert_eq(a.size, b.size);
        cr_assert_arr_eq(a.data, b.data, a.size);
        af_buf_deinit(&a);
        af_buf_deinit(&b);
}

Test(bundle, equal_strings_stand_there_once) {
        AF_CLEANUP(af_bundle_builder_deinit) struct af_bundle_builder b;

        af_bundle_builder_init(&b);
        struct af_blob_ref a = af_bundle_add_str(&b, "one"), c = af_bundle_add_str(&b, "two");
        size_t size = b.sections[AF_SECTION_BLOB].size;
        for (int i = 0; i < 100; i++) {
                struct af_blob_ref again = af_bundle_add_str(&b, i % 2 ? "one" : "two");
                cr_assert_eq(again.offset, i % 2 ? a.offset : c.offset);
                cr_assert_eq(again.size, 3);
        }
        cr_assert_eq(b.sections[AF_SECTION_BLOB].size, size);
        cr_assert_neq(a.offset, c.offset);
        cr_assert_eq(af_bundle_add_str(&b, "").size, 0);
        cr_assert_eq(af_bundle_add_str(&b, NULL).size, 0);
        cr_assert_neq(af_bundle_add_str(&b, "on").offset, a.offset);
}

Test(bundle, an_empty_one_opens) {
        struct sample s = {0};
        const char *why;

        af_bundle_builder_init(&s.b);
        cr_assert_eq(open_sample(&s, &why), 0, "%s", why);
}

#define DAMAGE(section, index, type, field, value, expected)                                                                               \
        do {                                                                                                                               \
                struct sample s = sample_make();                                                                                           \
                const char *why = NULL;                                                                                                    \
                ((struct type *)element(&s, section, index))->field = value;                                                               \
                cr_assert_eq(open_sample(&s, &why), AF_BUNDLE_E_DAMAGED, #type "." #field " = " #value);                                   \
                cr_assert_str_eq(why, expected);                                                                                           \
        } while (0)

Test(bundle, refuses_bad_memory) {
        DAMAGE(AF_SECTION_BUFFERS, 0, af_bundle_buffer, kind, 4, "buffer: kind");
        DAMAGE(AF_SECTION_BUFFERS, 0, af_bundle_buffer, slot, 1, "buffer: input slot out of range");
        DAMAGE(AF_SECTION_BUFFERS, 1, af_bundle_buffer, slot, 2, "buffer: output slot out of range");
        DAMAGE(AF_SECTION_BUFFERS, 1, af_bundle_buffer, bytes, UINT64_MAX, "buffer: size");
        DAMAGE(AF_SECTION_BUFFERS, 2, af_bundle_buffer, offset, 8, "buffer: not a multiple of 512");
        DAMAGE(AF_SECTION_BUFFERS, 2, af_bundle_buffer, bytes, 511, "buffer: not a multiple of 512");
        DAMAGE(AF_SECTION_BUFFERS, 2, af_bundle_buffer, offset, UINT64_MAX & ~511ull, "buffer: offset");
        DAMAGE(AF_SECTION_BUFFERS, 3, af_bundle_buffer, bytes, 32, "buffer: constant's size differs from its data");
        DAMAGE(AF_SECTION_BUFFERS, 3, af_bundle_buffer, data.offset, 1, "buffer: constant's data out of range or not aligned");
        DAMAGE(AF_SECTION_BUFFERS, 3, af_bundle_buffer, data.offset, 1 << 20, "buffer: constant's data out of range or not aligned");
        DAMAGE(AF_SECTION_PATCHES, 0, af_bundle_patch, expr, 3, "patch: expression out of range");
        DAMAGE(AF_SECTION_GUARDS, 0, af_bundle_guard, expr, 3, "guard: expression out of range");
        DAMAGE(AF_SECTION_GUARDS, 0, af_bundle_guard, why.size, 6, "guard: text");
        DAMAGE(AF_SECTION_PATCHES, 0, af_bundle_patch, kind, 9, "patch: kind");
        DAMAGE(AF_SECTION_PATCHES, 0, af_bundle_patch, section, AF_SECTION_STEPS, "patch: section");
        DAMAGE(AF_SECTION_PATCHES, 0, af_bundle_patch, offset, 1 << 20, "patch: out of range");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, buffer, 5, "tensor: buffer out of range");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, dtype, 0, "tensor: dtype");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, dtype, AF_N_DTYPES, "tensor: dtype");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, rank, 17, "tensor: rank");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, zero, 2, "tensor: flags");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, dims[0], -1, "tensor: negative dimension");
        DAMAGE(AF_SECTION_TENSORS, 3, af_bundle_tensor, dims[0], -2, "tensor: negative dimension");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, offset, -1, "tensor: negative offset");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, offset, 1, "tensor: reaches beyond its buffer");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, dims[0], 4, "tensor: reaches beyond its buffer");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, strides[0], -4, "tensor: reaches beyond its buffer");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, strides[0], INT64_MAX, "tensor: extent overflows");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, dims[0], INT64_MAX, "tensor: extent overflows");
        DAMAGE(AF_SECTION_TENSORS, 0, af_bundle_tensor, dtype, AF_DTYPE_FLOAT64, "tensor: reaches beyond its buffer");
        DAMAGE(AF_SECTION_EXPRS, 2, af_bundle_expr, a, 2, "expression: operand out of range");
        DAMAGE(AF_SECTION_EXPRS, 2, af_bundle_expr, kind, 99, "expression: kind");
        DAMAGE(AF_SECTION_EXPRS, 0, af_bundle_expr, value, 1, "expression: symbol out of range");
        DAMAGE(AF_SECTION_EXPRS, 0, af_bundle_expr, value, -1, "expression: symbol out of range");
        DAMAGE(AF_SECTION_SYMBOLS, 0, af_bundle_symbol, min, 200, "symbol: range");
        DAMAGE(AF_SECTION_SYMBOLS, 0, af_bundle_symbol, multiple_of, 0, "symbol: range");
}

Test(bundle, refuses_bad_steps) {
        DAMAGE(AF_SECTION_INPUTS, 0, af_bundle_input, tensor, 4, "input: tensor out of range");
        DAMAGE(AF_SECTION_INPUTS, 0, af_bundle_input, tensor, 1, "input: its tensor lies elsewhere");
        DAMAGE(AF_SECTION_INPUTS, 0, af_bundle_input, align, 3, "input: alignment");
        DAMAGE(AF_SECTION_INPUTS, 0, af_bundle_input, align, 8192, "input: alignment");
        DAMAGE(AF_SECTION_INPUTS, 0, af_bundle_input, flags, 2, "input: flags");
        DAMAGE(AF_SECTION_OUTPUTS, 0, af_bundle_output, tensor, AF_NONE, "output: tensor out of range");
        DAMAGE(AF_SECTION_OUTPUTS, 0, af_bundle_output, alias_of, 1, "output: aliased input out of range");
        DAMAGE(AF_SECTION_KERNELS, 0, af_bundle_kernel, symbol.size, 0, "kernel: symbol");
        DAMAGE(AF_SECTION_KERNELS, 0, af_bundle_kernel, symbol.size, 3, "kernel: symbol");
        DAMAGE(AF_SECTION_KERNELS, 0, af_bundle_kernel, symbol.offset, UINT32_MAX, "kernel: symbol");
        DAMAGE(AF_SECTION_KERNELS, 0, af_bundle_kernel, ops.size, UINT32_MAX, "kernel: ops");
        DAMAGE(AF_SECTION_KERNELS, 0, af_bundle_kernel, tiling.size, 1 << 20, "kernel: tiling out of range");
        DAMAGE(AF_SECTION_KERNELS, 0, af_bundle_kernel, binary.size, 4, "kernel: binary in a skeleton, or none in a bundle");
        DAMAGE(AF_SECTION_KERNELS, 0, af_bundle_kernel, block_dim, 0, "kernel: block_dim");
        DAMAGE(AF_SECTION_KERNELS, 0, af_bundle_kernel, workspace_bytes, UINT64_MAX, "kernel: workspace");
        DAMAGE(AF_SECTION_KERNELS, 0, af_bundle_kernel, needs_sync_all, 2, "kernel: flags");
        DAMAGE(AF_SECTION_KERNELS, 0, af_bundle_kernel, n_pointer_args, 2, "step: number of arguments differs from the kernel's");
        DAMAGE(AF_SECTION_ARGS, 0, af_bundle_arg, buffer, 5, "argument: buffer out of range");
        DAMAGE(AF_SECTION_ARGS, 0, af_bundle_arg, access, 0, "argument: access");
        DAMAGE(AF_SECTION_ARGS, 0, af_bundle_arg, access, 4, "argument: access");
        DAMAGE(AF_SECTION_ARGS, 0, af_bundle_arg, access, AF_ACCESS_WRITE,
               "argument: writes a constant, or an input that no output updates");
        DAMAGE(AF_SECTION_ARGS, 0, af_bundle_arg, range_begin, 49, "argument: range");
        DAMAGE(AF_SECTION_ARGS, 0, af_bundle_arg, range_end, 49, "argument: range beyond its buffer");
        DAMAGE(AF_SECTION_ARGS, 1, af_bundle_arg, byte_offset, 17, "argument: range beyond its buffer");
        DAMAGE(AF_SECTION_ARGS, 1, af_bundle_arg, byte_offset, UINT64_MAX, "argument: range beyond its buffer");
        DAMAGE(AF_SECTION_ARGS, 2, af_bundle_arg, range_end, UINT64_MAX, "argument: range beyond its buffer");
        DAMAGE(AF_SECTION_STEPS, 0, af_bundle_step, kind, 2, "step: kind");
        DAMAGE(AF_SECTION_STEPS, 0, af_bundle_step, kernel, 1, "step: kernel out of range");
        DAMAGE(AF_SECTION_STEPS, 0, af_bundle_step, first_arg, UINT32_MAX, "step: arguments out of range");
        DAMAGE(AF_SECTION_STEPS, 0, af_bundle_step, n_args, 4, "step: arguments out of range");
        DAMAGE(AF_SECTION_STEPS, 1, af_bundle_step, n_inputs, UINT32_MAX, "step: values out of range");
        DAMAGE(AF_SECTION_STEPS, 1, af_bundle_step, op, AF_N_OPS, "step: op");
        DAMAGE(AF_SECTION_STEPS, 1, af_bundle_step, reason.offset, 1 << 20, "step: reason");
        DAMAGE(AF_SECTION_DECISIONS, 0, af_bundle_decision, kind, 3, "decision: kind");
        DAMAGE(AF_SECTION_DECISIONS, 0, af_bundle_decision, group, 2, "decision: step out of range");
        DAMAGE(AF_SECTION_DECISIONS, 0, af_bundle_decision, rule.size, 2, "decision: text");
        struct sample s = sample_make();
        const char *why;
        *(uint32_t *)element(&s, AF_SECTION_FALLBACK_VALUES, 2) = 4;
        cr_assert_eq(open_sample(&s, &why), AF_BUNDLE_E_DAMAGED);
        cr_assert_str_eq(why, "framework step: tensor out of range");
        s = sample_make();
        *(uint32_t *)element(&s, AF_SECTION_FALLBACK_VALUES, 2) = 2;
        cr_assert_eq(open_sample(&s, &why), AF_BUNDLE_E_DAMAGED);
        cr_assert_str_eq(why, "step: the framework writes a constant, or an input that no output updates");
}

Test(bundle, writes_into_constants_are_refused_and_in_place_updates_are_not) {
        struct sample s = sample_make();
        struct af_bundle_arg *a = element(&s, AF_SECTION_ARGS, 0);
        const char *why;

        *a = (struct af_bundle_arg){.buffer = 3, .access = AF_ACCESS_WRITE, .range_end = 16};
        cr_assert_eq(open_sample(&s, &why), AF_BUNDLE_E_DAMAGED);
        cr_assert_str_eq(why, "argument: writes a constant, or an input that no output updates");
        s = sample_make();
        ((struct af_bundle_arg *)element(&s, AF_SECTION_ARGS, 0))->access = AF_ACCESS_READ | AF_ACCESS_WRITE;
        ((struct af_bundle_output *)element(&s, AF_SECTION_OUTPUTS, 0))->alias_of = 0;
        cr_assert_eq(open_sample(&s, &why), 0, "%s", why);
}

Test(bundle, views_may_be_empty_strided_and_at_the_edge) {
        struct sample s = sample_make();
        struct af_bundle_tensor *t = element(&s, AF_SECTION_TENSORS, 0);
        const char *why;

        *t = (struct af_bundle_tensor){
                .buffer = 0, .dtype = AF_DTYPE_FLOAT32, .rank = 2, .dims = {0, INT64_MAX}, .strides = {INT64_MAX, 1}};
        cr_assert_eq(open_sample(&s, &why), 0, "%s", why);
        s = sample_make();
        t = element(&s, AF_SECTION_TENSORS, 0);
        *t = (struct af_bundle_tensor){.buffer = 0, .dtype = AF_DTYPE_INT8, .rank = 1, .dims = {48}, .strides = {-1}, .offset = 47};
        cr_assert_eq(open_sample(&s, &why), 0, "%s", why);
        s = sample_make();
        t = element(&s, AF_SECTION_TENSORS, 0);
        *t = (struct af_bundle_tensor){.buffer = 0, .dtype = AF_DTYPE_INT8, .rank = 2, .dims = {1, 3}, .strides = {999, 0}, .offset = 47};
        cr_assert_eq(open_sample(&s, &why), 0, "%s", why);
}

Test(bundle, refuses_wrong_heads) {
        struct af_buf out = finished();
        struct af_bundle b;
        const char *why;

        cr_assert_eq(af_bundle_open(out.data + 4, out.size - 4, &b, &why), AF_BUNDLE_E_DAMAGED);
        cr_assert_str_eq(why, "not aligned to 8 bytes");
        cr_assert_eq(af_bundle_open(NULL, 0, &b, &why), AF_BUNDLE_E_DAMAGED);
        cr_assert_str_eq(why, "too short");
        out.data[4] = AF_BUNDLE_VERSION + 1;
        cr_assert_eq(af_bundle_open(out.data, out.size, &b, &why), AF_BUNDLE_E_VERSION);
        out.data[4] = AF_BUNDLE_VERSION;
        out.data[0] = 'X';
        cr_assert_eq(af_bundle_open(out.data, out.size, &b, &why), AF_BUNDLE_E_DAMAGED);
        cr_assert_str_eq(why, "not a bundle");
        out.data[0] = 'A';
        for (size_t n = 0; n < out.size; n += 8)
                cr_assert_eq(af_bundle_open(out.data, n, &b, &why), AF_BUNDLE_E_DAMAGED, "%zu bytes", n);
        for (size_t at = 0; at < out.size; at++) {
                out.data[at] ^= 0x10;
                cr_assert_gt(af_bundle_open(out.data, out.size, &b, &why), 0, "byte %zu", at);
                out.data[at] ^= 0x10;
        }
        cr_assert_eq(af_bundle_open(out.data, out.size, &b, &why), 0);
        af_buf_deinit(&out);
}

Test(bundle, attaches_binaries) {
        struct af_buf skeleton = finished(), full = AF_BUF_INIT;
        const struct af_piece binary = {"\x7f"
                                        "ELF binary",
                                        11},
                              none = {"", 0};
        struct af_bundle b, whole;
        const char *why;

        cr_assert_eq(af_bundle_open(skeleton.data, skeleton.size, &b, &why), 0);
        cr_assert_eq(af_bundle_attach(&b, &binary, 0, &full), AF_BUNDLE_E_DAMAGED);
        cr_assert_eq(af_bundle_attach(&b, &none, 1, &full), AF_BUNDLE_E_DAMAGED);
        cr_assert_eq(af_bundle_attach(&b, &binary, 1, &full), 0);
        cr_assert_eq(af_bundle_open(full.data, full.size, &whole, &why), 0, "%s", why);
        const struct af_bundle_kernel *k = af_bundle_at(&whole, AF_SECTION_KERNELS, 0);
        cr_assert_eq(k->binary.size, 11);
        cr_assert_arr_eq(af_bundle_blob(&whole, k->binary),
                         "\x7f"
                         "ELF binary",
                         11);
        cr_assert_eq((uintptr_t)((const uint8_t *)af_bundle_blob(&whole, k->binary) - full.data) % 64, 0);
        cr_assert_str_eq(af_bundle_str(&whole, k->symbol), "autofused_add_0");
        cr_assert_eq(af_bundle_count(&whole, AF_SECTION_DECISIONS), 1);
        struct af_buf twice = AF_BUF_INIT;
        cr_assert_eq(af_bundle_attach(&whole, &binary, 1, &twice), AF_BUNDLE_E_DAMAGED, "not a skeleton");
        af_buf_deinit(&twice);
        af_buf_deinit(&skeleton);
        af_buf_deinit(&full);
}

Test(bundle, detaching_gives_the_skeleton_back) {
        struct af_buf skeleton = finished(), full = AF_BUF_INIT, back = AF_BUF_INIT;
        struct af_piece binary = {"ELF and more", 12};
        struct af_bundle b, whole;

        cr_assert_eq(af_bundle_open(skeleton.data, skeleton.size, &b, NULL), 0);
        cr_assert_eq(af_bundle_attach(&b, &binary, 1, &full), 0);
        cr_assert_eq(af_bundle_open(full.data, full.size, &whole, NULL), 0);
        cr_assert_eq(af_bundle_detach(&whole, &back), 0);
        cr_assert_eq(af_bundle_open(back.data, back.size, &b, NULL), 0);
        cr_assert(b.header->flags & AF_BUNDLE_SKELETON);
        af_buf_clear(&full);
        cr_assert_eq(af_bundle_attach(&b, &binary, 1, &full), 0);
        cr_assert_eq(af_bundle_detach(&b, &back), AF_BUNDLE_E_DAMAGED, "a skeleton already");
        af_buf_deinit(&skeleton);
        af_buf_deinit(&full);
        af_buf_deinit(&back);
}

Test(bundle, finish_appends_and_passes_errors_on) {
        struct sample s = sample_make();
        struct af_buf out = AF_BUF_INIT;
        struct af_bundle b;

        af_buf_put_u64(&out, 7);
        cr_assert_eq(af_bundle_finish(&s.b, s.flags, &out), 0);
        cr_assert_eq(af_bundle_open(out.data + 8, out.size - 8, &b, NULL), 0);
        cr_assert_eq(af_bundle_builder_count(&s.b, AF_SECTION_ARGS), 3);
        s.b.sections[AF_SECTION_ARGS].error = -ENOMEM;
        cr_assert_eq(af_bundle_finish(&s.b, s.flags, &out), -ENOMEM);
        s.b.sections[AF_SECTION_ARGS].error = 0;
        struct af_blob_ref ref = af_bundle_add_blob(&s.b, "x", (size_t)UINT32_MAX, 64);
        cr_assert_eq(ref.size, 0);
        cr_assert_eq(af_bundle_finish(&s.b, s.flags, &out), -EOVERFLOW);
        af_buf_deinit(&out);
        af_bundle_builder_deinit(&s.b);
}

/* Reads everything that an open bundle lets one reach. */
static uint64_t walk(const struct af_bundle *b) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < af_bundle_count(b, AF_SECTION_STEPS); i++) {
                const struct af_bundle_step *s = af_bundle_at(b, AF_SECTION_STEPS, i);
                sum += strlen(af_bundle_str(b, s->reason));
                for (uint32_t j = 0; s->kind == AF_STEP_KERNEL && j < s->n_args; j++)
                        sum += ((const struct af_bundle_arg *)af_bundle_at(b, AF_SECTION_ARGS, s->first_arg + j))->buffer;
                for (uint32_t j = 0; s->kind == AF_STEP_FRAMEWORK && j < s->n_inputs + s->n_outputs; j++)
                        sum += *(const uint32_t *)af_bundle_at(b, AF_SECTION_FALLBACK_VALUES, s->first_value + j);
        }
        for (uint32_t i = 0; i < af_bundle_count(b, AF_SECTION_KERNELS); i++) {
                const struct af_bundle_kernel *k = af_bundle_at(b, AF_SECTION_KERNELS, i);
                sum += strlen(af_bundle_str(b, k->symbol)) + strlen(af_bundle_str(b, k->ops)) + strlen(af_bundle_str(b, k->toolchain));
                const uint8_t *tiling = af_bundle_blob(b, k->tiling);
                for (uint32_t j = 0; j < k->tiling.size; j++)
                        sum += tiling[j];
        }
        for (uint32_t i = 0; i < af_bundle_count(b, AF_SECTION_TENSORS); i++) {
                const struct af_bundle_tensor *t = af_bundle_at(b, AF_SECTION_TENSORS, i);
                const struct af_bundle_buffer *buffer = af_bundle_at(b, AF_SECTION_BUFFERS, t->buffer);
                const uint8_t *data = buffer->kind == AF_BUFFER_CONST ? af_bundle_blob(b, buffer->data) : NULL;
                for (uint64_t j = 0; data && j < buffer->bytes; j++)
                        sum += data[j];
        }
        for (uint32_t i = 0; i < af_bundle_count(b, AF_SECTION_DECISIONS); i++) {
                const struct af_bundle_decision *d = af_bundle_at(b, AF_SECTION_DECISIONS, i);
                sum += strlen(af_bundle_str(b, d->rule)) + strlen(af_bundle_str(b, d->reason));
        }
        return sum;
}

Test(bundle, survives_any_bytes_under_a_right_check_sum) {
        struct random r = random_make("bundle");
        struct af_buf out = finished();
        uint32_t n_opened = 0;

        for (int round = 0; round < 60000; round++) {
                uint8_t *copy = malloc(out.size); /* its own block, so that a read beyond it is seen */
                struct af_bundle_header *h = (struct af_bundle_header *)copy;
                struct af_bundle b;
                memcpy(copy, out.data, out.size);
                random_mutate(&r, copy + 64, out.size - 64);
                af_bundle_check_of(copy, out.size, &h->check);
                if (af_bundle_open(copy, out.size, &b, NULL) == 0) {
                        cr_assert_lt(walk(&b), UINT64_MAX);
                        n_opened++;
                }
                free(copy);
        }
        cr_assert_gt(n_opened, 0);
        af_buf_deinit(&out);
}
