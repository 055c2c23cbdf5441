/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job program that does as it is told: stands for autofused-job where a test needs faults at will. A fragment is text of blank-separated
 * words:
 *
 *   kernels=a,b   one kernel per name      plan=ok|fail|crash|hang    plan_ms=N
 *   size=N        bytes of each binary (its name, then noise)     compile=ok|fail|crash|hang|empty|killed|changed|once   compile_ms=N
 *   soc=NAME      target
 *
 * JSON text is `{"fake": "WORDS"}`; its canonical form is WORDS. The environment's digest is over the salt and the file RULES_DIR/env.
 * `once` crashes the first time (a file in TMPDIR remembers). A compile runs `sleep` in a process group of its own, as a real toolchain
 * does.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/spawn.h"
#include "compiler/graph/key.h"
#include "daemon/jobwire.h"
#include "daemon/worker.h"
#include "proto/bundle.h"

static void send_message(uint32_t type, const void *p, size_t n) {
        uint32_t head[2] = {type, (uint32_t)n};

        if (af_io_write_fd(1, head, sizeof(head)) || af_io_write_fd(1, p, n))
                _exit(3);
}

static void send_error(uint32_t code, uint32_t fault, const char *text) {
        struct af_buf buf = AF_BUF_INIT;

        af_buf_put_u32(&buf, code);
        af_buf_put_u32(&buf, fault);
        af_buf_put_str(&buf, text);
        send_message(AF_JOB_MSG_ERROR, buf.data, buf.size);
        exit(0);
}

/* The word's value, or fallback; static memory. */
static const char *word(const char *script, const char *name, const char *fallback) {
        static char out[8][4096];
        static int turn;
        char *copy = out[turn++ % 8];

        for (const char *p = script; *p; p += strspn(p, " ")) {
                size_t n = strcspn(p, " ");

                if (strncmp(p, name, strlen(name)) == 0 && p[strlen(name)] == '=') {
                        snprintf(copy, 4096, "%.*s", (int)(n - strlen(name) - 1), p + strlen(name) + 1);
                        return copy;
                }
                p += n;
        }
        return fallback;
}

static void environment(const struct af_job_request *r, struct af_digest *ret, char path[4096]) {
        struct af_buf buf = AF_BUF_INIT;
        struct af_hasher h;

        snprintf(path, 4096, "%s/env", r->config.rules_dir);
        (void)!af_io_read_file(path, 4096, &buf);
        af_hasher_init(&h, "fake");
        af_hasher_str(&h, "salt", r->config.salt);
        af_hasher_field(&h, "file", buf.data, buf.size);
        af_hasher_final(&h, ret);
        af_buf_deinit(&buf);
}

static void misbehave(const char *how) {
        if (strcmp(how, "crash") == 0)
                raise(SIGKILL);
        if (strcmp(how, "hang") == 0)
                for (;;)
                        pause();
}

static void run_env(const struct af_job_request *r) {
        struct af_toolchain t = {.id = "host", .driver = "/bin/true", .version = "fake 1", .flags = "", .config = {.id = "host"}};
        struct af_buf buf = AF_BUF_INIT, ingredients = AF_BUF_INIT, text = AF_BUF_INIT;
        struct af_digest digest;
        char path[4096];
        const char *watch[] = {path};

        if (r->soc && strcmp(r->soc, "none") == 0)
                send_error(14, 0, "no such SoC");
        environment(r, &digest, path);
        (void)!af_io_read_file(path, 4096, &text);
        af_buf_put_u8(&text, 0);
        af_record_ingredient_write(&ingredients, "salt", r->config.salt ? r->config.salt : "");
        af_record_ingredient_write(&ingredients, "file env", (const char *)text.data);
        af_jobwire_write_environment(&buf, &digest, &t, watch, 1, &ingredients);
        send_message(AF_JOB_MSG_ENV, buf.data, buf.size);
}

static void make_plan(const char *script, struct af_buf *plan, const struct af_digest *fragment) {
        struct af_bundle_builder b;
        struct af_buf skeleton = AF_BUF_INIT, empty = AF_BUF_INIT;
        struct af_plan_kernel kernels[64] = {0};
        struct af_plan_view view = {.fragment = *fragment, .kernels = kernels};
        char names[4096], *save = NULL;

        af_bundle_builder_init(&b);
        snprintf(names, sizeof(names), "%s", word(script, "kernels", "k"));
        for (char *name = strtok_r(names, ",", &save); name && view.n_kernels < 64; name = strtok_r(NULL, ",", &save)) {
                struct af_bundle_kernel k = {0};
                char *source;
                int n = asprintf(&source, "name=%s %s", name, script);

                af_digest_bytes("fake kernel", name, strlen(name), &k.key);
                k.symbol = af_bundle_add_str(&b, name);
                k.toolchain = af_bundle_add_str(&b, "host");
                k.block_dim = 1;
                af_bundle_add(&b, AF_SECTION_KERNELS, &k);
                kernels[view.n_kernels++] = (struct af_plan_kernel){k.key, "host", strdup(name), (uint8_t *)source, (uint32_t)n};
        }
        if (af_bundle_finish(&b, AF_BUNDLE_SKELETON, &skeleton))
                _exit(4);
        view.skeleton = skeleton.data;
        view.skeleton_size = (uint32_t)skeleton.size;
        view.canon = (const uint8_t *)script;
        view.canon_size = (uint32_t)strlen(script);
        view.slot_map = view.fallbacks = empty.data;
        af_plan_write(&view, plan);
}

static void run_plan(const struct af_job_request *r) {
        struct af_buf key = AF_BUF_INIT, plan = AF_BUF_INIT, map = AF_BUF_INIT;
        struct af_job_key k = {0};
        struct af_slot_map none = {0};
        char script[65536], path[4096];
        const char *how;

        snprintf(script, sizeof(script), "%.*s", (int)r->n_bytes, (const char *)r->bytes);
        if (r->is_text) {
                const char *begin = strstr(script, "\": \""), *end = strrchr(script, '"');

                if (!begin || end <= begin + 4)
                        send_error(4, 0, "error: text: not a fragment");
                memmove(script, begin + 4, (size_t)(end - begin - 4));
                script[end - begin - 4] = 0;
                af_slot_map_write(&none, &map);
                k.slot_map = map.data;
                k.n_slot_map = (uint32_t)map.size;
        }
        how = word(script, "plan", "ok");
        if (strcmp(how, "invalid") == 0)
                send_error(4, 0, "error: nodes[0]: invalid");
        if (r->is_text)
                af_key_fragment(script, strlen(script), &k.fragment);
        else /* of any size; the words stand at its beginning */
                af_key_fragment(r->bytes, r->n_bytes, &k.fragment);
        environment(r, &k.environment, path);
        k.soc = word(script, "soc", NULL);
        k.canon = (const uint8_t *)script;
        k.n_canon = (uint32_t)strlen(script);
        af_jobwire_write_key(&key, &k);
        send_message(AF_JOB_MSG_KEY, key.data, key.size);
        usleep((useconds_t)atoi(word(script, "plan_ms", "0")) * 1000);
        misbehave(how);
        if (strcmp(how, "fail") == 0)
                send_error(4, 0, "error: nodes[0]: told to fail");
        make_plan(script, &plan, &k.fragment);
        send_message(AF_JOB_MSG_PLAN, plan.data, plan.size);
}

static void crash_once(const char *name) {
        char path[4096];

        snprintf(path, sizeof(path), "%s/once-%s", getenv("TMPDIR"), name);
        if (access(path, F_OK) == 0)
                return;
        close(open(path, O_CREAT | O_WRONLY, 0600));
        raise(SIGKILL);
}

/* The same bytes for the same name, unlike any other name's. */
static void fill(uint8_t *p, size_t n, const char *name) {
        struct af_check seed;
        uint64_t x;

        af_check_bytes(name, strlen(name), &seed);
        memcpy(&x, seed.bytes, sizeof(x));
        for (size_t i = 0; i < n; i++) {
                x = x * 6364136223846793005u + 1442695040888963407u;
                p[i] = (uint8_t)(x >> 56);
        }
        if (n > strlen(name))
                memcpy(p, name, strlen(name) + 1);
}

static void run_compile(const struct af_job_request *r) {
        char script[65536], seconds[64];
        const char *how, *name;
        struct af_spawn_result result;
        struct af_spawn spawn = {
                .argv = (const char *[]){"/bin/sleep", seconds, NULL}, .lifeline_fd = AF_JOB_LIFELINE_FD, .new_group = true};
        size_t size;
        uint8_t *binary;

        snprintf(script, sizeof(script), "%.*s", (int)r->n_bytes, (const char *)r->bytes);
        how = word(script, "compile", "ok");
        name = word(script, "name", "");
        if (strcmp(how, "once") == 0)
                crash_once(name);
        snprintf(seconds, sizeof(seconds), "%s", strcmp(how, "hang") == 0 ? "1000000" : "0");
        if (strcmp(how, "hang") != 0)
                snprintf(seconds, sizeof(seconds), "%.3f", atoi(word(script, "compile_ms", "0")) / 1000.0);
        if (af_spawn_run(&spawn, NULL, NULL, &result) || result.lifeline_lost)
                _exit(5);
        if (result.signal || strcmp(how, "killed") == 0)
                send_error(11, AF_JOB_FAULT_KILLED, "the compiler was ended by signal 9");
        misbehave(how);
        if (strcmp(how, "fail") == 0)
                send_error(6, 0, "kernel.cpp:1: error: told to fail");
        if (strcmp(how, "changed") == 0)
                send_error(12, AF_JOB_FAULT_CHANGED, "toolchain changed");
        size = strcmp(how, "empty") == 0 ? 0 : (size_t)atoi(word(script, "size", "100"));
        binary = malloc(size + 1);
        fill(binary, size, name);
        send_message(AF_JOB_MSG_BINARY, binary, size);
}

int main(void) {
        struct af_buf buf = AF_BUF_INIT;
        struct af_job_request r;
        struct af_arena arena;

        af_arena_init(&arena, 0);
        if (af_lifeline_watch() < 0)
                return 2;
        if (af_io_read_fd(0, 1u << 30, &buf) || af_jobwire_read(&arena, buf.data, buf.size, &r))
                return 2;
        switch (r.kind) {
        case AF_JOB_ENV:
                run_env(&r);
                break;
        case AF_JOB_PLAN:
                run_plan(&r);
                break;
        case AF_JOB_COMPILE:
                run_compile(&r);
                break;
        }
        return 0;
}
