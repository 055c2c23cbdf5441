/* SPDX-License-Identifier: Apache-2.0 */
#include "client/prepared.h"
#include "tools/commands.h"
#include "tools/frag.h"
#include "tools/out.h"
#include "tools/session.h"

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        {'e', "explain", AF_OPTION_FLAG, NULL, "list everything that enters the key"},
        {'s', "socket", AF_OPTION_TEXT, "PATH", "taken as by every command, and not needed: no server is asked"},
        {0},
};

struct listing {
        struct af_table *table;
        cJSON *json;
};

static void visit(void *userdata, const char *name, const char *text, const void *p, size_t n) {
        struct listing *l = userdata;
        char size[32];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "name", name);
        cJSON_AddStringToObject(o, "value", text);
        cJSON_AddNumberToObject(o, "bytes", (double)n);
        cJSON_AddItemToArray(l->json, o);
        snprintf(size, sizeof(size), "%zu", n);
        af_table_add(l->table, "%s", name);
        af_table_add(l->table, "%s", size);
        af_table_add(l->table, "%s", text);
}

static void explain(const struct af_env *env, const struct af_prepared *prepared, const char *fragment, cJSON *o, bool json) {
        struct af_table table;
        struct listing l = {.table = &table, .json = cJSON_CreateArray()};
        af_table_init(&table, (const char *const[]){"ingredient", "bytes", "value"}, 3);
        visit(&l, "canonical form of the fragment", fragment, prepared->canon, prepared->n_canon);
        af_key_ingredients(&env->key, visit, &l);
        cJSON_AddItemToObject(o, "ingredients", l.json);
        if (!json) {
                printf("\n");
                af_table_print(&table, 0, stdout);
                printf("\ntoolchain closure, %u files:\n", env->toolchain.n_closure);
                for (uint32_t i = 0; i < env->toolchain.n_closure; i++)
                        printf("  %s\n", env->toolchain.closure[i]);
                printf("flags: %s\n", env->toolchain.flags ? env->toolchain.flags : "");
        }
        af_table_deinit(&table);
}

static int show(const struct af_args *args, const struct af_frag *frag, const struct af_prepared *prepared, const struct af_env *env) {
        bool json = af_args_flag(args, "json");
        char fragment[AF_DIGEST_HEX_SIZE], environment[AF_DIGEST_HEX_SIZE];
        cJSON *o = cJSON_CreateObject();
        af_digest_hex(&prepared->digest, fragment);
        af_digest_hex(&env->digest, environment);
        cJSON_AddStringToObject(o, "file", frag->path);
        cJSON_AddStringToObject(o, "fragment", fragment);
        cJSON_AddStringToObject(o, "environment", environment);
        if (!json)
                printf("fragment     %s\nenvironment  %s\n", fragment, environment);
        if (af_args_flag(args, "explain"))
                explain(env, prepared, fragment, o, json);
        if (json)
                af_out_json(o);
        else
                cJSON_Delete(o);
        return AF_EXIT_OK;
}

static int run(const struct af_args *args) {
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        struct af_session s;
        struct af_frag frag;
        struct af_prepared *prepared = NULL;
        const struct af_env *env;
        int r = AF_EXIT_OK;
        if (af_frag_load(args->operands[0], &frag) != 0)
                return AF_EXIT_FAILED;
        af_session_open_offline(&s);
        if (af_prepared_new(&frag.f, &diags, &prepared) != 0) {
                af_out_diags(&diags);
                r = AF_EXIT_FAILED;
        }
        if (r == AF_EXIT_OK)
                r = af_session_env(&s, frag.f.soc, frag.f.toolchain, frag.f.twin, &env);
        if (r == AF_EXIT_OK)
                r = show(args, &frag, prepared, env);
        af_prepared_unref(prepared);
        af_session_close(&s);
        af_frag_deinit(&frag);
        return r;
}

const struct af_command af_command_key = {
        .name = "key",
        .operands = "FRAG.json",
        .summary = "show the key of a fragment and what enters it",
        .details = "The environment is the one that this process sees; a server with other rules, flags or salt has another.",
        .options = options,
        .min_operands = 1,
        .max_operands = 1,
        .run = run,
};
