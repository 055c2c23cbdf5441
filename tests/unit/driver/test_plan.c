/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of whole fragments: what must change them and what must not, down to the bytes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "compiler/driver/driver.h"

static struct af_arena arena;
static struct af_env env;

static void setup(void) {
        struct af_env_config config = {0};
        struct af_diags diags = {0};
        af_arena_init(&arena, 0);
        cr_assert_eq(af_env_load(&env, &arena, &config, NULL, NULL, AF_TWIN_DEFAULT, &diags), 0, "%s",
                     diags.n_items ? diags.items[0].what : "");
        af_diags_deinit(&diags);
}
static void teardown(void) {
        af_arena_deinit(&arena);
}
TestSuite(plan, .init = setup, .fini = teardown);

/* Plan bytes of a fragment's text; fails the test where it does not plan. */
static struct af_buf plan_of(const char *text, const struct af_driver_opts *opts) {
        struct af_buf canon = AF_BUF_INIT, plan = AF_BUF_INIT, lines = AF_BUF_INIT;
        struct af_diags diags = {0};
        int r = af_driver_canonicalise(text, strlen(text), &canon, NULL, &diags);
        if (!r)
                r = af_driver_plan(&env, canon.data, canon.size, opts, &plan, &diags);
        af_diags_format(&diags, &lines);
        cr_assert_eq(r, 0, "error %d: %.*s", r, (int)lines.size, (const char *)lines.data);
        af_diags_deinit(&diags);
        af_buf_deinit(&canon);
        af_buf_deinit(&lines);
        return plan;
}
static bool same(const struct af_buf *a, const struct af_buf *b) {
        return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

#define IN(name, dims)  "{\"name\":\"" name "\",\"dtype\":\"float32\",\"shape\":" dims "}"
#define OUT(name, dims) "[{\"name\":\"" name "\",\"dtype\":\"float32\",\"shape\":" dims "}]"
#define FRAGMENT(inputs, nodes, outputs)                                                                                                   \
        "{\"schema\":\"autofuse.fragment/1\",\"inputs\":[" inputs "],\"nodes\":[" nodes "],\"outputs\":[" outputs "]}"

static const char base_text[] =
        FRAGMENT(IN("x", "[8,5]") "," IN("y", "[5]"),
                 "{\"name\":\"a\",\"op\":\"sub\",\"inputs\":[\"x\",\"y\"],\"outputs\":" OUT(
                         "t", "[8,5]") "},"
                                       "{\"name\":\"b\",\"op\":\"exp\",\"inputs\":[\"t\"],\"outputs\":" OUT("u", "[8,5]") "}",
                 "\"u\"");

Test(plan, names_origins_order_and_dead_nodes_change_no_byte) {
        static const char other[] = FRAGMENT(
                IN("unused", "[3]") "," IN("second", "[5]") "," IN("first/../\\n\\\"", "[8,5]"),
                "{\"name\":\"dead\",\"op\":\"abs\",\"inputs\":[\"second\"],\"outputs\":" OUT(
                        "nobody",
                        "[5]") "},"
                               "{\"name\":\"z\",\"op\":\"exp\",\"origin\":\"aten.exp.default\",\"inputs\":[\"p\"],\"outputs\":" OUT(
                                       "q", "[8,5]") "},"
                                                     "{\"name\":\"y\",\"op\":\"sub\",\"origin\":\"Sub\",\"inputs\":[\"first/../"
                                                     "\\n\\\"\",\"second\"],\"outputs\":" OUT("p", "[8,5]") "}",
                "\"q\"");
        struct af_buf a = plan_of(base_text, NULL), b = plan_of(other, NULL);
        cr_assert(same(&a, &b));
        af_buf_deinit(&a);
        af_buf_deinit(&b);
}

Test(plan, the_same_text_gives_the_same_bytes_twice) {
        struct af_driver_opts opts = {.keep_sources = true};
        struct af_buf a = plan_of(base_text, &opts), b = plan_of(base_text, &opts);
        cr_assert(same(&a, &b));
        af_buf_deinit(&a);
        af_buf_deinit(&b);
}

Test(plan, operand_order_of_sub_changes_the_plan) {
        static const char other[] =
                FRAGMENT(IN("x", "[8,5]") "," IN("y", "[5]"),
                         "{\"name\":\"a\",\"op\":\"sub\",\"inputs\":[\"y\",\"x\"],\"outputs\":" OUT(
                                 "t", "[8,5]") "},"
                                               "{\"name\":\"b\",\"op\":\"exp\",\"inputs\":[\"t\"],\"outputs\":" OUT("u", "[8,5]") "}",
                         "\"u\"");
        struct af_buf a = plan_of(base_text, NULL), b = plan_of(other, NULL);
        cr_assert_not(same(&a, &b));
        af_buf_deinit(&a);
        af_buf_deinit(&b);
}

static uint32_t count_steps(const struct af_buf *plan, enum af_step_kind kind) {
        struct af_plan_view view;
        struct af_bundle b;
        uint32_t n = 0;
        cr_assert_eq(af_plan_read(plan->data, plan->size, &view), 0);
        void *copy = aligned_alloc(64, AF_ALIGN_UP(view.skeleton_size, 64u));
        memcpy(copy, view.skeleton, view.skeleton_size);
        const char *why = "";
        cr_assert_eq(af_bundle_open(copy, view.skeleton_size, &b, &why), 0, "%s", why);
        for (uint32_t i = 0; i < af_bundle_count(&b, AF_SECTION_STEPS); i++)
                n += ((const struct af_bundle_step *)af_bundle_at(&b, AF_SECTION_STEPS, i))->kind == kind;
        free(copy);
        af_plan_view_deinit(&view);
        return n;
}

Test(plan, samples_become_one_kernel_each) {
        static const struct {
                const char *name;
                uint32_t n_kernels, n_framework;
        } samples[] = {{"tf_abs_add_relu_broadcast", 1, 0}, {"tf_abs_reduce_sum", 1, 0},  {"tf_abs_relu_exp", 1, 0}, {"torch_add_ge", 1, 0},
                       {"torch_gather_add", 1, 0},          {"torch_mul_reducesum", 1, 0}};
        for (size_t i = 0; i < AF_ARRAY_SIZE(samples); i++) {
                char path[4096];
                struct af_buf text = AF_BUF_INIT;
                snprintf(path, sizeof(path), "%s/examples/fragments/%s.json", getenv("AF_SOURCE_ROOT"), samples[i].name);
                cr_assert_eq(af_io_read_file(path, 1 << 20, &text), 0, "%s", path);
                af_buf_put_u8(&text, 0);
                struct af_buf plan = plan_of((const char *)text.data, NULL);
                cr_assert_eq(count_steps(&plan, AF_STEP_KERNEL), samples[i].n_kernels, "%s", samples[i].name);
                cr_assert_eq(count_steps(&plan, AF_STEP_FRAMEWORK), samples[i].n_framework, "%s", samples[i].name);
                af_buf_deinit(&plan);
                af_buf_deinit(&text);
        }
}

/* The lines of a plan's fallbacks: "<canonical node> <reason>\n". */
static void fallbacks_are(const struct af_buf *plan, const char *want) {
        struct af_plan_view view;
        cr_assert_eq(af_plan_read(plan->data, plan->size, &view), 0);
        cr_assert(view.fallbacks_size == strlen(want) && memcmp(view.fallbacks, want, view.fallbacks_size) == 0, "%.*s",
                  (int)view.fallbacks_size, (const char *)view.fallbacks);
        af_plan_view_deinit(&view);
}

#define SOFTMAX_THEN_ABS(symbols, x)                                                                                                       \
        "{\"schema\":\"autofuse.fragment/1\"," symbols "\"inputs\":[" x "],\"nodes\":["                                                    \
        "{\"name\":\"a\",\"op\":\"softmax\",\"inputs\":[\"x\"],\"outputs\":[{\"name\":\"t\"," TYPE "}]},"                                  \
        "{\"name\":\"b\",\"op\":\"abs\",\"inputs\":[\"t\"],\"outputs\":[{\"name\":\"u\"," TYPE "}]}],\"outputs\":[\"u\"]}"

Test(plan, a_composite_is_compiled_in_pieces) {
#define TYPE "\"dtype\":\"float32\",\"shape\":[8,5]"
        struct af_buf plan = plan_of(SOFTMAX_THEN_ABS("", "{\"name\":\"x\"," TYPE "}"), NULL);
#undef TYPE
        fallbacks_are(&plan, "");
        cr_assert_eq(count_steps(&plan, AF_STEP_FRAMEWORK), 0);
        cr_assert_geq(count_steps(&plan, AF_STEP_KERNEL), 1);
        af_buf_deinit(&plan);
}

/* Of a composite that no kernel can run the framework gets the whole node, once, with the reason of the piece that failed. */
Test(plan, a_composite_falls_back_whole) {
#define TYPE "\"dtype\":\"float64\",\"shape\":[8,5]"
        struct af_buf plan = plan_of(SOFTMAX_THEN_ABS("", "{\"name\":\"x\"," TYPE "}"), NULL);
#undef TYPE
        struct af_plan_view view;
        cr_assert_eq(af_plan_read(plan.data, plan.size, &view), 0);
        cr_assert_eq(count_steps(&plan, AF_STEP_FRAMEWORK), 2);
        cr_assert_eq(count_steps(&plan, AF_STEP_KERNEL), 0);
        cr_assert(memmem(view.fallbacks, view.fallbacks_size, "float64", 7), "%.*s", (int)view.fallbacks_size,
                  (const char *)view.fallbacks);
        cr_assert_not(memmem(view.fallbacks, view.fallbacks_size, "composite", 9), "%.*s", (int)view.fallbacks_size,
                      (const char *)view.fallbacks);
        af_plan_view_deinit(&view);
        af_buf_deinit(&plan);
}

/* abs(p) + y and y + abs(s), with the framework between them: one kernel, launched twice. */
Test(plan, alike_groups_share_one_kernel_and_keep_their_own_arguments) {
        static const char text[] = FRAGMENT(
                IN("x", "[8,5]") "," IN("y", "[8,5]"),
                "{\"name\":\"a\",\"op\":\"opaque\",\"inputs\":[\"x\"],\"outputs\":" OUT(
                        "p",
                        "[8,5]") "},"
                                 "{\"name\":\"b\",\"op\":\"abs\",\"inputs\":[\"p\"],\"outputs\":" OUT(
                                         "q",
                                         "[8,5]") "},"
                                                  "{\"name\":\"c\",\"op\":\"add\",\"inputs\":[\"q\",\"y\"],\"outputs\":" OUT(
                                                          "r",
                                                          "[8,5]") "},"
                                                                   "{\"name\":\"d\",\"op\":\"opaque\",\"inputs\":[\"r\"],\"outputs\":" OUT(
                                                                           "s", "[8,5]") "},"
                                                                                         "{\"name\":\"e\",\"op\":\"abs\",\"inputs\":[\"s\"]"
                                                                                         ",\"outputs\":" OUT(
                                                                                                 "t", "[8,5]") "},"
                                                                                                               "{\"name\":\"f\",\"op\":"
                                                                                                               "\"add\",\"inputs\":[\"y\","
                                                                                                               "\"t\"],\"outputs\":" OUT(
                                                                                                                       "u", "[8,5]") "}",
                "\"u\"");
        struct af_buf plan = plan_of(text, NULL);
        struct af_plan_view view;
        struct af_bundle b;
        const char *why = "";
        cr_assert_eq(af_plan_read(plan.data, plan.size, &view), 0);
        cr_assert_eq(view.n_kernels, 1);
        void *copy = aligned_alloc(64, AF_ALIGN_UP(view.skeleton_size, 64u));
        memcpy(copy, view.skeleton, view.skeleton_size);
        cr_assert_eq(af_bundle_open(copy, view.skeleton_size, &b, &why), 0, "%s", why);
        const struct af_bundle_step *s[4];
        cr_assert_eq(af_bundle_count(&b, AF_SECTION_STEPS), 4);
        for (uint32_t i = 0; i < 4; i++)
                s[i] = af_bundle_at(&b, AF_SECTION_STEPS, i);
        cr_assert(s[1]->kind == AF_STEP_KERNEL && s[3]->kind == AF_STEP_KERNEL && s[1]->n_args == 3 && s[3]->n_args == 3);
        uint32_t n_alike = 0;
        for (uint32_t i = 0; i < 3; i++) {
                const struct af_bundle_arg *p = af_bundle_at(&b, AF_SECTION_ARGS, s[1]->first_arg + i);
                const struct af_bundle_arg *q = af_bundle_at(&b, AF_SECTION_ARGS, s[3]->first_arg + i);
                const struct af_bundle_buffer *bp = af_bundle_at(&b, AF_SECTION_BUFFERS, p->buffer);
                const struct af_bundle_buffer *bq = af_bundle_at(&b, AF_SECTION_BUFFERS, q->buffer);
                cr_assert_eq(p->access, q->access);
                cr_assert_eq(bp->kind == AF_BUFFER_INPUT, bq->kind == AF_BUFFER_INPUT, "y stands where y stood");
                n_alike += bp->kind == AF_BUFFER_INPUT;
        }
        cr_assert_eq(n_alike, 1);
        free(copy);
        af_plan_view_deinit(&view);
        af_buf_deinit(&plan);
}

/* abs(y) + x goes into x, after the framework has read x: though abs comes first of all, its kernel must not. */
Test(plan, readers_of_an_input_run_before_the_kernel_that_takes_its_memory) {
        static const char text[] = FRAGMENT(
                IN("x", "[8,5]") "," IN("y", "[8,5]"),
                "{\"name\":\"a\",\"op\":\"abs\",\"inputs\":[\"y\"],\"outputs\":" OUT(
                        "p", "[8,5]") "},"
                                      "{\"name\":\"b\",\"op\":\"opaque\",\"inputs\":[\"x\"],\"outputs\":" OUT(
                                              "q", "[8,5]") "},"
                                                            "{\"name\":\"c\",\"op\":\"add\",\"inputs\":[\"p\",\"x\"],\"outputs\":" OUT(
                                                                    "r", "[8,5]") "},"
                                                                                  "{\"name\":\"d\",\"op\":\"reshape\",\"inputs\":[\"r\"],"
                                                                                  "\"attrs\":{\"shape\":[8,5]},\"outputs\":" OUT(
                                                                                          "s", "[8,5]") "}",
                "{\"value\":\"s\",\"alias_of\":\"x\"},\"q\"");
        struct af_buf plan = plan_of(text, NULL);
        struct af_plan_view view;
        struct af_bundle b;
        const char *why = "";
        cr_assert_eq(af_plan_read(plan.data, plan.size, &view), 0);
        void *copy = aligned_alloc(64, AF_ALIGN_UP(view.skeleton_size, 64u));
        memcpy(copy, view.skeleton, view.skeleton_size);
        cr_assert_eq(af_bundle_open(copy, view.skeleton_size, &b, &why), 0, "%s", why);
        cr_assert_eq(af_bundle_count(&b, AF_SECTION_STEPS), 2);
        cr_assert_eq(((const struct af_bundle_step *)af_bundle_at(&b, AF_SECTION_STEPS, 0))->kind, AF_STEP_FRAMEWORK);
        free(copy);
        af_plan_view_deinit(&view);
        af_buf_deinit(&plan);
}

Test(plan, unfused_gives_a_kernel_per_node) {
        struct af_driver_opts opts = {.no_fuse = true};
        struct af_buf a = plan_of(base_text, &opts);
        cr_assert_eq(count_steps(&a, AF_STEP_KERNEL), 2);
        af_buf_deinit(&a);
}

Test(plan, outputs_that_are_views_inputs_and_constants_need_no_kernel) {
        static const char text[] = "{\"schema\":\"autofuse.fragment/1\",\"inputs\":[" IN(
                "x", "[4,6]") "],\"constants\":[{\"name\":\"c\",\"dtype\":\"float32\","
                              "\"shape\":[2],\"bits\":\"0000803f00000040\"}],\"nodes\":[{\"name\":\"r\",\"op\":\"reshape\",\"inputs\":["
                              "\"x\"],\"attrs\":{"
                              "\"shape\":[24]},\"outputs\":" OUT("v", "[24]") "}],\"outputs\":[\"v\",\"x\",\"c\",\"v\"]}";
        struct af_buf a = plan_of(text, NULL);
        cr_assert_eq(count_steps(&a, AF_STEP_KERNEL), 0);
        cr_assert_eq(count_steps(&a, AF_STEP_FRAMEWORK), 0);
        af_buf_deinit(&a);
}

Test(plan, a_reshape_of_a_transposed_input_reads_a_copy) {
        static const char text[] =
                "{\"schema\":\"autofuse.fragment/"
                "1\",\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[4,6],\"strides\":[12,1]}],"
                "\"nodes\":[{\"name\":\"r\",\"op\":\"reshape\",\"inputs\":[\"x\"],\"attrs\":{\"shape\":[24]},\"outputs\":" OUT(
                        "v", "[24]") "}],\"outputs\":[\"v\"]}";
        struct af_buf a = plan_of(text, NULL);
        cr_assert_eq(count_steps(&a, AF_STEP_KERNEL), 1);
        af_buf_deinit(&a);
}

Test(plan, bytes_that_are_not_canonical_are_refused) {
        struct af_buf canon = AF_BUF_INIT, plan = AF_BUF_INIT;
        struct af_diags diags = {0};
        cr_assert_eq(af_driver_canonicalise(base_text, strlen(base_text), &canon, NULL, &diags), 0);
        af_buf_put_u8(&canon, 0);
        cr_assert_gt(af_driver_plan(&env, canon.data, canon.size, NULL, &plan, &diags), 0);
        cr_assert_gt(diags.n_errors, 0);
        af_diags_deinit(&diags);
        af_buf_deinit(&canon);
        af_buf_deinit(&plan);
}

/* What no kernel can copy and no node of the sender's stands for is an error that names the output, never a step without a node. */
Test(plan, an_output_that_nobody_could_store_is_refused) {
        static const char text[] = "{\"schema\":\"autofuse.fragment/"
                                   "1\",\"symbols\":[{\"name\":\"s\",\"min\":0,\"max\":99}],\"inputs\":[{\"name\":\"x\",\"dtype\":"
                                   "\"float32\",\"shape\":[\"s\",\"s\"],\"strides\":[\"s\",0]}],\"nodes\":[],\"outputs\":[{\"value\":\"x\","
                                   "\"strides\":[\"s\",1]}]}";
        struct af_buf canon = AF_BUF_INIT, plan = AF_BUF_INIT, lines = AF_BUF_INIT;
        struct af_diags diags = {0};
        cr_assert_eq(af_driver_canonicalise(text, strlen(text), &canon, NULL, &diags), 0);
        cr_assert_eq(af_driver_plan(&env, canon.data, canon.size, NULL, &plan, &diags), AF_DRIVER_E_INVALID);
        af_diags_format(&diags, &lines);
        af_buf_put_u8(&lines, 0);
        cr_assert_not_null(strstr((const char *)lines.data, "output 0"), "%s", (const char *)lines.data);
        af_diags_deinit(&diags);
        af_buf_deinit(&canon);
        af_buf_deinit(&plan);
        af_buf_deinit(&lines);
}
