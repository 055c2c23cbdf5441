/* SPDX-License-Identifier: Apache-2.0 */
/* The builder's handle. */
#pragma once

#include "client/error.h"
#include "client/prepared.h"

/* Fixes the fragment and gives a new reference to what it was prepared to; works once, later calls take what is there. Any thread. */
enum autofuse_status af_fragment_prepare(struct autofuse_fragment *fragment, struct af_prepared **ret_prepared,
                                         struct autofuse_error **ret_error) AF_WARN_UNUSED;
/* Prints the fragment as JSON, for tools and tests. Not while it is being built. */
void af_fragment_handle_print(const struct autofuse_fragment *fragment, struct af_buf *buf);
