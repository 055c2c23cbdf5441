/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: accepting, reading whole frames, closing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core.h"

#define MAX_ACCEPTS_PER_TURN 64
#define MAX_READ_PER_TURN    (1u << 20)
#define FRAMES_PER_TURN      64u /* of all connections that had something to say in the turn before, but one of each */
#define READ_CHUNK           (256u << 10)

static void on_poll(uv_poll_t *poll, int status, int events);

/* Root and the server's own user always get in to look and to clear. */
#define RESERVED_CONNECTIONS 16u

static void on_closed(uv_handle_t *handle) {
        struct af_conn *conn = handle->data;

        close(conn->fd);
        free(conn);
}

void af_conn_close(struct af_conn *conn) {
        struct af_core *core = conn->core;

        if (conn->state == AF_CONN_CLOSED)
                return;
        conn->state = AF_CONN_CLOSED;
        af_list_each (req, &conn->requests, struct af_request, in_conn)
                af_request_drop(req);
        af_watch_stop(conn);
        af_questions_leave(conn);
        af_admin_stop(core, conn, 0);
        while (conn->out_head) {
                struct af_out *out = conn->out_head;

                conn->out_head = out->next;
                af_out_free(out);
        }
        conn->out_tail = &conn->out_head;
        core->rx_bytes -= conn->body.capacity;
        af_buf_deinit(&conn->body);
        af_list_del(&conn->link);
        af_list_del(&conn->in_doomed);
        core->n_conns--;
        af_client_leave(conn);
        uv_poll_stop(&conn->poll);
        shutdown(conn->fd, SHUT_RDWR);
        uv_close((uv_handle_t *)&conn->poll, on_closed);
        af_core_check_drained(core);
}

void af_conn_doom(struct af_conn *conn) {
        if (conn->doomed || conn->state == AF_CONN_CLOSED)
                return;
        conn->doomed = true;
        af_list_append(&conn->core->doomed, &conn->in_doomed);
        af_core_kick(conn->core);
}

void af_conns_sweep(struct af_core *core) {
        while (!af_list_empty(&core->doomed))
                af_conn_close(af_list_entry(core->doomed.next, struct af_conn, in_doomed));
}

static void watch(struct af_conn *conn) {
        bool reads = conn->state != AF_CONN_FLUSH && conn->out_bytes < AF_MAX_OUT_BYTES;
        int events = UV_DISCONNECT | (reads ? UV_READABLE : 0) | (conn->out_head && !conn->fd_blocked ? UV_WRITABLE : 0);

        if (conn->state == AF_CONN_CLOSED || conn->doomed || events == conn->events)
                return;
        conn->events = events;
        uv_poll_start(&conn->poll, events, on_poll);
}

static void on_fd_timer(uv_timer_t *timer) {
        struct af_core *core = timer->data;

        core->fd_waiting = false;
        af_conn_retry_fds(core);
}

void af_conn_retry_fds(struct af_core *core) {
        af_list_each (conn, &core->conns, struct af_conn, link)
                if (conn->fd_blocked)
                        af_conn_flush(conn);
}

void af_conn_flush(struct af_conn *conn) {
        struct af_core *core = conn->core;
        int r;

        if (conn->state == AF_CONN_CLOSED || conn->doomed)
                return;
        r = af_conn_write(conn);
        if (r < 0 || (r == 0 && conn->state == AF_CONN_FLUSH)) {
                af_conn_doom(conn);
                return;
        }
        conn->fd_blocked = r == 2;
        if (conn->fd_blocked && !core->fd_waiting) {
                /* Nothing tells when a peer has taken its descriptors. */
                core->fd_waiting = true;
                uv_timer_start(&core->fd_timer, on_fd_timer, 5, 0);
        }
        watch(conn);
        if (r == 0)
                af_core_check_drained(core);
}

/* ---- reading ---- */

/* More to come on this connection; 0 where the turn is over. */
enum step { STEP_MORE, STEP_WAIT, STEP_GONE };

static ssize_t receive(struct af_conn *conn, void *p, size_t n) {
        ssize_t got;

        do /* Descriptors that come along are dropped by the kernel: there is no room for them. */
                got = recv(conn->fd, p, n, MSG_DONTWAIT);
        while (got < 0 && errno == EINTR);
        return got < 0 ? -errno : got;
}

static enum step received(struct af_conn *conn, ssize_t got) {
        if (got == -EAGAIN || got == -EWOULDBLOCK)
                return STEP_WAIT;
        if (got > 0)
                return STEP_MORE;
        af_conn_close(conn);
        return STEP_GONE;
}

static enum step fatal(struct af_conn *conn, enum af_error_code code, const char *text) {
        conn->core->stats.n_protocol_errors++;
        af_reply_fatal(conn, code, text);
        return STEP_GONE;
}

/* A frame that is refused but well-formed: its body is read and dropped. */
static void skip_body(struct af_conn *conn, const char *text) {
        conn->skip = conn->header.body_bytes - conn->body.size;
        conn->core->rx_bytes -= conn->body.capacity;
        af_buf_deinit(&conn->body);
        af_reply_error(conn, conn->header.request_id, AF_ERROR_BUSY, true, text);
}

static enum step check_header(struct af_conn *conn) {
        struct af_frame_header *h = &conn->header;
        char text[160];

        switch (af_frame_header_read(conn->head, h)) {
        case 0:
                break;
        case AF_FRAME_E_VERSION:
                snprintf(text, sizeof(text), "frame version %u is not spoken here, only version %u", conn->head[4], AF_FRAME_VERSION);
                return fatal(conn, AF_ERROR_VERSION, text);
        case AF_FRAME_E_SIZE:
                return fatal(conn, AF_ERROR_TOO_LARGE, "the frame is larger than any may be");
        default:
                return fatal(conn, AF_ERROR_PROTOCOL, "this is not a frame");
        }
        if (h->n_fds)
                return fatal(conn, AF_ERROR_PROTOCOL, "clients send no descriptors");
        if (h->body_bytes > af_conn_max_body(conn, h->type)) {
                snprintf(text, sizeof(text), "a frame of type %u may have %zu bytes here, this one has %u", h->type,
                         af_conn_max_body(conn, h->type), h->body_bytes);
                return fatal(conn, conn->state == AF_CONN_OPEN && h->type == AF_FRAME_SUBMIT ? AF_ERROR_TOO_LARGE : AF_ERROR_PROTOCOL,
                             text);
        }
        return STEP_MORE;
}

static enum step read_head(struct af_conn *conn, size_t *budget) {
        ssize_t got = receive(conn, conn->head + conn->n_head, sizeof(conn->head) - conn->n_head);
        enum step step = received(conn, got);

        if (step != STEP_MORE)
                return step;
        if (conn->n_head == 0) {
                conn->frame_begin_ns = af_clock_now_ns();
                af_core_need_tick(conn->core);
        }
        conn->n_head += (size_t)got;
        *budget -= AF_MIN(*budget, (size_t)got);
        return conn->n_head < sizeof(conn->head) ? STEP_MORE : check_header(conn);
}

static enum step read_skipped(struct af_conn *conn, size_t *budget) {
        char drop[16384];
        ssize_t got = receive(conn, drop, AF_MIN(sizeof(drop), conn->skip));
        enum step step = received(conn, got);

        if (step != STEP_MORE)
                return step;
        conn->skip -= (size_t)got;
        *budget -= AF_MIN(*budget, (size_t)got);
        if (conn->skip == 0) {
                conn->n_head = 0;
                conn->frame_begin_ns = 0;
        }
        return STEP_MORE;
}

static enum step read_body(struct af_conn *conn, size_t *budget) {
        struct af_core *core = conn->core;
        size_t n = AF_MIN((size_t)READ_CHUNK, conn->header.body_bytes - conn->body.size), before = conn->body.capacity;
        size_t more = conn->body.size + n > before ? conn->body.size + n - before : 0; /* what is there is counted already */
        bool room = !more || conn->header.body_bytes <= AF_SMALL_BODY || core->rx_bytes + more <= core->config->receive_mib << 20;
        uint8_t *p = room ? af_buf_reserve(&conn->body, n) : NULL;
        enum step step;
        ssize_t got;

        core->rx_bytes += conn->body.capacity - before;
        if (!p) {
                skip_body(conn, "too many large requests at once");
                return conn->state == AF_CONN_CLOSED ? STEP_GONE : STEP_MORE;
        }
        got = receive(conn, p, n);
        step = received(conn, got);
        if (step != STEP_MORE)
                return step;
        conn->body.size += (size_t)got;
        *budget -= AF_MIN(*budget, (size_t)got);
        return STEP_MORE;
}

static enum step finish_frame(struct af_conn *conn) {
        struct af_frame_header h = conn->header;
        struct af_buf body = conn->body;

        conn->body = AF_BUF_INIT;
        conn->n_head = 0;
        conn->frame_begin_ns = 0;
        conn->core->rx_bytes -= body.capacity;
        af_conn_on_frame(conn, &h, body.data, body.size);
        af_buf_deinit(&body);
        return conn->state == AF_CONN_CLOSED || conn->state == AF_CONN_FLUSH ? STEP_GONE : STEP_MORE;
}

static void read_frames(struct af_conn *conn) {
        size_t budget = MAX_READ_PER_TURN;
        uint32_t n_frames = AF_MAX(1u, FRAMES_PER_TURN / AF_MAX(1u, conn->core->n_read_before));
        enum step step = STEP_MORE;

        conn->core->n_read++;
        while (step == STEP_MORE && budget > 0 && n_frames > 0 && conn->out_bytes < AF_MAX_OUT_BYTES && !conn->doomed) {
                if (conn->n_head < sizeof(conn->head))
                        step = read_head(conn, &budget);
                else if (conn->skip > 0)
                        step = read_skipped(conn, &budget);
                else if (conn->body.size < conn->header.body_bytes)
                        step = read_body(conn, &budget);
                else
                        step = STEP_MORE;
                if (step == STEP_MORE && conn->n_head == sizeof(conn->head) && conn->skip == 0 &&
                    conn->body.size == conn->header.body_bytes) {
                        step = finish_frame(conn);
                        n_frames--;
                }
        }
        watch(conn);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
        struct af_conn *conn = poll->data;

        if (status < 0) {
                af_conn_close(conn);
                return;
        }
        if (events & UV_WRITABLE)
                af_conn_flush(conn);
        if ((events & UV_READABLE) && conn->state != AF_CONN_CLOSED && conn->state != AF_CONN_FLUSH)
                read_frames(conn);
        /* Gone, or it sends no more: either way nobody waits. What it sent before is read first. */
        if ((events & UV_DISCONNECT) && conn->state != AF_CONN_CLOSED && !(events & UV_READABLE))
                af_conn_close(conn);
}

/* ---- deadlines ---- */

bool af_conn_tick(struct af_conn *conn, uint64_t now_ns) {
        uint64_t limit = conn->core->config->read_timeout_s * 1000000000ull;

        if (conn->out_head && now_ns - conn->out_since_ns > limit) {
                af_conn_close(conn);
                return false;
        }
        if (conn->frame_begin_ns && now_ns - conn->frame_begin_ns > limit && conn->state != AF_CONN_FLUSH &&
            conn->out_bytes < AF_MAX_OUT_BYTES) {
                fatal(conn, AF_ERROR_PROTOCOL,
                      conn->state == AF_CONN_HELLO ? "no hello came in time" : "the rest of a frame did not come in time");
                return false;
        }
        return conn->out_head || conn->frame_begin_ns;
}

/* ---- accepting ---- */

/* Why this one is too many, or NULL. Half of the descriptors stay for jobs and bundles. */
static const char *refuses(const struct af_conn *conn) {
        const struct af_core *core = conn->core;
        uint64_t limit = AF_MIN(core->config->max_connections, core->max_bundles);
        bool privileged = conn->peer.uid == 0 || conn->peer.uid == geteuid();

        if (!privileged && limit > 4 * RESERVED_CONNECTIONS)
                limit -= RESERVED_CONNECTIONS;
        return core->n_conns > limit ? "too many connections" : privileged ? NULL : af_user_refuses_connection(conn->client->user);
}

/* By its process: nobody else can be the gate. */
static bool enter(struct af_conn *conn) {
        const struct af_gate_child *gate = &conn->core->gate;

        conn->kind = gate->running && gate->process.pid == conn->peer.pid ? AF_PEER_GATE : AF_PEER_CLIENT;
        return af_client_enter(conn);
}

static void conn_new(struct af_core *core, int fd) {
        struct af_conn *conn = calloc(1, sizeof(*conn));
        socklen_t n = sizeof(conn->peer);
        const char *too_many;

        if (conn) {
                conn->core = core;
                conn->fd = fd;
        }
        if (!conn || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &conn->peer, &n) < 0 || !enter(conn)) {
                close(fd);
                free(conn);
                return;
        }
        if (uv_poll_init(core->loop, &conn->poll, fd) < 0) {
                af_client_leave(conn);
                close(fd);
                free(conn);
                return;
        }
        conn->poll.data = conn;
        conn->out_tail = &conn->out_head;
        conn->frame_begin_ns = af_clock_now_ns(); /* hello has a deadline */
        af_list_init(&conn->requests);
        af_list_init(&conn->in_doomed);
        af_list_append(&core->conns, &conn->link);
        core->n_conns++;
        conn->serial = ++core->stats.n_connections;
        af_core_need_tick(core);
        watch(conn);
        too_many = refuses(conn);
        if (!too_many)
                return;
        core->stats.n_refused++;
        af_reply_fatal(conn, AF_ERROR_BUSY, too_many);
}

/* Out of descriptors: one is kept back to take a connection and end it, so that the loop does not spin on it. */
static void shed(struct af_core *core) {
        int fd;

        close(core->reserve_fd);
        fd = accept4(core->listener.fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
                close(fd);
        core->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        core->stats.n_refused++;
}

void af_conn_accept(struct af_core *core) {
        for (unsigned i = 0; i < MAX_ACCEPTS_PER_TURN; i++) {
                int fd = accept4(core->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (fd >= 0)
                        conn_new(core, fd);
                else if (errno == EMFILE || errno == ENFILE)
                        shed(core);
                else if (errno != EINTR && errno != ECONNABORTED)
                        return;
        }
}
