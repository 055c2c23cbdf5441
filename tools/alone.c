/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/alone.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/store.h"
#include "daemon/maintain.h"

struct told {
        const struct af_alone *what;
        struct af_maintain_progress progress;
};

static void tell(void *userdata) {
        struct told *t = userdata;

        if (t->what->tell)
                t->what->tell(t->what->userdata, atomic_load(&t->progress.n_done), atomic_load(&t->progress.n_total));
}

static int run(struct af_store *store, const struct af_alone *what, struct af_buf *text) {
        struct af_maintain_opts opts = {.kind = what->gc ? AF_MAINTAIN_GC : AF_MAINTAIN_VERIFY,
                                        .max_bytes = what->max_bytes,
                                        .max_age_days = what->max_age_days,
                                        .fd = -1};
        struct told told = {.what = what};
        struct af_maintain_result result;
        int r;

        told.progress.tell = tell;
        told.progress.userdata = &told;
        r = af_maintain_run(store, &opts, &told.progress, &result);
        if (r == 0) {
                af_maintain_result_json(opts.kind, &result, text);
                af_buf_put_u8(text, 0);
                r = af_buf_error(text);
        }
        return r;
}

int af_alone_run(const struct af_alone *what, char **ret_json) {
        struct af_store_config config = {.dir = what->dir};
        struct af_buf text = AF_BUF_INIT;
        struct af_store *store = NULL;
        char *why = NULL;
        int r = af_store_open(&config, &store, &why);

        if (r) {
                fprintf(stderr, "error: %s\n", why ? why : strerror(r < 0 ? -r : EIO));
                free(why);
                return 1;
        }
        r = run(store, what, &text);
        af_store_close(store);
        if (r)
                fprintf(stderr, "error: %s: %s\n", what->dir, r < 0 ? strerror(-r) : "the disk is full");
        else
                *ret_json = (char *)af_buf_take(&text, NULL);
        af_buf_deinit(&text);
        return r || !*ret_json;
}
