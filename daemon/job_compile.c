/* SPDX-License-Identifier: Apache-2.0 */
/* compile: one source with one toolchain snapshot, which must be the installed one before and after. */
#include "daemon/job.h"

static const char changed[] = "the toolchain changed";

/* True where the snapshot holds; reported otherwise. */
static bool unchanged(const struct af_toolchain *t) {
        int r = af_toolchain_recheck(t);

        if (r < 0)
                af_job_fail_errno("the toolchain's files", r);
        else if (r)
                af_job_fail(AF_ERROR_INTERNAL, AF_JOB_FAULT_CHANGED, changed);
        return r == 0;
}

static void report(int r, const char *text) {
        switch (r) {
        case AF_TOOLCHAIN_E_REJECTED:
        case AF_TOOLCHAIN_E_NO_OUTPUT:
                af_job_fail(AF_ERROR_COMPILE, AF_JOB_FAULT_NONE, text);
                break;
        case AF_TOOLCHAIN_E_MISSING:
        case AF_TOOLCHAIN_E_CHANGED:
                af_job_fail(AF_ERROR_INTERNAL, AF_JOB_FAULT_CHANGED, changed);
                break;
        case AF_TOOLCHAIN_E_KILLED:
                af_job_fail(AF_ERROR_JOB_DIED, AF_JOB_FAULT_KILLED, text);
                break;
        case AF_TOOLCHAIN_E_TIMEOUT:
                af_job_fail(AF_ERROR_JOB_DIED, AF_JOB_FAULT_NONE, text);
                break;
        case AF_TOOLCHAIN_E_SPACE:
                af_job_fail(AF_ERROR_STORAGE, AF_JOB_FAULT_SPACE, text);
                break;
        default:
                af_job_fail_errno("the compile", r < 0 ? r : -1);
        }
}

int af_job_compile(struct af_arena *arena, const struct af_job_request *request) {
        AF_CLEANUP(af_buf_deinit) struct af_buf binary = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf trace = AF_BUF_INIT;
        const struct af_toolchain *t = &request->compile_toolchain;
        int r;

        if (!unchanged(t))
                return 0;
        r = af_toolchain_compile(t, request->symbol, request->bytes, request->n_bytes, request->limits.timeout_ms, AF_JOB_LIFELINE_FD,
                                 &binary, &err, &trace);
        if (trace.size)
                af_job_send(AF_JOB_MSG_TRACE, trace.data, trace.size);
        /* Whatever came out, an error too, is only worth something from the toolchain that was asked for. */
        if (!unchanged(t))
                return 0;
        if (r) {
                af_buf_put_u8(&err, 0);
                report(r, af_buf_error(&err) || err.size < 2 ? "the compiler failed and said nothing" : (const char *)err.data);
        } else {
                af_job_send(AF_JOB_MSG_BINARY, binary.data, binary.size);
        }
        return 0;
}
