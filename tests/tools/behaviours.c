/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold of compiled numbers, case by case: each is named by its id (A.. compile, N.. numbers), has its data by hand where a number
 * is promised, and is compiled and compared with the reference as in differential.c.
 *
 *   behaviours [--only TEXT]… [--variants default,unfused,small,fast] [--flags FLAGS] [--fallbacks] [--names] [--all]
 *              [--file NAME=FILE]… [--served SOCKET [--passes ahead,cold,memo,store,hot]]
 *
 * --only: names that start so. --all takes every dtype of every op where a part of them is taken by default. --names prints the cases
 * instead of running them. --file: one more case, a fragment's text. --served: through a running server, see served.h.
 */
#include "tests/tools/behaviours.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"

static bool names_only;

static bool wanted(const struct behaviours *x) {
        for (uint32_t i = 0; i < x->n_only; i++)
                if (strncmp(x->what, x->only[i], strlen(x->only[i])) == 0)
                        return true;
        return !x->n_only;
}

bool behaviours_begin(struct behaviours *x, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(x->what, sizeof(x->what), fmt, ap);
        va_end(ap);
        if (!wanted(x))
                return false;
        x->n_cases++;
        if (names_only)
                printf("%s\n", x->what);
        if (names_only)
                return false;
        maker_init(&x->maker);
        x->n_in = x->n_out = 0;
        x->by_hand = false;
        x->text = NULL;
        return true;
}

void behaviours_end(struct behaviours *x) {
        if (x->maker.error) {
                char text[200];
                snprintf(text, sizeof(text), "error %d at %s", x->maker.error, x->maker.where);
                runner_report(&x->runner, x->what, "case", text);
        } else if (x->served) {
                x->served->text = x->text;
                served_case(x->served, x->what, &x->maker.f, 1, x->n_in ? x->in : NULL, x->n_out ? x->out : NULL);
        } else if (x->by_hand) {
                runner_add_numbers(&x->runner, x->what, &x->maker.f, x->in, x->out);
        } else {
                runner_add(&x->runner, x->what, &x->maker.f, x->n_cases);
        }
        maker_deinit(&x->maker);
}

/* numbers, one per element of value v, kept until the case ends. */
static const double *kept(struct behaviours *x, uint32_t v, const double *numbers) {
        const struct maker_value *value = &x->maker.values[v];
        int64_t n = 1, d;
        if (!v || !numbers)
                return NULL;
        for (uint32_t i = 0; i < value->rank; i++)
                n *= af_expr_is_const(&x->maker.f.exprs, value->ids[i], &d) ? d : 0;
        const double *copy = n > 0 ? af_arena_memdup(&x->maker.arena, numbers, (size_t)n * sizeof(*numbers)) : numbers;
        if (!copy)
                x->maker.error = -ENOMEM;
        return copy;
}

uint32_t behaviours_strided(struct behaviours *x, enum af_dtype d, const struct maker_shape *shape, const int64_t *strides, int64_t offset,
                            const double *numbers) {
        if (x->n_in == BEHAVIOURS_TENSORS)
                return 0;
        uint32_t v = strides ? maker_strided(&x->maker, d, shape, strides, offset) : maker_input(&x->maker, d, shape);
        x->in[x->n_in++] = kept(x, v, numbers);
        return v;
}

uint32_t behaviours_input(struct behaviours *x, enum af_dtype d, const struct maker_shape *shape, const double *numbers) {
        return behaviours_strided(x, d, shape, NULL, 0, numbers);
}

void behaviours_output(struct behaviours *x, uint32_t v, const double *numbers) {
        if (x->n_out == BEHAVIOURS_TENSORS)
                return;
        x->out[x->n_out++] = kept(x, v, numbers);
        x->by_hand |= numbers != NULL;
        maker_output(&x->maker, v);
}

void behaviours_text(struct behaviours *x, const char *text) {
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        char *json = af_arena_printf(&x->maker.arena, "{\"schema\": \"autofuse.fragment/1\", %s}", text);
        for (char *p = json; p && *p; p++)
                *p = *p == '\'' ? '"' : *p;
        x->text = json;
        x->maker.error = json ? af_fragment_parse(&x->maker.f, json, strlen(json), &diags) : -ENOMEM;
        if (x->maker.error)
                snprintf(x->maker.where, sizeof(x->maker.where), "%.100s", diags.n_items ? diags.items[0].what : "its text");
        x->n_in = x->maker.f.n_inputs;
        x->n_out = x->maker.f.n_outputs;
        memset(x->in, 0, sizeof(x->in));
        memset(x->out, 0, sizeof(x->out));
}

void behaviours_output_of(struct behaviours *x, uint32_t i, const double *numbers, uint32_t n) {
        x->out[i] = af_arena_memdup(&x->maker.arena, numbers, n * sizeof(*numbers));
        x->by_hand = true;
}

/* NAME=FILE: a case of its own. */
static void run_file(struct behaviours *x, const char *spec) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        const char *equals = strchr(spec, '=');
        if (!equals || !behaviours_begin(x, "%.*s", (int)(equals - spec), spec))
                return;
        int r = af_io_read_file(equals + 1, AF_LIMIT_TEXT_BYTES, &text);
        if (!r)
                r = af_fragment_parse(&x->maker.f, (const char *)text.data, text.size, &diags);
        if (r) {
                x->maker.error = r;
                snprintf(x->maker.where, sizeof(x->maker.where), "%.100s", equals + 1);
        }
        behaviours_end(x);
}

static void run_all(struct behaviours *x) {
        x->n_cases = 0;
        behaviours_compile(x);
        behaviours_numbers(x);
        behaviours_reductions(x);
        for (uint32_t i = 0; i < x->n_files; i++)
                run_file(x, x->files[i]);
}

/* Pass after pass. The process's exit code. */
static int run_served(struct behaviours *x, const char *socket, char *passes) {
        struct served served;
        char *save = NULL;
        if (!served_open(&served, socket))
                return 1;
        x->served = &served;
        for (char *pass = strtok_r(passes, ",", &save); pass; pass = strtok_r(NULL, ",", &save)) {
                served_begin(&served, pass);
                run_all(x);
        }
        printf("# %llu cases, %llu runs, %llu failed\n", (unsigned long long)x->n_cases, (unsigned long long)served.n_runs,
               (unsigned long long)served.n_failed);
        int r = served.n_failed || x->runner.n_failed || !served.n_runs;
        served_close(&served);
        return r;
}

struct options {
        const char *variants, *flags, *served;
        char *passes;
        bool fallbacks;
};

static bool read_options(struct behaviours *x, int argc, char **argv, struct options *o) {
        const struct {
                const char *name;
                const char **ret;
        } texts[] = {
                {"--variants", &o->variants}, {"--flags", &o->flags}, {"--served", &o->served}, {"--passes", (const char **)&o->passes}};
        const struct {
                const char *name;
                bool *ret;
        } flags[] = {{"--fallbacks", &o->fallbacks}, {"--names", &names_only}, {"--all", &x->all}};
        for (int i = 1; i < argc; i++) {
                bool known = false, value = i + 1 < argc;
                for (size_t k = 0; k < AF_ARRAY_SIZE(flags) && !known; k++)
                        if ((known = strcmp(argv[i], flags[k].name) == 0))
                                *flags[k].ret = true;
                for (size_t k = 0; k < AF_ARRAY_SIZE(texts) && !known && value; k++)
                        if ((known = strcmp(argv[i], texts[k].name) == 0))
                                *texts[k].ret = argv[++i];
                if (!known && value && strcmp(argv[i], "--only") == 0 && x->n_only < MAX_ONLY)
                        x->only[x->n_only++] = argv[++i], known = true;
                if (!known && value && strcmp(argv[i], "--file") == 0 && x->n_files < MAX_FILES)
                        x->files[x->n_files++] = argv[++i], known = true;
                if (!known) {
                        fprintf(stderr, "behaviours: what is %s?\n", argv[i]);
                        return false;
                }
        }
        return true;
}

int main(int argc, char **argv) {
        struct behaviours *x = calloc(1, sizeof(*x));
        char passes[] = "ahead,cold";
        struct options o = {.variants = "default,unfused,small", .passes = passes};
        if (!x || !read_options(x, argc, argv, &o))
                return 2;
        setvbuf(stdout, NULL, _IOLBF, 0);
        int r = 0;
        if (names_only) {
                run_all(x);
        } else if (o.served) {
                r = run_served(x, o.served, o.passes);
        } else {
                if (!runner_init(&x->runner, o.variants, o.flags))
                        return 1;
                run_all(x);
                printf("# %llu cases\n", (unsigned long long)x->n_cases);
                r = runner_finish(&x->runner, o.fallbacks);
                runner_deinit(&x->runner);
        }
        free(x);
        return r;
}
