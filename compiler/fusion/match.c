/* SPDX-License-Identifier: Apache-2.0 */
/* Matchers by fusion_pattern.type, and the constraints. What a rule allows is a property of the union of two groups, so each check is
 * cheap. */
#include <string.h>

#include "compiler/fusion/fuse.h"

/* What the union of two groups looks like. */
struct shape {
        uint32_t flags, n_reduce;
        const struct fuse_crossing *x; /* NULL: a single group */
        uint32_t consumer_flags;
};

/* Every node computes as many elements as it reads. */
static enum fuse_refusal match_chain(const struct shape *s) {
        return s->n_reduce || (s->flags & FUSE_BROADCAST) ? FUSE_NO_TYPE : FUSE_MERGED;
}

/* As a chain, but smaller tensors may be spread over larger ones. */
static enum fuse_refusal match_broadcast(const struct shape *s) {
        return s->n_reduce ? FUSE_NO_TYPE : FUSE_MERGED;
}

/* Reductions with what leads to them, and elementwise work on what they give. */
static enum fuse_refusal match_reduce(const struct shape *s) {
        if (!s->n_reduce)
                return FUSE_NO_TYPE;
        return FUSE_MERGED; /* whether they share a kernel is for the schedule to say */
}

static const struct matcher {
        const char *type;
        enum fuse_refusal (*match)(const struct shape *s);
} matchers[] = {
        {"elementwise_chain", match_chain},
        {"elementwise_broadcast", match_broadcast},
        {"elementwise_reduce", match_reduce},
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
        return "elementwise_chain, elementwise_broadcast, elementwise_reduce";
}

static bool holds_ops(const struct af_rule *rule, const uint64_t ops[3]) {
        return ((ops[0] & ~rule->ops[0]) | (ops[1] & ~rule->ops[1]) | (ops[2] & ~rule->ops[2])) == 0;
}

enum fuse_refusal fuse_match(struct fuse *f, const struct af_rule *rule, uint32_t p, uint32_t c, const struct fuse_crossing *x,
                             uint32_t consumer) {
        const struct fuse_group *gp = &f->groups[p], *gc = &f->groups[c];
        uint64_t ops[3] = {gp->ops[0] | gc->ops[0], gp->ops[1] | gc->ops[1], gp->ops[2] | gc->ops[2]};
        struct shape s = {.flags = gp->flags | gc->flags, .n_reduce = gp->n_reduce + gc->n_reduce, .x = x, .consumer_flags = gc->flags};
        uint32_t dtypes = gp->dtypes | gc->dtypes;
        if (!holds_ops(rule, ops))
                return FUSE_NO_OPS;
        enum fuse_refusal r = matcher_of(rule->type)->match(&s);
        if (r)
                return r;
        if (rule->shape_compatible && (fuse_node_flags(f, consumer) & FUSE_BROADCAST))
                return FUSE_SHAPE;
        if (rule->dtype_match && (dtypes & (dtypes - 1)) != 0)
                return FUSE_DTYPE;
        if (rule->single_consumer && !x->single)
                return FUSE_CONSUMERS;
        if (rule->memory_layout && (s.flags & FUSE_STRIDED))
                return FUSE_LAYOUT;
        if (rule->max_nodes && gp->n_nodes + gc->n_nodes > rule->max_nodes)
                return FUSE_RULE_NODES;
        return FUSE_MERGED;
}

const struct af_rule *fuse_match_single(struct fuse *f, uint32_t p) {
        const struct fuse_group *group = &f->groups[p];
        struct shape s = {.flags = group->flags, .n_reduce = group->n_reduce};
        for (uint32_t i = 0; i < f->rules->n_rules; i++) {
                const struct af_rule *rule = &f->rules->rules[i];
                if (holds_ops(rule, group->ops) && matcher_of(rule->type)->match(&s) == FUSE_MERGED)
                        return rule;
        }
        return NULL;
}
