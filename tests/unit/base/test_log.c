/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

static int saved, captured;

static void set_up(void) {
        saved = dup(2);
        captured = memfd_create("log", MFD_CLOEXEC);
        dup2(captured, 2);
        unsetenv("JOURNAL_STREAM");
}

/* What was logged so far; ends the capture. */
static const char *finish(void) {
        static char text[16384];

        dup2(saved, 2);
        ssize_t n = pread(captured, text, sizeof(text) - 1, 0);
        text[n > 0 ? n : 0] = 0;
        return text;
}

TestSuite(log, .init = set_up);

Test(log, filters_by_level) {
        af_log(AF_LOG_DEBUG, "hidden");
        af_log(AF_LOG_INFO, "info %d", 1);
        af_log_set_level(AF_LOG_ERROR);
        af_log(AF_LOG_WARNING, "hidden too");
        af_log(AF_LOG_ERROR, "bad");
        af_log_set_level(AF_LOG_DEBUG);
        af_log(AF_LOG_DEBUG, "detail");
        cr_assert_str_eq(finish(), "info 1\nerror: bad\ndebug: detail\n");
}

Test(log, marks_priorities_for_the_journal) {
        setenv("JOURNAL_STREAM", "8:1", 1);
        af_log(AF_LOG_ERROR, "e");
        af_log(AF_LOG_INFO, "i");
        cr_assert_str_eq(finish(), "<3>e\n<6>i\n");
}

Test(log, keeps_a_record_on_one_line) {
        char text[10000];

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        af_log(AF_LOG_INFO, "a\nb\x1b[0m");
        af_log(AF_LOG_INFO, "%s", text);
        const char *got = finish();
        cr_assert_eq(strncmp(got, "a b [0m\nxxx", 11), 0);
        cr_assert_eq(got[strlen(got) - 1], '\n');
        cr_assert_lt(strlen(got), 4200);
}

Test(log, keeps_errno) {
        errno = ENOENT;
        af_log(AF_LOG_ERROR, "%m");
        int after = errno;
        cr_assert_str_eq(finish(), "error: No such file or directory\n");
        cr_assert_eq(after, ENOENT);
}

Test(clock, moves_forward) {
        uint64_t a = af_clock_now_ns(), b = af_clock_now_us(), c = af_clock_now_ns();

        cr_assert_leq(a / 1000, b);
        cr_assert_leq(b, c / 1000);
        cr_assert_gt(af_clock_wall_s(), 1600000000);
}
