/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive doubly linked ring; a head is a node of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct af_list {
        struct af_list *next, *prev;
};

#define af_list_entry(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))
/* item may be unlinked in the body; other items may not. */
#define af_list_each(item, head, type, member)                                                                                             \
        for (struct af_list *i_##item = (head)->next, *n_##item = i_##item->next; i_##item != (head);                                      \
             i_##item = n_##item, n_##item = i_##item->next)                                                                               \
                for (type *item = af_list_entry(i_##item, type, member); item; item = NULL)

static inline void af_list_init(struct af_list *l) {
        l->next = l->prev = l;
}
static inline bool af_list_empty(const struct af_list *l) {
        return l->next == l;
}
static inline void af_list_append(struct af_list *head, struct af_list *node) {
        node->prev = head->prev;
        node->next = head;
        head->prev->next = node;
        head->prev = node;
}
/* Leaves node linked to itself: unlinking twice is fine. */
static inline void af_list_del(struct af_list *node) {
        node->prev->next = node->next;
        node->next->prev = node->prev;
        af_list_init(node);
}
