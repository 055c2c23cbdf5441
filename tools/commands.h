/* SPDX-License-Identifier: Apache-2.0 */
/* One per file cmd_<name>.c. */
#pragma once

#include "tools/args.h"

extern const struct af_command af_command_clear;
extern const struct af_command af_command_compile;
extern const struct af_command af_command_explain;
extern const struct af_command af_command_export;
extern const struct af_command af_command_gc;
extern const struct af_command af_command_import;
extern const struct af_command af_command_key;
extern const struct af_command af_command_keygen;
extern const struct af_command af_command_pack;
extern const struct af_command af_command_run;
extern const struct af_command af_command_stats;
extern const struct af_command af_command_verify;
extern const struct af_command af_command_verify_store;
extern const struct af_command af_command_warm;
extern const struct af_command af_command_history;
extern const struct af_command af_command_stop;
extern const struct af_command af_command_top;
extern const struct af_command af_command_watch;
extern const struct af_command af_command_why;
