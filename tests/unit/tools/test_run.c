/* SPDX-License-Identifier: Apache-2.0 */
/* Real kernels, compiled offline: run in one thread, spread by an executor, launched block by block. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/exec.h"
#include "tools/session.h"

#define N_WORKERS 3

struct sample {
        struct af_session s;
        struct af_frag frag;
        struct af_exec x;
        struct autofuse_bundle *bundle;
        void *inputs[8], *outputs[8];
        struct autofuse_run run;
};

static void setup(struct sample *t, const char *name) {
        char path[4096];
        struct autofuse_error *error = NULL;
        snprintf(path, sizeof(path), "%s/examples/fragments/%s.json", getenv("AF_SOURCE_ROOT"), name);
        memset(t, 0, sizeof(*t));
        cr_assert_eq(af_frag_load(strdup(path), &t->frag), 0);
        af_session_open_offline(&t->s);
        enum autofuse_status status = af_session_compile(&t->s, &t->frag.f, &t->bundle, &error);
        cr_assert_eq(status, AUTOFUSE_OK, "%s", autofuse_error_text(error));
        cr_assert_eq(af_exec_init(&t->x, &t->frag), 0);
        af_exec_fill(&t->x, 5, true);
        cr_assert_eq(af_exec_reference(&t->x), 0);
        status = af_exec_run(&t->x, t->bundle, false, &error);
        cr_assert_eq(status, AUTOFUSE_OK, "%s", autofuse_error_text(error));
        for (uint32_t i = 0; i < t->frag.g.n_inputs; i++)
                t->inputs[i] = t->x.inputs[i].base;
        for (uint32_t i = 0; i < t->frag.g.n_outputs; i++)
                t->outputs[i] = t->x.outputs[i].memory;
        t->run = (struct autofuse_run)AUTOFUSE_RUN_INIT;
        t->run.inputs = t->inputs;
        t->run.outputs = t->outputs;
}

static void check(struct sample *t) {
        double error;
        uint64_t first;
        for (uint32_t i = 0; i < t->frag.g.n_outputs; i++)
                cr_assert_eq(af_tensor_compare(&t->x.outputs[i].t, &t->x.expected[i], &error, &first), 0);
}

static void wipe(struct sample *t) {
        for (uint32_t i = 0; i < t->frag.g.n_outputs; i++)
                memset(t->x.outputs[i].memory, 0xee, t->x.outputs[i].n_bytes);
}

static void teardown(struct sample *t) {
        af_exec_deinit(&t->x);
        autofuse_bundle_unref(t->bundle);
        af_session_close(&t->s);
        af_frag_deinit(&t->frag);
}

struct job {
        void (*task)(void *arg, uint32_t i);
        void *arg;
        uint32_t first, n;
};

static void *work(void *arg) {
        struct job *j = arg;
        for (uint32_t i = j->first; i < j->n; i += N_WORKERS)
                j->task(j->arg, i);
        return NULL;
}

static void spread(void *userdata, uint32_t n_tasks, void (*task)(void *arg, uint32_t i), void *arg) {
        pthread_t threads[N_WORKERS];
        struct job jobs[N_WORKERS];
        *(uint32_t *)userdata += n_tasks;
        for (uint32_t i = 0; i < N_WORKERS; i++) {
                jobs[i] = (struct job){task, arg, i, n_tasks};
                pthread_create(&threads[i], NULL, work, &jobs[i]);
        }
        for (uint32_t i = 0; i < N_WORKERS; i++)
                pthread_join(threads[i], NULL);
}

Test(run, an_executor_gives_the_same_bits) {
        static const char *const names[] = {"tf_abs_relu_exp", "tf_abs_reduce_sum", "torch_mul_reducesum"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(names); i++) {
                struct sample t;
                struct autofuse_kernel_info k;
                uint32_t n_tasks = 0;
                setup(&t, names[i]);
                check(&t);
                wipe(&t);
                t.run.executor = spread;
                t.run.userdata = &n_tasks;
                cr_assert_eq(autofuse_bundle_run(t.bundle, &t.run, NULL), AUTOFUSE_OK);
                check(&t);
                cr_assert(autofuse_bundle_kernel(t.bundle, 0, &k));
                /* Blocks that wait for each other are never spread. */
                cr_assert_eq(n_tasks, k.needs_sync_all || k.block_dim == 1 ? 0 : k.block_dim);
                /* A worker has 256 KiB to move at least. */
                wipe(&t);
                n_tasks = 0;
                t.run.n_workers = 7;
                cr_assert_eq(autofuse_bundle_run(t.bundle, &t.run, NULL), AUTOFUSE_OK);
                check(&t);
                uint32_t n = AF_MIN(AF_MIN(7u, k.block_dim), 1 + (uint32_t)(k.hbm_bytes >> 18));
                cr_assert_eq(n_tasks, k.needs_sync_all || n == 1 ? 0 : n);
                teardown(&t);
        }
}

Test(run, temporaries_of_the_caller) {
        struct sample t;
        struct autofuse_bundle_info info;
        struct autofuse_error *error = NULL;
        setup(&t, "torch_mul_reducesum");
        autofuse_bundle_info(t.bundle, &info);
        if (info.temp_bytes) {
                void *temp = NULL;
                cr_assert_eq(posix_memalign(&temp, 512, info.temp_bytes), 0);
                wipe(&t);
                t.run.temp = temp;
                t.run.temp_bytes = info.temp_bytes - 1;
                cr_assert_eq(autofuse_bundle_run(t.bundle, &t.run, &error), AUTOFUSE_E_SHAPE);
                autofuse_error_free(error);
                t.run.temp_bytes = info.temp_bytes;
                cr_assert_eq(autofuse_bundle_run(t.bundle, &t.run, NULL), AUTOFUSE_OK);
                check(&t);
                free(temp);
        }
        teardown(&t);
}

Test(run, kernels_launched_by_hand) {
        struct sample t;
        struct autofuse_kernel_info k;
        struct autofuse_arg_info a;
        struct autofuse_buffer_info b;
        void *args[8];
        setup(&t, "tf_abs_relu_exp");
        wipe(&t);
        cr_assert(autofuse_bundle_kernel(t.bundle, 0, &k));
        uint32_t n_args = 0;
        for (; autofuse_bundle_step_arg(t.bundle, 0, n_args, &a); n_args++) {
                cr_assert(autofuse_bundle_buffer(t.bundle, a.buffer, &b));
                args[n_args] = (uint8_t *)(b.kind == AUTOFUSE_BUFFER_INPUT ? t.inputs[b.index] : t.outputs[b.index]) + a.byte_offset;
        }
        for (uint32_t block = k.block_dim; block-- > 0;)
                cr_assert_eq(autofuse_kernel_launch(t.bundle, 0, args, NULL, n_args, block, 1, NULL), AUTOFUSE_OK);
        check(&t);
        cr_assert_eq(autofuse_kernel_launch(t.bundle, 0, args, NULL, n_args, k.block_dim, 1, NULL), AUTOFUSE_E_ARGUMENT);
        cr_assert_eq(autofuse_kernel_launch(t.bundle, 0, args, NULL, n_args + 1, 0, 1, NULL), AUTOFUSE_E_ARGUMENT);
        cr_assert_eq(autofuse_kernel_launch(t.bundle, 1, args, NULL, n_args, 0, 1, NULL), AUTOFUSE_E_ARGUMENT);
        teardown(&t);
}

Test(run, kernel_steps_on_placed_buffers) {
        struct sample t;
        struct autofuse_bundle_info info;
        struct autofuse_buffer_info b;
        struct autofuse_run run = AUTOFUSE_RUN_INIT;
        void *buffers[16], *temp = NULL;
        uint32_t n_tasks = 0;
        setup(&t, "torch_mul_reducesum");
        autofuse_bundle_info(t.bundle, &info);
        cr_assert_leq(info.n_buffers, 16);
        cr_assert_eq(posix_memalign(&temp, 512, info.temp_bytes + 512), 0);
        for (uint32_t i = 0; autofuse_bundle_buffer(t.bundle, i, &b); i++)
                buffers[i] = b.kind == AUTOFUSE_BUFFER_INPUT    ? t.inputs[b.index]
                             : b.kind == AUTOFUSE_BUFFER_OUTPUT ? t.outputs[b.index]
                             : b.kind == AUTOFUSE_BUFFER_CONST  ? (void *)b.data
                                                                : (uint8_t *)temp + b.offset;
        wipe(&t);
        cr_assert_eq(autofuse_bundle_run_kernels(t.bundle, 0, info.n_steps, buffers, NULL, NULL), AUTOFUSE_OK);
        check(&t);
        wipe(&t);
        run.executor = spread;
        run.userdata = &n_tasks;
        for (uint32_t i = 0; i < info.n_steps; i++)
                cr_assert_eq(autofuse_bundle_run_kernels(t.bundle, i, 1, buffers, &run, NULL), AUTOFUSE_OK);
        check(&t);
        cr_assert_eq(autofuse_bundle_run_kernels(t.bundle, 0, info.n_steps + 1, buffers, NULL, NULL), AUTOFUSE_E_ARGUMENT);
        cr_assert_eq(autofuse_bundle_run_kernels(t.bundle, 0, 1, NULL, NULL, NULL), AUTOFUSE_E_ARGUMENT);
        free(temp);
        teardown(&t);
}
