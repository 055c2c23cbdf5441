/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libascendcl where tests ask in which order it is called and with what: every call is a line of text in $ACL_RECORD, with
 * argument blocks in hexadecimal. A call that $ACL_FAIL names fails with 107000.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct load_option {
        uint32_t type;
        union {
                uint32_t magic, reserved[4];
        } value;
};
struct load_options {
        struct load_option *options;
        size_t n;
};

static int record(const char *name, const char *text) {
        const char *path = getenv("ACL_RECORD"), *fail = getenv("ACL_FAIL");
        FILE *f = path ? fopen(path, "a") : NULL;
        if (f) {
                fprintf(f, "%s %s\n", name, text);
                fclose(f);
        }
        return fail && strcmp(fail, name) == 0 ? 107000 : 0;
}

int aclrtBinaryLoadFromData(const void *data, size_t n, const struct load_options *options, void **ret_binary) {
        static uintptr_t next = 0x1000;
        char text[200];
        snprintf(text, sizeof(text), "%zu %02x%c%c%c options %zu type %u magic %08x", n, *(const uint8_t *)data, ((const char *)data)[1],
                 ((const char *)data)[2], ((const char *)data)[3], options->n, options->options[0].type, options->options[0].value.magic);
        int r = record("aclrtBinaryLoadFromData", text);
        if (r == 0)
                *ret_binary = (void *)(next += 0x1000);
        return r;
}

int aclrtBinaryGetFunction(void *binary, const char *name, void **ret_function) {
        char text[400];
        snprintf(text, sizeof(text), "%p %s", binary, name);
        int r = record("aclrtBinaryGetFunction", text);
        if (r == 0)
                *ret_function = (char *)binary + 1;
        return r;
}

int aclrtBinaryUnLoad(void *binary) {
        char text[40];
        snprintf(text, sizeof(text), "%p", binary);
        return record("aclrtBinaryUnLoad", text);
}

const char *aclrtGetSocName(void) {
        record("aclrtGetSocName", "");
        return "Ascend910B2";
}

int aclrtGetHardwareSyncAddr(void **ret_address) {
        *ret_address = (void *)0xffb0;
        return record("aclrtGetHardwareSyncAddr", "");
}

int aclrtMemsetAsync(void *to, size_t max, int32_t value, size_t n, void *stream) {
        char text[200];
        snprintf(text, sizeof(text), "%p %zu %d %zu %p", to, max, value, n, stream);
        return record("aclrtMemsetAsync", text);
}

int aclrtLaunchKernelWithHostArgs(void *function, uint32_t blocks, void *stream, void *config, void *args, size_t n_args, void *holders,
                                  size_t n_holders) {
        char text[4096];
        size_t at = (size_t)snprintf(text, sizeof(text), "%p %u %p %p %p %zu ", function, blocks, stream, config, holders, n_holders);
        for (size_t i = 0; i < n_args && at + 3 < sizeof(text); i++)
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%02x", ((const uint8_t *)args)[i]);
        return record("aclrtLaunchKernelWithHostArgs", text);
}
