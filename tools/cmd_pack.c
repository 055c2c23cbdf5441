/* SPDX-License-Identifier: Apache-2.0 */
/* Packs: pack (of fragments), export (of a server's store), import, list, keygen. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "client/bundle.h"
#include "client/prepared.h"
#include "compiler/graph/canon.h"
#include "hot/pack.h"
#include "tools/admin.h"
#include "tools/commands.h"
#include "tools/frag.h"
#include "tools/session.h"

#define OPTION_SIGN                                                                                                                        \
        { 0, "sign", AF_OPTION_TEXT, "FILE", "sign with the secret key in FILE (see keygen)" }
#define OPTION_KEY                                                                                                                         \
        { 0, "key", AF_OPTION_TEXT, "FILE", "only a pack signed by this public key" }

static const struct af_option pack_options[] = {AF_OPTIONS_COMMON, AF_OPTION_OFFLINE, OPTION_SIGN, AF_OPTIONS_SERVER, {0}};
static const struct af_option export_options[] = {AF_OPTIONS_COMMON, OPTION_SIGN, AF_OPTIONS_SERVER, {0}};
static const struct af_option import_options[] = {
        AF_OPTIONS_COMMON, OPTION_KEY, AF_OPTIONS_SERVER, {'l', "list", AF_OPTION_FLAG, NULL, "only show what is in the pack"}, {0}};
static const struct af_option keygen_options[] = {AF_OPTIONS_COMMON, {0}};

/* ---- keys: hex in a file ---- */

static int read_key(const char *path, uint8_t *key, size_t n) {
        int r = af_pack_read_key(path, n, key);

        if (r == 0)
                return AF_EXIT_OK;
        if (r < 0)
                fprintf(stderr, "error: %s: %s\n", path, strerror(-r));
        else
                fprintf(stderr, "error: %s: a key of %zu hex digits is expected\n", path, 2 * n);
        return AF_EXIT_FAILED;
}

static int write_key(const char *path, const void *key, size_t n, mode_t mode) {
        char hex[2 * AF_PACK_SECRET_BYTES + 2];
        int r;

        af_hex(key, n, hex);
        hex[2 * n] = '\n';
        r = af_io_publish_new_file(path, hex, 2 * n + 1, mode);
        if (r < 0)
                fprintf(stderr, "error: %s: %s\n", path, r == -EEXIST ? "is there already" : strerror(-r));
        return r < 0 ? AF_EXIT_FAILED : AF_EXIT_OK;
}

/* Both files or none. */
static int run_keygen(const struct af_args *args) {
        uint8_t secret[AF_PACK_SECRET_BYTES], public[AF_PACK_PUBLIC_BYTES];
        const char *path = args->operands[0];
        AF_CLEANUP(af_freep) char *public_path = NULL;
        int r;

        if (!af_out_is_file("keygen", path))
                return AF_EXIT_USAGE;
        if (asprintf(&public_path, "%s.pub", path) < 0) {
                public_path = NULL;
                return AF_EXIT_FAILED;
        }
        af_pack_make_keys(secret, public);
        r = write_key(path, secret, sizeof(secret), 0600);
        if (r == AF_EXIT_OK) {
                r = write_key(public_path, public, sizeof(public), 0644);
                if (r != AF_EXIT_OK)
                        unlink(path);
        }
        return r;
}

/* ---- writing ---- */

struct output {
        const char *path;
        char *tmp;
        int fd;
        bool sign;
        uint8_t secret[AF_PACK_SECRET_BYTES];
        struct af_pack_writer *writer;
};

static int output_open(const struct af_args *args, const char *path, struct output *ret_out) {
        AF_CLEANUP(af_buf_deinit) struct af_buf machine = AF_BUF_INIT;
        const char *key = af_args_text(args, "sign");

        *ret_out = (struct output){.path = path, .fd = -1, .sign = key};
        if (!af_out_is_file(args->command->name, path))
                return AF_EXIT_USAGE;
        if (key && read_key(key, ret_out->secret, sizeof(ret_out->secret)) != AF_EXIT_OK)
                return AF_EXIT_FAILED;
        af_pack_machine(&machine);
        af_buf_put_u8(&machine, 0);
        if (af_buf_error(&machine) || asprintf(&ret_out->tmp, "%s.XXXXXX", path) < 0) {
                ret_out->tmp = NULL;
                return AF_EXIT_FAILED;
        }
        ret_out->fd = mkostemp(ret_out->tmp, O_CLOEXEC);
        if (ret_out->fd < 0 || fchmod(ret_out->fd, 0644) < 0 ||
            af_pack_writer_new(ret_out->fd, AF_CANON_VERSION, (const char *)machine.data, &ret_out->writer) != 0) {
                fprintf(stderr, "error: %s: %s\n", path, strerror(errno));
                return AF_EXIT_FAILED;
        }
        return AF_EXIT_OK;
}

/* Into its place when all went well, else away. */
static int output_close(struct output *out, int r) {
        if (r == AF_EXIT_OK) {
                int q = af_pack_writer_finish(out->writer, out->sign ? out->secret : NULL);

                if (q == 0 && (fsync(out->fd) < 0 || rename(out->tmp, out->path) < 0))
                        q = -errno;
                if (q) {
                        fprintf(stderr, "error: %s: %s\n", out->path, strerror(-q));
                        r = AF_EXIT_FAILED;
                }
        }
        if (r != AF_EXIT_OK && out->fd >= 0)
                unlink(out->tmp);
        if (out->fd >= 0)
                close(out->fd);
        af_pack_writer_free(out->writer);
        free(out->tmp);
        return r;
}

static int tell(const struct af_args *args, const char *path, uint64_t n_bundles, uint64_t n_left_out) {
        struct stat st;
        char text[32];

        if (stat(path, &st) < 0)
                return AF_EXIT_FAILED;
        if (af_args_flag(args, "json"))
                printf("{\"bundles\":%llu,\"left_out\":%llu,\"bytes\":%llu}\n", (unsigned long long)n_bundles,
                       (unsigned long long)n_left_out, (unsigned long long)st.st_size);
        else
                printf("%llu bundles in %s, %llu left out\n", (unsigned long long)n_bundles, af_out_bytes((uint64_t)st.st_size, text),
                       (unsigned long long)n_left_out);
        return AF_EXIT_OK;
}

static const char *or_empty(const char *s) {
        return s ? s : "";
}

static int pack_one(struct af_session *s, const char *path, struct output *out) {
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_error *error = NULL;
        struct af_frag frag;
        int r = AF_EXIT_FAILED;

        if (af_frag_load(path, &frag) != 0)
                return AF_EXIT_FAILED;
        enum autofuse_status status = af_session_compile(s, &frag.f, &bundle, &error);
        if (status == AUTOFUSE_OK) {
                const struct af_prepared *p = bundle->prepared;
                const struct af_content *c = bundle->content;
                int q = af_pack_writer_add(out->writer, &c->key.fragment, &c->key.environment, p->canon, p->n_canon, c->data, c->size);

                if (q == 0)
                        q = af_pack_writer_target(out->writer, or_empty(frag.f.soc), or_empty(frag.f.toolchain), frag.f.twin,
                                                  &c->key.environment);
                if (q)
                        fprintf(stderr, "error: %s: %s\n", out->path, strerror(-q));
                r = q ? AF_EXIT_FAILED : AF_EXIT_OK;
        } else {
                af_session_report(path, status, error);
        }
        autofuse_bundle_unref(bundle);
        af_frag_deinit(&frag);
        return r;
}

static int run_pack(const struct af_args *args) {
        struct af_session s;
        struct output out;
        struct af_bar bar;
        uint64_t n_bad = 0;
        int r = output_open(args, args->operands[0], &out);

        if (r == AF_EXIT_OK && (r = af_session_open(args, &s)) == AF_EXIT_OK) {
                af_bar_start(&bar, "packing", args->n_operands - 1);
                for (uint32_t i = 1; i < args->n_operands; i++) {
                        af_bar_update(&bar, i - 1, args->operands[i]);
                        n_bad += pack_one(&s, args->operands[i], &out) != AF_EXIT_OK;
                }
                af_bar_end(&bar);
                af_session_close(&s);
        }
        if (r == AF_EXIT_OK && n_bad == args->n_operands - 1)
                r = AF_EXIT_FAILED;
        r = output_close(&out, r);
        if (r == AF_EXIT_OK)
                r = tell(args, args->operands[0], args->n_operands - 1 - n_bad, n_bad);
        return r == AF_EXIT_OK && n_bad ? AF_EXIT_FAILED : r;
}

/* ---- export: the server's file, copied entry by entry, so that it can be signed here ---- */

static int copy_targets(const struct af_pack *p, struct af_pack_writer *w) {
        for (uint64_t i = 0; i < af_pack_target_count(p); i++) {
                char soc[AF_PACK_MAX_NAME + 1], toolchain[AF_PACK_MAX_NAME + 1];
                struct af_digest environment;
                uint32_t twin;
                int r;

                af_pack_target(p, i, soc, toolchain, &twin, &environment);
                r = af_pack_writer_target(w, soc, toolchain, twin, &environment);
                if (r)
                        return r;
        }
        return 0;
}

static int copy_entries(const struct af_pack *p, struct af_pack_writer *w) {
        struct af_buf canon = AF_BUF_INIT, bundle = AF_BUF_INIT;
        struct af_pack_entry e;
        int r = 0;

        for (uint64_t i = 0; i < af_pack_count(p) && r == 0; i++) {
                af_buf_clear(&canon);
                af_buf_clear(&bundle);
                r = af_pack_entry(p, i, &e, &canon, &bundle);
                if (r == 0)
                        r = af_pack_writer_add(w, &e.fragment, &e.environment, canon.data, canon.size, bundle.data, bundle.size);
        }
        af_buf_deinit(&canon);
        af_buf_deinit(&bundle);
        return r;
}

static int copy_pack(int fd, struct output *out) {
        const char *why = "it cannot be read";
        struct af_pack *p = NULL;
        int r;

        r = af_pack_open_fd(fd, AF_CANON_VERSION, NULL, &p, &why);
        if (r == 0)
                r = copy_targets(p, out->writer);
        if (r == 0)
                r = copy_entries(p, out->writer);
        if (r)
                fprintf(stderr, "error: the server's file: %s\n", r < 0 ? strerror(-r) : why);
        af_pack_close(p);
        return r ? AF_EXIT_FAILED : AF_EXIT_OK;
}

static int run_export(const struct af_args *args) {
        AF_CLEANUP(af_buf_deinit) struct af_buf fields = AF_BUF_INIT;
        struct af_admin admin;
        struct output out;
        struct af_bar bar;
        char *text = NULL;
        uint64_t n = 0, incomplete = 0;
        int fd = -1, r = output_open(args, args->operands[0], &out);

        if (r == AF_EXIT_OK && (r = af_admin_open(args, &admin)) == AF_EXIT_OK) {
                af_frame_field_str(&fields, AF_TAG_QUERY, "{\"action\":\"export\"}");
                af_bar_start(&bar, "exporting", 1);
                r = af_admin_ask(&admin, AF_FRAME_MAINTAIN, &fields, &bar, &text, &fd, NULL);
                af_bar_end(&bar);
                af_admin_close(&admin);
        }
        if (r == AF_EXIT_OK) {
                cJSON *o = cJSON_Parse(text), *left = cJSON_GetObjectItemCaseSensitive(o, "incomplete");

                incomplete = left ? (uint64_t)left->valuedouble : 0;
                cJSON_Delete(o);
                r = copy_pack(fd, &out);
                n = af_pack_writer_count(out.writer);
        }
        free(text);
        if (fd >= 0)
                close(fd);
        r = output_close(&out, r);
        return r == AF_EXIT_OK ? tell(args, args->operands[0], n, incomplete) : r;
}

/* ---- import ---- */

/* What the entry's environment was asked for as; the default where the pack does not say. */
static void target_of(const struct af_pack *p, const struct af_digest *environment, char *soc, char *toolchain, uint32_t *ret_twin) {
        struct af_digest d;

        for (uint64_t i = 0; i < af_pack_target_count(p); i++) {
                af_pack_target(p, i, soc, toolchain, ret_twin, &d);
                if (af_digest_equal(&d, environment))
                        return;
        }
        soc[0] = toolchain[0] = 0;
        *ret_twin = 0;
}

struct totals {
        uint64_t n_stored, n_current, n_damaged, n_failed;
};

static void import_entry(struct af_admin *admin, const struct af_pack *p, uint64_t i, struct totals *t) {
        AF_CLEANUP(af_buf_deinit) struct af_buf fields = AF_BUF_INIT, canon = AF_BUF_INIT, bundle = AF_BUF_INIT;
        char soc[AF_PACK_MAX_NAME + 1], toolchain[AF_PACK_MAX_NAME + 1], *text = NULL;
        struct af_pack_entry e;
        uint8_t key[64];
        uint32_t twin;

        if (af_pack_entry(p, i, &e, &canon, &bundle) != 0 || e.n_canon == 0) {
                t->n_damaged++;
                return;
        }
        target_of(p, &e.environment, soc, toolchain, &twin);
        memcpy(key, e.fragment.bytes, 32);
        memcpy(key + 32, e.environment.bytes, 32);
        af_frame_field(&fields, AF_TAG_KEY, key, sizeof(key));
        af_frame_field_str(&fields, AF_TAG_SOC, soc);
        af_frame_field_str(&fields, AF_TAG_TOOLCHAIN, toolchain);
        af_frame_field_u8(&fields, AF_TAG_TWIN, (uint8_t)twin);
        af_frame_field(&fields, AF_TAG_CANON, canon.data, canon.size);
        af_frame_field(&fields, AF_TAG_BUNDLE, bundle.data, bundle.size);
        if (af_admin_ask(admin, AF_FRAME_IMPORT, &fields, NULL, &text, NULL, NULL) != AF_EXIT_OK) {
                t->n_failed++;
                return;
        }
        t->n_stored++;
        t->n_current += strstr(text, "true") != NULL;
        free(text);
}

static int list(const struct af_args *args, const struct af_pack *p) {
        struct af_table t;
        cJSON *all = cJSON_CreateArray();

        af_table_init(&t, (const char *const[]){"fragment", "environment", "canonical", "bundle"}, 4);
        for (uint64_t i = 0; i < af_pack_count(p); i++) {
                char fragment[AF_DIGEST_HEX_SIZE], environment[AF_DIGEST_HEX_SIZE], text[32];
                struct af_pack_entry e;
                cJSON *o;

                if (af_pack_entry(p, i, &e, NULL, NULL) != 0)
                        continue;
                af_digest_hex(&e.fragment, fragment);
                af_digest_hex(&e.environment, environment);
                af_table_add(&t, "%.16s", fragment);
                af_table_add(&t, "%.16s", environment);
                af_table_add(&t, "%s", af_out_bytes(e.n_canon, text));
                af_table_add(&t, "%s", af_out_bytes(e.n_bundle, text));
                o = cJSON_CreateObject();
                cJSON_AddStringToObject(o, "fragment", fragment);
                cJSON_AddStringToObject(o, "environment", environment);
                cJSON_AddNumberToObject(o, "canonical_bytes", (double)e.n_canon);
                cJSON_AddNumberToObject(o, "bundle_bytes", (double)e.n_bundle);
                cJSON_AddItemToArray(all, o);
        }
        if (af_args_flag(args, "json")) {
                af_out_json(all);
        } else {
                af_table_print(&t, 0, stdout);
                printf("%llu bundles, %s\n", (unsigned long long)af_pack_count(p), af_pack_signed(p) ? "signed" : "not signed");
                cJSON_Delete(all);
        }
        af_table_deinit(&t);
        return AF_EXIT_OK;
}

static int import_all(const struct af_args *args, const struct af_pack *p) {
        struct totals t = {0};
        struct af_admin admin;
        struct af_bar bar;
        int r = af_admin_open(args, &admin);

        if (r != AF_EXIT_OK)
                return r;
        af_bar_start(&bar, "importing", af_pack_count(p));
        for (uint64_t i = 0; i < af_pack_count(p); i++) {
                import_entry(&admin, p, i, &t);
                af_bar_update(&bar, i + 1, NULL);
        }
        af_bar_end(&bar);
        af_admin_close(&admin);
        if (af_args_flag(args, "json"))
                printf("{\"stored\":%llu,\"current\":%llu,\"damaged\":%llu,\"failed\":%llu}\n", (unsigned long long)t.n_stored,
                       (unsigned long long)t.n_current, (unsigned long long)t.n_damaged, (unsigned long long)t.n_failed);
        else
                printf("%llu bundles stored, %llu of the environment in force; %llu damaged, %llu failed\n", (unsigned long long)t.n_stored,
                       (unsigned long long)t.n_current, (unsigned long long)t.n_damaged, (unsigned long long)t.n_failed);
        return t.n_failed || t.n_damaged ? AF_EXIT_FAILED : AF_EXIT_OK;
}

static int run_import(const struct af_args *args) {
        uint8_t key[AF_PACK_PUBLIC_BYTES];
        const char *key_path = af_args_text(args, "key"), *why = "";
        struct af_pack *p = NULL;
        int r;

        if (key_path && read_key(key_path, key, sizeof(key)) != AF_EXIT_OK)
                return AF_EXIT_FAILED;
        r = af_pack_open(args->operands[0], AF_CANON_VERSION, key_path ? key : NULL, &p, &why);
        if (r) {
                fprintf(stderr, "error: %s: %s\n", args->operands[0], why);
                return AF_EXIT_FAILED;
        }
        r = af_args_flag(args, "list") ? list(args, p) : import_all(args, p);
        af_pack_close(p);
        return r;
}

const struct af_command af_command_pack = {
        .name = "pack",
        .operands = "OUT.pack FRAG.json…",
        .summary = "compile fragments and write their bundles into one file",
        .details = "For images and other hosts: see AUTOFUSE_PACKS in docs/client.md, and import.",
        .options = pack_options,
        .min_operands = 2,
        .run = run_pack,
};

const struct af_command af_command_export = {
        .name = "export",
        .operands = "OUT.pack",
        .summary = "write the server's bundles of the environments in force into one file",
        .options = export_options,
        .min_operands = 1,
        .max_operands = 1,
        .run = run_export,
};

const struct af_command af_command_import = {
        .name = "import",
        .operands = "IN.pack",
        .summary = "put a pack's bundles into the server's store",
        .details = "Bundles of other environments are stored too, and found when their toolchain is here.",
        .options = import_options,
        .min_operands = 1,
        .max_operands = 1,
        .run = run_import,
};

const struct af_command af_command_keygen = {
        .name = "keygen",
        .operands = "FILE",
        .summary = "make a pair of keys for packs: FILE (secret) and FILE.pub",
        .options = keygen_options,
        .min_operands = 1,
        .max_operands = 1,
        .run = run_keygen,
};
