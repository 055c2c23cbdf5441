/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load for benches of the server's socket, single-threaded over epoll:
 *
 *   load good SOCKET CONNECTIONS SECONDS TEXT
 *           each asks for the fragment TEXT again as soon as it is answered; prints the answers per second
 *   load hostile SOCKET CONNECTIONS SECONDS TEXT
 *           a quarter each: half frames, random bytes, floods, descriptors never read; at a fixed pace
 *   load sink SOCKET
 *           takes connections, reads and drops
 *
 * Both clients print `ready` when all are connected and begin when a line comes on standard input.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "proto/frame.h"

#define MAX_CONNECTIONS 4096
#define TICK_NS         5000000
#define FLOOD_FRAMES    5 /* of one connection in a tick */

struct peer {
        int fd, kind;
        uint64_t n_got; /* bytes of the frame that arrives */
        uint8_t head[AF_FRAME_HEADER_BYTES];
        unsigned ticks;
};

static struct peer peers[MAX_CONNECTIONS];
static struct af_buf hello, submit;
static const char *path;
static int epoll_fd;
static unsigned seed = 1;

static int connect_path(void) {
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
        if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
                close(fd);
                return -1;
        }
        fcntl(fd, F_SETFL, O_NONBLOCK);
        return fd;
}

static void make_frames(const char *text) {
        size_t at = af_frame_begin(&hello, &(struct af_frame_header){.type = AF_FRAME_HELLO});

        af_frame_field(&hello, AF_TAG_VERSIONS, (uint8_t[4]){1, 0, 1, 0}, 4);
        af_frame_field_u64(&hello, AF_TAG_CAPABILITIES, AF_CAP_MEMFD);
        af_frame_end(&hello, at);
        at = af_frame_begin(&submit, &(struct af_frame_header){.type = AF_FRAME_SUBMIT, .request_id = 1});
        af_frame_field(&submit, AF_TAG_CANON, text, strlen(text));
        af_frame_end(&submit, at);
}

static void die(const char *what) {
        perror(what);
        exit(1);
}

static void watch(struct peer *p) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};

        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, p->fd, &e) < 0)
                die("epoll");
}

/* One recvmsg; a descriptor that comes along is closed. Bytes, 0 at the end, -1: nothing there. */
static ssize_t take(int fd, uint8_t *bytes, size_t n) {
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(8 * sizeof(int))];
        } control;
        struct iovec iov = {bytes, n};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
        ssize_t got = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (got < 0)
                return errno == EAGAIN ? -1 : 0;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
                for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
                        int passed;

                        memcpy(&passed, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
                        close(passed);
                }
        return got;
}

/* Answers in what is there; counts RESULTs, and asks again after each. */
static uint64_t answers(struct peer *p) {
        uint8_t bytes[65536];
        uint64_t n = 0;
        ssize_t got = take(p->fd, bytes, sizeof(bytes));

        if (got == 0)
                die("the server closed a good connection");
        for (ssize_t at = 0; at < got;) {
                uint32_t body;
                size_t step;

                if (p->n_got < sizeof(p->head)) {
                        step = AF_MIN(sizeof(p->head) - p->n_got, (size_t)(got - at));
                        memcpy(p->head + p->n_got, bytes + at, step);
                } else {
                        memcpy(&body, p->head + 16, 4);
                        step = AF_MIN(sizeof(p->head) + body - p->n_got, (size_t)(got - at));
                }
                p->n_got += step;
                at += (ssize_t)step;
                memcpy(&body, p->head + 16, 4);
                if (p->n_got < sizeof(p->head) || p->n_got < sizeof(p->head) + body)
                        continue;
                p->n_got = 0;
                n += p->head[5] == AF_FRAME_RESULT;
                if (p->head[5] == AF_FRAME_ERROR)
                        die("an error instead of an answer");
                if (p->head[5] != AF_FRAME_DRAIN && send(p->fd, submit.data, submit.size, MSG_NOSIGNAL) != (ssize_t)submit.size)
                        die("send");
        }
        return n;
}

static void wait_for_go(void) {
        char line[16];

        puts("ready");
        fflush(stdout);
        if (!fgets(line, sizeof(line), stdin))
                exit(1);
}

static int run_good(unsigned n, double seconds) {
        struct epoll_event events[256];
        uint64_t count = 0, begin, end;

        for (unsigned i = 0; i < n; i++) {
                peers[i].fd = connect_path();
                if (peers[i].fd < 0)
                        die("connect");
                watch(&peers[i]);
        }
        wait_for_go();
        begin = af_clock_now_ns();
        end = begin + (uint64_t)(seconds * 1e9);
        for (unsigned i = 0; i < n; i++) /* its answer has the first request sent */
                if (send(peers[i].fd, hello.data, hello.size, MSG_NOSIGNAL) < 0)
                        die("send");
        while (af_clock_now_ns() < end) {
                int k = epoll_wait(epoll_fd, events, 256, 100);

                for (int i = 0; i < k; i++)
                        count += answers(events[i].data.ptr);
        }
        printf("%.1f\n", (double)count * 1e9 / (double)(af_clock_now_ns() - begin));
        return 0;
}

/* ---- hostile ---- */

static void begin_peer(struct peer *p) {
        p->fd = connect_path();
        p->ticks = 0;
        if (p->fd >= 0 && p->kind >= 2)
                (void)!send(p->fd, hello.data, hello.size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void end_peer(struct peer *p) {
        if (p->fd >= 0)
                close(p->fd);
        p->fd = -1;
}

static void act(struct peer *p) {
        uint8_t bytes[65536];

        if (p->fd < 0) {
                begin_peer(p);
                return;
        }
        p->ticks++;
        switch (p->kind) {
        case 0: /* half a frame, byte by byte; then another connection */
                if (p->ticks < 20)
                        (void)!send(p->fd, hello.data + p->ticks, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
                else if (p->ticks > 40)
                        end_peer(p);
                break;
        case 1: /* noise */
                for (unsigned i = 0; i < 400; i++)
                        bytes[i] = (uint8_t)rand_r(&seed);
                (void)!send(p->fd, bytes, 400, MSG_NOSIGNAL | MSG_DONTWAIT);
                if (p->ticks > 10)
                        end_peer(p);
                break;
        case 2: /* a flood; what is answered is read */
                for (unsigned i = 0; i < FLOOD_FRAMES; i++)
                        (void)!send(p->fd, submit.data, submit.size, MSG_NOSIGNAL | MSG_DONTWAIT);
                for (unsigned i = 0; i < 2 * FLOOD_FRAMES; i++)
                        if (take(p->fd, bytes, sizeof(bytes)) < 0)
                                break;
                break;
        default: /* descriptors are never read */
                (void)!send(p->fd, submit.data, submit.size, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
}

static int run_hostile(unsigned n, double seconds) {
        struct itimerspec every = {.it_interval.tv_nsec = TICK_NS, .it_value.tv_nsec = TICK_NS};
        int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        uint64_t end, ticks;

        for (unsigned i = 0; i < n; i++) {
                peers[i].kind = (int)(i % 4);
                begin_peer(&peers[i]);
        }
        wait_for_go();
        timerfd_settime(timer, 0, &every, NULL);
        end = af_clock_now_ns() + (uint64_t)(seconds * 1e9);
        while (af_clock_now_ns() < end) {
                if (read(timer, &ticks, sizeof(ticks)) < 0)
                        die("timer");
                for (unsigned i = 0; i < n; i++)
                        act(&peers[i]);
        }
        return 0;
}

static _Noreturn void run_sink(void) {
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct epoll_event events[256], e = {.events = EPOLLIN, .data.fd = listener};
        char drop[65536];

        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
        if (bind(listener, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(listener, 4096) < 0)
                die("sink");
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &e);
        puts("ready");
        fflush(stdout);
        for (;;) {
                int k = epoll_wait(epoll_fd, events, 256, -1);

                for (int i = 0; i < k; i++) {
                        int fd = events[i].data.fd;

                        if (fd == listener) {
                                e.data.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                                if (e.data.fd >= 0)
                                        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, e.data.fd, &e);
                        } else if (recv(fd, drop, sizeof(drop), MSG_DONTWAIT) == 0) {
                                close(fd);
                        }
                }
        }
}

int main(int argc, char **argv) {
        struct rlimit limit;

        bool sink = argc == 3 && strcmp(argv[1], "sink") == 0, good = argc == 6 && strcmp(argv[1], "good") == 0;
        if (!sink && !good && (argc != 6 || strcmp(argv[1], "hostile") != 0)) {
                fputs("usage: load good|hostile SOCKET CONNECTIONS SECONDS TEXT | load sink SOCKET\n", stderr);
                return 2;
        }
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
                limit.rlim_cur = limit.rlim_max;
                setrlimit(RLIMIT_NOFILE, &limit);
        }
        signal(SIGPIPE, SIG_IGN);
        path = argv[2];
        epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (sink)
                run_sink();
        make_frames(argv[5]);
        unsigned n = (unsigned)AF_MIN(strtoul(argv[3], NULL, 10), (unsigned long)MAX_CONNECTIONS);
        return good ? run_good(n, atof(argv[4])) : run_hostile(n, atof(argv[4]));
}
