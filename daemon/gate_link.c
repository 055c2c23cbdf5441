/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/gate.h"

#define RETRY_MS      100
#define MAX_OUT_BYTES ((size_t)64 << 20)

static void on_poll(uv_poll_t *poll, int status, int events);
static void on_retry(uv_timer_t *timer);

static void watch(struct af_gate_link *l) {
        int events = UV_READABLE | (l->out_at < l->out.size ? UV_WRITABLE : 0);

        if (!l->poll || events == l->events)
                return;
        l->events = events;
        uv_poll_start(l->poll, events, on_poll);
}

static void on_closed(uv_handle_t *handle) {
        free(handle);
}

static void go_down(struct af_gate_link *l, const char *why) {
        bool was_up = l->state == AF_GATE_LINK_UP;

        if (l->poll) {
                uv_poll_stop(l->poll);
                uv_close((uv_handle_t *)l->poll, on_closed);
                l->poll = NULL;
        }
        if (l->fd >= 0)
                close(l->fd);
        if (l->in_fd >= 0)
                close(l->in_fd);
        l->fd = l->in_fd = -1;
        l->state = AF_GATE_LINK_DOWN;
        l->broken = NULL;
        l->n_head = l->out_at = 0;
        af_buf_deinit(&l->body);
        af_buf_deinit(&l->out);
        uv_timer_start(&l->retry, on_retry, RETRY_MS, 0);
        if (was_up)
                l->on_down(l->userdata, why);
}

/* Not at once: whoever sends has a request in hand that on_down would end. Nothing is sent or read before. */
static void break_later(struct af_gate_link *l, const char *why) {
        l->broken = why;
        uv_poll_stop(l->poll);
        uv_timer_start(&l->retry, on_retry, 0, 0);
}

static void flush(struct af_gate_link *l) {
        while (l->out_at < l->out.size) {
                ssize_t n = send(l->fd, l->out.data + l->out_at, l->out.size - l->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
                        /* What it said before it closed is read first. */
                        af_buf_clear(&l->out);
                        l->out_at = 0;
                        break;
                }
                if (n < 0)
                        break;
                l->out_at += (size_t)n;
        }
        if (l->out_at == l->out.size) {
                l->out_at = 0;
                if (l->out.capacity > (1u << 20))
                        af_buf_deinit(&l->out);
                else
                        af_buf_clear(&l->out);
        }
        watch(l);
}

bool af_gate_link_send(struct af_gate_link *l, struct af_buf *buf) {
        bool ok = l->state == AF_GATE_LINK_UP && !l->broken && af_buf_error(buf) == 0 &&
                  l->out.size - l->out_at + buf->size <= MAX_OUT_BYTES + (8u << 20);

        if (ok) {
                af_buf_put(&l->out, buf->data, buf->size);
                ok = af_buf_error(&l->out) == 0;
                if (ok)
                        flush(l);
                else
                        break_later(l, "out of memory");
        }
        af_buf_deinit(buf);
        return ok;
}

/* ---- reading ---- */

/* Bytes read, 0: closed, -errno. A descriptor that comes along is kept. */
static ssize_t receive(struct af_gate_link *l, void *p, size_t n) {
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec iov = {.iov_base = p, .iov_len = n};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
        ssize_t got;

        do
                got = recvmsg(l->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (got < 0 && errno == EINTR);
        if (got < 0)
                return errno == EWOULDBLOCK ? -EAGAIN : -errno;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
                        if (l->in_fd >= 0)
                                close(l->in_fd);
                        memcpy(&l->in_fd, CMSG_DATA(c), sizeof(int));
                }
        return got;
}

static void on_hello(struct af_gate_link *l, const struct af_gate_frame *f) {
        struct af_field text;

        if (f->h.type == AF_FRAME_HELLO) {
                l->state = AF_GATE_LINK_UP;
                l->on_up(l->userdata);
                return;
        }
        if (f->h.type == AF_FRAME_ERROR && af_frame_find(f->body, f->n_body, AF_TAG_TEXT, 0, &text))
                af_log(AF_LOG_WARNING, "gate: the server refuses: %.*s", (int)AF_MIN(text.n, 500u), (const char *)text.p);
        go_down(l, "refused");
}

static void on_whole_frame(struct af_gate_link *l) {
        struct af_gate_frame f = {.h = l->h, .body = l->body.data, .n_body = l->body.size, .fd = l->in_fd};
        struct af_buf body = l->body;

        l->body = AF_BUF_INIT;
        l->in_fd = -1;
        l->n_head = 0;
        if (l->state == AF_GATE_LINK_HELLO)
                on_hello(l, &f);
        else
                l->on_frame(l->userdata, &f);
        af_buf_deinit(&body);
}

/* True where more may be read. */
static bool read_some(struct af_gate_link *l) {
        bool in_head = l->n_head < sizeof(l->head);
        size_t want = in_head ? sizeof(l->head) - l->n_head : AF_MIN((size_t)256 << 10, l->h.body_bytes - l->body.size);
        uint8_t *p = in_head ? l->head + l->n_head : af_buf_reserve(&l->body, want);
        ssize_t got = p ? receive(l, p, want) : -ENOMEM;

        if (got == -EAGAIN)
                return false;
        if (got <= 0) {
                go_down(l, got == 0 ? "the server closed the connection" : strerror((int)-got));
                return false;
        }
        if (!in_head)
                l->body.size += (size_t)got;
        else if ((l->n_head += (size_t)got) == sizeof(l->head) && af_frame_header_read(l->head, &l->h)) {
                go_down(l, "the server sent what is no frame");
                return false;
        }
        if (l->n_head == sizeof(l->head) && l->body.size == l->h.body_bytes)
                on_whole_frame(l);
        return l->state != AF_GATE_LINK_DOWN;
}

static void on_poll(uv_poll_t *poll, int status, int events) {
        struct af_gate_link *l = poll->data;

        if (status < 0) {
                go_down(l, "the connection broke");
                return;
        }
        if (events & UV_WRITABLE)
                flush(l);
        for (unsigned i = 0; (events & UV_READABLE) && i < 64 && l->poll == poll && read_some(l); i++)
                ;
}

/* ---- connecting ---- */

static void say_hello(struct af_gate_link *l) {
        size_t at = af_frame_begin(&l->out, &(struct af_frame_header){.type = AF_FRAME_HELLO});

        af_frame_field(&l->out, AF_TAG_VERSIONS, (uint8_t[4]){AF_FRAME_VERSION, 0, AF_FRAME_VERSION, 0}, 4);
        af_frame_field_u64(&l->out, AF_TAG_CAPABILITIES, AF_CAP_MEMFD);
        af_frame_field_str(&l->out, AF_TAG_PEER_NAME, "gate");
        af_frame_end(&l->out, at);
        flush(l);
}

static void on_retry(uv_timer_t *timer) {
        struct af_gate_link *l = timer->data;
        struct sockaddr_un addr = {.sun_family = AF_UNIX};

        if (l->broken) {
                go_down(l, l->broken);
                return;
        }
        strncpy(addr.sun_path, l->path, sizeof(addr.sun_path) - 1);
        l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        l->poll = calloc(1, sizeof(*l->poll));
        if (l->fd < 0 || !l->poll || connect(l->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
            uv_poll_init(l->loop, l->poll, l->fd) < 0) {
                free(l->poll);
                l->poll = NULL;
                go_down(l, "not connected");
                return;
        }
        l->poll->data = l;
        l->events = 0;
        l->state = AF_GATE_LINK_HELLO;
        say_hello(l);
}

void af_gate_link_start(struct af_gate_link *l, uv_loop_t *loop, const char *path) {
        l->loop = loop;
        l->path = path;
        l->fd = l->in_fd = -1;
        uv_timer_init(loop, &l->retry);
        l->retry.data = l;
        on_retry(&l->retry);
}
