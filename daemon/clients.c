/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users and their processes. Both outlive their connections for as long as they used more than their share (scheduler.h): nobody is younger
 * for having connected anew.
 */
#include <stdlib.h>

#include "daemon/core.h"

#define GATE_USER UINT32_MAX /* no user's number: what comes through the gate has shares and quotas of its own */
#define MAX_GONE  1024u      /* users and clients without a connection that are remembered */

static struct af_user *user_get(struct af_core *core, uint32_t uid) {
        struct af_user *user;

        af_list_each (u, &core->users, struct af_user, link)
                if (u->uid == uid)
                        return u;
        user = calloc(1, sizeof(*user));
        if (!user)
                return NULL;
        user->core = core;
        user->uid = uid;
        af_list_init(&user->clients);
        af_sched_user_init(&core->workers.sched, &user->sched);
        af_list_append(&core->users, &user->link);
        return user;
}

static struct af_client *client_get(struct af_user *user, pid_t pid) {
        struct af_client *client;

        /* A process in a PID namespace that is not ours has no number here: each of its connections stands for itself. */
        af_list_each (c, &user->clients, struct af_client, link)
                if (pid && c->pid == pid) {
                        user->core->n_gone -= c->n_conns == 0;
                        return c;
                }
        client = calloc(1, sizeof(*client));
        if (!client)
                return NULL;
        client->user = user;
        client->pid = pid;
        af_sched_client_init(&client->sched, &user->sched);
        af_list_append(&user->clients, &client->link);
        return client;
}

bool af_client_enter(struct af_conn *conn) {
        struct af_user *user = user_get(conn->core, conn->kind == AF_PEER_GATE ? GATE_USER : conn->peer.uid);

        conn->client = user ? client_get(user, conn->peer.pid) : NULL;
        if (!conn->client)
                return false;
        user->n_conns++;
        conn->client->n_conns++;
        return true;
}

static void client_free(struct af_client *client) {
        client->user->core->n_gone--;
        af_list_del(&client->link);
        free(client);
}

static void user_sweep(struct af_user *user, bool all) {
        struct af_core *core = user->core;

        af_list_each (c, &user->clients, struct af_client, link)
                if (c->n_conns == 0 && (all || core->n_gone > MAX_GONE || !af_sched_client_owes(&c->sched)))
                        client_free(c);
        if (!af_list_empty(&user->clients) || user->n_flights > 0)
                return;
        if (!all && core->n_gone <= MAX_GONE && af_sched_user_owes(&core->workers.sched, &user->sched))
                return;
        af_list_del(&user->link);
        free(user);
}

void af_clients_sweep(struct af_core *core, bool all) {
        af_list_each (user, &core->users, struct af_user, link)
                user_sweep(user, all);
}

void af_client_leave(struct af_conn *conn) {
        struct af_client *client = conn->client;

        if (!client)
                return;
        conn->client = NULL;
        client->user->n_conns--;
        if (--client->n_conns > 0)
                return;
        conn->core->n_gone++;
        user_sweep(client->user, false);
}

/* ---- quotas ---- */

void af_user_hold(struct af_user *user, size_t n) {
        user->n_flights++;
        user->held_bytes += n;
}

void af_user_release(struct af_user *user, size_t n) {
        user->n_flights--;
        user->held_bytes -= n;
}

const char *af_user_refuses_connection(const struct af_user *user) {
        return user->n_conns > user->core->config->user_connections ? "too many connections of this user" : NULL;
}

const char *af_user_refuses_flight(const struct af_user *user, size_t n) {
        const struct af_core *core = user->core;
        const struct af_config *c = core->config;

        if (core->flight_table.n >= c->max_queue)
                return "too many fragments under way";
        /* Large ones leave room for small ones, which everyone else sends. */
        if (core->held_bytes > 0 && core->held_bytes + n > c->receive_mib << (n > AF_SMALL_BODY ? 20 : 21))
                return "too many large requests at once";
        if (user->held_bytes > 0 && user->held_bytes + n > c->user_held_mib << 20)
                return "too many large requests of this user at once";
        return NULL;
}
