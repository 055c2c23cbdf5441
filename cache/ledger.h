/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledger: what happened (jobs, stage timings, hits, fallbacks, failures) in SQLite, WAL, written by its own thread. Losing it harms
 * nothing: a ledger that cannot be opened or written is reported once and then dropped.
 */
#pragma once

#include "base/digest.h"

struct af_ledger;
enum af_ledger_kind { AF_LEDGER_REQUEST, AF_LEDGER_PLAN, AF_LEDGER_COMPILE, AF_LEDGER_HIT, AF_LEDGER_FALLBACK, AF_LEDGER_FAILURE };
struct af_ledger_event {
        enum af_ledger_kind kind;
        struct af_digest fragment, environment, kernel; /* zero where not applicable */
        uint64_t wall_s, queued_us, run_us;
        uint32_t peer_uid, peer_pid;
        int32_t code;   /* 0 or enum af_error_code */
        char text[192]; /* cut; peer name, reason, message */
};
/* Never NULL on 0; opens in the background. */
int af_ledger_open(const char *path, struct af_ledger **ret_ledger) AF_WARN_UNUSED;
void af_ledger_close(struct af_ledger *l); /* writes what is queued, at most 2 s */
/* How many events were dropped since the start. l may be NULL. */
uint64_t af_ledger_dropped(struct af_ledger *l);
/* l may be NULL. Copies; never blocks; drops (and counts) when 64 Ki events wait. */
void af_ledger_add(struct af_ledger *l, const struct af_ledger_event *e);
