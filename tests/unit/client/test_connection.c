/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a server, and servers that are none: one clear line each. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/connection.h"
#include "tests/unit/client/fake_server.h"

/* Connects to path, expects UNAVAILABLE with these words. */
static void refuse_at(const char *path, const char *words) {
        struct af_socket_paths paths;
        struct af_connection *conn = NULL;
        struct autofuse_error *error = NULL;
        cr_assert_eq(af_socket_paths_make(path, NULL, NULL, geteuid(), &paths), 0);
        struct af_connect how = {.paths = &paths, .own_uid = geteuid(), .server_uid = -1, .name = "test", .hello_ns = 300000000};
        enum autofuse_status got = af_connection_open(&how, &conn, &error);
        cr_assert_eq(got, AUTOFUSE_E_UNAVAILABLE);
        cr_assert(strstr(autofuse_error_text(error), words), "\"%s\" is not in: %s", words, autofuse_error_text(error));
        cr_assert_null(strchr(autofuse_error_text(error), '\n'));
        autofuse_error_free(error);
        af_socket_paths_deinit(&paths);
}

static void refuse_mode(enum fake_mode mode, const char *words) {
        struct fake_server s;
        fake_server_start(&s, mode);
        refuse_at(s.path, words);
        fake_server_stop(&s, false);
}

Test(connection, hello) {
        struct fake_server s;
        struct af_socket_paths paths;
        struct af_connection *conn = NULL;
        fake_server_start(&s, FAKE_OK);
        s.env = 0x5a;
        cr_assert_eq(af_socket_paths_make(s.path, NULL, NULL, geteuid(), &paths), 0);
        struct af_connect how = {.paths = &paths, .own_uid = geteuid(), .server_uid = -1, .name = "test", .hello_ns = 5000000000};
        cr_assert_eq(af_connection_open(&how, &conn, NULL), AUTOFUSE_OK);
        cr_assert(conn->has_env);
        cr_assert_eq(conn->env.bytes[31], 0x5a);
        af_connection_close(conn);
        af_connection_close(NULL);
        af_socket_paths_deinit(&paths);
        fake_server_stop(&s, false);
}

Test(connection, C07_servers_that_are_none) {
        refuse_mode(FAKE_HELLO_SILENT, "does not answer hello");
        refuse_mode(FAKE_HELLO_GARBAGE, "does not speak this protocol");
        refuse_mode(FAKE_HELLO_VERSION, "versions 7 to 9, this library 1");
        refuse_mode(FAKE_HELLO_CANON, "another canonical form");
        refuse_mode(FAKE_HELLO_REFUSED, "user 12345 is not on the list");
        refuse_mode(FAKE_HELLO_CLOSE, "closed the connection during hello");
}

Test(connection, C07_paths_that_are_none) {
        char dir[] = "/tmp/autofuse-test-XXXXXX", path[256];
        struct fake_server s;
        cr_assert_not_null(mkdtemp(dir));
        snprintf(path, sizeof(path), "%s/missing/core.sock", dir);
        refuse_at(path, "does not exist");
        refuse_at(dir, "is a directory, not a socket");
        snprintf(path, sizeof(path), "%s/file", dir);
        close(open(path, O_CREAT | O_WRONLY, 0600));
        refuse_at(path, "is a file, not a socket");
        unlink(path);
        memset(path, 'x', 120);
        memcpy(path, dir, strlen(dir));
        path[strlen(dir)] = '/';
        path[120] = 0;
        refuse_at(path, "has 120 bytes, the system's limit is 107");
        snprintf(path, sizeof(path), "%s/dead.sock", dir);
        fake_server_start_at(&s, FAKE_OK, path);
        fake_server_stop(&s, true);
        refuse_at(path, "left behind");
        unlink(path);
        rmdir(dir);
}

/* Whose the other end is comes from the kernel; here the expectation is changed instead. */
Test(connection, C35_a_strangers_server_is_not_spoken_to) {
        int pair[2];
        uint8_t byte;
        struct af_connection *conn = NULL;
        struct autofuse_error *error = NULL;
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        struct ucred cred;
        socklen_t n = sizeof(cred);
        cr_assert_eq(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &cred, &n), 0);
        if (cred.uid == 0)
                cr_skip("root is always trusted: tests/e2e runs this as an ordinary user");
        struct af_connect how = {.own_uid = cred.uid + 1, .server_uid = -1, .name = "test", .hello_ns = 1000000000};
        cr_assert_eq(af_connection_hello(pair[0], &how, "here", af_clock_now_ns() + 1000000000, &conn, &error), AUTOFUSE_E_UNAVAILABLE);
        cr_assert(strstr(autofuse_error_text(error), "neither root, nor this user, nor configured"));
        autofuse_error_free(error);
        cr_assert_eq(recv(pair[1], &byte, 1, 0), 0, "nothing was sent, the descriptor is closed");
        close(pair[1]);
}

Test(connection, waits_for_a_server_that_starts) {
        struct fake_server s;
        struct af_socket_paths paths;
        struct af_connection *conn = NULL;
        fake_server_start(&s, FAKE_OK);
        fake_server_stop(&s, true);
        char path[96];
        strcpy(path, s.path);
        cr_assert_eq(af_socket_paths_make(path, NULL, NULL, geteuid(), &paths), 0);
        struct af_connect how = {
                .paths = &paths, .own_uid = geteuid(), .server_uid = -1, .name = "test", .window_ns = 5000000000, .hello_ns = 5000000000};
        pid_t pid = fork();
        if (pid == 0) {
                /* The late server: up after the first attempts have failed; serves until its connection ends. */
                usleep(100000);
                fake_server_start_at(&s, FAKE_OK, path);
                while (atomic_load(&s.n_connections) == 0)
                        usleep(1000);
                usleep(50000);
                _exit(0);
        }
        cr_assert_eq(af_connection_open(&how, &conn, NULL), AUTOFUSE_OK);
        af_connection_close(conn);
        af_socket_paths_deinit(&paths);
        unlink(path);
        rmdir(s.dir);
}

/* ---- frames as they come ---- */

static size_t make_frame(struct af_buf *out, uint64_t id, const char *text, uint8_t n_fds) {
        size_t start = af_frame_begin(out, &(struct af_frame_header){.type = AF_FRAME_PROGRESS, .request_id = id, .n_fds = n_fds});
        af_frame_field_str(out, AF_TAG_TEXT, text);
        af_frame_end(out, start);
        return out->size - start;
}

static void send_with_fd(int to, const void *p, size_t n, int fd) {
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct iovec iov = {.iov_base = (void *)p, .iov_len = n};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        cr_assert_eq(sendmsg(to, &msg, 0), (ssize_t)n);
}

struct pipe_end {
        struct af_connection conn;
        int to;
        struct af_buf bytes;
};

static void end_init(struct pipe_end *e) {
        int pair[2];
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        *e = (struct pipe_end){.conn = {.fd = pair[0], .in_fd = -1}, .to = pair[1]};
}

static void end_deinit(struct pipe_end *e) {
        af_buf_deinit(&e->bytes);
        af_buf_deinit(&e->conn.body);
        close(e->conn.fd);
        close(e->to);
}

/* One frame, or what af_connection_read says after the socket was looked at at most twice. */
static int read_one(struct pipe_end *e, struct af_incoming *ret_in) {
        const char *why = "";
        int r = af_connection_read(&e->conn, ret_in, &why);
        return r == -EAGAIN ? af_connection_read(&e->conn, ret_in, &why) : r;
}

Test(connection, many_frames_in_one_piece_and_one_frame_in_many) {
        struct pipe_end e;
        struct af_incoming in;
        end_init(&e);
        for (uint64_t id = 1; id <= 300; id++)
                make_frame(&e.bytes, id, "compiling", 0);
        cr_assert_eq(send(e.to, e.bytes.data, e.bytes.size, 0), (ssize_t)e.bytes.size);
        for (uint64_t id = 1; id <= 300; id++) {
                cr_assert_eq(read_one(&e, &in), 0, "frame %d", (int)id);
                cr_assert_eq(in.h.request_id, id);
                cr_assert_eq(in.fd, -1);
        }
        cr_assert_eq(read_one(&e, &in), -EAGAIN);
        af_buf_clear(&e.bytes);
        char text[9001];
        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        make_frame(&e.bytes, 7, text, 0);
        for (size_t i = 0; i < e.bytes.size; i += 700) {
                size_t n = AF_MIN((size_t)700, e.bytes.size - i);
                cr_assert_eq(read_one(&e, &in), -EAGAIN);
                cr_assert_eq(send(e.to, e.bytes.data + i, n, 0), (ssize_t)n);
        }
        cr_assert_eq(read_one(&e, &in), 0);
        cr_assert_eq(in.n_body, e.bytes.size - AF_FRAME_HEADER_BYTES);
        end_deinit(&e);
}

Test(connection, a_descriptor_belongs_to_the_frame_that_announces_it) {
        struct pipe_end e;
        struct af_incoming in;
        end_init(&e);
        size_t first = make_frame(&e.bytes, 1, "compiling", 0), second = make_frame(&e.bytes, 2, "", 1);
        size_t third = make_frame(&e.bytes, 3, "compiling", 0);
        cr_assert_eq(send(e.to, e.bytes.data, first, 0), (ssize_t)first);
        send_with_fd(e.to, e.bytes.data + first, second, STDIN_FILENO);
        cr_assert_eq(send(e.to, e.bytes.data + first + second, third, 0), (ssize_t)third);
        for (uint64_t id = 1; id <= 3; id++) {
                cr_assert_eq(read_one(&e, &in), 0);
                cr_assert_eq(in.h.request_id, id);
                cr_assert_eq(in.fd >= 0, id == 2);
                if (in.fd >= 0)
                        close(in.fd);
        }
        /* Not announced; announced and not there. */
        send_with_fd(e.to, e.bytes.data, first, STDIN_FILENO);
        cr_assert_eq(read_one(&e, &in), AF_CONNECTION_E_PROTOCOL);
        close(e.conn.in_fd);
        end_deinit(&e);
        end_init(&e);
        make_frame(&e.bytes, 2, "", 1);
        cr_assert_eq(send(e.to, e.bytes.data, e.bytes.size, 0), (ssize_t)e.bytes.size);
        cr_assert_eq(read_one(&e, &in), AF_CONNECTION_E_PROTOCOL);
        end_deinit(&e);
}
