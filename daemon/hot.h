/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core puts into the hot area (hot/area.h), and how long clients may believe it. A target stands in the area while its environment
 * is ready and used; a timer looks at the files of all that stand there and then sets the area's beat. A bundle goes in when it is asked
 * for a second time; where that needs room that others have, when it was asked for twice of late.
 */
#pragma once

#include <uv.h>

#include "daemon/blob.h"
#include "hot/area.h"
#include "proto/frame.h"

#define AF_HOT_MAX_NAMES 8u /* of one target: each part by name or by silence */

struct af_core;
struct af_environment;
struct af_ready_bundle;

/* Of the core. */
struct af_hot {
        struct af_hot_area *area;        /* NULL: there is none */
        struct af_ready_bundle *carrier; /* its descriptor, for hello */
        uv_timer_t timer;
        char *socket; /* beside which a link to the area stands; NULL: none does */
        bool ticking;
        uint32_t n_environments; /* that stand in the area */
        uint64_t n_touches;
};
/* Of an environment. */
struct af_hot_names {
        struct af_hot_target_id ids[AF_HOT_MAX_NAMES];
        uint32_t n;       /* 0: does not stand in the area */
        uint64_t used_ns; /* when somebody last wanted it */
};

/* Makes the area where the configuration wants one; without memory for it the core goes on without. */
void af_hot_init(struct af_core *core);
/* Those who may open it find it beside the socket from now on (hot/link.h). */
void af_hot_show(struct af_core *core);
/* Readers stop to believe it. The loop has to run until the timer is closed. */
void af_hot_close(struct af_core *core);
void af_hot_deinit(struct af_core *core);
/* Somebody is about to map it: the beat is made fresh. */
void af_hot_wake(struct af_core *core);
/* The environment is wanted and ready. */
void af_hot_environment_used(struct af_environment *env);
/* It is not in force any more, or not known to be: at once. */
void af_hot_environment_gone(struct af_environment *env);
/* A bundle was sent as an answer. */
void af_hot_answered(struct af_core *core, const struct af_digest *fragment, struct af_ready_bundle *bundle, enum af_hit hit);
/* A client used this key (fragment and environment) without asking. */
void af_hot_touched(struct af_core *core, const uint8_t key[64]);
void af_hot_clear(struct af_core *core);
/* `,"hot":{…}` for the statistics. */
void af_hot_json(const struct af_core *core, struct af_buf *buf);
