/* SPDX-License-Identifier: Apache-2.0 */
#include "client/packs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/bundle.h"
#include "compiler/graph/canon.h"

#define MAX_PACKS 64u

struct told {
        void (*tell)(void *userdata, const char *line);
        void *userdata;
};

static void say(const struct told *t, const char *path, const char *why) {
        char line[4300];

        if (!t->tell)
                return;
        snprintf(line, sizeof(line), "the pack %.4000s is not used: %.200s", path, why);
        t->tell(t->userdata, line);
}

static void open_one(struct af_packs *packs, const char *path, const uint8_t *key, const struct told *t) {
        const char *why = "out of memory";

        if (packs->n == MAX_PACKS)
                say(t, path, "there are too many");
        else if (af_pack_open(path, AF_CANON_VERSION, key, &packs->items[packs->n], &why) == 0)
                packs->n++;
        else
                say(t, path, why);
}

int af_packs_open(const char *paths, const char *key_path, void (*tell)(void *userdata, const char *line), void *userdata,
                  struct af_packs *ret_packs) {
        struct told t = {tell, userdata};
        bool keyed = key_path && key_path[0];
        uint8_t key[AF_PACK_PUBLIC_BYTES];
        char *list, *state = NULL;

        *ret_packs = (struct af_packs){0};
        if (!paths || !paths[0])
                return 0;
        if (keyed && af_pack_read_key(key_path, sizeof(key), key) != 0) {
                say(&t, paths, "AUTOFUSE_PACK_KEY names no file with a key of 64 hex digits");
                return 0;
        }
        list = strdup(paths);
        ret_packs->items = calloc(MAX_PACKS, sizeof(struct af_pack *));
        if (!list || !ret_packs->items) {
                free(list);
                free(ret_packs->items);
                *ret_packs = (struct af_packs){0};
                return -ENOMEM;
        }
        for (char *path = strtok_r(list, ":", &state); path; path = strtok_r(NULL, ":", &state))
                open_one(ret_packs, path, keyed ? key : NULL, &t);
        free(list);
        return 0;
}

void af_packs_close(struct af_packs *packs) {
        for (uint32_t i = 0; i < packs->n; i++)
                af_pack_close(packs->items[i]);
        free(packs->items);
        *packs = (struct af_packs){0};
}

/* NULL where the pack lacks it or its bytes do not hold. */
static struct af_content *find_in(const struct af_pack *pack, const struct af_prepared *prepared, const struct af_digest *environment) {
        struct af_bundle_key key = {.fragment = prepared->digest, .environment = *environment};
        struct af_buf bundle = AF_BUF_INIT;
        struct af_content *content = NULL;
        const char *why;
        size_t n = 0;
        void *p;

        if (af_pack_get(pack, &key.fragment, &key.environment, NULL, &bundle) != 0 || bundle.size > AF_CONTENT_MAX_BYTES) {
                af_buf_deinit(&bundle);
                return NULL;
        }
        p = af_buf_take(&bundle, &n);
        if (!p || af_content_from_verified(p, n, &key, &content, &why) != 0)
                return NULL;
        if (af_content_suits(content, prepared, &why)) {
                content->packed = true;
                return content;
        }
        af_content_unref(content);
        return NULL;
}

struct af_content *af_packs_find(const struct af_packs *packs, const struct af_prepared *prepared, const struct af_digest *environment) {
        struct af_canon_target t;

        if (packs->n == 0 || !af_canon_target_read(prepared->canon, prepared->n_canon, &t))
                return NULL;
        for (uint32_t i = 0; i < packs->n; i++) {
                struct af_digest own;
                struct af_content *content;

                if (!environment && af_pack_environment(packs->items[i], t.soc, t.toolchain, t.twin, &own) != 0)
                        continue;
                content = find_in(packs->items[i], prepared, environment ? environment : &own);
                if (content)
                        return content;
        }
        return NULL;
}
