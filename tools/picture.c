/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/picture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/exec.h"
#include "tools/out.h"

#define TITLE_SIZE    13.0
#define LINE_SIZE     10.5
#define LINE_HEIGHT   15.0
#define PAD_X         14.0
#define PAD_Y         9.0
#define KERNEL_PAD    16.0
#define KERNEL_HEAD   46.0
#define REASON_COLUMN 34u
#define N_COLOURS     5u

/* Layout node: a shape at the outer or inner level. */
struct unit {
        struct af_picture_shape shape;
        enum af_layout_place place;
};
struct link {
        uint32_t from, to, value;
        double from_dx, to_dx; /* negative: the middle */
};
struct level {
        struct unit *units;
        struct link *links;
        uint32_t n_units, cap_units, n_links, cap_links;
        struct af_layout layout;
};
/* A kernel's box. */
struct box {
        struct level inner;
        uint32_t *in_values, *out_values; /* values that come in and go out, in order of their ports */
        uint32_t *in_units, *out_units;
        uint32_t n_in, n_out;
};
struct maker {
        struct af_picture *p;
        const struct af_driver_view *view;
        const struct af_graph *g;
        struct level outer;
        struct box *boxes;        /* per group */
        uint32_t *unit_of_node;   /* per node: inner unit (grouped), or outer unit */
        uint32_t *outer_of_value; /* per value: outer unit that shows it, or AF_NONE */
        uint32_t *group_unit;     /* per group: outer unit */
        uint32_t *inner_of_value; /* scratch: per value, unit of the box at work */
};

/* ---- texts ---- */

double af_picture_text_width(const char *text, double size, bool bold) {
        double em = 0;
        for (const char *p = text; *p; p++) {
                unsigned char c = (unsigned char)*p;
                if ((c & 0xc0) == 0x80)
                        continue;
                if (strchr("iljI.,:;'|!", c))
                        em += 0.33;
                else if (strchr("frt()[]{}/- ", c))
                        em += 0.40;
                else if (strchr("mwMW%@", c))
                        em += 0.95;
                else
                        em += c >= 'A' && c <= 'Z' ? 0.70 : 0.62;
        }
        return em * size * (bold ? 1.08 : 1.0);
}

static const char *short_dtype(enum af_dtype d) {
        return af_dtype_name(d);
}

/* "float32 [256, 100]" */
static const char *describe_value(struct maker *m, uint32_t v) {
        AF_CLEANUP(af_buf_deinit) struct af_buf shape = AF_BUF_INIT;
        af_exec_shape(m->g, v, &shape);
        return af_arena_printf(m->p->arena, "%s %.*s", short_dtype(m->g->values[v].dtype), (int)shape.size,
                               shape.size ? (const char *)shape.data : "");
}

static bool is_scalar_constant(const struct af_graph *g, uint32_t v) {
        return g->values[v].kind == AF_VALUE_CONST && g->values[v].rank == 0;
}

static double f16(uint16_t h) {
        double m = h & 0x3ff, e = h >> 10 & 31, s = h >> 15 ? -1 : 1;
        return e == 31 ? (m > 0 ? NAN : s * INFINITY) : s * (e == 0 ? ldexp(m, -24) : ldexp(m + 1024, (int)e - 25));
}

static const char *scalar_text(struct maker *m, uint32_t v) {
        uint64_t bits = 0;
        uint32_t low;
        float f;
        double d;
        struct af_arena *a = m->p->arena;
        if (!af_value_scalar(m->g, v, &bits))
                return "constant";
        low = (uint32_t)bits;
        switch (m->g->values[v].dtype) {
        case AF_DTYPE_FLOAT32:
                memcpy(&f, &low, sizeof(f));
                return af_arena_printf(a, "%.6g", (double)f);
        case AF_DTYPE_FLOAT64:
                memcpy(&d, &bits, sizeof(d));
                return af_arena_printf(a, "%.9g", d);
        case AF_DTYPE_FLOAT16:
                return af_arena_printf(a, "%.4g", f16((uint16_t)bits));
        case AF_DTYPE_BFLOAT16:
                low <<= 16;
                memcpy(&f, &low, sizeof(f));
                return af_arena_printf(a, "%.3g", (double)f);
        case AF_DTYPE_BOOL:
                return bits ? "true" : "false";
        case AF_DTYPE_INT8:
                return af_arena_printf(a, "%d", (int8_t)bits);
        case AF_DTYPE_INT16:
                return af_arena_printf(a, "%d", (int16_t)bits);
        case AF_DTYPE_INT32:
                return af_arena_printf(a, "%d", (int32_t)bits);
        default:
                return af_arena_printf(a, "%lld", (long long)bits);
        }
}

/* "reduce_sum over 1, 2", "pow(·, 2)" */
static const char *op_title(struct maker *m, const struct af_node *n) {
        AF_CLEANUP(af_buf_deinit) struct af_buf t = AF_BUF_INIT;
        bool scalars = false;
        const struct af_attr *axes = af_node_attr(n, AF_ATTR_AXES), *axis = af_node_attr(n, AF_ATTR_AXIS);
        af_buf_put_str(&t, af_op_info(n->op)->name);
        for (uint32_t i = 0; i < n->n_in; i++)
                scalars |= is_scalar_constant(m->g, n->in[i]);
        for (uint32_t i = 0; scalars && i < n->n_in; i++)
                af_buf_printf(&t, "%s%s%s", i ? ", " : "(", is_scalar_constant(m->g, n->in[i]) ? scalar_text(m, n->in[i]) : "·",
                              i + 1 == n->n_in ? ")" : "");
        for (uint32_t i = 0; axes && i < axes->n; i++)
                af_buf_printf(&t, "%s%lld", i ? ", " : " over ", (long long)axes->ints[i]);
        if (axis)
                af_buf_printf(&t, " along %lld", (long long)axis->i);
        af_buf_put_u8(&t, 0);
        return af_buf_error(&t) ? NULL : af_arena_strdup(m->p->arena, (const char *)t.data);
}

static const char *node_tip(struct maker *m, const struct af_node *n) {
        return af_arena_printf(m->p->arena, "%s%s%s", n->name ? n->name : "", n->origin ? " · " : "", n->origin ? n->origin : "");
}

/* Breaks a text into lines of the shape. */
static void add_wrapped(struct maker *m, struct af_picture_shape *s, const char *text) {
        while (*text && s->n_lines < AF_PICTURE_MAX_LINES) {
                size_t n = strlen(text), cut = n;
                bool last = s->n_lines + 1 == AF_PICTURE_MAX_LINES;
                if (n > REASON_COLUMN) {
                        cut = REASON_COLUMN;
                        while (cut > 0 && text[cut] != ' ')
                                cut--;
                        if (cut == 0)
                                cut = strcspn(text, " ");
                }
                s->lines[s->n_lines++] = af_arena_printf(m->p->arena, "%.*s%s", (int)cut, text, last && cut < n ? " …" : "");
                text += cut;
                while (*text == ' ')
                        text++;
        }
}

/* ---- units ---- */

static void measure(struct af_picture_shape *s) {
        double w = 0;
        for (uint32_t i = 0; i < s->n_lines; i++)
                w = fmax(w, af_picture_text_width(s->lines[i] ? s->lines[i] : "", i ? LINE_SIZE : TITLE_SIZE, i == 0));
        s->w = fmax(ceil(w) + 2 * PAD_X, 56);
        s->h = s->n_lines ? 2 * PAD_Y + TITLE_SIZE + (s->n_lines - 1) * LINE_HEIGHT : 0;
}

static int add_unit(struct maker *m, struct level *l, struct af_picture_shape shape, enum af_layout_place place, uint32_t *ret_id) {
        int r = af_arena_grow(m->p->arena, &l->units, &l->cap_units, l->n_units + 1, sizeof(*l->units));
        if (r)
                return r;
        l->units[l->n_units] = (struct unit){shape, place};
        *ret_id = l->n_units++;
        return 0;
}

static int add_link(struct maker *m, struct level *l, struct link link) {
        for (uint32_t i = l->n_links > 64 ? l->n_links - 64 : 0; i < l->n_links; i++)
                if (l->links[i].from == link.from && l->links[i].to == link.to && l->links[i].value == link.value)
                        return 0; /* one value used twice by one node */
        int r = af_arena_grow(m->p->arena, &l->links, &l->cap_links, l->n_links + 1, sizeof(*l->links));
        if (r == 0)
                l->links[l->n_links++] = link;
        return r;
}

static struct af_picture_shape op_shape(struct maker *m, uint32_t node) {
        const struct af_node *n = &m->g->nodes[node];
        struct af_picture_shape s = {.kind = AF_SHAPE_KIND_OP, .tip = node_tip(m, n)};
        s.lines[s.n_lines++] = op_title(m, n);
        for (uint32_t i = 0; i < n->n_out && i < 2; i++)
                s.lines[s.n_lines++] = describe_value(m, n->out[i]);
        return s;
}

static int run_layout(struct maker *m, struct level *l, double gap_x, double gap_y) {
        struct af_arena *a = m->p->arena;
        l->layout = (struct af_layout){.arena = a, .n_nodes = l->n_units, .n_edges = l->n_links, .gap_x = gap_x, .gap_y = gap_y};
        l->layout.nodes = af_arena_calloc(a, l->n_units, sizeof(*l->layout.nodes));
        l->layout.edges = af_arena_calloc(a, l->n_links, sizeof(*l->layout.edges));
        if (!l->layout.nodes || !l->layout.edges)
                return -ENOMEM;
        for (uint32_t i = 0; i < l->n_units; i++)
                l->layout.nodes[i] =
                        (struct af_layout_node){.w = l->units[i].shape.w, .h = l->units[i].shape.h, .place = l->units[i].place};
        for (uint32_t i = 0; i < l->n_links; i++) {
                const struct link *k = &l->links[i];
                l->layout.edges[i] = (struct af_layout_edge){.from = k->from,
                                                             .to = k->to,
                                                             .from_dx = k->from_dx >= 0 ? k->from_dx : l->units[k->from].shape.w / 2,
                                                             .to_dx = k->to_dx >= 0 ? k->to_dx : l->units[k->to].shape.w / 2};
        }
        int r = af_layout_run(&l->layout);
        for (uint32_t i = 0; r == 0 && i < l->n_units; i++) {
                l->units[i].shape.x = l->layout.nodes[i].x;
                l->units[i].shape.y = l->layout.nodes[i].y;
        }
        return r;
}

/* ---- kernels ---- */

static int add_port(struct maker *m, struct box *b, uint32_t value, bool in) {
        struct af_picture_shape s = {.kind = AF_SHAPE_KIND_PORT, .w = 10};
        uint32_t unit;
        int r = add_unit(m, &b->inner, s, in ? AF_LAYOUT_TOP : AF_LAYOUT_BOTTOM, &unit);
        if (r)
                return r;
        uint32_t *n = in ? &b->n_in : &b->n_out;
        (in ? b->in_values : b->out_values)[*n] = value;
        (in ? b->in_units : b->out_units)[(*n)++] = unit;
        if (in)
                m->inner_of_value[value] = unit;
        return 0;
}

static int add_operands(struct maker *m, struct box *b, uint32_t node) {
        const struct af_node *n = &m->g->nodes[node];
        for (uint32_t i = 0; i < n->n_in; i++) {
                uint32_t v = n->in[i];
                if (is_scalar_constant(m->g, v))
                        continue;
                int r = m->inner_of_value[v] == AF_NONE ? add_port(m, b, v, true) : 0;
                if (r == 0)
                        r = add_link(m, &b->inner, (struct link){m->inner_of_value[v], m->unit_of_node[node], v, -1, -1});
                if (r)
                        return r;
        }
        return 0;
}

static int lay_out_box(struct maker *m, uint32_t group) {
        const struct af_group *g = &m->view->fusion.groups[group];
        struct box *b = &m->boxes[group];
        uint32_t n_values = g->n_outputs;
        for (uint32_t i = 0; i < g->n_nodes; i++)
                n_values += m->g->nodes[g->nodes[i]].n_in;
        b->in_values = af_arena_calloc(m->p->arena, n_values, sizeof(uint32_t));
        b->in_units = af_arena_calloc(m->p->arena, n_values, sizeof(uint32_t));
        b->out_values = af_arena_calloc(m->p->arena, n_values, sizeof(uint32_t));
        b->out_units = af_arena_calloc(m->p->arena, n_values, sizeof(uint32_t));
        if (!b->in_values || !b->in_units || !b->out_values || !b->out_units)
                return -ENOMEM;
        memset(m->inner_of_value, 0xff, m->g->n_values * sizeof(*m->inner_of_value));
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < g->n_nodes; i++) {
                struct af_picture_shape s = op_shape(m, g->nodes[i]);
                measure(&s);
                s.colour = group % N_COLOURS;
                r = add_unit(m, &b->inner, s, AF_LAYOUT_ANY, &m->unit_of_node[g->nodes[i]]);
                for (uint32_t j = 0; r == 0 && j < m->g->nodes[g->nodes[i]].n_out; j++)
                        m->inner_of_value[m->g->nodes[g->nodes[i]].out[j]] = m->unit_of_node[g->nodes[i]];
        }
        for (uint32_t i = 0; r == 0 && i < g->n_nodes; i++)
                r = add_operands(m, b, g->nodes[i]);
        for (uint32_t i = 0; r == 0 && i < g->n_outputs; i++) {
                uint32_t from = m->inner_of_value[g->outputs[i]];
                r = from == AF_NONE ? 0 : add_port(m, b, g->outputs[i], false);
                if (r == 0 && from != AF_NONE)
                        r = add_link(m, &b->inner, (struct link){from, b->out_units[b->n_out - 1], g->outputs[i], -1, -1});
        }
        return r ? r : run_layout(m, &b->inner, 22, 30);
}

/* The box around it: a heading, then the inner drawing. */
static int add_box(struct maker *m, uint32_t group) {
        const struct af_group *g = &m->view->fusion.groups[group];
        const struct af_view_kernel *k = &m->view->kernels[group];
        struct box *b = &m->boxes[group];
        char bytes[32];
        int r = lay_out_box(m, group);
        if (r)
                return r;
        struct af_picture_shape s = {.kind = AF_SHAPE_KIND_KERNEL, .colour = group % N_COLOURS, .n_lines = 2};
        s.lines[0] = af_arena_printf(m->p->arena, "%s", k->symbol);
        s.lines[1] = af_arena_printf(m->p->arena, "%u node%s%s%s · %s moved · %u block%s", g->n_nodes, g->n_nodes == 1 ? "" : "s",
                                     g->rule ? " · " : "", g->rule ? g->rule->name : "", af_out_bytes(k->kernel->hbm_bytes, bytes),
                                     k->kernel->block_dim, k->kernel->block_dim == 1 ? "" : "s");
        measure(&s);
        s.w = fmax(s.w, b->inner.layout.width + 2 * KERNEL_PAD);
        s.h = KERNEL_HEAD + b->inner.layout.height + KERNEL_PAD / 2;
        return add_unit(m, &m->outer, s, AF_LAYOUT_ANY, &m->group_unit[group]);
}

/* ---- the outer level ---- */

static int add_plain(struct maker *m, enum af_shape_kind kind, const char *title, uint32_t value, uint32_t *ret_unit) {
        struct af_picture_shape s = {.kind = kind, .n_lines = 2};
        s.lines[0] = title;
        s.lines[1] = describe_value(m, value);
        measure(&s);
        return add_unit(m, &m->outer, s, AF_LAYOUT_ANY, ret_unit);
}

static int add_single(struct maker *m, uint32_t node) {
        const struct af_node *n = &m->g->nodes[node];
        bool view = m->view->fusion.alias_view[node];
        struct af_picture_shape s = op_shape(m, node);
        s.kind = view ? AF_SHAPE_KIND_VIEW : AF_SHAPE_KIND_FRAMEWORK;
        if (!view) {
                if (n->origin)
                        s.lines[0] = n->op == AF_OP_OPAQUE ? n->origin : s.lines[0];
                add_wrapped(m, &s, m->view->fusion.fallback[node] ? m->view->fusion.fallback[node] : "left to the framework");
        }
        measure(&s);
        m->p->has_views |= view;
        m->p->has_framework |= !view;
        int r = add_unit(m, &m->outer, s, AF_LAYOUT_ANY, &m->unit_of_node[node]);
        for (uint32_t i = 0; i < n->n_out; i++)
                m->outer_of_value[n->out[i]] = m->unit_of_node[node];
        return r;
}

static int add_sources(struct maker *m) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < m->g->n_inputs; i++) {
                uint32_t v = m->g->inputs[i].value;
                const char *name = m->g->values[v].name;
                r = add_plain(m, AF_SHAPE_KIND_INPUT, name ? name : af_arena_printf(m->p->arena, "input %u", i), v, &m->outer_of_value[v]);
        }
        for (uint32_t i = 0; r == 0 && i < m->g->n_constants; i++) {
                uint32_t v = m->g->constants[i].value;
                if (!is_scalar_constant(m->g, v))
                        r = add_plain(m, AF_SHAPE_KIND_CONSTANT, "constant", v, &m->outer_of_value[v]);
        }
        return r;
}

/* Where value v leaves its box: from the left side of the box; negative: the middle of a plain unit. */
static double out_dx(const struct maker *m, uint32_t v) {
        const struct af_value *value = &m->g->values[v];
        uint32_t group = value->kind == AF_VALUE_NODE ? m->view->fusion.group_of[value->index] : AF_NONE;
        if (group == AF_NONE)
                return -1;
        const struct box *b = &m->boxes[group];
        double left = (m->outer.units[m->group_unit[group]].shape.w - b->inner.layout.width) / 2;
        for (uint32_t i = 0; i < b->n_out; i++)
                if (b->out_values[i] == v)
                        return left + b->inner.units[b->out_units[i]].shape.x + b->inner.units[b->out_units[i]].shape.w / 2;
        return -1;
}

static int link_outer(struct maker *m, uint32_t value, uint32_t to, double to_dx) {
        uint32_t from = m->outer_of_value[value];
        return from == AF_NONE || from == to ? 0 : add_link(m, &m->outer, (struct link){from, to, value, out_dx(m, value), to_dx});
}

static int link_all(struct maker *m) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < m->view->fusion.n_groups; i++) {
                const struct box *b = &m->boxes[i];
                double left = (m->outer.units[m->group_unit[i]].shape.w - b->inner.layout.width) / 2;
                for (uint32_t j = 0; r == 0 && j < b->n_in; j++) {
                        const struct af_picture_shape *port = &b->inner.units[b->in_units[j]].shape;
                        r = link_outer(m, b->in_values[j], m->group_unit[i], left + port->x + port->w / 2);
                }
        }
        for (uint32_t i = 0; r == 0 && i < m->g->n_nodes; i++)
                for (uint32_t j = 0;
                     r == 0 && m->view->fusion.group_of[i] == AF_NONE && m->unit_of_node[i] != AF_NONE && j < m->g->nodes[i].n_in; j++)
                        r = link_outer(m, m->g->nodes[i].in[j], m->unit_of_node[i], -1);
        for (uint32_t i = 0; r == 0 && i < m->g->n_outputs; i++) {
                uint32_t unit, v = m->g->outputs[i].value;
                const char *name = m->g->values[v].kind == AF_VALUE_NODE ? m->g->values[v].name : NULL;
                r = add_plain(m, AF_SHAPE_KIND_OUTPUT, name ? name : af_arena_printf(m->p->arena, "output %u", i), v, &unit);
                if (r == 0)
                        r = link_outer(m, v, unit, -1);
        }
        return r;
}

/* ---- the picture ---- */

static int emit_shape(struct maker *m, struct af_picture_shape s, double dx, double dy) {
        int r = af_arena_grow(m->p->arena, &m->p->shapes, &m->p->cap_shapes, m->p->n_shapes + 1, sizeof(s));
        s.x += dx;
        s.y += dy;
        if (r == 0 && s.kind != AF_SHAPE_KIND_PORT)
                m->p->shapes[m->p->n_shapes++] = s;
        return r;
}

static int emit_curves(struct maker *m, const struct level *l, double dx, double dy, bool outer) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < l->n_links; i++) {
                bool to_port = l->units[l->links[i].to].shape.kind == AF_SHAPE_KIND_PORT,
                     to_box = l->units[l->links[i].to].shape.kind == AF_SHAPE_KIND_KERNEL;
                r = af_arena_grow(m->p->arena, &m->p->curves, &m->p->cap_curves, m->p->n_curves + 1, sizeof(*m->p->curves));
                if (r == 0)
                        m->p->curves[m->p->n_curves++] = (struct af_picture_curve){.points = l->layout.edges[i].points,
                                                                                   .n_points = l->layout.edges[i].n_points,
                                                                                   .dx = dx,
                                                                                   .dy = dy,
                                                                                   .arrow = outer ? !to_box : !to_port};
        }
        return r;
}

/* A line through the heading, from the box's upper side to the inner drawing, and out below. */
static int emit_stub(struct maker *m, double x, double y0, double y1) {
        double *points = af_arena_calloc(m->p->arena, 4, sizeof(*points));
        int r = af_arena_grow(m->p->arena, &m->p->curves, &m->p->cap_curves, m->p->n_curves + 1, sizeof(*m->p->curves));
        if (!points || r)
                return -ENOMEM;
        memcpy(points, (double[]){x, y0, x, y1}, 4 * sizeof(*points));
        m->p->curves[m->p->n_curves++] = (struct af_picture_curve){.points = points, .n_points = 2};
        return 0;
}

static int emit_box(struct maker *m, uint32_t group) {
        const struct box *b = &m->boxes[group];
        const struct af_picture_shape *s = &m->outer.units[m->group_unit[group]].shape;
        double dx = s->x + (s->w - b->inner.layout.width) / 2, dy = s->y + KERNEL_HEAD;
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < b->inner.n_units; i++) {
                const struct af_picture_shape *u = &b->inner.units[i].shape;
                r = emit_shape(m, *u, dx, dy);
                if (r == 0 && u->kind == AF_SHAPE_KIND_PORT && b->inner.units[i].place == AF_LAYOUT_TOP)
                        r = emit_stub(m, dx + u->x + u->w / 2, s->y, dy + u->y);
                else if (r == 0 && u->kind == AF_SHAPE_KIND_PORT)
                        r = emit_stub(m, dx + u->x + u->w / 2, dy + u->y, s->y + s->h);
        }
        return r ? r : emit_curves(m, &b->inner, dx, dy, false);
}

static int emit_all(struct maker *m) {
        int r = 0;
        for (int kernels = 1; r == 0 && kernels >= 0; kernels--)
                for (uint32_t i = 0; r == 0 && i < m->outer.n_units; i++)
                        if ((m->outer.units[i].shape.kind == AF_SHAPE_KIND_KERNEL) == kernels)
                                r = emit_shape(m, m->outer.units[i].shape, 0, 0);
        for (uint32_t i = 0; r == 0 && i < m->view->fusion.n_groups; i++)
                r = emit_box(m, i);
        if (r == 0)
                r = emit_curves(m, &m->outer, 0, 0, true);
        m->p->width = m->outer.layout.width;
        m->p->height = m->outer.layout.height;
        return r;
}

static int build(struct maker *m) {
        const struct af_fusion *f = &m->view->fusion;
        int r = add_sources(m);
        for (uint32_t i = 0; r == 0 && i < f->n_groups; i++) {
                r = add_box(m, i);
                for (uint32_t j = 0; r == 0 && j < f->groups[i].n_outputs; j++)
                        m->outer_of_value[f->groups[i].outputs[j]] = m->group_unit[i];
        }
        for (uint32_t i = 0; r == 0 && i < m->g->n_nodes; i++)
                if (f->group_of[i] == AF_NONE && (f->fallback[i] || f->alias_view[i]))
                        r = add_single(m, i);
        if (r == 0)
                r = link_all(m);
        if (r == 0)
                r = run_layout(m, &m->outer, 34, 52);
        return r ? r : emit_all(m);
}

int af_picture_make(struct af_arena *arena, const struct af_driver_view *view, struct af_picture *ret_picture) {
        *ret_picture = (struct af_picture){.arena = arena};
        struct maker m = {.p = ret_picture, .view = view, .g = &view->graph};
        if (view->graph.n_nodes > AF_PICTURE_MAX_NODES)
                return -E2BIG;
        m.boxes = af_arena_calloc(arena, view->fusion.n_groups, sizeof(*m.boxes));
        m.group_unit = af_arena_calloc(arena, view->fusion.n_groups, sizeof(*m.group_unit));
        m.unit_of_node = af_arena_calloc(arena, m.g->n_nodes, sizeof(*m.unit_of_node));
        m.outer_of_value = af_arena_calloc(arena, m.g->n_values, sizeof(*m.outer_of_value));
        m.inner_of_value = af_arena_calloc(arena, m.g->n_values, sizeof(*m.inner_of_value));
        if (!m.boxes || !m.group_unit || !m.unit_of_node || !m.outer_of_value || !m.inner_of_value)
                return -ENOMEM;
        memset(m.unit_of_node, 0xff, m.g->n_nodes * sizeof(*m.unit_of_node));
        memset(m.outer_of_value, 0xff, m.g->n_values * sizeof(*m.outer_of_value));
        return build(&m);
}
