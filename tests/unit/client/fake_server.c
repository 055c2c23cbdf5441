/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/client/fake_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"
#include "compiler/graph/canon.h"
#include "compiler/graph/key.h"

static bool read_all(int fd, void *p, size_t n) {
        for (size_t at = 0; at < n;) {
                ssize_t got = recv(fd, (uint8_t *)p + at, n - at, 0);
                if (got <= 0)
                        return false;
                at += (size_t)got;
        }
        return true;
}

/* All bytes, with a descriptor on the first one where fd >= 0. */
static void send_all(int to, const void *p, size_t n, int fd) {
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control = {0};
        for (size_t at = 0; at < n; fd = -1) {
                struct iovec iov = {.iov_base = (uint8_t *)p + at, .iov_len = n - at};
                struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
                if (fd >= 0) {
                        msg.msg_control = control.bytes;
                        msg.msg_controllen = sizeof(control.bytes);
                        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
                        c->cmsg_level = SOL_SOCKET;
                        c->cmsg_type = SCM_RIGHTS;
                        c->cmsg_len = CMSG_LEN(sizeof(int));
                        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
                }
                ssize_t sent = sendmsg(to, &msg, MSG_NOSIGNAL);
                if (sent <= 0)
                        return;
                at += (size_t)sent;
        }
}

static void send_error(int to, uint64_t id, enum af_error_code code, bool retryable, const char *text) {
        struct af_buf out = AF_BUF_INIT;
        size_t start = af_frame_begin(&out, &(struct af_frame_header){.type = AF_FRAME_ERROR, .request_id = id});
        af_frame_field_u32(&out, AF_TAG_CODE, code);
        af_frame_field_u8(&out, AF_TAG_RETRYABLE, retryable);
        af_frame_field_str(&out, AF_TAG_TEXT, text);
        af_frame_end(&out, start);
        send_all(to, out.data, out.size, -1);
        af_buf_deinit(&out);
}

/* False: the connection ends. */
static bool answer_hello(struct fake_server *s, int to) {
        enum fake_mode mode = s->mode;
        struct af_buf out = AF_BUF_INIT;
        uint8_t versions[4] = {1, 0, 1, 0}, env[32];
        if (mode == FAKE_HELLO_SILENT)
                return true;
        if (mode == FAKE_HELLO_CLOSE)
                return false;
        if (mode == FAKE_HELLO_REFUSED) {
                send_error(to, 0, AF_ERROR_REFUSED, false, "user 12345 is not on the list");
                return false;
        }
        if (mode == FAKE_HELLO_GARBAGE) {
                send_all(to, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", 47, -1);
                return false;
        }
        if (mode == FAKE_HELLO_VERSION)
                memcpy(versions, "\7\0\11\0", 4);
        memset(env, s->env, sizeof(env));
        size_t start = af_frame_begin(&out, &(struct af_frame_header){.type = AF_FRAME_HELLO});
        af_frame_field(&out, AF_TAG_VERSIONS, versions, sizeof(versions));
        af_frame_field_u64(&out, AF_TAG_CAPABILITIES, AF_CAP_MEMFD);
        af_frame_field_u32(&out, AF_TAG_CANON_VERSION, mode == FAKE_HELLO_CANON ? 4711 : AF_CANON_VERSION);
        af_frame_field(&out, AF_TAG_ENV_DIGEST, env, sizeof(env));
        af_frame_end(&out, start);
        send_all(to, out.data, out.size, -1);
        af_buf_deinit(&out);
        return true;
}

/* The descriptor that carries the bundle, as bad as wanted; -1: inline. */
static int make_fd(enum fake_mode mode, const struct af_buf *bundle) {
        char path[] = "/tmp/autofuse-fake-XXXXXX";
        int fd;
        switch (mode) {
        case FAKE_INLINE:
        case FAKE_NO_FD:
                return -1;
        case FAKE_UNSEALED:
                return af_io_memfd("bundle", bundle->data, bundle->size, false);
        case FAKE_FILE:
                fd = mkstemp(path);
                unlink(path);
                MUST(write(fd, bundle->data, bundle->size) == (ssize_t)bundle->size);
                return fd;
        default:
                return af_io_memfd("bundle", bundle->data, bundle->size, true);
        }
}

static void send_result(enum fake_mode mode, int to, uint64_t id, const struct af_field *canon) {
        struct af_buf bundle = AF_BUF_INIT, out = AF_BUF_INIT;
        struct af_bundle_key key = {0};
        fake_bundle(canon->p, canon->n, &bundle);
        af_key_fragment(canon->p, canon->n, &key.fragment);
        if (mode == FAKE_WRONG_KEY)
                key.fragment.bytes[5] ^= 1;
        if (mode == FAKE_DAMAGED)
                bundle.data[bundle.size - 70] ^= 4;
        if (mode == FAKE_OTHER_BUNDLE) {
                struct af_bundle_builder b;
                af_bundle_builder_init(&b);
                af_buf_clear(&bundle);
                MUST(af_bundle_finish(&b, 0, &bundle) == 0);
                af_bundle_builder_deinit(&b);
        }
        int fd = make_fd(mode, &bundle);
        bool announce = (fd >= 0 && mode != FAKE_STRAY_FD) || mode == FAKE_NO_FD;
        size_t start = af_frame_begin(&out, &(struct af_frame_header){.type = AF_FRAME_RESULT, .request_id = id, .n_fds = announce});
        af_frame_field(&out, AF_TAG_KEY, &key, sizeof(key));
        af_frame_field_u8(&out, AF_TAG_HIT, AF_HIT_STORE);
        if (mode == FAKE_INLINE)
                af_frame_field(&out, AF_TAG_BUNDLE, bundle.data, bundle.size);
        else
                af_frame_field_u64(&out, AF_TAG_BUNDLE_BYTES, bundle.size + (mode == FAKE_WRONG_SIZE));
        af_frame_end(&out, start);
        send_all(to, out.data, mode == FAKE_CUT ? 40 : out.size, fd);
        if (fd >= 0)
                close(fd);
        af_buf_deinit(&bundle);
        af_buf_deinit(&out);
}

static void send_progress(int to, uint64_t id, uint64_t ms) {
        struct af_buf out = AF_BUF_INIT;
        size_t start = af_frame_begin(&out, &(struct af_frame_header){.type = AF_FRAME_PROGRESS, .request_id = id});
        af_frame_field_str(&out, AF_TAG_TEXT, "compiling");
        af_frame_field_u64(&out, AF_TAG_ELAPSED_MS, ms);
        af_frame_field_u32(&out, AF_TAG_WAITERS, 7);
        af_frame_end(&out, start);
        send_all(to, out.data, out.size, -1);
        af_buf_deinit(&out);
}

static void send_part(int to, uint64_t id, const struct af_field *canon, uint32_t index, uint32_t n_parts, bool other) {
        struct af_buf out = AF_BUF_INIT;
        struct af_digest key[2] = {0};
        size_t start = af_frame_begin(&out, &(struct af_frame_header){.type = AF_FRAME_PART, .request_id = id});
        af_key_fragment(canon->p, canon->n, &key[0]);
        key[0].bytes[7] ^= other;
        af_frame_field(&out, AF_TAG_KEY, key, sizeof(key));
        af_frame_field_u32(&out, AF_TAG_PART, index);
        af_frame_field_u32(&out, AF_TAG_N_PARTS, n_parts);
        af_frame_field_str(&out, AF_TAG_BUNDLE, index == 1 ? "first" : "second");
        af_frame_end(&out, start);
        send_all(to, out.data, out.size, -1);
        af_buf_deinit(&out);
}

static void send_parts(struct fake_server *s, int to, const struct af_frame_header *h, const uint8_t *body, const struct af_field *canon) {
        uint64_t id = h->request_id;
        struct af_field wanted;
        if (!af_frame_find(body, h->body_bytes, AF_TAG_PARTS, 1, &wanted) || !wanted.p[0])
                return;
        atomic_fetch_add(&s->n_parts, 1);
        send_part(to, id, canon, 0, 3, false);
        send_part(to, id, canon, 2, 3, true); /* another fragment's */
        send_part(to, id, canon, 1, 3, false);
        send_part(to, id, canon, 1, 3, false); /* again */
        send_part(to, id, canon, 3, 3, false);
        send_part(to, id, canon, 3, 4, false); /* of another number */
        send_part(to, id, canon, 1, UINT32_MAX, false);
        send_part(to, id + 1000, canon, 2, 3, false);
        send_part(to, id, canon, 2, 3, false);
}

static void send_huge(int to, uint64_t id) {
        struct af_buf out = AF_BUF_INIT;
        af_frame_end(&out, af_frame_begin(&out, &(struct af_frame_header){.type = AF_FRAME_RESULT, .request_id = id}));
        af_buf_patch_u32(&out, 16, AF_FRAME_MAX_BODY + 1);
        send_all(to, out.data, out.size, -1);
        af_buf_deinit(&out);
}

static bool answer_submit(struct fake_server *s, int to, const struct af_frame_header *h, const uint8_t *body) {
        enum fake_mode mode = s->mode;
        struct af_field canon, lookup;
        unsigned n = atomic_fetch_add(&s->n_submits, 1);
        if (!af_frame_find(body, h->body_bytes, AF_TAG_CANON, 0, &canon))
                return false;
        if (af_frame_find(body, h->body_bytes, AF_TAG_LOOKUP_ONLY, 1, &lookup))
                atomic_fetch_add(&s->n_lookups, 1);
        switch (mode) {
        case FAKE_SILENT:
                return true;
        case FAKE_GARBAGE:
                send_all(to, "this is not a frame, and it is longer than a header", 50, -1);
                return true;
        case FAKE_HUGE:
                send_huge(to, h->request_id);
                return true;
        case FAKE_CLOSE_ONCE:
                if (n == 0)
                        return false;
                break;
        case FAKE_BUSY_TWICE:
                if (n < 2) {
                        send_error(to, h->request_id, AF_ERROR_BUSY, true, "queue full");
                        return true;
                }
                break;
        case FAKE_JOB_DIED:
                send_error(to, h->request_id, AF_ERROR_JOB_DIED, true, "the compile job was killed");
                return true;
        case FAKE_COMPILE_ERROR:
                send_error(to, h->request_id, AF_ERROR_COMPILE, false, "kernel.cpp:3: error: no such call");
                return true;
        case FAKE_NOT_FOUND:
                send_error(to, h->request_id, AF_ERROR_NOT_FOUND, false, "not compiled yet");
                return true;
        case FAKE_PROGRESS:
                send_progress(to, h->request_id, 1000);
                usleep(20000);
                send_progress(to, h->request_id, 2000);
                usleep(20000);
                break;
        case FAKE_PARTS:
                send_parts(s, to, h, body, &canon);
                break;
        default:
                break;
        }
        send_result(mode, to, h->request_id, &canon);
        return mode != FAKE_CUT;
}

static bool answer_stats(int to, const struct af_frame_header *h) {
        struct af_buf out = AF_BUF_INIT;
        size_t start = af_frame_begin(&out, &(struct af_frame_header){.type = h->type, .request_id = h->request_id});
        af_frame_field_str(&out, AF_TAG_TEXT, "{\"hits\": 3}");
        af_frame_end(&out, start);
        send_all(to, out.data, out.size, -1);
        af_buf_deinit(&out);
        return true;
}

static bool answer(struct fake_server *s, int fd, const struct af_frame_header *h, const uint8_t *body) {
        switch (h->type) {
        case AF_FRAME_HELLO:
                return answer_hello(s, fd);
        case AF_FRAME_SUBMIT:
                return answer_submit(s, fd, h, body);
        case AF_FRAME_CANCEL:
                atomic_fetch_add(&s->n_cancels, 1);
                send_error(fd, h->request_id, AF_ERROR_CANCELED, false, "canceled");
                return true;
        case AF_FRAME_STATS:
        case AF_FRAME_CLEAR:
                return answer_stats(fd, h);
        default:
                return false;
        }
}

struct serve_arg {
        struct fake_server *s;
        unsigned i;
};

static void *serve(void *arg) {
        struct serve_arg a = *(struct serve_arg *)arg;
        int fd = a.s->fds[a.i];
        bool going = true;
        free(arg);
        while (going) {
                uint8_t head[AF_FRAME_HEADER_BYTES];
                struct af_frame_header h;
                if (!read_all(fd, head, sizeof(head)) || af_frame_header_read(head, &h) != 0)
                        break;
                uint8_t *body = malloc(h.body_bytes + 1);
                going = read_all(fd, body, h.body_bytes) && answer(a.s, fd, &h, body);
                free(body);
        }
        shutdown(fd, SHUT_RDWR);
        return NULL;
}

static void *accept_all(void *arg) {
        struct fake_server *s = arg;
        for (;;) {
                int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
                if (fd < 0)
                        return NULL;
                struct serve_arg *a = malloc(sizeof(*a));
                pthread_mutex_lock(&s->lock);
                MUST(s->n_threads < FAKE_MAX_CONNECTIONS);
                *a = (struct serve_arg){.s = s, .i = s->n_threads};
                s->fds[s->n_threads] = fd;
                atomic_fetch_add(&s->n_connections, 1);
                pthread_create(&s->threads[s->n_threads++], NULL, serve, a);
                pthread_mutex_unlock(&s->lock);
        }
}

void fake_server_start_at(struct fake_server *s, enum fake_mode mode, const char *path) {
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        memset(s, 0, sizeof(*s));
        snprintf(s->path, sizeof(s->path), "%s", path);
        strcpy(sa.sun_path, s->path);
        unlink(s->path);
        s->mode = mode;
        pthread_mutex_init(&s->lock, NULL);
        s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        MUST(bind(s->listen_fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
        MUST(listen(s->listen_fd, 128) == 0);
        pthread_create(&s->acceptor, NULL, accept_all, s);
}

void fake_server_start(struct fake_server *s, enum fake_mode mode) {
        char dir[] = "/tmp/autofuse-test-XXXXXX", path[96];
        MUST(mkdtemp(dir));
        snprintf(path, sizeof(path), "%s/core.sock", dir);
        fake_server_start_at(s, mode, path);
        snprintf(s->dir, sizeof(s->dir), "%s", dir);
}

void fake_server_stop(struct fake_server *s, bool keep) {
        shutdown(s->listen_fd, SHUT_RDWR);
        pthread_join(s->acceptor, NULL);
        close(s->listen_fd);
        for (unsigned i = 0; i < s->n_threads; i++)
                shutdown(s->fds[i], SHUT_RDWR);
        for (unsigned i = 0; i < s->n_threads; i++) {
                pthread_join(s->threads[i], NULL);
                close(s->fds[i]);
        }
        if (!keep) {
                unlink(s->path);
                rmdir(s->dir);
        }
}
