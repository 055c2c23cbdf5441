/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

#define MAX_FILE_BYTES (1u << 20)

struct key;
typedef const char *(*parse_fn)(struct af_config *c, const struct key *k, const char *value); /* NULL, or what is wrong */

struct key {
        const char *name;
        parse_fn parse;
        size_t field;
        const char *fallback; /* NULL: none */
        uint64_t min, max;    /* numbers */
        const char *help;
};

static const char *parse_string(struct af_config *c, const struct key *k, const char *value) {
        const char *copy = af_arena_strdup(&c->arena, value);

        if (!copy)
                return "out of memory";
        *(const char **)((char *)c + k->field) = copy;
        return NULL;
}

static const char *parse_path(struct af_config *c, const struct key *k, const char *value) {
        return value[0] == '/' ? parse_string(c, k, value) : "must be an absolute path";
}

static const char *parse_number(struct af_config *c, const struct key *k, const char *value) {
        unsigned long long n;
        char *end;

        errno = 0;
        n = strtoull(value, &end, 10);
        if (!isdigit((unsigned char)value[0]) || *end || errno)
                return "must be a number";
        if (n < k->min || n > k->max)
                return "is out of range";
        *(uint64_t *)((char *)c + k->field) = n;
        return NULL;
}

static const char *parse_level(struct af_config *c, const struct key *k, const char *value) {
        static const char *const names[] = {"error", "warning", "info", "debug"};

        for (size_t i = 0; i < AF_ARRAY_SIZE(names); i++)
                if (strcmp(value, names[i]) == 0)
                        return parse_string(c, k, value);
        return "must be error, warning, info or debug";
}

static const char *parse_switch(struct af_config *c, const struct key *k, const char *value) {
        bool on = strcmp(value, "on") == 0;

        *(bool *)((char *)c + k->field) = on;
        return on || strcmp(value, "off") == 0 ? NULL : "must be on or off";
}

static const char *parse_mode(struct af_config *c, const struct key *k, const char *value) {
        bool octal = strspn(value, "01234567") == strlen(value) && *value && strtoul(value, NULL, 8) <= 0666;

        return octal ? parse_string(c, k, value) : "must be a file's mode, as 0660";
}

/* Splits at blanks and commas; each value adds to what is there. */
static const char *parse_list(struct af_config *c, const struct key *k, const char *value) {
        const char ***field = (const char ***)((char *)c + k->field), **list = *field;
        char *copy = af_arena_strdup(&c->arena, value), *save = NULL;
        uint32_t n = 0;

        while (list && list[n])
                n++;
        for (char *word = copy ? strtok_r(copy, " \t,", &save) : NULL; word; word = strtok_r(NULL, " \t,", &save)) {
                const char **more = af_arena_calloc(&c->arena, n + 2, sizeof(*more));

                if (!more)
                        return "out of memory";
                if (n)
                        memcpy(more, list, n * sizeof(*more));
                more[n++] = word;
                list = *field = more;
        }
        return copy ? NULL : "out of memory";
}

static const char *parse_uids(struct af_config *c, const struct key *k, const char *value) {
        struct af_config_uids *uids = (struct af_config_uids *)((char *)c + k->field);
        const char *p = value;

        while (*p) {
                unsigned long n;
                uint32_t *more;
                char *end;

                while (*p == ' ' || *p == '\t' || *p == ',')
                        p++;
                if (!*p)
                        break;
                if (!isdigit((unsigned char)*p))
                        return "must be user ids";
                n = strtoul(p, &end, 10);
                if (n > UINT32_MAX || (*end && !strchr(" \t,", *end)))
                        return "must be user ids";
                p = end;
                more = af_arena_calloc(&c->arena, uids->n + 1, sizeof(*more));
                if (!more)
                        return "out of memory";
                if (uids->n)
                        memcpy(more, uids->items, uids->n * sizeof(*more));
                more[uids->n++] = (uint32_t)n;
                uids->items = more;
        }
        return NULL;
}

#define FIELD(f) offsetof(struct af_config, f)
#define MIB_MAX  (1ull << 30)
static const struct key keys[] = {
        {"socket", parse_path, FIELD(socket), NULL, 0, 0, "path of the socket"},
        {"state_dir", parse_path, FIELD(state_dir), NULL, 0, 0, "store, ledger and records of jobs; 0700, local"},
        {"data_dir", parse_path, FIELD(data_dir), NULL, 0, 0, "directory with rules/ and twin/"},
        {"rules_dir", parse_path, FIELD(rules_dir), NULL, 0, 0, "directory with fusion/, soc/ and templates/"},
        {"extra_rules", parse_list, FIELD(extra_rules), NULL, 0, 0, "further rule files or directories"},
        {"job_path", parse_path, FIELD(job_path), NULL, 0, 0, "the job program"},
        {"tmp_dir", parse_path, FIELD(tmp_dir), NULL, 0, 0, "where compiles work"},
        {"log_level", parse_level, FIELD(log_level), "info", 0, 0, "error, warning, info or debug"},
        {"default_soc", parse_string, FIELD(default_soc), "Ascend910B2", 0, 0, "for fragments that name none"},
        {"default_toolchain", parse_string, FIELD(default_toolchain), "host", 0, 0, "for fragments that name none"},
        {"cache_salt", parse_string, FIELD(cache_salt), NULL, 0, 0, "goes into every key"},
        {"allow_uid", parse_uids, FIELD(allow_uid), NULL, 0, 0, "users admitted besides root and the server's own"},
        {"jobs", parse_number, FIELD(jobs), "0", 0, 1024, "job processes at once; 0: one per core"},
        {"host_jobs", parse_number, FIELD(host_jobs), "0", 0, 1024, "job processes of all servers of this host; 0: one per core"},
        {"host_slots", parse_string, FIELD(host_slots), "autofused", 0, 0, "name of the slots that servers share; empty: none are"},
        {"min_free_mib", parse_number, FIELD(min_free_mib), "512", 0, MIB_MAX, "memory that must be available before another job starts"},
        {"job_memory_mib", parse_number, FIELD(job_memory_mib), "16384", 0, MIB_MAX, "address space of a job's process; 0: no limit"},
        {"store_map_mib", parse_number, FIELD(store_map_mib), "1024", 1, MIB_MAX, "the store's map at first"},
        {"store_max_mib", parse_number, FIELD(store_max_mib), "16384", 1, MIB_MAX, "the store's limit"},
        {"bundle_cache_mib", parse_number, FIELD(bundle_cache_mib), "256", 0, MIB_MAX, "bundles kept in memory"},
        {"hot_mib", parse_number, FIELD(hot_mib), "64", 0, 65536, "area of the most used bundles that clients map; 0: none"},
        {"receive_mib", parse_number, FIELD(receive_mib), "512", 1, MIB_MAX,
         "request bodies that arrive, and as much again of large ones that wait, or twice that with small ones"},
        {"plan_timeout_s", parse_number, FIELD(plan_timeout_s), "300", 1, 86400, "of one plan job"},
        {"compile_timeout_s", parse_number, FIELD(compile_timeout_s), "600", 1, 86400, "of one kernel's compile"},
        {"request_timeout_s", parse_number, FIELD(request_timeout_s), "600", 1, 86400, "of a request that states none"},
        {"drain_timeout_s", parse_number, FIELD(drain_timeout_s), "60", 0, 86400, "after SIGTERM, for what is in flight"},
        {"read_timeout_s", parse_number, FIELD(read_timeout_s), "30", 1, 3600,
         "for a hello, for the rest of a frame, for a peer that does not read"},
        {"gate", parse_switch, FIELD(gate), "on", 0, 0, "on or off: the nanomsg door and events beside the socket (gate.ipc, events.ipc)"},
        {"gate_path", parse_path, FIELD(gate_path), NULL, 0, 0, "the gate program"},
        {"gate_mode", parse_mode, FIELD(gate_mode), "0600", 0, 0, "mode of gate.ipc and events.ipc; users of allow_uid are added to it"},
        {"gate_requests", parse_number, FIELD(gate_requests), "256", 1, 1000000, "outstanding at the gate"},
        {"gate_message_mib", parse_number, FIELD(gate_message_mib), "16", 1, 64, "largest request and reply of the gate"},
        {"gate_memory_mib", parse_number, FIELD(gate_memory_mib), "1024", 256, MIB_MAX, "address space of the gate"},
        {"max_connections", parse_number, FIELD(max_connections), "4096", 1, 1000000, "clients at once"},
        {"max_requests", parse_number, FIELD(max_requests), "1024", 1, 1000000, "outstanding on one connection"},
        {"max_queue", parse_number, FIELD(max_queue), "131072", 1, 10000000, "fragments under way at once"},
        {"user_connections", parse_number, FIELD(user_connections), "2048", 1, 1000000, "of one user (root and the server's own are free)"},
        {"user_requests", parse_number, FIELD(user_requests), "65536", 1, 10000000, "outstanding of one user"},
        {"user_held_mib", parse_number, FIELD(user_held_mib), "256", 1, MIB_MAX, "request bodies of one user that wait"},
};

static const char *const toolchain_kinds[] = {"host", "ccec", "bisheng"};

static struct af_toolchain_config *toolchain_get(struct af_config *c, const char *id, size_t n) {
        struct af_toolchain_config *t;

        for (uint32_t i = 0; i < c->n_toolchains; i++)
                if (strlen(c->toolchains[i].id) == n && memcmp(c->toolchains[i].id, id, n) == 0)
                        return &c->toolchains[i];
        if (c->n_toolchains == AF_CONFIG_MAX_TOOLCHAINS || n == 0)
                return NULL;
        t = &c->toolchains[c->n_toolchains];
        *t = (struct af_toolchain_config){.id = af_arena_memdup(&c->arena, id, n)};
        for (size_t i = 0; t->id && i < AF_ARRAY_SIZE(toolchain_kinds); i++)
                if (strcmp(t->id, toolchain_kinds[i]) == 0)
                        t->kind = i;
        c->n_toolchains += t->id != NULL;
        return t->id ? t : NULL;
}

/* toolchain.ID.kind|driver|flags|home */
static const char *parse_toolchain(struct af_config *c, const char *name, const char *value, bool *ret_known) {
        const char *dot = strrchr(name, '.'), *copy = af_arena_strdup(&c->arena, value);
        struct af_toolchain_config *t = dot ? toolchain_get(c, name, (size_t)(dot - name)) : NULL;

        *ret_known = true;
        if (!t || !copy)
                return "names no toolchain, or one too many";
        if (strcmp(dot, ".driver") == 0) {
                t->driver = copy;
        } else if (strcmp(dot, ".flags") == 0) {
                t->extra_flags = copy;
        } else if (strcmp(dot, ".home") == 0) {
                t->ascend_home = copy;
        } else if (strcmp(dot, ".kind") == 0) {
                for (size_t i = 0; i < AF_ARRAY_SIZE(toolchain_kinds); i++)
                        if (strcmp(value, toolchain_kinds[i]) == 0) {
                                t->kind = i;
                                return NULL;
                        }
                return "must be host, ccec or bisheng";
        } else {
                *ret_known = false;
        }
        return NULL;
}

static void set(struct af_config *c, const char *name, const char *value, const char *where, struct af_diags *diags) {
        const char *wrong = NULL;
        bool known = false;

        if (strncmp(name, "toolchain.", 10) == 0)
                wrong = parse_toolchain(c, name + 10, value, &known);
        for (size_t i = 0; i < AF_ARRAY_SIZE(keys) && !known; i++)
                if (strcmp(keys[i].name, name) == 0) {
                        known = true;
                        wrong = keys[i].parse(c, &keys[i], value);
                }
        if (!known)
                af_diag_warn(diags, where, "unknown key '%s'", name);
        else if (wrong)
                af_diag_error(diags, where, "%s = '%s': %s", name, value, wrong);
}

static char *trim(char *s) {
        char *end;

        while (isspace((unsigned char)*s))
                s++;
        end = s + strlen(s);
        while (end > s && isspace((unsigned char)end[-1]))
                *--end = 0;
        return s;
}

static void read_lines(struct af_config *c, const char *path, char *text, struct af_diags *diags) {
        unsigned number = 0;

        for (char *line; (line = strsep(&text, "\n"));) {
                char where[512], *value;

                number++;
                snprintf(where, sizeof(where), "%s:%u", path, number);
                line = trim(line);
                if (!*line || *line == '#')
                        continue;
                value = strchr(line, '=');
                if (!value) {
                        af_diag_error(diags, where, "not `key = value`");
                        continue;
                }
                *value++ = 0;
                set(c, trim(line), trim(value), where, diags);
        }
}

static void read_file(struct af_config *c, const char *path, bool must_exist, struct af_diags *diags) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        int r = af_io_read_file(path, MAX_FILE_BYTES, &buf);

        af_buf_put_u8(&buf, 0);
        if (r == 0)
                r = af_buf_error(&buf);
        if (r < 0) {
                if (must_exist || r != -ENOENT)
                        af_diag_error(diags, path, "cannot be read: %s", strerror(-r));
                return;
        }
        c->file = af_arena_strdup(&c->arena, path);
        read_lines(c, path, (char *)buf.data, diags);
}

static void read_usual_file(struct af_config *c, struct af_diags *diags) {
        const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
        char path[4096];

        if (geteuid() == 0) {
                read_file(c, "/etc/autofused/autofused.conf", false, diags);
                return;
        }
        if (base && base[0] == '/')
                snprintf(path, sizeof(path), "%s/autofused/autofused.conf", base);
        else if (home && home[0] == '/')
                snprintf(path, sizeof(path), "%s/.config/autofused/autofused.conf", home);
        else
                return;
        read_file(c, path, false, diags);
}

static void env_name(const char *key, char out[64]) {
        size_t n = (size_t)snprintf(out, 64, "AUTOFUSE_");

        for (; *key && n < 63; key++)
                out[n++] = (char)toupper((unsigned char)*key);
        out[n] = 0;
}

static void read_environment(struct af_config *c, struct af_diags *diags) {
        for (size_t i = 0; i < AF_ARRAY_SIZE(keys); i++) {
                char name[64];
                const char *value;

                env_name(keys[i].name, name);
                value = getenv(name);
                if (value && *value)
                        set(c, keys[i].name, value, name, diags);
        }
}

/* Splits one option into key and value; moves *i past a separate value. Key is in out, empty where argv[*i] is no option. */
static const char *split_option(int argc, char *const *argv, int *i, char out[64]) {
        const char *arg = argv[*i], *equals = strchr(arg, '=');
        size_t n;

        out[0] = 0;
        if (strncmp(arg, "--", 2) != 0)
                return NULL;
        n = equals ? (size_t)(equals - arg) - 2 : strlen(arg) - 2;
        if (n == 0 || n >= 64)
                return NULL;
        memcpy(out, arg + 2, n);
        out[n] = 0;
        for (char *p = out; *p; p++)
                if (*p == '-' && strncmp(out, "toolchain.", 10) != 0)
                        *p = '_';
        if (equals)
                return equals + 1;
        return *i + 1 < argc ? argv[++*i] : NULL;
}

static void read_arguments(struct af_config *c, int argc, char *const *argv, bool only_file, const char **ret_file,
                           struct af_diags *diags) {
        for (int i = 1; i < argc; i++) {
                const char *arg = argv[i], *value;
                char name[64];

                if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
                        c->help = true;
                        continue;
                }
                if (strcmp(arg, "--version") == 0) {
                        c->version = true;
                        continue;
                }
                value = split_option(argc, argv, &i, name);
                if (strcmp(name, "config") == 0 && value)
                        *ret_file = value;
                else if (only_file)
                        continue;
                else if (!name[0] || !value)
                        af_diag_error(diags, arg, name[0] ? "needs a value" : "is no option");
                else
                        set(c, name, value, arg, diags);
        }
}

static void refuse_unknown_options(struct af_diags *diags) {
        /* In a file an unknown key may be a newer version's; on a command line it is a slip of the hand. */
        for (uint32_t i = 0; i < diags->n_items; i++)
                if (diags->items[i].severity == AF_SEVERITY_WARNING && strncmp(diags->items[i].where, "--", 2) == 0) {
                        diags->items[i].severity = AF_SEVERITY_ERROR;
                        diags->n_errors++;
                }
}

int af_config_load(struct af_config *config, int argc, char *const *argv, struct af_diags *diags) {
        const char *file = NULL, *env_file = getenv("AUTOFUSE_CONFIG");

        *config = (struct af_config){0};
        af_arena_init(&config->arena, 16u << 20);
        for (size_t i = 0; i < AF_ARRAY_SIZE(keys); i++)
                if (keys[i].fallback)
                        set(config, keys[i].name, keys[i].fallback, "default", diags);
        read_arguments(config, argc, argv, true, &file, diags);
        if (!file && env_file && *env_file)
                file = env_file;
        if (file)
                read_file(config, file, true, diags);
        else
                read_usual_file(config, diags);
        read_environment(config, diags);
        read_arguments(config, argc, argv, false, &file, diags);
        refuse_unknown_options(diags);
        return af_diags_failed(diags) ? AF_CONFIG_E_INVALID : 0;
}

void af_config_deinit(struct af_config *config) {
        af_arena_deinit(&config->arena);
        *config = (struct af_config){0};
}

void af_config_help(struct af_buf *buf) {
        af_buf_put_str(buf, "usage: autofused [--config FILE] [--KEY VALUE]...\n\n"
                            "Keys, also `key = value` lines of the file (with underscores) and AUTOFUSE_KEY in the environment:\n");
        for (size_t i = 0; i < AF_ARRAY_SIZE(keys); i++) {
                char option[64];

                snprintf(option, sizeof(option), "--%s", keys[i].name);
                for (char *p = option; *p; p++)
                        if (*p == '_')
                                *p = '-';
                af_buf_printf(buf, "  %-22s %s%s%s%s\n", option, keys[i].help, keys[i].fallback ? " (" : "",
                              keys[i].fallback ? keys[i].fallback : "", keys[i].fallback ? ")" : "");
        }
        af_buf_put_str(buf, "  --toolchain.ID.kind    host, ccec or bisheng; likewise .driver, .flags and .home\n");
}
