/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fragment made ready to send: its canonical bytes, its digest, and the sender's names with the way from canonical slots back to them.
 * Immutable once made; shared by fragments, requests, bundles and the memo.
 */
#pragma once

#include <stdatomic.h>

#include "base/arena.h"
#include "base/digest.h"
#include "hot/layout.h"
#include "proto/fragment.h"

struct af_prepared {
        atomic_uint refs;
        atomic_bool announced; /* fallback lines were logged */
        struct af_arena arena; /* holds the arrays and names below */
        struct af_digest digest;
        struct af_hot_target_id target; /* as the fragment names it */
        uint8_t *canon;                 /* malloc'd */
        size_t n_canon;
        const char **inputs, **outputs; /* names in the sender's order */
        const char **nodes, **origins;  /* origins[i] may be NULL */
        uint32_t n_inputs, n_outputs, n_nodes;
        uint32_t *input_slots; /* per input of the sender: canonical slot, or AF_NONE (unused) */
        uint32_t *slot_inputs; /* per canonical slot: the sender's input */
        uint32_t n_slots;
        uint32_t *canon_nodes; /* per canonical node: the sender's node */
        uint32_t n_canon_nodes;
        const char **symbols;    /* names in the sender's order */
        uint32_t *canon_symbols; /* per canonical symbol: the sender's */
        uint32_t n_symbols, n_canon_symbols;
        size_t n_bytes; /* what this takes, for the memo's bound */
};

enum { AF_PREPARED_E_INVALID = 1 /* diagnostics */ };

/* Checks and canonicalises; f may not be used by another thread meanwhile and is not kept. 0, -ENOMEM, INVALID. The caller gets the one
 * reference. */
int af_prepared_new(const struct af_fragment *f, struct af_diags *diags, struct af_prepared **ret_prepared) AF_WARN_UNUSED;
/* The same from JSON text. */
int af_prepared_new_text(const char *text, size_t n, struct af_diags *diags, struct af_prepared **ret_prepared) AF_WARN_UNUSED;
struct af_prepared *af_prepared_ref(struct af_prepared *prepared);
void af_prepared_unref(struct af_prepared *prepared);
/* Origins (or names) in canonical order as AF_TAG_ORIGINS wants them; nothing where they exceed max bytes. */
void af_prepared_origins(const struct af_prepared *prepared, size_t max, struct af_buf *buf);
