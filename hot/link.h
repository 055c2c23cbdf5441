/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to an area without a word to its server: a symbolic link beside the socket, SOCKET.hot, that names the process, its descriptor
 * and the area's number. The kernel lets root and the server's own user open that descriptor, no one else; all others are given the area
 * at hello. What is opened may be anything: it is the area only if its owner is trusted, its seals hold and its number is the link's.
 */
#pragma once

#include <sys/types.h>

#include "base/macros.h"

/* Replaces the link beside socket. fd is this process's. 0 or -errno. */
int af_hot_link_make(const char *socket, int fd, uint64_t number) AF_WARN_UNUSED;
/* Removes it, if there is one. */
void af_hot_link_remove(const char *socket);
/*
 * Opens what the link names, read-only; only a regular file is opened at all. The caller closes *ret_fd and looks at owner and number. Does
 * not block. 0, -errno (-ENOENT: there is no link, or its process is gone; -EACCES: not for this user).
 */
int af_hot_link_open(const char *socket, uint64_t *ret_number, uid_t *ret_owner, off_t *ret_bytes, int *ret_fd) AF_WARN_UNUSED;
