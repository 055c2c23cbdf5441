/* SPDX-License-Identifier: Apache-2.0 */
/* Work on a state directory that no server holds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

struct af_alone {
        const char *dir;
        bool gc;                                                     /* else verify */
        uint64_t max_bytes;                                          /* gc; 0: no limit */
        uint32_t max_age_days;                                       /* gc; 0: any age */
        void (*tell)(void *userdata, uint64_t done, uint64_t total); /* now and then; may be NULL */
        void *userdata;
};
/* *ret_json (malloc'd) gets what was done. 0, or 1 where it failed, with the reason on stderr. */
int af_alone_run(const struct af_alone *what, char **ret_json) AF_WARN_UNUSED;
