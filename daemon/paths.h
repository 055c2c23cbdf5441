/* SPDX-License-Identifier: Apache-2.0 */
/* Where the server's socket, state and programs are when the configuration does not say. */
#pragma once

#include "base/macros.h"

/*
 * Socket to listen on: root: /run/autofused/core.sock; others: $XDG_RUNTIME_DIR/autofused/core.sock, or /tmp/autofused-<uid>/core.sock
 * where there is no runtime directory. malloc'd; NULL: no memory.
 */
char *af_path_socket(void) AF_WARN_UNUSED;
/*
 * State directory: $STATE_DIRECTORY (systemd's); root: /var/lib/autofused; others: $XDG_STATE_HOME/autofused or ~/.local/state/autofused,
 * where HOME is unset the user database's. malloc'd; NULL: none can be told.
 */
char *af_path_state_dir(void) AF_WARN_UNUSED;
/* The job program and the gate: beside this one, else the installed one. malloc'd. */
char *af_path_job(void) AF_WARN_UNUSED;
char *af_path_gate(void) AF_WARN_UNUSED;
