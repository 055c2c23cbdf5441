/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time and traffic of tiled phases. A core runs its tiles in turn; a turn starts on each pipe when the pipe is free and what it waits for
 * is over: the buffer that it fills, the buffer that it reads. Exact: every core, every tile. Quick, for the search: the core with most
 * tiles, equal turns costed once, and once the pipes are in step the rest of a run of equal turns at a stroke.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "compiler/schedule/lower.h"
#include "compiler/schedule/timeline.h"

#define CACHED    4         /* turns of a stage that are remembered */
#define MAX_TILES 2048      /* quick: tiles of a core that are walked; the rest is like them */
#define MAX_TURNS (1 << 17) /* exact: of all cores; beyond, the quick figures stand */
#define SETTLED   1e-6      /* cycles */
#define N_CLOCKS  (4 + 4 * N_STAGES)

enum { MTE2, V, MTE3, S, FREE };

struct core {
        double clock[N_CLOCKS]; /* pipes; buffers that are free from then on */
        double busy[3], heads[3];
        uint32_t turns[N_STAGES];        /* of each stage: its queues' buffers take turns */
        uint64_t loaded, stored, scalar; /* bytes */
};
struct key {
        int64_t rows, cols, steps, first;
        uint64_t residues; /* of the transfers' addresses, and which stores happen */
};
struct memory {
        struct key keys[CACHED];
        struct sched_turn turns[CACHED];
        uint32_t n;
};
struct walk {
        const struct af_soc *soc;
        const struct af_phase *p;
        uint32_t blocks;
        bool exact;
        bool levels; /* combines rows: what that costs hangs on how many came before */
        struct sched_tile_at at;
        struct core *core;
        struct memory memory[N_STAGES];
};

static int64_t tiles_of(const struct af_axis *x) {
        int64_t n = x->ragged_tail ? x->extent - 1 : x->extent;
        return x->role == AF_AXIS_WHOLE ? 1 : (n + x->tile - 1) / x->tile + (x->ragged_tail ? 1 : 0);
}

static double head_of_loads(const struct af_soc *soc, uint64_t bytes, uint32_t blocks) {
        return (double)bytes < soc->head_mte2_small_bytes ? soc->head_mte2_small_base + soc->head_mte2_small_per_block * blocks
                                                          : soc->head_mte2_base + soc->head_mte2_per_block * blocks;
}

static void work(struct core *c, int pipe, double cycles, double head) {
        double t = cycles + head - c->heads[pipe];
        c->heads[pipe] = head;
        c->clock[pipe] = AF_MAX(c->clock[pipe], c->clock[S]); /* issued by then */
        c->clock[pipe] += t;
        c->busy[pipe] += t;
}

static void wait_for(struct core *c, int pipe, double time) {
        c->clock[pipe] = AF_MAX(c->clock[pipe], time);
}

/* As lib_fetch has it. */
static void run_fetch(const struct walk *w, const struct sched_fetch *f) {
        struct core *c = w->core;
        if (f->before > 0)
                work(c, V, f->before, w->soc->head_vector);
        wait_for(c, S, c->clock[f->queued ? MTE2 : V]);
        if (!f->n) {
                c->scalar += f->bytes;
                c->clock[S] += f->cycles;
        } else {
                double issued = c->clock[S] + SCHED_SCALAR * f->n + f->issue;
                c->clock[S] += SCHED_SCALAR;
                c->loaded += f->bytes;
                work(c, MTE2, f->cycles, head_of_loads(w->soc, c->loaded, w->blocks));
                c->clock[S] = issued;
                if (!f->queued)
                        wait_for(c, V, c->clock[MTE2]);
                return;
        }
        wait_for(c, V, c->clock[S]);
}

/* As lib_bin and lib_group have it. */
static void run_bins(const struct walk *w, int64_t tile) {
        struct core *c = w->core;
        struct sched_bins_turn t = sched_bins_cost(w->soc, w->p, tile, w->blocks);
        work(c, V, t.vector, w->soc->head_vector);
        c->loaded += t.load_bytes;
        work(c, MTE2, t.load, head_of_loads(w->soc, c->loaded, w->blocks));
        wait_for(c, S, AF_MAX(c->clock[V], c->clock[MTE2]));
        c->clock[S] += t.scalar;
        c->stored += t.store_bytes;
        work(c, MTE3, t.store, w->soc->head_mte3);
        wait_for(c, V, c->clock[MTE3]);
        wait_for(c, S, c->clock[MTE3]);
}

/* As emit_stage has it: each stage has its own queues, a prologue's buffer is filled once. */
static void run_turn(const struct walk *w, const struct sched_turn *t, uint32_t stage, bool prologue) {
        struct core *c = w->core;
        double *in_free = &c->clock[FREE + 4 * stage + c->turns[stage] % w->p->load_buffers],
               *out_free = &c->clock[FREE + 4 * stage + 2 + c->turns[stage] % w->p->store_buffers];
        c->turns[stage]++;
        if (t->loads) {
                if (!prologue)
                        wait_for(c, MTE2, *in_free);
                c->loaded += t->load_bytes;
                if (t->load_bytes)
                        work(c, MTE2, t->load, head_of_loads(w->soc, c->loaded, w->blocks));
                for (uint32_t i = 0; i < t->n_fetches && t->fetches[i].queued; i++)
                        run_fetch(w, &t->fetches[i]);
                wait_for(c, V, AF_MAX(c->clock[MTE2], c->clock[S]));
        }
        if (t->stores)
                wait_for(c, V, *out_free);
        for (uint32_t i = 0; i < t->n_fetches; i++)
                if (!t->fetches[i].queued)
                        run_fetch(w, &t->fetches[i]);
        if (t->vector > 0)
                work(c, V, t->vector, w->soc->head_vector);
        if (t->loads && !prologue)
                *in_free = AF_MAX(c->clock[V], c->clock[S] + t->placing);
        if (!t->stores)
                return;
        wait_for(c, MTE3, AF_MAX(c->clock[V], c->clock[S]));
        c->stored += t->store_bytes;
        if (t->store_bytes)
                work(c, MTE3, t->store, w->soc->head_mte3);
        c->clock[S] += t->placing;
        *out_free = AF_MAX(c->clock[MTE3], c->clock[S]);
}

static void add_fetch(struct sched_turn *t, const struct sched_fetch *x) {
        if (t->n_fetches < SCHED_FETCHES) {
                t->fetches[t->n_fetches++] = *x;
                return;
        }
        struct sched_fetch *last = &t->fetches[SCHED_FETCHES - 1];
        last->before += x->before;
        last->cycles += x->cycles;
        last->bytes += x->bytes;
        last->n += x->n;
        last->issue += x->issue;
}

static struct sched_turn cost_turn(const struct walk *w, const struct af_stage *st) {
        struct sched_turn t = {0};
        for (uint32_t i = st->first_stmt; i < st->first_stmt + st->n_stmts; i++) {
                const struct af_kstmt *s = &w->p->stmts[i];
                if (s->kind == AF_KSTMT_LOAD) {
                        struct sched_transfer x = sched_transfer_cost(w->soc, w->p, s, &w->at, w->blocks);
                        t.loads = true;
                        t.load += x.cycles;
                        t.load_bytes += x.bytes;
                } else if (s->kind == AF_KSTMT_STORE) {
                        t.stores = true;
                        if (!sched_stores(w->p, s, &w->at))
                                continue;
                        struct sched_transfer x = sched_transfer_cost(w->soc, w->p, s, &w->at, w->blocks);
                        t.store += x.cycles;
                        t.store_bytes += x.bytes;
                        t.placing += s->src[1] == AF_NONE ? 0 : SCHED_SCALAR * (double)w->at.length[st->row_axis];
                } else if (s->kind == AF_KSTMT_FETCH) {
                        struct sched_fetch x = sched_fetch_cost(w->soc, w->p, s, &w->at, w->blocks);
                        x.before = x.queued ? 0 : t.vector;
                        t.vector -= x.before;
                        t.vector += x.after;
                        add_fetch(&t, &x);
                } else {
                        t.vector += sched_compute_cycles(w->soc, w->p, s, &w->at);
                }
        }
        return t;
}

/* Where in its sector a transfer starts. */
static uint64_t residue(const struct walk *w, const struct af_kstmt *s) {
        const struct af_kvalue *v = &w->p->values[s->kind != AF_KSTMT_STORE ? s->dst : s->src[0]];
        int64_t at = s->access.offset;
        for (uint32_t a = 0; a < w->p->n_axes; a++)
                at += w->at.start[a] * s->access.strides[a];
        return (uint64_t)(at * af_dtype_size(v->dtype)) & 31;
}

/* What a turn's cost hangs on. Quick: transfers at any address count as the first one seen. */
static struct key key_of(const struct walk *w, const struct af_stage *st) {
        const struct af_kstmt *first = &w->p->stmts[st->first_stmt], *end = first + st->n_stmts;
        struct key k = {.rows = st->row_axis == AF_NONE ? 1 : w->at.length[st->row_axis],
                        .cols = st->inner_axis == AF_NONE ? 1 : w->at.length[st->inner_axis],
                        .steps = w->at.steps,
                        .first = w->levels ? w->at.first : 0};
        for (const struct af_kstmt *s = first; w->exact && s < end && (s->kind == AF_KSTMT_LOAD || s->pick.queued); s++)
                k.residues = 37 * k.residues + residue(w, s);
        for (const struct af_kstmt *s = end; s > first && s[-1].kind == AF_KSTMT_STORE; s--)
                k.residues = 37 * k.residues + (sched_stores(w->p, s - 1, &w->at) ? 1 + (w->exact ? residue(w, s - 1) : 0) : 0);
        return k;
}

static bool has_levels(const struct af_phase *p) {
        for (uint32_t i = 0; i < p->n_stmts; i++)
                if (p->stmts[i].kind == AF_KSTMT_ROW_LEVELS)
                        return true;
        return false;
}

static void run_stage(struct walk *w, uint32_t stage) {
        const struct af_stage *st = &w->p->stages[stage];
        struct memory *m = &w->memory[stage];
        struct key k = key_of(w, st);
        uint32_t i = 0;
        while (i < m->n && i < CACHED && memcmp(&m->keys[i], &k, sizeof(k)) != 0)
                i++;
        if (i == AF_MIN(m->n, CACHED)) {
                i = m->n++ % CACHED;
                m->keys[i] = k;
                m->turns[i] = cost_turn(w, st);
        }
        run_turn(w, &m->turns[i], stage, st->prologue);
}

/* Whether each clock stands still or is exactly as far from two turns ago as the others: so it goes on. */
static bool in_step(const struct core *now, const struct core *before, double *ret_shift) {
        double shift = 0;
        for (int i = 0; i < N_CLOCKS; i++) {
                double d = now->clock[i] - before->clock[i];
                if (d == 0)
                        continue;
                if (shift != 0 && fabs(d - shift) > SETTLED)
                        return false;
                shift = shift != 0 ? shift : d;
        }
        *ret_shift = shift;
        return shift > 0;
}

/* n more times what happened since `before`. */
static void go_on(struct core *now, const struct core *before, double shift, int64_t n) {
        for (int i = 0; i < N_CLOCKS; i++)
                now->clock[i] += now->clock[i] != before->clock[i] ? shift * (double)n : 0;
        for (int i = 0; i < 3; i++)
                now->busy[i] += (now->busy[i] - before->busy[i]) * (double)n;
        now->loaded += (now->loaded - before->loaded) * (uint64_t)n;
        now->stored += (now->stored - before->stored) * (uint64_t)n;
        now->scalar += (now->scalar - before->scalar) * (uint64_t)n;
}

/* Of a run of equal turns, of which n are left: how many can be taken at a stroke. history: the cores two turns and one turn ago. */
static int64_t skip(struct walk *w, struct core history[2], int64_t turn, int64_t n) {
        double shift;
        struct core *c = w->core, two_ago = history[0];
        history[0] = history[1];
        history[1] = *c;
        if (w->exact || turn < 3 || n < 2 || !in_step(c, &two_ago, &shift))
                return 0;
        if (c->loaded != two_ago.loaded && (double)c->loaded < w->soc->head_mte2_small_bytes)
                return 0; /* the head has yet to grow */
        go_on(c, &two_ago, shift, n / 2);
        return n / 2 * 2;
}

/* Length of an axis that is whole or loops: the last chunk's elements may be fewer. */
static int64_t run_of(const struct walk *w, uint32_t a) {
        const struct af_axis *x = &w->p->axes[a];
        return x->chunk_axis == AF_NONE ? x->extent : AF_MIN(x->extent, x->total - w->at.start[x->chunk_axis] * x->extent);
}

static void run_nodes(struct walk *w, uint32_t first, uint32_t n);
static void run_loop(struct walk *w, const struct af_knode *node) {
        int64_t run = run_of(w, node->axis), tile = w->p->axes[node->axis].tile, *start = &w->at.start[node->axis];
        struct core history[2];
        w->at.steps = (run + tile - 1) / tile;
        int64_t turn = 0, last = (run - 1) / tile * tile;
        bool back = w->p->axes[node->axis].back;
        for (int64_t done = 0; done < run; done += tile, turn++) {
                w->at.first = *start = back ? last - done : done;
                w->at.length[node->axis] = AF_MIN(tile, run - *start);
                run_nodes(w, node->first_child, node->n_children);
                int64_t full = (back ? *start : run - *start - tile) / tile; /* further full steps */
                if (full > 0)
                        done += tile * skip(w, history, turn, full);
        }
        *start = 0;
        w->at.first = 0;
}

static void run_nodes(struct walk *w, uint32_t first, uint32_t n) {
        for (uint32_t i = first; i < first + n; i++) {
                const struct af_knode *node = &w->p->nodes[i];
                if (node->kind == AF_KNODE_STAGE)
                        run_stage(w, node->stage);
                else
                        run_loop(w, node);
        }
}

static void set_block_axis(struct walk *w, uint32_t a, int64_t index) {
        const struct af_axis *x = &w->p->axes[a];
        int64_t full = x->ragged_tail ? x->extent - 1 : x->extent;
        w->at.start[a] = AF_MIN(index * x->tile, full);
        w->at.length[a] = w->at.start[a] < full ? AF_MIN(x->tile, full - w->at.start[a]) : 1;
}

/* Places the walk on a tile; how many tiles from it on, along the fastest axis that has several, are alike. */
static int64_t set_tile(struct walk *w, int64_t tile) {
        int64_t alike = 0;
        for (uint32_t a = w->p->n_axes; a-- > 0;) {
                const struct af_axis *x = &w->p->axes[a];
                if (x->role != AF_AXIS_BLOCK)
                        continue;
                int64_t n = tiles_of(x), index = tile % n;
                set_block_axis(w, a, index);
                tile /= n;
                if (!alike && n > 1)
                        alike = index ? AF_MAX(1, (x->extent - (x->ragged_tail ? 1 : 0)) / x->tile - index) : 1;
        }
        for (uint32_t a = 0; a < w->p->n_axes; a++)
                if (w->p->axes[a].role == AF_AXIS_WHOLE) {
                        w->at.start[a] = 0;
                        w->at.length[a] = run_of(w, a);
                }
        return AF_MAX(alike, 1);
}

static void run_prologue(struct walk *w) {
        for (uint32_t a = 0; a < w->p->n_axes; a++) {
                w->at.start[a] = 0;
                w->at.length[a] = w->p->axes[a].role == AF_AXIS_WHOLE ? w->p->axes[a].extent : w->p->axes[a].tile;
        }
        for (uint32_t i = 0; i < w->p->n_stages; i++)
                if (w->p->stages[i].prologue && w->p->stages[i].n_stmts) {
                        struct sched_turn t = cost_turn(w, &w->p->stages[i]);
                        run_turn(w, &t, i, true);
                }
}

/* All pipes of the core wait for each other: the end of a TPipe. */
static double together(struct core *c) {
        double last = AF_MAX(AF_MAX(c->clock[MTE2], c->clock[S]), AF_MAX(c->clock[V], c->clock[MTE3]));
        for (int i = 0; i < N_CLOCKS; i++)
                c->clock[i] = last;
        return last;
}

/* The tiles of one core, from a point at which its pipes are together; the phase's queues are new. */
static void run_core(struct walk *w, int64_t begin, int64_t end) {
        struct core history[2];
        memset(w->core->turns, 0, sizeof(w->core->turns));
        if (begin >= end)
                return;
        run_prologue(w);
        for (int64_t t = begin; t < end;) {
                int64_t left = AF_MIN(set_tile(w, t), end - t);
                for (int64_t turn = 0; left > 0; turn++) {
                        set_tile(w, t);
                        if (w->p->kind == AF_PHASE_TILES)
                                run_nodes(w, 0, w->p->n_roots);
                        else
                                run_bins(w, t);
                        int64_t more = skip(w, history, turn, left - 1);
                        left -= 1 + more;
                        t += 1 + more;
                }
        }
        together(w->core);
}

static int64_t begin_of(const struct walk *w, int64_t block) {
        return w->p->n_tiles * block / w->blocks;
}

bool sched_better(uint64_t cycles, uint64_t bytes, uint64_t than_cycles, uint64_t than_bytes) {
        double least = (double)AF_MAX(1, AF_MIN(bytes, than_bytes)), more = (double)bytes / least - 1.005,
               other = (double)than_bytes / least - 1.005;
        return (double)cycles * (1 + 4 * AF_MAX(more, 0)) < (double)than_cycles * (1 + 4 * AF_MAX(other, 0));
}

/* One core by itself; at most MAX_TILES of its tiles, the rest being like them. */
static void one_core(const struct sched *s, struct walk *w, int64_t block, double *ret_cycles, double *ret_bytes) {
        struct core core = {0};
        int64_t begin = begin_of(w, block), all = begin_of(w, block + 1) - begin, n = AF_MIN(all, MAX_TILES);
        if (s->started) {
                core.heads[MTE2] = head_of_loads(s->soc, UINT64_MAX, w->blocks);
                core.heads[V] = s->soc->head_vector;
                core.heads[MTE3] = s->soc->head_mte3;
                core.loaded = (uint64_t)s->soc->head_mte2_small_bytes;
        }
        uint64_t loaded = core.loaded;
        w->core = &core;
        run_core(w, begin, begin + n);
        double factor = n ? (double)all / (double)n : 0;
        *ret_cycles = core.clock[V] * factor;
        *ret_bytes = (double)(core.loaded - loaded + core.stored + core.scalar) * factor;
}

/* Elements of the first n tiles. */
static double elements_before(const struct af_phase *p, int64_t n) {
        double all = 0, inside = 1; /* of the axes further in */
        for (uint32_t a = p->n_axes; a-- > 0;) {
                const struct af_axis *x = &p->axes[a];
                if (x->role != AF_AXIS_BLOCK)
                        continue;
                int64_t tiles = tiles_of(x), i = n % tiles, full = x->ragged_tail ? x->extent - 1 : x->extent;
                double start = (double)AF_MIN(i * x->tile, full),
                       length = i * x->tile < full ? (double)AF_MIN(x->tile, full - i * x->tile) : 1;
                all = start * inside + length * all;
                inside *= (double)x->extent;
                n /= tiles;
        }
        return n > 0 ? inside : all;
}

/* The longest of three cores: one with most elements, one with most tiles, and the last, whose tiles may be short: their transfers are
 * slow. */
void sched_cost(const struct sched *s, struct af_phase *phase, uint32_t blocks) {
        struct walk w = {.soc = s->soc, .p = phase, .blocks = blocks, .levels = has_levels(phase)};
        int64_t by_elements = 0, by_tiles = 0, tiles[2] = {0};
        double elements[2] = {0}, before = 0, cycles[3] = {0}, bytes[3] = {0};
        for (int64_t block = 0; block < blocks; block++) {
                int64_t t = begin_of(&w, block + 1) - begin_of(&w, block);
                double end = elements_before(phase, begin_of(&w, block + 1)), e = end - before;
                before = end;
                if (e > elements[0] || (e == elements[0] && t > tiles[0])) {
                        by_elements = block;
                        elements[0] = e;
                        tiles[0] = t;
                }
                if (t > tiles[1] || (t == tiles[1] && e > elements[1])) {
                        by_tiles = block;
                        elements[1] = e;
                        tiles[1] = t;
                }
        }
        one_core(s, &w, by_elements, &cycles[0], &bytes[0]);
        if (by_tiles != by_elements)
                one_core(s, &w, by_tiles, &cycles[1], &bytes[1]);
        if (by_tiles + 1 != blocks && by_elements + 1 != blocks)
                one_core(s, &w, blocks - 1, &cycles[2], &bytes[2]);
        phase->cycles = (uint64_t)(AF_MAX(cycles[0], AF_MAX(cycles[1], cycles[2])) + .5);
        phase->hbm_bytes = elements[0] > 0 ? (uint64_t)(bytes[0] * before / elements[0] + .5) : 0;
}

static int64_t turns_of(const struct af_phase *p) {
        int64_t n = 2;
        for (uint32_t i = 0; i < p->n_nodes; i++)
                if (p->nodes[i].kind == AF_KNODE_LOOP)
                        n += tiles_of(&p->axes[p->nodes[i].axis]);
        return n > MAX_TURNS || p->n_tiles > MAX_TURNS ? INT64_MAX / 2 : n * p->n_tiles;
}

static void exact_phase(const struct sched *s, const struct af_kernel *k, struct af_phase *phase, struct core *cores) {
        struct walk w = {.soc = s->soc, .p = phase, .blocks = k->block_dim, .exact = true, .levels = has_levels(phase)};
        phase->hbm_bytes = 0;
        for (uint32_t i = 0; i < k->block_dim; i++) {
                w.core = &cores[i];
                uint64_t before = w.core->loaded + w.core->stored + w.core->scalar;
                run_core(&w, begin_of(&w, i), begin_of(&w, i + 1));
                phase->hbm_bytes += w.core->loaded + w.core->stored + w.core->scalar - before;
        }
}

/* All cores go on at the time of the last. */
static void meet(const struct sched *s, const struct af_kernel *k, struct core *cores) {
        double last = 0;
        for (uint32_t i = 0; i < k->block_dim; i++)
                last = AF_MAX(last, cores[i].clock[V]);
        for (uint32_t i = 0; i < k->block_dim; i++)
                for (int c = 0; c < N_CLOCKS; c++)
                        cores[i].clock[c] = last + (k->block_dim > 1 ? s->soc->sync_all_cycles : 0);
}

static void report(struct af_kernel *k, const struct core *cores) {
        double most[3] = {0}, end = 0;
        for (uint32_t i = 0; i < k->block_dim; i++) {
                for (int p = 0; p < 3; p++)
                        most[p] = AF_MAX(most[p], cores[i].busy[p]);
                end = AF_MAX(end, cores[i].clock[V]);
        }
        k->mte2_cycles = (uint64_t)(most[MTE2] + .5);
        k->v_cycles = (uint64_t)(most[V] + .5);
        k->mte3_cycles = (uint64_t)(most[MTE3] + .5);
        k->modelled_cycles = (uint64_t)(end + .5);
}

int sched_timeline(struct sched *s, struct af_kernel *k) {
        int64_t turns = 0;
        for (uint32_t i = 0; i < k->n_phases && turns <= MAX_TURNS; i++)
                turns += turns_of(&k->phases[i]);
        if (turns > MAX_TURNS)
                return 0;
        af_arena_reset(&s->scratch);
        struct core *cores = af_arena_calloc(&s->scratch, k->block_dim, sizeof(*cores));
        if (!cores)
                return -ENOMEM;
        k->hbm_bytes = 0;
        for (uint32_t i = 0; i < k->n_phases; i++) {
                if (k->phases[i].sync_before)
                        meet(s, k, cores);
                exact_phase(s, k, &k->phases[i], cores);
                k->hbm_bytes += k->phases[i].hbm_bytes;
        }
        report(k, cores);
        return 0;
}
