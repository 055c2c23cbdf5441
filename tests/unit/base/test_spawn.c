/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/spawn.h"

static const char *const env[] = {"PATH=/usr/bin:/bin", "ONE=1", NULL};

struct ran {
        struct af_buf out, err;
        struct af_spawn_result result;
        int r;
};

static struct ran shell(const char *script, struct af_spawn spawn) {
        const char *const argv[] = {"sh", "-c", script, NULL};
        struct ran ran = {0};

        spawn.argv = argv;
        if (!spawn.envp)
                spawn.envp = env;
        ran.r = af_spawn_run(&spawn, &ran.out, &ran.err, &ran.result);
        af_buf_put_u8(&ran.out, 0);
        af_buf_put_u8(&ran.err, 0);
        return ran;
}

static void done(struct ran *ran) {
        af_buf_deinit(&ran->out);
        af_buf_deinit(&ran->err);
}

Test(spawn, returns_streams_and_code) {
        struct ran ran = shell("echo out; echo err >&2; exit 3", (struct af_spawn){.lifeline_fd = -1});

        cr_assert_eq(ran.r, 0);
        cr_assert_str_eq((char *)ran.out.data, "out\n");
        cr_assert_str_eq((char *)ran.err.data, "err\n");
        cr_assert_eq(ran.result.exit_code, 3);
        cr_assert_eq(ran.result.signal, 0);
        cr_assert_gt(ran.result.wall_us, 0);
        cr_assert_gt(ran.result.max_rss_kib, 0);
        done(&ran);
}

Test(spawn, feeds_input_and_takes_much_output) {
        size_t n = 3u << 20;
        char *input = malloc(n);

        memset(input, 'i', n);
        struct ran ran = shell("cat", (struct af_spawn){.lifeline_fd = -1, .input = input, .input_size = n, .max_output_bytes = n});
        cr_assert_eq(ran.r, 0);
        cr_assert_eq(ran.out.size, n + 1);
        cr_assert_arr_eq(ran.out.data, input, n);
        done(&ran);
        ran = shell("cat; echo end >&2", (struct af_spawn){.lifeline_fd = -1, .input = input, .input_size = n, .max_output_bytes = 10});
        cr_assert_eq(ran.result.exit_code, 0);
        cr_assert_str_eq((char *)ran.out.data, "iiiiiiiiii");
        cr_assert_str_eq((char *)ran.err.data, "end\n");
        done(&ran);
        free(input);
}

Test(spawn, passes_nothing_on) {
        int leaked = dup(0);

        cr_assert_geq(leaked, 3);
        signal(SIGINT, SIG_IGN);
        struct ran ran = shell("ls /proc/self/fd | tr '\\n' ' '; echo $ONE $HOME; trap", (struct af_spawn){.lifeline_fd = -1});
        /* ls holds the directory itself as 3. */
        cr_assert_str_eq((char *)ran.out.data, "0 1 2 3 1\n");
        done(&ran);
        const char *const argv[] = {"/usr/bin/env", NULL};
        struct af_spawn spawn = {.argv = argv, .lifeline_fd = -1};
        struct af_buf out = AF_BUF_INIT;
        struct af_spawn_result result;
        cr_assert_eq(af_spawn_run(&spawn, &out, NULL, &result), 0);
        cr_assert_eq(out.size, 0, "no environment by default");
        af_buf_deinit(&out);
        close(leaked);
}

Test(spawn, runs_in_a_directory_with_null_streams) {
        struct ran ran = shell("pwd", (struct af_spawn){.lifeline_fd = -1, .cwd = "/usr"});
        const char *const argv[] = {"sh", "-c", "echo lost", NULL};
        struct af_spawn spawn = {.argv = argv, .envp = env, .lifeline_fd = -1};
        struct af_spawn_result result;

        cr_assert_str_eq((char *)ran.out.data, "/usr\n");
        done(&ran);
        cr_assert_eq(af_spawn_run(&spawn, NULL, NULL, &result), 0);
        cr_assert_eq(result.exit_code, 0);
}

Test(spawn, says_what_cannot_be_started) {
        const char *const none[] = {"no-such-program-here", NULL}, *const empty[] = {"", NULL}, *const directory[] = {"/usr", NULL},
                          *const absent[] = {"/no/such/file", NULL}, *const sh[] = {"sh", "-c", "exit", NULL};
        struct af_spawn spawn = {.argv = none, .envp = env, .lifeline_fd = -1};
        struct af_spawn_result result;

        cr_assert_eq(af_spawn_run(&spawn, NULL, NULL, &result), -ENOENT);
        spawn.argv = empty;
        cr_assert_eq(af_spawn_run(&spawn, NULL, NULL, &result), -ENOENT);
        spawn.argv = absent;
        cr_assert_eq(af_spawn_run(&spawn, NULL, NULL, &result), -ENOENT);
        spawn.argv = directory;
        cr_assert_eq(af_spawn_run(&spawn, NULL, NULL, &result), -EACCES);
        spawn.argv = sh;
        spawn.cwd = "/no/such/directory";
        cr_assert_eq(af_spawn_run(&spawn, NULL, NULL, &result), -ENOENT);
}

Test(spawn, kills_the_group_at_the_deadline) {
        uint64_t begin = af_clock_now_us();
        struct ran ran =
                shell("echo started; sleep 60 & sleep 60", (struct af_spawn){.lifeline_fd = -1, .timeout_ms = 200, .new_group = true});

        cr_assert_eq(ran.r, 0);
        cr_assert(ran.result.timed_out);
        cr_assert_eq(ran.result.signal, SIGKILL);
        cr_assert_str_eq((char *)ran.out.data, "started\n");
        cr_assert_lt(af_clock_now_us() - begin, 20000000);
        done(&ran);
}

Test(spawn, leaves_nothing_of_the_group_behind) {
        int status;

        /* Orphans come to this process, so that it can see how they ended. */
        cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        struct ran ran = shell("sleep 60 >/dev/null 2>&1 & echo $!", (struct af_spawn){.lifeline_fd = -1, .new_group = true});
        pid_t left = (pid_t)atoi((char *)ran.out.data);

        cr_assert_eq(ran.result.exit_code, 0);
        cr_assert_gt(left, 0);
        cr_assert_eq(waitpid(left, &status, 0), left);
        cr_assert(WIFSIGNALED(status));
        cr_assert_eq(WTERMSIG(status), SIGKILL);
        done(&ran);
}

Test(spawn, a_background_child_does_not_hold_the_caller) {
        uint64_t begin = af_clock_now_us();
        struct ran ran = shell("sleep 30 & echo here", (struct af_spawn){.lifeline_fd = -1});

        cr_assert_str_eq((char *)ran.out.data, "here\n");
        cr_assert_lt(af_clock_now_us() - begin, 25000000);
        done(&ran);
}

Test(spawn, ends_with_its_lifeline) {
        int ends[2];

        cr_assert_eq(pipe(ends), 0);
        cr_assert_eq(write(ends[1], "still here", 10), 10);
        close(ends[1]);
        struct ran ran = shell("sleep 60", (struct af_spawn){.lifeline_fd = ends[0], .new_group = true});
        cr_assert_eq(ran.r, 0);
        cr_assert(ran.result.lifeline_lost);
        cr_assert(!ran.result.timed_out);
        cr_assert_eq(ran.result.signal, SIGKILL);
        close(ends[0]);
        done(&ran);
}

Test(spawn, tells_signals_from_codes) {
        struct ran ran = shell("kill -SEGV $$", (struct af_spawn){.lifeline_fd = -1});

        cr_assert_eq(ran.result.signal, SIGSEGV);
        cr_assert_eq(ran.result.exit_code, 0);
        done(&ran);
}

Test(spawn, works_with_closed_streams) {
        int saved = dup(2);

        close(0);
        close(1);
        close(2);
        struct ran ran = shell("cat; echo out; echo err >&2", (struct af_spawn){.lifeline_fd = -1, .input = "in ", .input_size = 3});
        dup2(saved, 2);
        cr_assert_eq(ran.r, 0);
        cr_assert_str_eq((char *)ran.out.data, "in out\n");
        cr_assert_str_eq((char *)ran.err.data, "err\n");
        done(&ran);
}
