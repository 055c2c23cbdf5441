/* SPDX-License-Identifier: Apache-2.0 */
/* Unsent frames of a connection. A descriptor goes along with the first byte of its frame; few of them are ever unread. */
#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "daemon/core.h"

/* One writable callback sends at most this much, then others have their turn. */
#define MAX_BYTES_PER_TURN (4u << 20)

void af_out_free(struct af_out *out) {
        af_ready_bundle_unref(out->bundle);
        free(out);
}

static void append(struct af_conn *conn, struct af_out *out) {
        if (!conn->out_head)
                conn->out_since_ns = af_clock_now_ns();
        out->next = NULL;
        *conn->out_tail = out;
        conn->out_tail = &out->next;
        conn->out_bytes += out->size + out->inline_size + out->tail_size;
        af_core_need_tick(conn->core);
}

static struct af_out *out_new(struct af_conn *conn, struct af_buf *frame) {
        struct af_out *out = af_buf_error(frame) ? NULL : malloc(sizeof(*out) + frame->size);

        if (!out) {
                af_conn_doom(conn);
                af_buf_deinit(frame);
                return NULL;
        }
        *out = (struct af_out){.size = frame->size};
        memcpy(out->head, frame->data, frame->size);
        af_buf_deinit(frame);
        return out;
}

void af_conn_send(struct af_conn *conn, struct af_buf *frame) {
        struct af_out *out;

        if (conn->state == AF_CONN_CLOSED || conn->doomed) {
                af_buf_deinit(frame);
                return;
        }
        out = out_new(conn, frame);
        if (!out)
                return;
        append(conn, out);
        af_conn_flush(conn);
}

void af_conn_send_bundle(struct af_conn *conn, struct af_buf *frame, struct af_ready_bundle *bundle, bool pass_fd) {
        struct af_out *out = NULL;

        if (conn->state != AF_CONN_CLOSED && !conn->doomed && (pass_fd || af_ready_bundle_map(bundle)))
                out = out_new(conn, frame);
        else
                af_buf_deinit(frame);
        if (!out) {
                af_ready_bundle_unref(bundle);
                return;
        }
        out->bundle = bundle;
        out->pass_fd = pass_fd;
        if (!pass_fd) {
                out->inline_size = bundle->size;
                out->tail_size = (4 - bundle->size % 4) % 4;
        }
        append(conn, out);
        af_conn_flush(conn);
}

/* Whether one more descriptor may go out: the peer has read what it got, or is few behind. */
static bool fd_allowed(struct af_conn *conn) {
        int unread = 1;

        if (conn->n_fds < AF_MAX_UNREAD_FDS)
                return true;
        if (ioctl(conn->fd, SIOCOUTQ, &unread) < 0 || unread > 0)
                return false;
        conn->n_fds = 0;
        return true;
}

static unsigned make_iov(struct af_out *out, struct iovec iov[3]) {
        unsigned n = 0;

        if (out->at < out->size)
                iov[n++] = (struct iovec){out->head + out->at, out->size - out->at};
        if (out->inline_at < out->inline_size)
                iov[n++] = (struct iovec){(void *)(out->bundle->map + out->inline_at), out->inline_size - out->inline_at};
        if (out->tail_at < out->tail_size)
                iov[n++] = (struct iovec){out->tail + out->tail_at, out->tail_size - out->tail_at};
        return n;
}

static void advance(struct af_out *out, size_t sent) {
        size_t step = AF_MIN(sent, out->size - out->at);

        out->at += step;
        sent -= step;
        step = AF_MIN(sent, out->inline_size - out->inline_at);
        out->inline_at += step;
        out->tail_at += sent - step;
}

/* Bytes sent, or -errno. */
static ssize_t send_some(struct af_conn *conn, struct af_out *out) {
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control = {0};
        bool with_fd = out->pass_fd && !out->fd_passed;
        struct iovec iov[3];
        struct msghdr msg = {.msg_iov = iov, .msg_iovlen = make_iov(out, iov)};
        ssize_t n;

        if (with_fd) {
                struct cmsghdr *c;

                msg.msg_control = control.bytes;
                msg.msg_controllen = sizeof(control.bytes);
                c = CMSG_FIRSTHDR(&msg);
                *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
                memcpy(CMSG_DATA(c), &out->bundle->fd, sizeof(int));
        }
        do
                n = sendmsg(conn->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        if (with_fd) {
                out->fd_passed = true;
                conn->n_fds++;
        }
        return n;
}

int af_conn_write(struct af_conn *conn) {
        size_t total = 0;

        while (conn->out_head) {
                struct af_out *out = conn->out_head;
                ssize_t n;

                if (out->pass_fd && !out->fd_passed && !fd_allowed(conn))
                        return 2;
                n = send_some(conn, out);
                if (n == -EAGAIN || n == -EWOULDBLOCK)
                        return 1;
                if (n == -ETOOMANYREFS)
                        return 2;
                if (n < 0)
                        return (int)n;
                conn->out_since_ns = af_clock_now_ns();
                conn->out_bytes -= (size_t)n;
                total += (size_t)n;
                advance(out, (size_t)n);
                if (out->at == out->size && out->inline_at == out->inline_size && out->tail_at == out->tail_size) {
                        conn->out_head = out->next;
                        if (!conn->out_head)
                                conn->out_tail = &conn->out_head;
                        af_out_free(out);
                }
                if (total >= MAX_BYTES_PER_TURN)
                        return conn->out_head ? 1 : 0;
        }
        return 0;
}
