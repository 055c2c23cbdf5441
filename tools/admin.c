/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/admin.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/session.h"

#define HELLO_NS 10000000000ull

int af_admin_open(const struct af_args *args, struct af_admin *ret_admin) {
        struct autofuse_error *error = NULL;
        enum autofuse_status status;

        *ret_admin = (struct af_admin){.next_id = 1, .timeout_ns = af_args_seconds(args, "timeout", 600) * 1000000000ull};
        if (af_socket_paths_make(af_args_text(args, "socket"), getenv("AUTOFUSE_SOCKET"), getenv("XDG_RUNTIME_DIR"), geteuid(),
                                 &ret_admin->paths) != 0) {
                fputs("error: out of memory\n", stderr);
                return AF_EXIT_FAILED;
        }
        const char *server_uid = getenv("AUTOFUSE_SERVER_UID");
        struct af_connect how = {.paths = &ret_admin->paths,
                                 .own_uid = geteuid(),
                                 .server_uid = server_uid && *server_uid ? atoll(server_uid) : -1,
                                 .name = "autofusectl",
                                 .window_ns = 0,
                                 .hello_ns = HELLO_NS};
        status = af_connection_open(&how, &ret_admin->conn, &error);
        if (status == AUTOFUSE_OK)
                return AF_EXIT_OK;
        af_session_report(NULL, status, error);
        af_socket_paths_deinit(&ret_admin->paths);
        return AF_EXIT_FAILED;
}

void af_admin_close(struct af_admin *a) {
        af_connection_close(a->conn);
        af_socket_paths_deinit(&a->paths);
}

static int failed(const char *what) {
        fprintf(stderr, "error: the server %s\n", what);
        return AF_EXIT_FAILED;
}

/* Until the socket is ready. False: nothing came in time, or it broke. */
static bool ready(const struct af_admin *a, short events) {
        struct pollfd p = {.fd = a->conn->fd, .events = events};
        int r;

        do
                r = poll(&p, 1, (int)AF_MIN(a->timeout_ns / 1000000, (uint64_t)INT32_MAX));
        while (r < 0 && errno == EINTR);
        return r > 0;
}

static int send_all(struct af_admin *a) {
        int r;

        while ((r = af_connection_flush(a->conn)) == -EAGAIN)
                if (!ready(a, POLLOUT))
                        return failed("does not read");
        return r == 0 ? AF_EXIT_OK : failed("is gone");
}

static void draw(struct af_bar *bar, const struct af_incoming *in) {
        struct af_field done, total;

        if (!bar || !af_frame_find(in->body, in->n_body, AF_TAG_DONE, 8, &done) ||
            !af_frame_find(in->body, in->n_body, AF_TAG_TOTAL, 8, &total))
                return;
        bar->total = af_field_u64(&total);
        af_bar_update(bar, af_field_u64(&done), NULL);
}

static int report(const struct af_incoming *in) {
        struct af_field f;

        if (af_frame_find(in->body, in->n_body, AF_TAG_TEXT, 0, &f))
                fprintf(stderr, "error: %.*s\n", (int)f.n, (const char *)f.p);
        else
                return failed("refuses");
        return AF_EXIT_FAILED;
}

void af_admin_report(const struct af_admin_error *error) {
        if (error->text)
                fprintf(stderr, "error: %s\n", error->text);
        else if (error->code)
                (void)failed("refuses");
}

static int take_error(const struct af_incoming *in, struct af_admin_error *ret_error) {
        struct af_field f;

        ret_error->code = af_frame_find(in->body, in->n_body, AF_TAG_CODE, 4, &f) ? af_field_u32(&f) : AF_ERROR_INTERNAL;
        ret_error->retryable = af_frame_find(in->body, in->n_body, AF_TAG_RETRYABLE, 1, &f) && f.p[0];
        ret_error->text = af_frame_find(in->body, in->n_body, AF_TAG_TEXT, 0, &f) ? strndup((const char *)f.p, f.n) : NULL;
        return AF_EXIT_FAILED;
}

/* The next frame about this request; its descriptor is the caller's. */
static int read_answer(struct af_admin *a, uint64_t id, struct af_bar *bar, struct af_incoming *ret_in) {
        const char *why = "is gone";

        for (;;) {
                int r = af_connection_read(a->conn, ret_in, &why);

                if (r == -EAGAIN) {
                        if (!ready(a, POLLIN))
                                return failed("does not answer in time");
                        continue;
                }
                if (r != 0)
                        return failed(r == AF_CONNECTION_E_CLOSED ? "closed the connection" : "sends what is no answer");
                if (ret_in->h.type == AF_FRAME_PROGRESS && ret_in->h.request_id == id)
                        draw(bar, ret_in);
                else if (ret_in->h.request_id == id || ret_in->h.type == AF_FRAME_ERROR)
                        return AF_EXIT_OK;
                if (ret_in->fd >= 0)
                        close(ret_in->fd);
        }
}

/* Sends, and reads the answer. 0 or AF_EXIT_FAILED. */
static int exchange(struct af_admin *a, uint8_t type, const struct af_buf *fields, struct af_bar *bar, struct af_incoming *ret_in) {
        uint64_t id = a->next_id++;
        size_t at = af_frame_begin(&a->conn->out, &(struct af_frame_header){.type = type, .request_id = id});
        int r;

        af_buf_put(&a->conn->out, fields->data, fields->size);
        af_frame_end(&a->conn->out, at);
        if (af_buf_error(&a->conn->out) || af_buf_error(fields)) {
                fputs("error: out of memory\n", stderr);
                return AF_EXIT_FAILED;
        }
        r = send_all(a);
        return r == AF_EXIT_OK ? read_answer(a, id, bar, ret_in) : r;
}

static int take_text(const struct af_incoming *in, char **ret_text) {
        struct af_field f;

        *ret_text = af_frame_find(in->body, in->n_body, AF_TAG_TEXT, 0, &f) ? strndup((const char *)f.p, f.n) : strdup("");
        return *ret_text ? AF_EXIT_OK : AF_EXIT_FAILED;
}

int af_admin_ask(struct af_admin *a, uint8_t type, const struct af_buf *fields, struct af_bar *bar, char **ret_text, int *ret_fd,
                 uint64_t *ret_bytes) {
        struct af_incoming in;
        struct af_field f;
        int r = exchange(a, type, fields, bar, &in);

        if (r != AF_EXIT_OK)
                return r;
        if (ret_fd)
                *ret_fd = in.fd;
        else if (in.fd >= 0)
                close(in.fd);
        if (in.h.type == AF_FRAME_ERROR)
                return report(&in);
        if (ret_bytes)
                *ret_bytes = af_frame_find(in.body, in.n_body, AF_TAG_BUNDLE_BYTES, 8, &f) ? af_field_u64(&f) : 0;
        return take_text(&in, ret_text);
}

int af_admin_try(struct af_admin *a, uint8_t type, const struct af_buf *fields, char **ret_text, struct af_admin_error *ret_error) {
        struct af_incoming in;
        int r = exchange(a, type, fields, NULL, &in);

        *ret_error = (struct af_admin_error){0};
        if (r != AF_EXIT_OK)
                return r;
        if (in.fd >= 0)
                close(in.fd);
        return in.h.type == AF_FRAME_ERROR ? take_error(&in, ret_error) : take_text(&in, ret_text);
}
