/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of `behaviours` through a running server: each fragment goes as JSON text, its bundle runs through libautofuse, and every output is
 * compared with the reference and with the numbers by hand. One process makes several passes; per case and pass a line
 *
 *   = PASS <tab> CASE <tab> HIT <tab> check of the bundle's bytes <tab> check of all outputs' bits
 *
 * tells what came, so that passes, processes and servers can be compared. Prints `not ok CASE PASS: …` per failure.
 */
#pragma once

#include "client/autofuse.h"
#include "proto/fragment.h"

struct served {
        struct autofuse_context *context;
        const char *pass; /* "ahead": only asks, so that compiles go side by side; "memo": the memo may answer; "hot": without it the hot
                             area may; others ask the server */
        struct autofuse_request **ahead; /* of the pass "ahead", in the order of cases */
        uint32_t n_ahead, cap_ahead, next;
        const char *text; /* of the next case, where it is to go as it stands; else its fragment is printed */
        uint64_t n_runs, n_failed;
};

/* False: it said why. */
bool served_open(struct served *s, const char *socket);
void served_close(struct served *s);
void served_begin(struct served *s, const char *pass);
/* The case in this pass; in and out as of runner_add_numbers, or NULL. A form runs at several values of its symbols. */
void served_case(struct served *s, const char *what, const struct af_fragment *f, uint64_t seed, const double *const *in,
                 const double *const *out);
