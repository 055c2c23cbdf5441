/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events' way out: each as a message "NAME JSON", so that subscribing to a prefix ("job.", "request.miss") takes what one wants. A
 * subscriber that does not keep up loses messages; so does this process at the core, and says so with "lost".
 */
#include <errno.h>
#include <nanomsg/nn.h>
#include <nanomsg/pubsub.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/gate.h"

struct af_gate_events {
        int socket;
        struct af_gate_link link;
};

static void publish(struct af_gate_events *e, const char *name, size_t n_name, const void *p, size_t n) {
        char *message = nn_allocmsg(n_name + 1 + n, 0);

        if (!message)
                return;
        memcpy(message, name, n_name);
        message[n_name] = ' ';
        memcpy(message + n_name + 1, p, n);
        if (nn_send(e->socket, &message, NN_MSG, NN_DONTWAIT) < 0)
                nn_freemsg(message);
}

/* The core writes an event's name first: {"event":"NAME",… */
static void on_event(struct af_gate_events *e, const struct af_field *f) {
        static const char head[] = "{\"event\":\"";
        size_t n_head = sizeof(head) - 1, n = 0;

        if (f->n <= n_head || memcmp(f->p, head, n_head) != 0)
                return;
        while (n_head + n < f->n && f->p[n_head + n] != '"')
                n++;
        publish(e, (const char *)f->p + n_head, n, f->p, f->n);
}

static void on_frame(void *userdata, struct af_gate_frame *frame) {
        struct af_cursor c = af_cursor_make(frame->body, frame->n_body);
        struct af_field f;
        char text[96];

        if (frame->fd >= 0)
                close(frame->fd);
        if (frame->h.type == AF_FRAME_ERROR)
                af_log(AF_LOG_WARNING, "gate: the server has no events for us");
        if (frame->h.type != AF_FRAME_EVENT)
                return;
        while (af_frame_next(&c, &f))
                if (f.tag == AF_TAG_EVENT) {
                        on_event(userdata, &f);
                } else if (f.tag == AF_TAG_LOST && f.n == 8) {
                        int n = snprintf(text, sizeof(text), "{\"event\":\"lost\",\"n\":%llu}", (unsigned long long)af_field_u64(&f));

                        publish(userdata, "lost", 4, text, (size_t)n);
                }
}

static void on_up(void *userdata) {
        struct af_gate_events *e = userdata;
        struct af_buf frame = AF_BUF_INIT;

        af_frame_end(&frame, af_frame_begin(&frame, &(struct af_frame_header){.type = AF_FRAME_WATCH, .request_id = 1}));
        (void)!af_gate_link_send(&e->link, &frame);
}

static void on_down(void *userdata, const char *why) {}

int af_gate_events_open(uv_loop_t *loop, const struct af_gate_config *config, struct af_gate_events **ret_events) {
        struct af_gate_events *e = calloc(1, sizeof(*e));
        int r;

        if (!e)
                return -ENOMEM;
        e->socket = nn_socket(AF_SP, NN_PUB);
        if (e->socket < 0)
                return -nn_errno();
        r = af_gate_bind(e->socket, config->events, config);
        if (r < 0)
                return r;
        e->link.userdata = e;
        e->link.on_up = on_up;
        e->link.on_down = on_down;
        e->link.on_frame = on_frame;
        af_gate_link_start(&e->link, loop, config->core);
        *ret_events = e;
        return 0;
}
