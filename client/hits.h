/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hits without a round trip: the memo, then the hot area (hot/view.h). An answer of the memo counts only while it is in force: the area
 * says which environment that is for the fragment's target; where no area says it, the server was asked less than a second ago, or is asked
 * again. Where no server answers, the memo's word stands: a job goes on with the kernels that it has.
 *
 * Touches: what was used here is told to the server now and then, so that it stays there as well.
 */
#pragma once

#include "client/context.h"

#define AF_CONFIRMED_NS 750000000ull   /* the server looks at most 200 ms before it answers: together less than a second */
#define AF_TOUCH_NS     60000000000ull /* between two touches of one answer */
#define AF_TOUCH_GAP_NS 1000000000ull  /* between two frames of them */

/*
 * An answer that is in force: a new reference, *ret_hit is MEMO or HOT. NULL: ask the server. Then *ret_unsure is what the memo holds and
 * nobody vouches for (a new reference), or NULL. Not under the lock.
 */
struct af_content *af_hits_find(struct autofuse_context *ctx, const struct af_prepared *prepared, enum autofuse_hit *ret_hit,
                                struct af_content **ret_unsure) AF_WARN_UNUSED;
/* The hot area alone. Under the lock, which it drops while it copies. */
struct af_content *af_hits_hot(struct autofuse_context *ctx, const struct af_prepared *prepared) AF_WARN_UNUSED;
/* Under the lock: whether the area is there and its server alive. */
bool af_hits_area_is_fresh(const struct autofuse_context *ctx, uint64_t now_ns);
/* Under the lock: a new connection; takes its area. */
void af_hits_connected(struct autofuse_context *ctx, struct af_connection *conn);
/* Under the lock: the server could not be asked whether the memo's answers are in force; they stand for a while. */
void af_hits_unconfirmed(struct autofuse_context *ctx);
/* Under the lock: sends what touches there are, now or where it is time. */
void af_hits_send_touches(struct autofuse_context *ctx, uint64_t now_ns, bool at_once);
