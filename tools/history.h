/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the server's ledger (docs/protocol.md, HISTORY). */
#pragma once

#include <cjson/cJSON.h>

#include "tools/admin.h"

/* Takes query, an object with `question`. The answer, to be deleted; NULL: the reason is on stderr. */
cJSON *af_history_ask(struct af_admin *a, cJSON *query);
/* A member of a row; "" and 0 where it is missing. Borrowed. */
const char *af_history_text(const cJSON *row, const char *name);
double af_history_number(const cJSON *row, const char *name);
/* Tables of a summary. */
void af_history_print_summary(const cJSON *summary);

/* warm --from-history: asks for the n fragments that were used most, with what the server has now. An exit code. */
int af_warm_from_history(const struct af_args *args, uint32_t n);
