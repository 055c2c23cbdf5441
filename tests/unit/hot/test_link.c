/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "hot/link.h"
#include "tests/unit/hot/hot.h"

static char *socket_in(char dir[32]) {
        char *path;

        strcpy(dir, "/tmp/aflink.XXXXXX");
        cr_assert(mkdtemp(dir));
        cr_assert_gt(asprintf(&path, "%s/core.sock", dir), 0);
        return path;
}

static void done(char *socket, const char *dir) {
        af_hot_link_remove(socket);
        cr_assert_eq(rmdir(dir), 0, "the link is removed, and nothing else was made");
        free(socket);
}

static int open_link(const char *socket) {
        uint64_t number;
        uid_t owner;
        off_t n;
        int fd = -1, r = af_hot_link_open(socket, &number, &owner, &n, &fd);

        if (fd >= 0)
                close(fd);
        return r;
}

/* Sets the link's text, whatever it is. */
static void set_link(const char *socket, const char *text) {
        char path[256];

        snprintf(path, sizeof(path), "%s.hot", socket);
        unlink(path);
        cr_assert_eq(symlink(text, path), 0);
}

Test(link, names_the_area) {
        struct af_hot_area *area = NULL, *second = NULL;
        struct af_hot_view *view = NULL;
        const char *why = "";
        uint64_t number;
        char dir[32], *socket = socket_in(dir);
        uid_t owner;
        off_t n;
        int fd;

        cr_assert_eq(open_link(socket), -ENOENT);
        cr_assert_eq(af_hot_area_new(1 << 20, &area), 0);
        cr_assert_eq(af_hot_area_new(2 << 20, &second), 0);
        cr_assert_neq(af_hot_area_number(area), af_hot_area_number(second));
        cr_assert_eq(af_hot_link_make(socket, af_hot_area_fd(area), af_hot_area_number(area)), 0);
        cr_assert_eq(af_hot_link_make(socket, af_hot_area_fd(second), af_hot_area_number(second)), 0, "the older one is replaced");
        cr_assert_eq(af_hot_link_open(socket, &number, &owner, &n, &fd), 0);
        cr_assert(number == af_hot_area_number(second) && owner == geteuid() && n == 2 << 20);
        cr_assert_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
        cr_assert_eq(af_hot_view_open(fd, (uint64_t)n, &view, &why), 0, "%s", why);
        cr_assert_eq(af_hot_view_number(view), number);
        close(fd);
        af_hot_view_unref(view);
        af_hot_area_free(area);
        af_hot_area_free(second);
        done(socket, dir);
}

Test(link, anything_else_is_none) {
        char dir[32], *socket = socket_in(dir), text[128];
        int fds[2], end;
        pid_t pid;

        cr_assert_eq(pipe(fds), 0);
        cr_assert_eq(af_hot_link_make(socket, fds[0], 1), 0);
        cr_assert_eq(open_link(socket), -ENOENT, "not a file");
        cr_assert_eq(af_hot_link_make(socket, 1 << 20, 1), 0);
        cr_assert_eq(open_link(socket), -ENOENT, "no such descriptor");
        pid = fork();
        if (pid == 0)
                _exit(0);
        cr_assert_eq(waitpid(pid, &end, 0), pid);
        snprintf(text, sizeof(text), "autofused-hot:%d:%d:%016x", (int)pid, fds[0], 1);
        set_link(socket, text);
        cr_assert_eq(open_link(socket), -ENOENT, "its process is gone");
        const char *const texts[] = {"/etc/passwd",          "autofused-hot:1:2",    "autofused-hot:-1:0:1",    "autofused-hot:0:0:1",
                                     "autofused-hot:1:-2:1", "autofused-hot:1:2:3:", "autofused-hot:1/../2:0:1"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(texts); i++) {
                set_link(socket, texts[i]);
                cr_assert_eq(open_link(socket), -ENOENT, "%s", texts[i]);
        }
        close(fds[0]);
        close(fds[1]);
        done(socket, dir);
}

/* Another user gets nothing this way, whatever the link says. */
Test(link, not_for_another_user) {
        struct af_hot_area *area = NULL;
        char dir[32], *socket = socket_in(dir);
        int end;
        pid_t pid;

        if (geteuid() != 0) {
                done(socket, dir);
                cr_skip("wants another user");
        }
        cr_assert_eq(chmod(dir, 0755), 0);
        cr_assert_eq(af_hot_area_new(1 << 20, &area), 0);
        cr_assert_eq(af_hot_link_make(socket, af_hot_area_fd(area), af_hot_area_number(area)), 0);
        pid = fork();
        if (pid == 0)
                _exit(setresuid(65534, 65534, 65534) < 0 ? 1 : open_link(socket) == -EACCES ? 0 : 2);
        cr_assert_eq(waitpid(pid, &end, 0), pid);
        cr_assert_eq(end, 0);
        af_hot_area_free(area);
        done(socket, dir);
}
