/* SPDX-License-Identifier: Apache-2.0 */
/* Matchers by fusion_pattern.type, and the constraints. What a rule allows is a property of the union of two groups, so each check is
 * cheap. */
#include <string.h>

#include "compiler/fusion/fuse.h"

#define BIT(cls) (1u << (cls))
/* One element of each operand, at the same place, gives one element. */
#define COMPUTES (BIT(AF_CLASS_ELEMENTWISE) | BIT(AF_CLASS_COMPARE) | BIT(AF_CLASS_SELECT) | BIT(AF_CLASS_CAST))
#define CHAINS   (COMPUTES | BIT(AF_CLASS_VIEW))
#define SPREADS  (CHAINS | BIT(AF_CLASS_BROADCAST) | BIT(AF_CLASS_IOTA))
#define REDUCES  (SPREADS | BIT(AF_CLASS_REDUCE))

/* What the union of two groups looks like. */
struct shape {
        uint32_t classes, flags, n_reduce;
        bool broadcast_back;
        bool siblings; /* nothing passes between the two */
};
struct matcher {
        const char *type;
        enum fuse_refusal (*match)(const struct matcher *m, const struct shape *s);
        uint32_t needs, holds; /* classes: one of the first at least, none but of the second */
};

static enum fuse_refusal match_classes(const struct matcher *m, const struct shape *s) {
        bool fits = (s->classes & ~m->holds) == 0 && (!m->needs || (s->classes & m->needs));
        return !fits || s->siblings ? FUSE_NO_TYPE : FUSE_MERGED;
}

/* Every node computes as many elements as it reads. */
static enum fuse_refusal match_chain(const struct matcher *m, const struct shape *s) {
        return s->flags & FUSE_BROADCAST ? FUSE_NO_TYPE : match_classes(m, s);
}

/* One reduction with what leads to it, and elementwise work on what it gives. */
static enum fuse_refusal match_reduce(const struct matcher *m, const struct shape *s) {
        enum fuse_refusal r = match_classes(m, s);
        if (r)
                return r;
        if (s->n_reduce > 1)
                return FUSE_TWO_REDUCTIONS;
        return s->broadcast_back ? FUSE_BROADCAST_BACK : FUSE_MERGED;
}

static enum fuse_refusal match_siblings(const struct matcher *m, const struct shape *s) {
        return s->siblings ? FUSE_MERGED : FUSE_NO_TYPE;
}

/* A class that moves elements, beside what any kernel can compute. */
#define MOVES(cls) BIT(cls), REDUCES | BIT(cls)

static const struct matcher matchers[] = {
        {"elementwise_chain", match_chain, 0, CHAINS},
        {"elementwise_broadcast", match_classes, 0, SPREADS},
        {"elementwise_reduce", match_reduce, BIT(AF_CLASS_REDUCE), REDUCES},
        {"reduce_elementwise", match_classes, BIT(AF_CLASS_REDUCE), REDUCES},
        {"gather", match_classes, MOVES(AF_CLASS_GATHER)},
        {"concat", match_classes, MOVES(AF_CLASS_CONCAT)},
        {"split", match_classes, MOVES(AF_CLASS_SPLIT)},
        {"slice", match_classes, MOVES(AF_CLASS_SLICE)},
        {"transpose", match_classes, MOVES(AF_CLASS_TRANSPOSE)},
        {"pad", match_classes, MOVES(AF_CLASS_PAD)},
        {"mixed", match_classes, 0, UINT32_MAX},
        {"siblings", match_siblings, 0, UINT32_MAX},
};

static const struct matcher *matcher_of(const char *type) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(matchers); i++)
                if (strcmp(matchers[i].type, type) == 0)
                        return &matchers[i];
        return NULL;
}

bool fuse_type_known(const char *type) {
        return matcher_of(type) != NULL;
}

const char *fuse_types(void) {
        return "elementwise_chain, elementwise_broadcast, elementwise_reduce, reduce_elementwise, gather, concat, split, slice, transpose, "
               "pad, mixed, siblings";
}

static enum fuse_refusal check_constraints(struct fuse *f, const struct af_rule *rule, const struct shape *s, uint32_t p, uint32_t c,
                                           const struct fuse_crossing *x, uint32_t consumer) {
        const struct fuse_group *gp = &f->groups[p], *gc = &f->groups[c];
        uint32_t dtypes = gp->dtypes | gc->dtypes;
        if (rule->shape_compatible && (fuse_node_flags(f, consumer) & FUSE_BROADCAST))
                return FUSE_SHAPE;
        if (rule->dtype_match && (dtypes & (dtypes - 1)) != 0)
                return FUSE_DTYPE;
        if (rule->single_consumer && !x->single)
                return FUSE_CONSUMERS;
        if (rule->memory_layout && (s->flags & FUSE_STRIDED))
                return FUSE_LAYOUT;
        if (rule->no_broadcast_back && s->broadcast_back)
                return FUSE_BROADCAST_BACK;
        if (rule->max_reductions && s->n_reduce > rule->max_reductions)
                return FUSE_RULE_REDUCTIONS;
        if (rule->max_nodes && gp->n_nodes + gc->n_nodes > rule->max_nodes)
                return FUSE_RULE_NODES;
        return FUSE_MERGED;
}

enum fuse_refusal fuse_match(struct fuse *f, const struct af_rule *rule, uint32_t p, uint32_t c, const struct fuse_crossing *x,
                             uint32_t consumer) {
        const struct fuse_group *gp = &f->groups[p], *gc = &f->groups[c];
        const struct matcher *m = matcher_of(rule->type);
        struct shape s = {.classes = gp->classes | gc->classes,
                          .flags = gp->flags | gc->flags,
                          .n_reduce = gp->n_reduce + gc->n_reduce,
                          .broadcast_back = x->after_reduce && (gc->flags & FUSE_BROADCAST),
                          .siblings = x->n_values == 0};
        if (!af_op_set_holds(&rule->ops, &gp->ops) || !af_op_set_holds(&rule->ops, &gc->ops))
                return FUSE_NO_OPS;
        enum fuse_refusal r = m->match(m, &s);
        return r ? r : check_constraints(f, rule, &s, p, c, x, consumer);
}

const struct af_rule *fuse_match_single(struct fuse *f, uint32_t p) {
        const struct fuse_group *group = &f->groups[p];
        struct shape s = {.classes = group->classes, .flags = group->flags, .n_reduce = group->n_reduce};
        for (uint32_t i = 0; i < f->rules->n_rules; i++) {
                const struct af_rule *rule = &f->rules->rules[i];
                const struct matcher *m = matcher_of(rule->type);
                if (af_op_set_holds(&rule->ops, &group->ops) && m->match(m, &s) == FUSE_MERGED)
                        return rule;
        }
        return NULL;
}
