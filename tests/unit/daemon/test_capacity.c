/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "daemon/capacity.h"

static char *root;

static void put(const char *path, const char *text) {
        char whole[4096], *slash;
        FILE *f;

        snprintf(whole, sizeof(whole), "%s%s", root, path);
        slash = strrchr(whole, '/');
        *slash = 0;
        cr_assert_eq(af_io_make_dirs(whole, 0700), 0);
        *slash = '/';
        f = fopen(whole, "w");
        cr_assert_not_null(f);
        fputs(text, f);
        fclose(f);
}

static void setup(void) {
        cr_assert_eq(af_io_temp_dir(NULL, "af_capacity", &root), 0);
}

static void teardown(void) {
        cr_assert_eq(af_io_remove_tree(root), 0);
        free(root);
}

Test(capacity, memory_of_the_host, .init = setup, .fini = teardown) {
        cr_assert_eq(af_memory_available_mib(root), UINT64_MAX);
        put("/proc/meminfo", "MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:    4096000 kB\n");
        cr_assert_eq(af_memory_available_mib(root), 4000);
        cr_assert_gt(af_memory_available_mib(""), 0);
}

Test(capacity, the_nearest_limit_of_a_control_group_counts, .init = setup, .fini = teardown) {
        put("/proc/meminfo", "MemAvailable:    4096000 kB\n");
        put("/proc/self/cgroup", "0::/system.slice/autofused.service\n");
        put("/sys/fs/cgroup/system.slice/autofused.service/memory.max", "max\n");
        put("/sys/fs/cgroup/system.slice/autofused.service/memory.current", "104857600\n");
        cr_assert_eq(af_memory_available_mib(root), 4000);
        put("/sys/fs/cgroup/system.slice/autofused.service/memory.max", "209715200\n");
        cr_assert_eq(af_memory_available_mib(root), 100);
        put("/sys/fs/cgroup/system.slice/autofused.service/memory.stat", "anon 5\ninactive_file 52428800\nfile 7\n");
        cr_assert_eq(af_memory_available_mib(root), 150);
        put("/sys/fs/cgroup/system.slice/autofused.service/memory.high", "157286400\n");
        cr_assert_eq(af_memory_available_mib(root), 100);
        put("/sys/fs/cgroup/system.slice/memory.max", "115343360\n");
        put("/sys/fs/cgroup/system.slice/memory.current", "104857600\n");
        cr_assert_eq(af_memory_available_mib(root), 10);
        put("/sys/fs/cgroup/system.slice/memory.current", "204857600\n");
        cr_assert_eq(af_memory_available_mib(root), 0);
}

Test(capacity, processes_ended_for_want_of_memory, .init = setup, .fini = teardown) {
        cr_assert_eq(af_memory_oom_kills(root), 0);
        put("/proc/vmstat", "nr_free_pages 4\nthp_oom_kill 9\noom_kill 37\nnuma_hit 5\n");
        cr_assert_eq(af_memory_oom_kills(root), 37);
}

Test(capacity, an_estimate_rises_at_once_and_falls_slowly) {
        uint64_t mib = af_memory_estimate(0, 300);

        cr_assert_eq(mib, 300);
        mib = af_memory_estimate(mib, 20);
        cr_assert(mib > 270 && mib < 300);
        for (int i = 0; i < 100; i++)
                mib = af_memory_estimate(mib, 20);
        cr_assert_lt(mib, 40);
        cr_assert_geq(mib, 20);
}

Test(capacity, slots_are_shared_and_end_with_their_process) {
        char name[64], byte;
        int a, b, ready[2], status;
        pid_t pid;

        snprintf(name, sizeof(name), "autofused-test-%d", (int)getpid());
        a = af_host_slot_take(name, 2);
        cr_assert_geq(a, 0);
        cr_assert_eq(pipe(ready), 0);
        pid = fork();
        if (pid == 0) {
                b = af_host_slot_take(name, 2);
                (void)!write(ready[1], b >= 0 && af_host_slot_take(name, 2) == -EAGAIN ? "y" : "n", 1);
                for (;;)
                        pause();
        }
        cr_assert_eq(read(ready[0], &byte, 1), 1);
        cr_assert_eq(byte, 'y');
        cr_assert_eq(af_host_slot_take(name, 2), -EAGAIN);
        b = af_host_slot_take(name, 3);
        cr_assert_geq(b, 0);
        close(b);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        b = af_host_slot_take(name, 2);
        cr_assert_geq(b, 0, "a killed process keeps its slot");
        close(a);
        close(b);
}
