/* SPDX-License-Identifier: Apache-2.0 */
/* The job's side of its lifeline. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "daemon/jobwire.h"
#include "daemon/worker.h"

static void *watch(void *unused) {
        struct pollfd p = {.fd = AF_JOB_LIFELINE_FD, .events = POLLIN};
        char byte;

        do
                while (poll(&p, 1, -1) < 0 && errno == EINTR)
                        ;
        while (read(AF_JOB_LIFELINE_FD, &byte, 1) > 0);
        af_session_kill(getsid(0), getpid());
        kill(0, SIGKILL);
        _exit(5);
}

int af_lifeline_watch(void) {
        pthread_t thread;

        return -pthread_create(&thread, NULL, watch, NULL);
}
