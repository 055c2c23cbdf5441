/* SPDX-License-Identifier: Apache-2.0 */
/* Submitting and waiting: memo, retries, cancel, time-outs, threads, forks, and answers that lie. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/client/fake_server.h"
#include "tests/unit/client/sample.h"

struct fixture {
        struct fake_server s;
        struct autofuse_context *ctx;
        pthread_mutex_t lock;
        char log[8192];
        int n_log;
};

static void log_line(void *userdata, enum autofuse_log_level level, const char *line) {
        struct fixture *f = userdata;
        pthread_mutex_lock(&f->lock);
        size_t n = strlen(f->log);
        snprintf(f->log + n, sizeof(f->log) - n, "%s\n", line);
        f->n_log++;
        pthread_mutex_unlock(&f->lock);
}

static void start(struct fixture *f, enum fake_mode mode) {
        struct autofuse_options o = AUTOFUSE_OPTIONS_INIT;
        memset(f, 0, sizeof(*f));
        pthread_mutex_init(&f->lock, NULL);
        fake_server_start(&f->s, mode);
        o.socket = f->s.path;
        o.log = log_line;
        o.userdata = f;
        SAMPLE_OK(autofuse_context_open(&o, &f->ctx, &error));
}

static void stop(struct fixture *f) {
        autofuse_context_close(f->ctx);
        fake_server_stop(&f->s, false);
}

static enum autofuse_hit compile(struct autofuse_context *ctx, float constant) {
        struct autofuse_fragment *fragment = sample_build(constant);
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_bundle_info info;
        SAMPLE_OK(autofuse_compile(ctx, fragment, NULL, &bundle, &error));
        autofuse_bundle_info(bundle, &info);
        MUST(info.n_framework_steps == 2);
        autofuse_bundle_unref(bundle);
        autofuse_fragment_free(fragment);
        return info.hit;
}

static void fails(struct fixture *f, enum autofuse_status want, const char *words) {
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_error *error = NULL;
        enum autofuse_status got = autofuse_compile_text(f->ctx, sample_text, strlen(sample_text), NULL, &bundle, &error);
        cr_assert_eq(got, want, "%s: %s", autofuse_status_name(got), autofuse_error_text(error));
        cr_assert(strstr(autofuse_error_text(error), words), "\"%s\" is not in: %s", words, autofuse_error_text(error));
        cr_assert_null(bundle);
        autofuse_error_free(error);
}

Test(request, answers_by_memfd_and_inline) {
        static const enum fake_mode modes[] = {FAKE_OK, FAKE_INLINE};
        for (int i = 0; i < 2; i++) {
                struct fixture f;
                start(&f, modes[i]);
                cr_assert_eq(compile(f.ctx, 1), AUTOFUSE_HIT_STORE);
                stop(&f);
        }
}

Test(request, memo_answers_the_second_time) {
        struct fixture f;
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_memo_stats stats;
        start(&f, FAKE_OK);
        cr_assert_eq(compile(f.ctx, 1), AUTOFUSE_HIT_STORE);
        cr_assert_eq(compile(f.ctx, 1), AUTOFUSE_HIT_MEMO);
        for (int i = 0; i < 3; i++) {
                SAMPLE_OK(autofuse_compile_text(f.ctx, sample_text, strlen(sample_text), NULL, &bundle, &error));
                autofuse_bundle_unref(bundle);
        }
        cr_assert_eq(f.s.n_submits, 1);
        autofuse_context_memo_stats(f.ctx, &stats);
        cr_assert_eq(stats.hits, 4);
        cr_assert_eq(stats.entries, 2, "one text, one key");
        autofuse_context_forget(f.ctx);
        cr_assert_eq(compile(f.ctx, 1), AUTOFUSE_HIT_STORE);
        stop(&f);
}

Test(request, another_environment_empties_the_memo) {
        struct fixture f;
        start(&f, FAKE_OK);
        compile(f.ctx, 1);
        char path[96], dir[64];
        strcpy(path, f.s.path);
        strcpy(dir, f.s.dir);
        fake_server_stop(&f.s, true);
        fake_server_start_at(&f.s, FAKE_OK, path);
        strcpy(f.s.dir, dir);
        f.s.env = 9;
        compile(f.ctx, 2); /* connects anew and sees the other digest */
        cr_assert_eq(compile(f.ctx, 1), AUTOFUSE_HIT_STORE);
        stop(&f);
}

Test(request, fallbacks_are_told_once_in_the_senders_names) {
        struct fixture f;
        start(&f, FAKE_OK);
        struct autofuse_fragment *fragment = sample_build(1);
        for (int i = 0; i < 2; i++) {
                struct autofuse_bundle *bundle = NULL;
                SAMPLE_OK(autofuse_compile(f.ctx, fragment, NULL, &bundle, &error));
                autofuse_bundle_unref(bundle);
        }
        cr_assert_str_eq(f.log, "Fallback aten.mul.Tensor $reason: no template for this test\nFallback aten.add.Tensor $reason: no "
                                "template for this test\n");
        autofuse_fragment_free(fragment);
        stop(&f);
}

Test(request, answers_that_lie_are_not_used) {
        static const struct {
                enum fake_mode mode;
                const char *words;
        } cases[] = {
                {FAKE_UNSEALED, "not sealed"},
                {FAKE_FILE, "not sealed"},
                {FAKE_WRONG_SIZE, "size is not the one"},
                {FAKE_WRONG_KEY, "another fragment's"},
                {FAKE_DAMAGED, "cannot be used"},
                {FAKE_OTHER_BUNDLE, "not the fragment's"},
                {FAKE_GARBAGE, "broke the protocol"},
                {FAKE_HUGE, "broke the protocol"},
                {FAKE_STRAY_FD, "broke the protocol"},
                {FAKE_NO_FD, "broke the protocol"},
                {FAKE_CUT, "connection to the server broke"},
        };
        for (size_t i = 0; i < AF_ARRAY_SIZE(cases); i++) {
                struct fixture f;
                start(&f, cases[i].mode);
                fails(&f, AUTOFUSE_E_UNAVAILABLE, cases[i].words);
                cr_assert_eq(f.n_log, 1, "said once: %s", f.log);
                stop(&f);
        }
}

Test(request, the_servers_refusals_have_codes_of_their_own) {
        struct fixture f;
        start(&f, FAKE_COMPILE_ERROR);
        fails(&f, AUTOFUSE_E_COMPILE, "kernel.cpp:3: error: no such call");
        cr_assert_eq(f.n_log, 0);
        f.s.mode = FAKE_NOT_FOUND;
        fails(&f, AUTOFUSE_E_NOT_FOUND, "not compiled yet");
        stop(&f);
}

Test(request, retries_what_may_pass) {
        static const enum fake_mode modes[] = {FAKE_CLOSE_ONCE, FAKE_BUSY_TWICE};
        for (int i = 0; i < 2; i++) {
                struct fixture f;
                start(&f, modes[i]);
                cr_assert_eq(compile(f.ctx, 1), AUTOFUSE_HIT_STORE);
                cr_assert_eq(f.s.n_submits, i + 2);
                stop(&f);
        }
}

Test(request, gives_up_on_jobs_that_die_each_time) {
        struct fixture f;
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_error *error = NULL;
        start(&f, FAKE_JOB_DIED);
        cr_assert_eq(autofuse_compile_text(f.ctx, sample_text, strlen(sample_text), NULL, &bundle, &error), AUTOFUSE_E_UNAVAILABLE);
        cr_assert(autofuse_error_is_retryable(error));
        cr_assert(strstr(autofuse_error_text(error), "killed"));
        autofuse_error_free(error);
        cr_assert_eq(f.s.n_submits, 4);
        stop(&f);
}

Test(request, no_server_is_said_once_and_costs_nothing_later) {
        struct fixture f;
        start(&f, FAKE_OK);
        fake_server_stop(&f.s, true);
        fails(&f, AUTOFUSE_E_UNAVAILABLE, "left behind");
        uint64_t started = af_clock_now_us();
        for (int i = 0; i < 10; i++)
                fails(&f, AUTOFUSE_E_UNAVAILABLE, "left behind");
        cr_assert_lt(af_clock_now_us() - started, 5000000, "each would have waited a second");
        cr_assert_eq(f.n_log, 1);
        autofuse_context_close(f.ctx);
        unlink(f.s.path);
        rmdir(f.s.dir);
}

Test(request, deadline_and_timeout_have_codes_of_their_own) {
        struct fixture f;
        struct autofuse_submit_options o = AUTOFUSE_SUBMIT_INIT;
        struct autofuse_request *req = NULL;
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_error *error = NULL;
        start(&f, FAKE_SILENT);
        o.deadline_ms = 150;
        SAMPLE_OK(autofuse_submit_text(f.ctx, sample_text, strlen(sample_text), &o, &req, &error));
        cr_assert_eq(autofuse_request_wait(req, 20, &bundle, &error), AUTOFUSE_E_TIMEOUT);
        autofuse_error_free(error);
        cr_assert_eq(autofuse_request_wait(req, -1, &bundle, &error), AUTOFUSE_E_DEADLINE);
        autofuse_error_free(error);
        cr_assert_eq(autofuse_request_wait(req, -1, &bundle, NULL), AUTOFUSE_E_DEADLINE, "it stays so");
        autofuse_request_free(req);
        stop(&f);
        cr_assert_eq(f.s.n_cancels, 1);
}

static void on_progress(void *userdata, const struct autofuse_progress *p) {
        cr_assert_str_eq(p->text, "compiling");
        cr_assert_eq(p->n_waiters, 7);
        *(uint64_t *)userdata = p->elapsed_ms;
}

Test(request, progress_is_told_to_who_waits) {
        struct fixture f;
        struct autofuse_submit_options o = AUTOFUSE_SUBMIT_INIT;
        struct autofuse_bundle *bundle = NULL;
        uint64_t elapsed = 0;
        start(&f, FAKE_PROGRESS);
        o.progress = on_progress;
        o.userdata = &elapsed;
        SAMPLE_OK(autofuse_compile_text(f.ctx, sample_text, strlen(sample_text), &o, &bundle, &error));
        cr_assert_geq(elapsed, 1000);
        autofuse_bundle_unref(bundle);
        stop(&f);
}

static void on_part(void *userdata, const struct autofuse_part *p) {
        char *told = userdata;
        cr_assert_eq(p->n_kernels, 2);
        snprintf(told + strlen(told), 32, "%u:%.*s ", p->kernel, (int)p->n_bytes, (const char *)p->binary);
}

/* Each kernel once, whatever else the server calls a part; nobody who did not ask gets any. */
Test(request, kernels_come_before_the_answer) {
        struct fixture f;
        struct autofuse_submit_options o = AUTOFUSE_SUBMIT_INIT;
        struct autofuse_bundle *bundle = NULL;
        char told[256] = "";
        start(&f, FAKE_PARTS);
        o.bypass_memo = true;
        SAMPLE_OK(autofuse_compile_text(f.ctx, sample_text, strlen(sample_text), &o, &bundle, &error));
        autofuse_bundle_unref(bundle);
        cr_assert_eq(f.s.n_parts, 0);
        o.part = on_part;
        o.userdata = told;
        SAMPLE_OK(autofuse_compile_text(f.ctx, sample_text, strlen(sample_text), &o, &bundle, &error));
        cr_assert_eq(f.s.n_parts, 1);
        cr_assert_str_eq(told, "0:first 1:second ");
        autofuse_bundle_unref(bundle);
        stop(&f);
}

static void *wait_canceled(void *req) {
        struct autofuse_bundle *bundle = NULL;
        return (void *)(intptr_t)autofuse_request_wait(req, -1, &bundle, NULL);
}

Test(request, cancel_wakes_all_waiters) {
        struct fixture f;
        struct autofuse_request *req = NULL;
        pthread_t threads[3];
        void *got;
        start(&f, FAKE_SILENT);
        SAMPLE_OK(autofuse_submit_text(f.ctx, sample_text, strlen(sample_text), NULL, &req, &error));
        for (int i = 0; i < 3; i++)
                pthread_create(&threads[i], NULL, wait_canceled, req);
        while (f.s.n_submits == 0)
                usleep(1000);
        autofuse_request_cancel(req);
        for (int i = 0; i < 3; i++) {
                pthread_join(threads[i], &got);
                cr_assert_eq((intptr_t)got, AUTOFUSE_E_CANCELED);
        }
        autofuse_request_free(req);
        stop(&f);
        cr_assert_eq(f.s.n_cancels, 1);
}

struct worker {
        struct fixture *f;
        int number;
};

static void *work(void *arg) {
        struct worker *w = arg;
        for (int i = 0; i < 20; i++)
                compile(w->f->ctx, (float)(w->number % 4 * 100 + i));
        return NULL;
}

Test(request, threads_share_one_connection) {
        struct fixture f;
        pthread_t threads[16];
        struct worker workers[16];
        start(&f, FAKE_OK);
        for (int i = 0; i < 16; i++) {
                workers[i] = (struct worker){&f, i};
                pthread_create(&threads[i], NULL, work, &workers[i]);
        }
        for (int i = 0; i < 16; i++)
                pthread_join(threads[i], NULL);
        cr_assert_eq(f.s.n_connections, 1);
        cr_assert_geq(f.s.n_submits, 80);
        stop(&f);
}

Test(request, requests_outlive_the_context_handle) {
        struct fixture f;
        struct autofuse_request *req = NULL;
        struct autofuse_bundle *bundle = NULL;
        start(&f, FAKE_OK);
        SAMPLE_OK(autofuse_submit_text(f.ctx, sample_text, strlen(sample_text), NULL, &req, &error));
        autofuse_context_close(f.ctx);
        SAMPLE_OK(autofuse_request_wait(req, -1, &bundle, &error));
        autofuse_request_free(req);
        autofuse_bundle_unref(bundle);
        fake_server_stop(&f.s, false);
}

static int child_status(pid_t pid) {
        int status = 0;
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* Parent and child both go on; the child has a connection of its own, and the parent's request is asked again there. */
Test(request, forked_child_connects_anew) {
        struct fixture f;
        struct autofuse_request *req = NULL;
        struct autofuse_bundle *bundle = NULL;
        start(&f, FAKE_OK);
        compile(f.ctx, 1);
        f.s.mode = FAKE_SILENT;
        SAMPLE_OK(autofuse_submit_text(f.ctx, sample_text, strlen(sample_text), NULL, &req, &error));
        struct autofuse_fragment *other = sample_build(3);
        autofuse_request_free(req);
        SAMPLE_OK(autofuse_submit(f.ctx, other, NULL, &req, &error));
        while (f.s.n_submits < 2)
                usleep(1000);
        f.s.mode = FAKE_OK;
        pid_t pid = fork();
        if (pid == 0) {
                bool ok = autofuse_request_wait(req, 5000, &bundle, NULL) == AUTOFUSE_OK;
                autofuse_bundle_unref(bundle);
                ok = ok && compile(f.ctx, 1) == AUTOFUSE_HIT_MEMO; /* the memo came along */
                ok = ok && compile(f.ctx, 2) == AUTOFUSE_HIT_STORE;
                autofuse_request_free(req);
                autofuse_context_close(f.ctx);
                _exit(ok ? 0 : 1);
        }
        cr_assert_eq(child_status(pid), 0);
        cr_assert_eq(f.s.n_connections, 2);
        cr_assert_eq(compile(f.ctx, 5), AUTOFUSE_HIT_STORE);
        autofuse_request_free(req);
        autofuse_fragment_free(other);
        stop(&f);
}

static void *churn(void *arg) {
        struct fixture *f = arg;
        for (float i = 10; i < 400; i++)
                compile(f->ctx, i);
        return NULL;
}

/* Forks at any moment, while other threads hold locks and read. */
Test(request, forks_amid_traffic) {
        struct fixture f;
        pthread_t threads[3];
        start(&f, FAKE_OK);
        for (int i = 0; i < 3; i++)
                pthread_create(&threads[i], NULL, churn, &f);
        for (int i = 0; i < 20; i++) {
                pid_t pid = fork();
                if (pid == 0) {
                        alarm(20);
                        pthread_mutex_init(&f.lock, NULL);
                        compile(f.ctx, (float)(1000 + i));
                        _exit(0);
                }
                cr_assert_eq(child_status(pid), 0);
        }
        for (int i = 0; i < 3; i++)
                pthread_join(threads[i], NULL);
        stop(&f);
}

Test(request, strict_is_read_from_the_environment) {
        struct autofuse_context *ctx = NULL;
        setenv("AUTOFUSE_STRICT", "1", 1);
        SAMPLE_OK(autofuse_context_open(NULL, &ctx, &error));
        cr_assert(autofuse_context_is_strict(ctx));
        autofuse_context_close(ctx);
        setenv("AUTOFUSE_STRICT", "0", 1);
        SAMPLE_OK(autofuse_context_open(NULL, &ctx, &error));
        cr_assert(!autofuse_context_is_strict(ctx));
        autofuse_context_close(ctx);
}

Test(request, server_questions) {
        struct fixture f;
        char *json = NULL;
        start(&f, FAKE_OK);
        SAMPLE_OK(autofuse_server_stats(f.ctx, &json, &error));
        cr_assert_str_eq(json, "{\"hits\": 3}");
        free(json);
        SAMPLE_OK(autofuse_server_clear(f.ctx, NULL, &error));
        stop(&f);
}
