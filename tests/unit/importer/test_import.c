/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every ONNX test of Debian's libonnx-testdata that has a model: either it imports and the reference interpreter gives the expected
 * outputs, or it is refused with one clear line. AF_LIST=1 prints what happened to each.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "compiler/reference/reference.h"
#include "compiler/rewrite/rewrite.h"
#include "importer/onnx.h"

#define DATA   "/usr/share/libonnx-testdata/data"
#define MAX_IO 32

enum outcome { OK, MISMATCH, REFUSED, BROKEN };
struct result {
        enum outcome outcome;
        char text[600];
};

static int read_tensors(struct af_arena *arena, const char *dir, const char *what, struct af_onnx_tensor *t, uint32_t *ret_n,
                        struct af_diags *diags) {
        for (*ret_n = 0; *ret_n < MAX_IO; ++*ret_n) {
                struct af_buf bytes = AF_BUF_INIT;
                char path[4200];
                snprintf(path, sizeof(path), "%s/test_data_set_0/%s_%u.pb", dir, what, *ret_n);
                int r = af_io_read_file(path, 1 << 28, &bytes);
                if (!r)
                        r = af_onnx_tensor_read(arena, bytes.data, bytes.size, &t[*ret_n], diags);
                af_buf_deinit(&bytes);
                if (r)
                        return r == -ENOENT ? 0 : r;
        }
        return 0;
}

static int evaluate(struct af_arena *arena, const struct af_fragment *f, const struct af_onnx_import *import,
                    const struct af_onnx_tensor *feeds, const struct af_onnx_tensor *want, uint32_t n_want, struct result *result,
                    struct af_diags *diags) {
        struct af_graph whole, g;
        struct af_tensor in[MAX_IO], out[MAX_IO];
        const char *why = "";
        int r = af_graph_from_fragment(&whole, f, diags);
        if (!r)
                r = af_rewrite_decompose(&whole, NULL, &g, NULL);
        if (r)
                return r;
        for (uint32_t i = 0; i < import->n_inputs; i++) {
                const struct af_onnx_tensor *t = &feeds[import->input_of[i]];
                in[i] = (struct af_tensor){.dtype = t->dtype, .rank = t->rank, .data = (void *)t->bytes};
                memcpy(in[i].dims, t->dims, sizeof(t->dims));
                af_value_static_strides(&g, g.inputs[i].value, in[i].strides);
        }
        r = af_reference_run(&g, in, out, NULL, &why);
        if (r) {
                af_diag_error(diags, "reference", "op without a definition: %s", why);
                return AF_ONNX_E_REFUSED;
        }
        result->outcome = OK;
        for (uint32_t i = 0; i < g.n_outputs; i++) {
                struct af_onnx_tensor got = {.dtype = out[i].dtype, .rank = out[i].rank, .bytes = out[i].data};
                memcpy(got.dims, out[i].dims, sizeof(got.dims));
                if (i < n_want && result->outcome == OK && !af_onnx_equal(&got, &want[i], result->text, sizeof(result->text)))
                        result->outcome = MISMATCH;
                free(out[i].data);
        }
        (void)arena;
        return 0;
}

static struct result run_test(const char *dir) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        AF_CLEANUP(af_buf_deinit) struct af_buf bytes = AF_BUF_INIT;
        struct af_onnx_tensor feeds[MAX_IO], want[MAX_IO];
        struct af_onnx_model *model = NULL;
        struct af_onnx_import import;
        struct af_fragment f;
        struct af_diags diags = {0};
        struct result result = {.outcome = BROKEN};
        uint32_t n_feeds = 0, n_want = 0;
        char path[4200];
        af_arena_init(&arena, 0);
        snprintf(path, sizeof(path), "%s/model.onnx", dir);
        int r = af_io_read_file(path, 1 << 28, &bytes);
        if (!r)
                r = af_onnx_load(&arena, bytes.data, bytes.size, &model, &diags);
        if (!r)
                r = af_onnx_check_types(model, &diags);
        if (!r)
                r = read_tensors(&arena, dir, "input", feeds, &n_feeds, &diags);
        if (!r)
                r = read_tensors(&arena, dir, "output", want, &n_want, &diags);
        if (!r)
                r = af_fragment_init(&f, &arena);
        if (!r)
                r = af_onnx_import(model, feeds, n_feeds, NULL, &f, &import, &diags);
        if (!r)
                r = evaluate(&arena, &f, &import, feeds, want, n_want, &result, &diags);
        if (r) {
                result.outcome = r == AF_ONNX_E_REFUSED ? REFUSED : BROKEN;
                snprintf(result.text, sizeof(result.text), "error %d: %s: %s", r, diags.n_items ? diags.items[0].where : "",
                         diags.n_items ? diags.items[0].what : "");
        }
        af_onnx_close(model);
        af_diags_deinit(&diags);
        return result;
}

/*
 * Expectations of this release that its own models contradict: floats cut to bfloat16 instead of rounded to nearest even, as the
 * specification and PyTorch have it; a result for an epsilon of 0.01, which the model does not state.
 */
static bool wrong_data(const char *name) {
        return strcmp(name, "test_cast_FLOAT_to_BFLOAT16") == 0 || strncmp(name, "test_castlike_FLOAT_to_BFLOAT16", 31) == 0 ||
               strcmp(name, "test_adam_multiple") == 0;
}

/* All tests of a directory: none is wrong, and at least so many are right. */
static void run_directory(const char *directory, int at_least) {
        static const char *const names[] = {"ok", "MISMATCH", "refused", "BROKEN"};
        char path[512], dir[4096];
        struct dirent **list;
        int counts[4] = {0};
        snprintf(path, sizeof(path), DATA "/%s", directory);
        int n = scandir(path, &list, NULL, alphasort);
        cr_assert_gt(n, 2, "libonnx-testdata is not installed");
        for (int i = 0; i < n; i++) {
                snprintf(dir, sizeof(dir), "%s/%s", path, list[i]->d_name);
                if (list[i]->d_name[0] != '.') {
                        struct result r = run_test(dir);
                        counts[r.outcome]++;
                        if (getenv("AF_LIST") || r.outcome == MISMATCH || r.outcome == BROKEN)
                                fprintf(stderr, "%-8s %s %s\n", names[r.outcome], list[i]->d_name, r.text);
                        cr_expect(r.outcome == OK || r.outcome == REFUSED || (r.outcome == MISMATCH && wrong_data(list[i]->d_name)),
                                  "%s: %s", list[i]->d_name, r.text);
                }
                free(list[i]);
        }
        free(list);
        fprintf(stderr, "%s: %d ok, %d refused\n", directory, counts[OK], counts[REFUSED]);
        cr_expect_geq(counts[OK], at_least);
}

Test(import, every_node_test_matches_or_is_refused_by_name, .timeout = 120) {
        run_directory("node", 713);
}
Test(import, every_operator_of_pytorch, .timeout = 120) {
        run_directory("pytorch-operator", 26);
}
Test(import, every_layer_of_pytorch, .timeout = 120) {
        run_directory("pytorch-converted", 50);
}
Test(import, every_simple_model, .timeout = 120) {
        run_directory("simple", 7);
}
