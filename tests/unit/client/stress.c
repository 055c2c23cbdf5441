/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and forks on one context, without a test framework, so that it runs under ThreadSanitizer as well (-Db_sanitize=thread). With an
 * argument it forks amid the traffic too.
 */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/client/fake_server.h"
#include "tests/unit/client/sample.h"

#define N_THREADS 12
#define N_EACH    40

static struct fake_server server;
static struct autofuse_context *context;

static void compile(float constant) {
        struct autofuse_fragment *fragment = sample_build(constant);
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_bundle_info info;
        SAMPLE_OK(autofuse_compile(context, fragment, NULL, &bundle, &error));
        autofuse_bundle_info(bundle, &info);
        MUST(info.n_framework_steps == 2);
        autofuse_bundle_unref(bundle);
        autofuse_fragment_free(fragment);
}

/* Same and different fragments, texts, canceled requests. */
static void *work(void *arg) {
        int number = (int)(intptr_t)arg;
        for (int i = 0; i < N_EACH; i++) {
                struct autofuse_bundle *bundle = NULL;
                struct autofuse_request *req = NULL;
                compile((float)(number % 3 * 1000 + i));
                SAMPLE_OK(autofuse_compile_text(context, sample_text, strlen(sample_text), NULL, &bundle, &error));
                autofuse_bundle_unref(bundle);
                struct autofuse_fragment *fragment = sample_build((float)(number * 1000 + i + 100));
                SAMPLE_OK(autofuse_submit(context, fragment, NULL, &req, &error));
                autofuse_request_cancel(req);
                autofuse_request_free(req);
                autofuse_fragment_free(fragment);
        }
        return NULL;
}

int main(int argc, char **argv) {
        struct autofuse_options o = AUTOFUSE_OPTIONS_INIT;
        pthread_t threads[N_THREADS];
        alarm(120);
        fake_server_start(&server, FAKE_OK);
        o.socket = server.path;
        o.memo_bytes = 64 << 10;
        SAMPLE_OK(autofuse_context_open(&o, &context, &error));
        for (intptr_t i = 0; i < N_THREADS; i++)
                pthread_create(&threads[i], NULL, work, (void *)i);
        for (int i = 0; argc > 1 && i < 30; i++) {
                pid_t pid = fork();
                int status = 0;
                if (pid == 0) {
                        alarm(60);
                        compile((float)(100000 + i));
                        _exit(0);
                }
                waitpid(pid, &status, 0);
                MUST(status == 0);
        }
        for (int i = 0; i < N_THREADS; i++)
                pthread_join(threads[i], NULL);
        autofuse_context_close(context);
        fake_server_stop(&server, false);
        return 0;
}
