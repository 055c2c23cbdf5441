/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store thread, while it has nothing else to do, puts those pages of the store's file that are in memory into this process's page
 * tables. Else each read of a record that was not read before by this process begins with a page fault, which takes longer than all else
 * that a read does. Nothing is read from the disk for it.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "cache/store_internal.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#define PAGE        4096u
#define SLICE_PAGES 1024u

/* Where LMDB has mapped the file of fd. False: it is not to be found. */
static bool find(int fd, uint8_t **ret_begin, uint8_t **ret_end) {
        unsigned long begin, end, inode;
        unsigned major, minor;
        char line[4600], shared;
        bool found = false;
        struct stat st;
        FILE *f;

        f = fstat(fd, &st) < 0 ? NULL : fopen("/proc/self/maps", "re");
        while (f && !found && fgets(line, sizeof(line), f))
                found = sscanf(line, "%lx-%lx %*2c%*c%c %*x %x:%x %lu", &begin, &end, &shared, &major, &minor, &inode) == 6 &&
                        shared == 's' && inode == st.st_ino && makedev(major, minor) == st.st_dev;
        if (f)
                fclose(f);
        if (!found)
                return false;
        *ret_begin = (uint8_t *)begin;
        *ret_end = (uint8_t *)begin + AF_MIN((uint64_t)(end - begin), (uint64_t)st.st_size / PAGE * PAGE);
        return true;
}

void store_map_reset(struct af_store *s) {
        s->ahead = (struct store_ahead){0};
}

bool store_map_step(struct af_store *s) {
        struct store_ahead *a = &s->ahead;
        unsigned char in_memory[SLICE_PAGES];
        mdb_filehandle_t fd;
        size_t n, first;

        if (!a->at && !a->done)
                a->done = !s->env || mdb_env_get_fd(s->env, &fd) || !find(fd, &a->at, &a->end);
        n = a->done ? 0 : AF_MIN((size_t)(a->end - a->at) / PAGE, (size_t)SLICE_PAGES);
        if (n == 0 || mincore(a->at, n * PAGE, in_memory) < 0) {
                a->done = true;
                return false;
        }
        for (size_t i = 0; i < n; i++) {
                for (first = i; i < n && in_memory[i] & 1; i++)
                        ;
                /* An older kernel does not know it: then there will be faults. */
                if (i > first && madvise(a->at + first * PAGE, (i - first) * PAGE, MADV_POPULATE_READ) < 0)
                        a->done = true;
        }
        a->at += n * PAGE;
        return !a->done;
}
