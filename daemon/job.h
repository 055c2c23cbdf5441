/* SPDX-License-Identifier: Apache-2.0 */
/* Inside autofused-job: one request, its messages, the end. Blocking code; the process is the unit of failure. */
#pragma once

#include "daemon/jobwire.h"

/* Sends one message to the core; a core that is gone ends the process. */
void af_job_send(uint32_t type, const void *p, size_t n);
/* Sends an ERROR. */
void af_job_fail(enum af_error_code code, uint32_t fault, const char *text);
/* Sends an ERROR with the diagnostics, or what r means where there are none. */
void af_job_fail_diags(enum af_error_code code, const struct af_diags *diags, int r);
/* A -errno as an ERROR. */
void af_job_fail_errno(const char *what, int r);

/* Each does one kind of request and reports. Returns the exit status: 0 also after an ERROR. */
int af_job_env(struct af_arena *arena, const struct af_job_request *request);
int af_job_plan(struct af_arena *arena, const struct af_job_request *request);
int af_job_compile(struct af_arena *arena, const struct af_job_request *request);

/* af_env_load, its failure reported. 0, or 1 where it failed. */
int af_job_load_env(struct af_arena *arena, const struct af_env_config *config, const char *soc, const char *toolchain, enum af_twin twin,
                    struct af_env *ret_env) AF_WARN_UNUSED;
