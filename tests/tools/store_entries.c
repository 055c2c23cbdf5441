/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server's store holds: `store_entries STATE_DIR [--installed DIR]… [TEXT…]`, while no server has it. A line per entry: table, key,
 * bytes, check of the bytes. `found TABLE KEY: TEXT` where an entry has one of the texts in it, or digits that look like an address. An
 * environment's record names the files that it was made of: there the directories where compiler, rules and twin are installed are passed
 * over.
 */
#include <ctype.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/record.h"

#define ADDRESS_DIGITS 9 /* of hexadecimal: more than 32 bits have */

struct looked_for {
        char **texts, **installed;
        int n, n_installed;
};

/* Payload without the names of installed directories; malloc'd. */
static void *without_installed(const void *payload, size_t n, const struct looked_for *l) {
        char *copy = malloc(n + 1), *at;

        if (!copy)
                exit(1);
        memcpy(copy, payload, n);
        for (int i = 0; i < l->n_installed; i++)
                while ((at = memmem(copy, n, l->installed[i], strlen(l->installed[i]))))
                        memset(at, '~', strlen(l->installed[i]));
        return copy;
}

/* 0x and more digits than a 32-bit number has, that is not a number of 64 bits written in full. */
static bool has_address(const char *p, size_t n) {
        for (size_t i = 0; i + 2 < n; i++) {
                size_t k = i + 2;
                if (p[i] != '0' || p[i + 1] != 'x')
                        continue;
                while (k < n && isxdigit((unsigned char)p[k]))
                        k++;
                if (k - i - 2 >= ADDRESS_DIGITS && k - i - 2 < 16)
                        return true;
        }
        return false;
}

static int show_entry(const char *name, enum af_table table, const MDB_val *key, const MDB_val *value,
                      const struct looked_for *looked_for) {
        const void *payload;
        struct af_check check;
        size_t n;
        char key_hex[2 * AF_STORE_MAX_KEY + 1], check_hex[2 * sizeof(check.bytes) + 1];
        if (key->mv_size > AF_STORE_MAX_KEY ||
            !af_record_verify(table, key->mv_data, (uint32_t)key->mv_size, value->mv_data, value->mv_size, &payload, &n)) {
                printf("damaged %s\n", name);
                return 1;
        }
        af_check_bytes(payload, n, &check);
        af_hex(key->mv_data, key->mv_size, key_hex);
        af_hex(check.bytes, sizeof(check.bytes), check_hex);
        printf("%s %s %zu %s\n", name, key_hex, n, check_hex);
        void *copy = table == AF_TABLE_ENV ? without_installed(payload, n, looked_for) : NULL;
        payload = copy ? copy : payload;
        for (int i = 0; i < looked_for->n; i++)
                if (memmem(payload, n, looked_for->texts[i], strlen(looked_for->texts[i])))
                        printf("found %s %s: %s\n", name, key_hex, looked_for->texts[i]);
        if (has_address(payload, n))
                printf("found %s %s: an address\n", name, key_hex);
        free(copy);
        return 0;
}

static int show_table(MDB_txn *txn, const char *name, enum af_table table, const struct looked_for *looked_for) {
        MDB_dbi dbi;
        MDB_cursor *cursor;
        MDB_val key, value;
        int r = mdb_dbi_open(txn, name, 0, &dbi);
        if (!r)
                r = mdb_cursor_open(txn, dbi, &cursor);
        if (r)
                return r;
        while (!r && mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
                r = show_entry(name, table, &key, &value, looked_for);
        mdb_cursor_close(cursor);
        return r;
}

int main(int argc, char **argv) {
        static const char *const names[AF_N_TABLES] = {"fragments", "bundles", "sources", "kernels", "texts", "env"};
        struct looked_for looked_for = {.texts = calloc(argc + 1, sizeof(char *)), .installed = calloc(argc + 1, sizeof(char *))};
        MDB_env *env = NULL;
        MDB_txn *txn = NULL;
        char path[4096];
        if (argc < 2 || !looked_for.texts || !looked_for.installed)
                return 2;
        for (int i = 2; i < argc; i++) {
                if (strcmp(argv[i], "--installed") == 0 && i + 1 < argc)
                        looked_for.installed[looked_for.n_installed++] = argv[++i];
                else
                        looked_for.texts[looked_for.n++] = argv[i];
        }
        snprintf(path, sizeof(path), "%s/lmdb", argv[1]);
        int r = mdb_env_create(&env);
        if (!r)
                r = mdb_env_set_maxdbs(env, 16);
        if (!r)
                r = mdb_env_open(env, path, MDB_RDONLY, 0600);
        if (!r)
                r = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
        for (unsigned i = 0; !r && i < AF_N_TABLES; i++)
                r = show_table(txn, names[i], (enum af_table)i, &looked_for);
        if (r)
                fprintf(stderr, "store_entries: %s: %s\n", path, r > 1 || r < 0 ? mdb_strerror(r) : "damaged");
        if (txn)
                mdb_txn_abort(txn);
        mdb_env_close(env);
        return r != 0;
}
