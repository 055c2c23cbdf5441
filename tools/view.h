/* SPDX-License-Identifier: Apache-2.0 */
/* A planned graph with the sender's names, for `explain` and pictures. */
#pragma once

#include "client/prepared.h"
#include "tools/frag.h"
#include "tools/session.h"

struct af_named_view {
        struct af_arena arena;
        struct af_driver_view fused, unfused; /* nodes and values carry the sender's names; a node that the compiler added has none */
        struct af_prepared *prepared;
        uint64_t fallback_bytes; /* what the nodes that are left to the framework read and write, symbols at their hints */
        uint32_t n_fallbacks;    /* those nodes: a launch each */
};
/* Plans frag fused and unfused in this process. Mistakes go to stderr. 0 or AF_EXIT_FAILED. */
int af_named_view_make(struct af_session *s, const struct af_frag *frag, struct af_named_view *ret_view) AF_WARN_UNUSED;
void af_named_view_deinit(struct af_named_view *v);
/* The node's name, or its op where it has none; a piece of the sender's node NAME is NAME.OP. */
const char *af_view_node_name(const struct af_driver_view *v, uint32_t node);
/* Modelled bytes of all kernels. */
uint64_t af_view_kernel_bytes(const struct af_driver_view *v);
/* `NAME: N nodes → K kernels, F left to the framework` and the bytes, in arena. */
const char *af_view_headline(struct af_named_view *v, const struct af_frag *frag);
const char *af_view_bytes_line(struct af_named_view *v);
