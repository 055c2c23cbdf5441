/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "compiler/graph/canon.h"

static void put_hello(struct af_connection *conn, const char *name) {
        struct af_frame_header h = {.type = AF_FRAME_HELLO};
        size_t start = af_frame_begin(&conn->out, &h);
        const uint8_t versions[4] = {AF_FRAME_VERSION, 0, AF_FRAME_VERSION, 0};
        af_frame_field(&conn->out, AF_TAG_VERSIONS, versions, sizeof(versions));
        af_frame_field_u64(&conn->out, AF_TAG_CAPABILITIES, AF_CAP_MEMFD | AF_CAP_HOT);
        af_frame_field_u32(&conn->out, AF_TAG_CANON_VERSION, AF_CANON_VERSION);
        af_frame_field_str(&conn->out, AF_TAG_PEER_NAME, name);
        af_frame_end(&conn->out, start);
}

static enum autofuse_status refused(const struct af_incoming *in, const char *path, struct autofuse_error **ret_error) {
        struct af_field code, text;
        uint32_t c = af_frame_find(in->body, in->n_body, AF_TAG_CODE, 4, &code) ? af_field_u32(&code) : AF_ERROR_INTERNAL;
        int n = 0;
        const char *s = "";
        if (af_frame_find(in->body, in->n_body, AF_TAG_TEXT, 0, &text)) {
                n = (int)AF_MIN(text.n, 1024u);
                s = (const char *)text.p;
        }
        bool later = c == AF_ERROR_DRAINING || c == AF_ERROR_BUSY;
        return later ? af_error_set_retryable(ret_error, AUTOFUSE_E_UNAVAILABLE, "the server at %s: %.*s", path, n, s)
                     : af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "the server at %s refuses (%s): %.*s", path, af_error_code_name(c),
                                    n, s);
}

/* The server's hello: versions that include ours, the same canonical form. */
static enum autofuse_status accept_hello(struct af_connection *conn, const struct af_incoming *in, const char *path,
                                         struct autofuse_error **ret_error) {
        if (in->h.type == AF_FRAME_ERROR)
                return refused(in, path, ret_error);
        if (in->h.type != AF_FRAME_HELLO)
                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "what listens at %s does not speak this protocol", path);
        struct af_field f;
        if (!af_frame_find(in->body, in->n_body, AF_TAG_VERSIONS, 4, &f))
                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "the hello of the server at %s names no version", path);
        unsigned min = f.p[0] | f.p[1] << 8, max = f.p[2] | f.p[3] << 8;
        if (AF_FRAME_VERSION < min || AF_FRAME_VERSION > max)
                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE,
                                    "the server at %s speaks protocol versions %u to %u, this library %u", path, min, max,
                                    AF_FRAME_VERSION);
        if (!af_frame_find(in->body, in->n_body, AF_TAG_CANON_VERSION, 4, &f) || af_field_u32(&f) != AF_CANON_VERSION)
                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE,
                                    "the server at %s knows another canonical form than this library (%u)", path, AF_CANON_VERSION);
        conn->has_env = af_frame_find(in->body, in->n_body, AF_TAG_ENV_DIGEST, sizeof(conn->env), &f);
        if (conn->has_env)
                memcpy(&conn->env, f.p, sizeof(conn->env));
        conn->has_epoch = af_frame_find(in->body, in->n_body, AF_TAG_CAPABILITIES, 8, &f) && (af_field_u64(&f) & AF_CAP_HOT);
        const char *why = "";
        /* An area of another format, or none: then answers come over the connection alone. */
        if (conn->has_epoch && in->fd >= 0 && af_frame_find(in->body, in->n_body, AF_TAG_HOT_BYTES, 8, &f) &&
            af_hot_view_open(in->fd, af_field_u64(&f), &conn->hot, &why) != 0)
                conn->hot = NULL;
        return AUTOFUSE_OK;
}

/* Waits until fd is ready for events: 0, -ETIMEDOUT, -errno. */
static int wait_ready(int fd, short events, uint64_t deadline_ns) {
        for (;;) {
                uint64_t now = af_clock_now_ns();
                if (now >= deadline_ns)
                        return -ETIMEDOUT;
                struct pollfd p = {.fd = fd, .events = events};
                int r = poll(&p, 1, (int)AF_MIN((deadline_ns - now) / 1000000 + 1, 60000ull));
                if (r > 0)
                        return 0;
                if (r < 0 && errno != EINTR)
                        return -errno;
        }
}

static int exchange(struct af_connection *conn, uint64_t deadline_ns, struct af_incoming *ret_in, const char **ret_why) {
        int r;
        while ((r = af_connection_flush(conn)) == -EAGAIN)
                if ((r = wait_ready(conn->fd, POLLOUT, deadline_ns)) < 0)
                        return r;
        /* A server that refuses writes its reason and closes at once, perhaps before it took our hello. */
        if (r < 0 && r != -EPIPE && r != -ECONNRESET)
                return r;
        while ((r = af_connection_read(conn, ret_in, ret_why)) == -EAGAIN)
                if ((r = wait_ready(conn->fd, POLLIN, deadline_ns)) < 0)
                        return r;
        return r;
}

enum autofuse_status af_connection_hello(int fd, const struct af_connect *how, const char *path, uint64_t deadline_ns,
                                         struct af_connection **ret_conn, struct autofuse_error **ret_error) {
        struct ucred cred = {0};
        socklen_t n = sizeof(cred);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0 || !af_server_is_trusted(cred.uid, how->own_uid, how->server_uid)) {
                close(fd);
                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE,
                                    "the server at %s runs as user %u, who is neither root, nor this user, nor configured", path,
                                    (unsigned)cred.uid);
        }
        struct af_connection *conn = calloc(1, sizeof(*conn));
        if (!conn) {
                close(fd);
                return af_error_set_memory(ret_error);
        }
        conn->fd = fd;
        conn->in_fd = -1;
        put_hello(conn, how->name);
        struct af_incoming in;
        const char *why = "";
        enum autofuse_status status;
        int r = exchange(conn, deadline_ns, &in, &why);
        if (r == 0) {
                status = accept_hello(conn, &in, path, ret_error);
                if (in.fd >= 0)
                        close(in.fd);
        } else if (r == -ENOMEM) {
                status = af_error_set_memory(ret_error);
        } else if (r == -ETIMEDOUT) {
                status = af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "what listens at %s does not answer hello", path);
        } else if (r == AF_CONNECTION_E_PROTOCOL) {
                status = af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "what listens at %s does not speak this protocol: %s", path, why);
        } else {
                status = af_error_set_retryable(ret_error, AUTOFUSE_E_UNAVAILABLE, "the server at %s closed the connection during hello",
                                                path);
        }
        if (status != AUTOFUSE_OK) {
                af_connection_close(conn);
                return status;
        }
        *ret_conn = conn;
        return AUTOFUSE_OK;
}

void af_connection_close(struct af_connection *conn) {
        if (!conn)
                return;
        close(conn->fd);
        if (conn->in_fd >= 0)
                close(conn->in_fd);
        af_hot_view_unref(conn->hot);
        af_buf_deinit(&conn->body);
        af_buf_deinit(&conn->out);
        free(conn);
}

int af_connection_flush(struct af_connection *conn) {
        if (af_buf_error(&conn->out) < 0)
                return af_buf_error(&conn->out);
        while (conn->out_at < conn->out.size) {
                ssize_t n = send(conn->fd, conn->out.data + conn->out_at, conn->out.size - conn->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EWOULDBLOCK ? -EAGAIN : -errno;
                conn->out_at += (size_t)n;
        }
        conn->out_at = 0;
        if (conn->out.capacity > (1u << 20))
                af_buf_deinit(&conn->out);
        else
                af_buf_clear(&conn->out);
        return 0;
}

/* Takes a descriptor out of a message: 0, or PROTOCOL where there is more than one. */
static int take_fd(struct af_connection *conn, struct msghdr *msg, const char **ret_why) {
        int r = msg->msg_flags & MSG_CTRUNC ? AF_CONNECTION_E_PROTOCOL : 0;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < n; i++) {
                        int fd;
                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
                        if (conn->in_fd < 0) {
                                conn->in_fd = fd;
                        } else {
                                close(fd);
                                r = AF_CONNECTION_E_PROTOCOL;
                        }
                }
        }
        if (r)
                *ret_why = "descriptors that were not announced";
        return r;
}

/* One recvmsg into p: bytes read, 0 at the end of the stream, or -errno, or -EPROTO with *ret_why. */
static ssize_t receive(struct af_connection *conn, void *p, size_t n, const char **ret_why) {
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(4 * sizeof(int))];
        } control;
        for (;;) {
                struct iovec iov = {.iov_base = p, .iov_len = n};
                struct msghdr msg = {
                        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
                ssize_t got = recvmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return errno == EWOULDBLOCK ? -EAGAIN : -errno;
                if (take_fd(conn, &msg, ret_why))
                        return -EPROTO;
                return got;
        }
}

static int closed_or(ssize_t got) {
        return got == 0 || got == -ECONNRESET || got == -EPIPE ? AF_CONNECTION_E_CLOSED
               : got == -EPROTO                                ? AF_CONNECTION_E_PROTOCOL
                                                               : (int)got;
}

/* More bytes into `in`, which is empty. One call per turn where they are few: a hit costs one receive. */
static int fill(struct af_connection *conn, const char **ret_why) {
        if (conn->drained) {
                conn->drained = false;
                return -EAGAIN;
        }
        ssize_t got = receive(conn, conn->in, sizeof(conn->in), ret_why);
        if (got <= 0)
                return closed_or(got);
        conn->in_at = 0;
        conn->in_end = (size_t)got;
        conn->drained = conn->in_end < sizeof(conn->in); /* or it stopped at a descriptor: then the socket is readable still */
        return 0;
}

/* At most n of the received bytes. */
static size_t take_received(struct af_connection *conn, void *out, size_t n) {
        n = AF_MIN(n, conn->in_end - conn->in_at);
        memcpy(out, conn->in + conn->in_at, n);
        conn->in_at += n;
        return n;
}

static int read_head(struct af_connection *conn, const char **ret_why) {
        while (conn->n_head < sizeof(conn->head)) {
                int r = conn->in_at == conn->in_end ? fill(conn, ret_why) : 0;
                if (r != 0)
                        return r;
                conn->n_head += take_received(conn, conn->head + conn->n_head, sizeof(conn->head) - conn->n_head);
        }
        if (af_frame_header_read(conn->head, &conn->h) != 0) {
                *ret_why = "a malformed frame header";
                return AF_CONNECTION_E_PROTOCOL;
        }
        if (conn->h.n_fds > 1 || (conn->h.n_fds == 1 && conn->in_fd < 0)) {
                *ret_why = "a descriptor is missing or was not announced";
                return AF_CONNECTION_E_PROTOCOL;
        }
        return 0;
}

/* Memory follows what has come, not what the header claims. */
static int read_body(struct af_connection *conn, const char **ret_why) {
        while (conn->body.size < conn->h.body_bytes) {
                size_t left = conn->h.body_bytes - conn->body.size, chunk = AF_MIN(left, (size_t)256 << 10);
                bool direct = conn->in_at == conn->in_end && left >= sizeof(conn->in);
                if (!direct && conn->in_at == conn->in_end) {
                        int r = fill(conn, ret_why);
                        if (r != 0)
                                return r;
                }
                uint8_t *p = af_buf_reserve(&conn->body, chunk);
                if (!p)
                        return -ENOMEM;
                ssize_t got = direct ? receive(conn, p, chunk, ret_why) : (ssize_t)take_received(conn, p, chunk);
                if (got <= 0)
                        return closed_or(got);
                conn->body.size += (size_t)got;
        }
        return 0;
}

int af_connection_read(struct af_connection *conn, struct af_incoming *ret_frame, const char **ret_why) {
        int r = 0;
        if (conn->n_head < sizeof(conn->head)) {
                if (conn->n_head == 0)
                        af_buf_clear(&conn->body);
                r = read_head(conn, ret_why);
        }
        if (r == 0)
                r = read_body(conn, ret_why);
        if (r != 0)
                return r;
        /* One that this frame did not announce can only be a later one's, whose first byte came along. */
        if (conn->in_fd >= 0 && conn->h.n_fds == 0 && conn->in_at == conn->in_end) {
                *ret_why = "a descriptor is missing or was not announced";
                return AF_CONNECTION_E_PROTOCOL;
        }
        *ret_frame = (struct af_incoming){.h = conn->h, .body = conn->body.data, .n_body = conn->body.size, .fd = -1};
        if (conn->h.n_fds == 1) {
                ret_frame->fd = conn->in_fd;
                conn->in_fd = -1;
        }
        conn->n_head = 0;
        return 0;
}
