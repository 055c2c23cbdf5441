/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs that a process has at hand (hot/pack.h): what a server would give is in a file, so that an image needs no server. A pack says which
 * environment each target's bundles belong to; where a server tells another one, the pack has nothing for that target.
 */
#pragma once

#include "client/content.h"
#include "client/prepared.h"
#include "hot/pack.h"

struct af_packs {
        struct af_pack **items;
        uint32_t n;
};
/*
 * Opens each path of a colon-separated list. key_path: file with the public key that must have signed them; NULL or "": any. What cannot be
 * opened is left out, and tell (may be NULL) gets a line about it. 0 or -ENOMEM.
 */
int af_packs_open(const char *paths, const char *key_path, void (*tell)(void *userdata, const char *line), void *userdata,
                  struct af_packs *ret_packs) AF_WARN_UNUSED;
void af_packs_close(struct af_packs *packs);
/*
 * The fragment's bundle from the first pack that has it; environment: only of this one, or NULL: the pack's own for the fragment's target.
 * Any thread. NULL: none, or memory is short.
 */
struct af_content *af_packs_find(const struct af_packs *packs, const struct af_prepared *prepared,
                                 const struct af_digest *environment) AF_WARN_UNUSED;
