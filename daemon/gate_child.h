/* SPDX-License-Identifier: Apache-2.0 */
/* The core's side of the gate: starts autofused-gate, and starts it again when a peer has ended it. */
#pragma once

#include <stdbool.h>
#include <uv.h>

struct af_core;

struct af_gate_child {
        uv_process_t process;
        uv_timer_t timer;
        bool on, running, stopping;
        int lifeline; /* our end of the pipe that it lives by; -1: none */
        char *program, *core, *door, *events;
        char *settings; /* arguments that follow from the configuration */
        uint64_t started_ns;
        unsigned n_quick; /* ends in a row soon after the start */
        uint64_t n_starts;
};

void af_gate_child_init(struct af_core *core);
/*
 * Starts it where the configuration wants one; called again after a change, ends or restarts it where that concerns it. What speaks against
 * it is logged.
 */
void af_gate_child_start(struct af_core *core);
/* Ends it, and removes its sockets once it is gone. */
void af_gate_child_close(struct af_core *core);
void af_gate_child_deinit(struct af_core *core);
