/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/why.h"

#include <stdio.h>
#include <string.h>

#include "base/json_text.h"
#include "daemon/core.h"

#define MAX_NAMED       4u   /* ingredients in one line of text */
#define MAX_TOLD        100u /* in the JSON of one entry */
#define MAX_INGREDIENTS 8192u

/* ---- ingredients ---- */

static bool same_text(const char *a, uint32_t n_a, const char *b, uint32_t n_b) {
        return n_a == n_b && memcmp(a, b, n_a) == 0;
}

/* Finds a name, from where the last one was found on, and then from the start: the lists have one order. */
static bool find(struct af_cursor *at, const struct af_blob *record, const struct af_ingredient *name, struct af_ingredient *ret) {
        struct af_cursor c = *at;

        for (unsigned round = 0; round < 2; round++) {
                for (unsigned i = 0; i < MAX_INGREDIENTS && af_record_ingredient_next(&c, ret); i++)
                        if (same_text(ret->name, ret->n_name, name->name, name->n_name)) {
                                *at = c;
                                return true;
                        }
                c = af_cursor_make(record->data, record->size);
        }
        return false;
}

uint32_t af_why_compare(const struct af_blob *here, const struct af_blob *there, af_why_difference_fn visit, void *userdata) {
        struct af_cursor c = af_cursor_make(here->data, here->size), at = af_cursor_make(there->data, there->size);
        struct af_ingredient a, b;
        uint32_t n = 0;

        for (unsigned i = 0; i < MAX_INGREDIENTS && af_record_ingredient_next(&c, &a); i++) {
                bool found = find(&at, there, &a, &b);

                if (found && same_text(a.value, a.n_value, b.value, b.n_value))
                        continue;
                n++;
                if (visit)
                        visit(userdata, &a, found ? &b : NULL);
        }
        c = af_cursor_make(there->data, there->size);
        at = af_cursor_make(here->data, here->size);
        for (unsigned i = 0; i < MAX_INGREDIENTS && af_record_ingredient_next(&c, &b); i++) {
                if (find(&at, here, &b, &a))
                        continue;
                n++;
                if (visit)
                        visit(userdata, NULL, &b);
        }
        return n;
}

/* ---- entries ---- */

struct scan {
        const struct af_digest *fragment;
        struct af_digest *environments;
        uint32_t n;
};

static bool on_record(void *userdata, const struct af_store_record *record, uint32_t used_minute) {
        struct scan *s = userdata;

        if (record->key_size != 64 || memcmp(record->key, s->fragment->bytes, 32) != 0 || s->n == AF_WHY_MAX_ENTRIES)
                return false;
        memcpy(s->environments[s->n++].bytes, (const uint8_t *)record->key + 32, 32);
        return true;
}

uint32_t af_why_entries(struct af_store *store, const struct af_digest *fragment, struct af_digest ret_environments[AF_WHY_MAX_ENTRIES]) {
        struct scan s = {.fragment = fragment, .environments = ret_environments};
        struct af_store_walk w = {.table = AF_TABLE_BUNDLES, .key_size = 32, .visit = on_record, .userdata = &s};

        /* Keys of 64 bytes stand behind their first 32. */
        memcpy(w.key, fragment->bytes, 32);
        (void)!af_store_walk(store, &w, AF_WHY_MAX_ENTRIES + 1, SIZE_MAX / 2);
        return s.n;
}

static struct af_blob *ingredients_of(struct af_core *core, const struct af_digest *environment) {
        return af_lookup_record(core, AF_TABLE_ENV, environment->bytes, sizeof(environment->bytes));
}

/* ---- one line ---- */

struct line {
        char *out;
        size_t at;
        uint32_t n;
};

static void add_name(void *userdata, const struct af_ingredient *here, const struct af_ingredient *there) {
        const struct af_ingredient *i = here ? here : there;
        struct line *l = userdata;
        int n;

        if (l->n++ >= MAX_NAMED || l->at >= AF_WHY_TEXT)
                return;
        n = snprintf(l->out + l->at, AF_WHY_TEXT - l->at, "%s%.*s", l->n > 1 ? ", " : "", (int)AF_MIN(i->n_name, 60u), i->name);
        l->at += n > 0 ? (size_t)n : 0;
}

/* What differs from the entry that is most like the environment at hand. */
static void name_differences(struct af_environment *env, const struct af_digest *environments, uint32_t n, char out[AF_WHY_TEXT]) {
        struct af_blob *best = NULL;
        struct line line = {.out = out};
        uint32_t fewest = UINT32_MAX;

        for (uint32_t i = 0; i < n && env->ingredients; i++) {
                struct af_blob *record = ingredients_of(env->core, &environments[i]);
                uint32_t differ = record ? af_why_compare(env->ingredients, record, NULL, NULL) : UINT32_MAX;

                if (differ < fewest) {
                        fewest = differ;
                        af_blob_unref(best);
                        best = af_blob_ref(record);
                }
                af_blob_unref(record);
        }
        line.at = (size_t)snprintf(out, AF_WHY_TEXT, "another environment: ");
        if (best)
                (void)af_why_compare(env->ingredients, best, add_name, &line);
        else
                snprintf(out, AF_WHY_TEXT, "another environment, of which it is not known what it consisted of");
        if (line.n > MAX_NAMED && line.at < AF_WHY_TEXT)
                snprintf(out + line.at, AF_WHY_TEXT - line.at, " and %u more", line.n - MAX_NAMED);
        af_blob_unref(best);
}

void af_why_missed(struct af_environment *env, const struct af_digest *fragment, bool has_skeleton, bool known_fragment,
                   char out[AF_WHY_TEXT]) {
        struct af_digest environments[AF_WHY_MAX_ENTRIES];
        uint32_t n = has_skeleton ? 0 : af_why_entries(env->core->store, fragment, environments);

        if (has_skeleton)
                snprintf(out, AF_WHY_TEXT, "a kernel of it is gone: evicted, or damaged");
        else if (n > 0)
                name_differences(env, environments, n, out);
        else if (known_fragment)
                snprintf(out, AF_WHY_TEXT, "its entries are gone: evicted, or damaged");
        else
                snprintf(out, AF_WHY_TEXT, "a new fragment");
}

/* ---- JSON ---- */

struct told {
        struct af_buf *json;
        uint32_t n;
};

static void add_side(struct af_buf *json, const char *key, const struct af_ingredient *i) {
        af_json_key(json, key);
        if (i)
                af_json_string_n(json, i->value, i->n_value);
        else
                af_buf_put_str(json, "null");
}

static void add_difference(void *userdata, const struct af_ingredient *here, const struct af_ingredient *there) {
        const struct af_ingredient *i = here ? here : there;
        struct told *t = userdata;

        if (t->n++ >= MAX_TOLD)
                return;
        af_json_item(t->json);
        af_buf_put_u8(t->json, '{');
        af_json_key(t->json, "name");
        af_json_string_n(t->json, i->name, i->n_name);
        add_side(t->json, "here", here);
        add_side(t->json, "there", there);
        af_buf_put_u8(t->json, '}');
}

static void add_entry(struct af_environment *env, const struct af_digest *environment, bool stored, struct af_buf *json) {
        struct af_blob *record = ingredients_of(env->core, environment);
        struct told told = {.json = json};

        af_json_item(json);
        af_buf_put_u8(json, '{');
        af_json_add_digest(json, "environment", environment);
        af_json_add_bool(json, "current", af_digest_equal(environment, &env->digest));
        af_json_add_bool(json, "stored", stored);
        af_json_add_bool(json, "known", record != NULL);
        af_json_key(json, "differs");
        af_buf_put_u8(json, '[');
        if (record && env->ingredients)
                (void)af_why_compare(env->ingredients, record, add_difference, &told);
        af_buf_put_u8(json, ']');
        af_json_add_u64(json, "n_differ", told.n);
        af_buf_put_u8(json, '}');
        af_blob_unref(record);
}

uint32_t af_why_json(struct af_environment *env, const struct af_digest *fragment, const struct af_digest *first, struct af_buf *json) {
        struct af_digest environments[AF_WHY_MAX_ENTRIES];
        uint32_t n = af_why_entries(env->core->store, fragment, environments);
        struct af_blob *known = af_lookup_record(env->core, AF_TABLE_FRAGMENTS, fragment->bytes, sizeof(fragment->bytes));
        bool stored = false, first_stored = false;
        char why[AF_WHY_TEXT] = "it is in the store";

        for (uint32_t i = 0; i < n; i++) {
                stored |= af_digest_equal(&environments[i], &env->digest);
                first_stored |= first && af_digest_equal(&environments[i], first);
        }
        if (!stored)
                af_why_missed(env, fragment, false, known != NULL, why);
        af_json_add_digest(json, "fragment", fragment);
        af_json_add_digest(json, "environment", &env->digest);
        af_json_add_string(json, "soc", env->target.soc);
        af_json_add_string(json, "toolchain", env->target.toolchain);
        af_json_add_bool(json, "stored", stored);
        af_json_add_bool(json, "known_fragment", known != NULL);
        af_json_add_string(json, "why", why);
        af_json_key(json, "entries");
        af_buf_put_u8(json, '[');
        if (first)
                add_entry(env, first, first_stored, json);
        for (uint32_t i = 0; i < n; i++)
                if (!first || !af_digest_equal(&environments[i], first))
                        add_entry(env, &environments[i], true, json);
        af_buf_put_u8(json, ']');
        af_blob_unref(known);
        return n;
}
