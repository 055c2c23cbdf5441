/* SPDX-License-Identifier: Apache-2.0 */
/* Growth, eviction, walks over the store. */
#include <sys/mman.h>

#include "tests/unit/cache/store_fixture.h"

Test(store_size, the_map_grows, .init = setup, .fini = teardown) {
        struct af_store *s = open_sized(1u << 20, 64u << 20);
        static uint8_t value[300000];
        struct af_store_stats st;
        char key[32];

        for (int i = 0; i < 30; i++) {
                struct af_store_record r = big_record(i, key, value, sizeof(value));
                char *got;

                cr_assert_eq(put_wait(s, &r, 1), 0);
                got = get(s, key, NULL);
                cr_assert_not_null(got);
                free(got);
        }
        af_store_stats(s, &st);
        cr_assert_gt(st.map_bytes, 9000000u);
        cr_assert_eq(st.n_evicted, 0u);
        af_store_close(s);
}

Test(store_size, stays_below_its_limit_by_evicting_the_stale, .init = setup, .fini = teardown, .timeout = 120) {
        struct af_store *s = open_sized(1u << 20, 8u << 20);
        static uint8_t value[50000];
        struct af_store_stats st;
        char key[32];

        for (int i = 0; i < 600; i++) {
                struct af_store_record r = big_record(i, key, value, sizeof(value));
                char *got;

                cr_assert_eq(put_wait(s, &r, 1), 0, "put %d", i);
                got = get(s, key, NULL);
                cr_assert_not_null(got, "a record just put is there");
                free(got);
        }
        af_store_stats(s, &st);
        cr_assert_leq(st.map_bytes, 8u << 20);
        cr_assert_leq(st.used_bytes, (8u << 20) / 5 * 4 + 200000);
        cr_assert_gt(st.n_evicted, 300u);
        cr_assert_gt(st.n_records[AF_TABLE_KERNELS], 60u);
        cr_assert_eq(st.n_put_failed, 0u);
        af_store_close(s);
}

struct seen {
        struct af_store *store;
        uint32_t n, stop_at;
        char last[32];
};

static bool see(void *userdata, const struct af_store_record *r, uint32_t used_minute) {
        struct seen *seen = userdata;
        char key[32] = {0};

        memcpy(key, r->key, r->key_size);
        cr_assert_str_eq(r->value, key);
        cr_assert_gt(used_minute, 0u);
        cr_assert_lt(strcmp(seen->last, key), 0, "in order, each once");
        strcpy(seen->last, key);
        return ++seen->n != seen->stop_at;
}

static void put_many(struct af_store *s, int n) {
        char key[32];

        for (int i = 0; i < n; i++) {
                struct af_store_record r;

                snprintf(key, sizeof(key), "key%05d", i);
                r = kernel(key, key, strlen(key) + 1);
                cr_assert_eq(i + 1 < n ? af_store_put(s, &r, 1, NULL, NULL) : put_wait(s, &r, 1), 0);
        }
}

static void *walk_all(void *userdata) {
        struct seen *seen = userdata;
        struct af_store_walk w = {.table = AF_TABLE_KERNELS, .visit = see, .userdata = seen};

        while (af_store_walk(seen->store, &w, 7, 1u << 20) == 0)
                ;
        return NULL;
}

Test(store_size, a_walk_in_slices_sees_each_record_once, .init = setup, .fini = teardown) {
        struct af_store *s = open_store();
        struct seen seen = {.store = s}, half = {.store = s, .stop_at = 40};
        struct af_store_walk w = {.table = AF_TABLE_KERNELS, .visit = see, .userdata = &half};
        pthread_t thread;

        put_many(s, 100);
        cr_assert_eq(pthread_create(&thread, NULL, walk_all, &seen), 0);
        cr_assert(has(s, "key00042", "key00042"), "reads go on meanwhile");
        pthread_join(thread, NULL);
        cr_assert_eq(seen.n, 100u);
        cr_assert_eq(af_store_walk(s, &w, 1000, 1u << 20), 0, "the visitor had enough");
        cr_assert_eq(half.n, 40u);
        cr_assert_eq(af_store_walk(s, &w, 1000, 1u << 20), AF_STORE_E_MISS);
        cr_assert_eq(half.n, 100u);
        cr_assert_eq(w.n_records, 100u);
        af_store_close(s);
}

/* The length of a key, as LMDB's node has it in front of the key. */
static void damage_key_size(const char *key, uint8_t low, uint8_t high) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        char node[32] = {(char)strlen(key), 0};
        uint8_t *at;
        int fd;

        memcpy(node + 2, key, strlen(key));
        cr_assert_eq(af_io_read_file(data_path, 64u << 20, &buf), 0);
        at = memmem(buf.data, buf.size, node, 2 + strlen(key));
        cr_assert_not_null(at);
        fd = open(data_path, O_WRONLY);
        cr_assert_eq(pwrite(fd, (uint8_t[]){low, high}, 2, at - buf.data), 2);
        close(fd);
}

/* The last record of a slice is where the next one begins: without a key of its own it would begin at the first again. */
Test(store_size, a_walk_ends_where_a_key_lost_its_size, .init = setup, .fini = teardown) {
        static const uint8_t sizes[][2] = {{0, 0}, {8, 64}};

        for (size_t i = 0; i < AF_ARRAY_SIZE(sizes); i++) {
                struct af_store *s = open_store();
                struct af_store_walk w = {.table = AF_TABLE_KERNELS};
                struct af_store_record r = kernel("new", "new", 4);
                unsigned n = 0;

                put_many(s, 40);
                af_store_close(s);
                damage_key_size("key00019", sizes[i][0], sizes[i][1]);
                s = open_store();
                while (n < 100 && af_store_walk(s, &w, 20, 1u << 20) == 0)
                        n++;
                cr_assert_lt(n, 100u);
                cr_assert_eq(put_wait(s, &r, 1), 0, "the store goes on");
                af_store_close(s);
        }
}

Test(store_size, deleted_records_are_gone_for_good, .init = setup, .fini = teardown) {
        struct af_store *s = open_store();
        struct af_store_record rs[3] = {kernel("key00003", NULL, 0), kernel("key00009", NULL, 0), kernel("none", NULL, 0)};

        put_many(s, 20);
        cr_assert_eq(af_store_delete(s, rs, 3), 0);
        af_store_close(s);
        s = open_store();
        cr_assert_null(get(s, "key00003", NULL));
        cr_assert_null(get(s, "key00009", NULL));
        cr_assert(has(s, "key00004", "key00004"));
        af_store_close(s);
}

static void trim_all(struct af_store *s, uint64_t max_bytes) {
        int r;

        while ((r = af_store_trim(s, max_bytes)) == 0)
                ;
        cr_assert_eq(r, AF_STORE_E_MISS);
}

Test(store_size, trimming_evicts_down_to_a_size, .init = setup, .fini = teardown) {
        struct af_store *s = open_sized(8u << 20, 8u << 20);
        static uint8_t value[50000];
        struct af_store_stats st;
        char key[32];

        for (int i = 0; i < 80; i++) {
                struct af_store_record r = big_record(i, key, value, sizeof(value));

                cr_assert_eq(put_wait(s, &r, 1), 0);
        }
        af_store_stats(s, &st);
        cr_assert_gt(st.used_bytes, 3u << 20);
        cr_assert_eq(af_store_trim(s, 2u << 20), 0, "one step");
        af_store_stats(s, &st);
        cr_assert(st.used_bytes > 2u << 20 && st.n_evicted > 0 && st.n_evicted <= 32);
        trim_all(s, 2u << 20);
        af_store_stats(s, &st);
        cr_assert_leq(st.used_bytes, 2u << 20);
        cr_assert_gt(st.n_records[AF_TABLE_KERNELS], 20u);
        trim_all(s, 0);
        af_store_stats(s, &st);
        cr_assert_eq(st.n_records[AF_TABLE_KERNELS], 0u);
        af_store_close(s);
}

Test(store_size, one_too_large_costs_the_others_nothing, .init = setup, .fini = teardown) {
        struct af_store *s = open_sized(1u << 20, 2u << 20);
        uint8_t *value = calloc(1, 3u << 20);
        struct af_store_record large = kernel("large", value, 3u << 20), small = kernel("small", "v", 2);
        struct af_store_stats st;

        cr_assert_eq(put_wait(s, &large, 1), AF_STORE_E_FULL);
        cr_assert_eq(put_wait(s, &small, 1), 0);
        cr_assert(has(s, "small", "v"));
        af_store_stats(s, &st);
        cr_assert_eq(st.n_put_failed, 1u);
        free(value);
        af_store_close(s);
}

/* Bytes of the store's file that stand in this process's page tables; *ret_file: its size. */
static size_t mapped_bytes(size_t *ret_file) {
        char line[4600];
        size_t kib = 0;
        struct stat st;
        bool ours = false;
        FILE *f = fopen("/proc/self/smaps", "re");

        cr_assert(f && stat(data_path, &st) == 0);
        while (fgets(line, sizeof(line), f)) {
                if (strstr(line, data_path))
                        ours = true;
                else if (ours && sscanf(line, "Rss: %zu", &kib) == 1)
                        break;
        }
        fclose(f);
        *ret_file = (size_t)st.st_size;
        return kib << 10;
}

/* What is in memory is mapped without a read; of a store that was just written and read that is most of it. */
Test(store_size, what_is_in_memory_is_mapped_ahead, .init = setup, .fini = teardown, .timeout = 120) {
        static uint8_t value[300000];
        struct af_store *s = open_sized(64u << 20, 64u << 20);
        AF_CLEANUP(af_buf_deinit) struct af_buf whole = AF_BUF_INIT;
        size_t n = 0, n_file = 2;
        char key[32];

        if (madvise(value + 4096 - (uintptr_t)value % 4096, 4096, 22) < 0) {
                af_store_close(s);
                cr_skip("this kernel does not know MADV_POPULATE_READ");
        }
        for (int i = 0; i < 60; i++) {
                struct af_store_record r = big_record(i, key, value, sizeof(value));

                cr_assert_eq(put_wait(s, &r, 1), 0);
        }
        af_store_close(s);
        cr_assert_eq(af_io_read_file(data_path, 1u << 30, &whole), 0);
        s = open_sized(64u << 20, 64u << 20);
        for (int i = 0; i < 60000 && n < n_file / 2; i++) {
                n = mapped_bytes(&n_file);
                usleep(1000);
        }
        cr_assert_geq(n, n_file / 2, "%zu of %zu bytes", n, n_file);
        cr_assert_gt(n_file, 10u << 20);
        af_store_close(s);
}

/* Keys are digests: spread evenly, as eviction expects them. */
static struct af_store_record spread_record(uint32_t i, struct af_check *key, uint8_t *value, size_t n) {
        af_check_bytes(&i, sizeof(i), key);
        memset(value, (int)i, n);
        return (struct af_store_record){AF_TABLE_KERNELS, key->bytes, sizeof(key->bytes), value, n};
}

static void touch_first(struct af_store *s, uint32_t n) {
        for (uint32_t i = 0; i < n; i++) {
                struct af_check key;

                af_check_bytes(&i, sizeof(i), &key);
                af_store_touch(s, AF_TABLE_KERNELS, key.bytes, sizeof(key.bytes));
        }
}

/* Everything else in the store is replaced meanwhile; each round begins in another second than the one before. */
Test(store_size, what_is_used_every_second_stays, .init = setup, .fini = teardown, .timeout = 300) {
        struct af_store *s = open_sized(8u << 20, 8u << 20);
        static uint8_t value[50000];
        struct af_store_value got;
        struct af_store_stats st;
        struct af_check key;

        for (uint32_t i = 0; i < 250; i++) {
                struct af_store_record r = spread_record(i, &key, value, sizeof(value));

                for (time_t second = time(NULL); i >= 110 && i % 20 == 10 && time(NULL) == second;)
                        usleep(1000);
                if (i >= 10)
                        touch_first(s, 10);
                cr_assert_eq(put_wait(s, &r, 1), 0);
        }
        af_store_stats(s, &st);
        cr_assert_gt(st.n_evicted, 100u);
        for (uint32_t i = 0; i < 10; i++) {
                struct af_store_record r = spread_record(i, &key, value, 0);

                cr_assert_eq(af_store_get(s, &r, 1, &got), 0);
                cr_assert_not_null(got.data, "record %u", i);
                free(got.data);
        }
        af_store_close(s);
}
