/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where each reduction of a part runs under a choice of plan: across tiles (partial results through the workspace, and nothing may look
 * back over its axes), or resident: its axis lies whole in the tile, and it is a statement among others.
 */
#include "compiler/schedule/sched.h"

static uint32_t bit(uint32_t axis) {
        return axis == AF_NONE ? 0 : 1u << axis;
}

/* Whether a tile that holds `whole` of its row and inner axis can combine these axes by itself. */
static bool fits_tile(const struct sched *s, const struct reduction *r) {
        uint32_t row = bit(s->sp.row), inner = bit(s->sp.inner);
        bool flat = s->sp.flat && r->reduced == (row | inner);
        if (!r->reduced || (r->reduced != inner && r->reduced != row && !flat))
                return false;
        if (r->plan.combine != AF_COMBINE_MUL || !sched_ordered(r))
                return true;
        /* products of chunks have no lane tree of their own */
        bool lanes = r->reduced == inner || !(r->axes & inner);
        return !flat && (!lanes || s->sp.most[r->reduced == inner ? s->sp.inner : s->sp.row] <= AF_REDUCE_CHUNK);
}

static bool reads_late(const struct sched *s, uint32_t i) {
        for (uint32_t u = s->sp.first_use[i]; u < s->sp.first_use[i + 1]; u++)
                if (s->sp.uses[u].base_kind == AF_BASE_NODE && s->late[af_members_producer(&s->m, s->sp.uses[u].base)])
                        return true;
        return false;
}

/* Marks what stands behind the reductions across tiles; nothing there may look back over their axes. */
static int mark_late(struct sched *s) {
        uint32_t over = 0;
        for (uint32_t i = 0; i < s->n_reductions; i++)
                over |= s->reductions[i].cross ? s->reductions[i].reduced : 0;
        for (uint32_t i = 0; i < s->m.n; i++) {
                s->late[i] = false;
                if (s->sp.skip[i])
                        continue;
                bool behind = reads_late(s, i), is = sched_cross(s, i) != NULL;
                if (behind && s->reduction_of[i] != AF_NONE && s->reductions[s->reduction_of[i]].real)
                        return sched_unfit(s, "a reduction of a reduction");
                s->late[i] = behind || is;
                if (behind && s->sp.node_axes[i] & over)
                        return sched_unfit(s, "a reduction read back over its axis");
        }
        return 0;
}

/* All across tiles: they run over the same axes of everything there is. */
static int all_cross(struct sched *s) {
        uint32_t all = (1u << s->sp.n_axes) - 1;
        if (s->sp.flat)
                return sched_unfit(s, "reduced axes that do not merge");
        for (uint32_t i = 0; i < s->n_reductions; i++) {
                struct reduction *r = &s->reductions[i];
                r->cross = r->real;
                s->n_cross += r->cross;
                if (!r->real)
                        continue;
                if (r->axes != all)
                        return sched_unfit(s, "a reduction over fewer axes than its kernel has");
                if (r->reduced != s->sp.reduced)
                        return sched_unfit(s, "two reductions over different axes");
        }
        return 0;
}

static int none_cross(struct sched *s) {
        for (uint32_t i = 0; i < s->n_reductions; i++) {
                s->reductions[i].cross = false;
                if (s->reductions[i].real && !fits_tile(s, &s->reductions[i]))
                        return sched_unfit(s, "a reduction that no tile holds whole");
        }
        return 0;
}

/* Over rows across tiles, over the innermost axis within them. */
static int rows_cross(struct sched *s) {
        if (s->sp.flat)
                return sched_unfit(s, "reduced axes that do not merge");
        uint32_t all = (1u << s->sp.n_axes) - 1, row = bit(s->sp.row), inner = bit(s->sp.inner), n_inner = 0;
        for (uint32_t i = 0; i < s->n_reductions; i++) {
                struct reduction *r = &s->reductions[i];
                r->cross = r->real && r->reduced == row && r->axes == all;
                s->n_cross += r->cross;
                n_inner += r->real && !r->cross;
                if (r->real && !r->cross && (r->reduced != inner || !fits_tile(s, r)))
                        return sched_unfit(s, "a reduction that no tile holds whole");
        }
        return s->n_cross && n_inner ? 0 : sched_unfit(s, "no rows and columns to sum at once");
}

int sched_sides(struct sched *s, uint32_t choice) {
        s->n_cross = 0;
        int r = choice == CHOICE_RESIDENT ? none_cross(s) : choice < CHOICE_MIXED ? all_cross(s) : rows_cross(s);
        return r ? r : mark_late(s);
}
