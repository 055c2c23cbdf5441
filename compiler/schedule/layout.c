/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and buffers of a kernel: phases in a row share them where they all have room, each as large as the phase that needs most of it. */
#include <string.h>

#include "compiler/schedule/sched.h"

static uint64_t bytes_of(const struct af_ub_queue *q, uint32_t n) {
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < n; i++)
                bytes += (uint64_t)q[i].bytes * q[i].buffers;
        return bytes;
}

uint64_t af_ub_bytes(const struct af_ub *ub) {
        return bytes_of(ub->loads, ub->n_loads) + bytes_of(ub->stores, ub->n_stores) + ub->resident_bytes + ub->calc_bytes;
}

/* A queue with that many buffers that this phase has not taken yet, or a new one; grown to hold bytes. False: no flags are left. */
static bool take(struct af_ub_queue *q, uint32_t *n, uint32_t *taken, uint32_t bytes, uint32_t buffers, uint32_t *ret) {
        uint32_t i = 0, all = 0;
        while (i < *n && (q[i].buffers != buffers || *taken >> i & 1))
                i++;
        if (i == *n) {
                for (uint32_t k = 0; k < *n; k++)
                        all += q[k].buffers;
                if (all + buffers > AF_UB_QUEUES)
                        return false;
                q[(*n)++] = (struct af_ub_queue){.buffers = buffers};
        }
        q[i].bytes = AF_MAX(q[i].bytes, bytes);
        *taken |= 1u << i;
        *ret = i;
        return true;
}

/* The phase's queues and buffers among those of ub. */
static bool add(struct af_ub *ub, struct af_phase *p) {
        uint32_t loads = 0, stores = 0;
        ub->calc_bytes = AF_MAX(ub->calc_bytes, p->calc_bytes);
        ub->resident_bytes = AF_MAX(ub->resident_bytes, p->resident_bytes);
        for (uint32_t i = 0; i < p->n_stages; i++) {
                struct af_stage *st = &p->stages[i];
                if (st->load_bytes && !st->prologue &&
                    !take(ub->loads, &ub->n_loads, &loads, st->load_bytes, p->load_buffers, &st->load_queue))
                        return false;
                if (st->store_bytes && !take(ub->stores, &ub->n_stores, &stores, st->store_bytes, p->store_buffers, &st->store_queue))
                        return false;
        }
        return true;
}

void sched_share_ub(struct af_kernel *k, const struct af_soc *soc) {
        struct af_phase *first = NULL;
        k->ub_bytes = 0;
        for (uint32_t i = 0; i < k->n_phases; i++) {
                struct af_phase *p = &k->phases[i];
                struct af_ub ub = first ? first->ub : (struct af_ub){0};
                p->joins = first && add(&ub, p) && af_ub_bytes(&ub) <= soc->ub_bytes;
                if (p->joins) {
                        first->ub = ub;
                } else {
                        first = p;
                        add(&p->ub, p); /* a phase has few queues */
                }
                k->ub_bytes = AF_MAX(k->ub_bytes, (uint32_t)af_ub_bytes(&first->ub));
        }
}
