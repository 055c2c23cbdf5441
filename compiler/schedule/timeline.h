/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checked twin's counts and timeline, worked out from the tree: what each turn of a stage costs the three pipes, and when the pipes
 * of a core are through. Equal to the twin's to the byte and the cycle (a test compares them); the emitter, rules/templates and this
 * change together.
 */
#pragma once

#include "compiler/schedule/sched.h"

/* A tile, or one step of the loop in it. */
struct sched_tile_at {
        int64_t start[AF_KERNEL_MAX_AXES], length[AF_KERNEL_MAX_AXES];
        int64_t first; /* element of the LOOP axis that this step starts with; 0 outside */
        int64_t steps; /* of the loop */
};
struct sched_transfer { /* the DMA calls of a load or store of one tile */
        uint64_t bytes;
        double cycles;
};
struct sched_bins_turn { /* a tile of a BIN or GROUP phase: a table is filled, entries come, the scalar unit goes over them, lists leave */
        double vector, load, scalar, store; /* cycles */
        uint64_t load_bytes, store_bytes;
};
struct sched_fetch { /* a FETCH: the scalar unit waits for what was computed before, reads the index and issues transfers, or moves elements
                        itself */
        double before; /* cycles of the vector calls since the last one */
        double cycles; /* of the transfers, or of the scalar accesses */
        uint64_t bytes;
        uint32_t n;          /* transfers; 0: scalar accesses */
        bool queued;         /* right behind the loads */
        double issue, after; /* cycles of scalar accesses between the transfers; of vector calls that copy rows behind them */
};
#define SCHED_SCALAR  2.0 /* cycles of a scalar access to UB */
#define SCHED_FETCHES 8   /* told apart in a turn */
struct sched_turn {       /* one turn of a stage; cycles per pipe */
        struct sched_fetch fetches[SCHED_FETCHES];
        uint32_t n_fetches;
        double load, vector, store;
        double placing; /* scalar cycles between the stores */
        uint64_t load_bytes, store_bytes;
        bool loads, stores; /* takes a buffer of the queue */
};

/* calls.c: the vector pipe's cycles for a compute statement. */
double sched_compute_cycles(const struct af_soc *soc, const struct af_phase *p, const struct af_kstmt *s, const struct sched_tile_at *at);
/* transfer.c: bytes in distinct 32-byte sectors per call and MTE2's or MTE3's cycles. */
struct sched_transfer sched_transfer_cost(const struct af_soc *soc, const struct af_phase *p, const struct af_kstmt *s,
                                          const struct sched_tile_at *at, uint32_t blocks);
/* As lib_bin and lib_group have it, for indices that are spread evenly. tile: a source, or a bin. */
struct sched_bins_turn sched_bins_cost(const struct af_soc *soc, const struct af_phase *p, int64_t tile, uint32_t blocks);
/* A FETCH, taken for one whose index is in range, and whose rows lie as badly as some do where they are not whole sectors apart. */
struct sched_fetch sched_fetch_cost(const struct af_soc *soc, const struct af_phase *p, const struct af_kstmt *s,
                                    const struct sched_tile_at *at, uint32_t blocks);
/* Of the tiles that hold the same elements of a narrow value the first alone stores them. */
bool sched_stores(const struct af_phase *p, const struct af_kstmt *s, const struct sched_tile_at *at);
