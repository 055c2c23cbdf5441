/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket: from systemd, or made here. */
#pragma once

#include <stdbool.h>

#include "base/macros.h"

struct af_listener {
        int fd;
        int lock_fd;    /* a lock on PATH.lock for as long as we listen; -1: systemd's socket */
        char *path;     /* NULL: systemd's */
        bool activated; /* systemd owns the socket: it stays when we go */
};

enum { AF_LISTEN_E_REFUSED = 1 };
/*
 * Takes the one Unix stream socket of LISTEN_FDS where there is one, else listens on path: its directory is made (0755, the last component
 * only), a dead socket file is replaced, anything else in the way is refused. 0, -errno, AF_LISTEN_E_REFUSED; *ret_why (malloc'd, one line)
 * wherever not 0.
 */
int af_listener_open(struct af_listener *l, const char *path, char **ret_why) AF_WARN_UNUSED;
/* Stops listening; removes the socket file that is ours. */
/* Where it listens: malloc'd; NULL where that has no path, or no memory. */
char *af_listener_path(const struct af_listener *l) AF_WARN_UNUSED;
void af_listener_close(struct af_listener *l);
