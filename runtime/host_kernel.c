/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/host_kernel.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"

struct af_host_kernel {
        void *handle;
        af_twin_launch_fn launch;
};

static int refuse(const char *text, char **ret_why) {
        if (ret_why)
                *ret_why = strdup(text ? text : "unknown error");
        return AF_HOST_KERNEL_E_LOAD;
}

/*
 * "/proc/self/fd/N" in a spelling that no other loaded object has: the loader knows objects by the text of their path and would hand
 * out the old one when a descriptor's number comes again. The bits of the memfd's inode number, unique while it is mapped, become
 * "./" or ".//".
 */
#define PATH_SIZE 256
static void unique_path(int fd, uint64_t inode, char out[PATH_SIZE]) {
        int n = snprintf(out, PATH_SIZE, "/proc/self/fd/");

        for (unsigned i = 0; i < 64; i++) {
                if (inode >> i == 0)
                        break;
                n += snprintf(out + n, PATH_SIZE - (size_t)n, "%s", inode >> i & 1 ? ".//" : "./");
        }
        snprintf(out + n, PATH_SIZE - (size_t)n, "%d", fd);
}

int af_host_kernel_load(const void *binary, size_t n, struct af_host_kernel **ret_kernel, char **ret_why) {
        if (n < sizeof(Elf64_Ehdr) || memcmp(binary, ELFMAG, SELFMAG) != 0)
                return refuse("not an ELF object", ret_why);
        AF_CLEANUP(af_closep) int fd = af_io_memfd("autofused-kernel", binary, n, true);
        if (fd < 0)
                return fd;
        struct stat st;
        if (fstat(fd, &st) < 0)
                return -errno;
        char path[PATH_SIZE];
        unique_path(fd, st.st_ino, path);
        AF_CLEANUP(af_freep) struct af_host_kernel *k = calloc(1, sizeof(*k));
        if (!k)
                return -ENOMEM;
        k->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!k->handle)
                return refuse(dlerror(), ret_why);
        void *symbol = dlsym(k->handle, AF_TWIN_LAUNCH_SYMBOL);
        if (!symbol) {
                dlclose(k->handle);
                return refuse("no symbol " AF_TWIN_LAUNCH_SYMBOL, ret_why);
        }
        memcpy(&k->launch, &symbol, sizeof(symbol));
        *ret_kernel = k;
        k = NULL;
        return 0;
}

void af_host_kernel_free(struct af_host_kernel *k) {
        if (!k)
                return;
        dlclose(k->handle);
        free(k);
}

int af_host_kernel_launch(struct af_host_kernel *k, const struct af_twin_launch *launch) {
        if (launch->error && launch->error_size)
                launch->error[0] = 0;
        return k->launch(launch) == 0 ? 0 : AF_HOST_KERNEL_E_CHECK;
}
