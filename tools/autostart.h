/* SPDX-License-Identifier: Apache-2.0 */
/* Starts this user's server on demand. */
#pragma once

#include "client/context.h"

/*
 * Connects a fresh context. Where no server answers and $AUTOFUSE_AUTOSTART is not "0", starts one at the context's last path (the one that
 * was named, else this user's) and waits until it listens; its messages go to autofused.log beside the socket. Any number of processes at
 * once start one: who holds the lock on start.lock looks again before it starts. OK, or E_UNAVAILABLE with why, E_MEMORY.
 */
enum autofuse_status af_autostart(struct autofuse_context *ctx, struct autofuse_error **ret_error) AF_WARN_UNUSED;
