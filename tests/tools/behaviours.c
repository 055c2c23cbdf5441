/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold of compiled numbers, case by case: each is named by its id (A.. compile, N.. numbers), has its data by hand where a number
 * is promised, and is compiled and compared with the reference as in differential.c.
 *
 *   behaviours [--only TEXT] [--variants default,unfused,small,fast] [--flags "-O0"] [--fallbacks] [--names] [--all]
 *
 * --only: names that start so. --all takes every dtype of every op where a part of them is taken by default. --names prints the cases
 * instead of running them.
 */
#include "tests/tools/behaviours.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool names_only;

bool behaviours_begin(struct behaviours *x, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(x->what, sizeof(x->what), fmt, ap);
        va_end(ap);
        if (x->only && strncmp(x->what, x->only, strlen(x->only)) != 0)
                return false;
        x->n_cases++;
        if (names_only)
                printf("%s\n", x->what);
        if (names_only)
                return false;
        maker_init(&x->maker);
        x->n_in = x->n_out = 0;
        x->by_hand = false;
        return true;
}

void behaviours_end(struct behaviours *x) {
        if (x->maker.error) {
                char text[200];
                snprintf(text, sizeof(text), "error %d at %s", x->maker.error, x->maker.where);
                runner_report(&x->runner, x->what, "case", text);
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

int main(int argc, char **argv) {
        struct behaviours *x = calloc(1, sizeof(*x));
        const char *names = "default,unfused,small", *flags = "-O0";
        bool fallbacks = false;
        if (!x)
                return 1;
        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--only") == 0 && i + 1 < argc && (x->only = argv[++i]))
                        continue;
                if (strcmp(argv[i], "--variants") == 0 && i + 1 < argc && (names = argv[++i]))
                        continue;
                if (strcmp(argv[i], "--flags") == 0 && i + 1 < argc && (flags = argv[++i]))
                        continue;
                if ((strcmp(argv[i], "--fallbacks") == 0 && (fallbacks = true)) ||
                    (strcmp(argv[i], "--names") == 0 && (names_only = true)) || (strcmp(argv[i], "--all") == 0 && (x->all = true)))
                        continue;
                fprintf(stderr, "behaviours: what is %s?\n", argv[i]);
                return 2;
        }
        if (!runner_init(&x->runner, names, flags))
                return 1;
        behaviours_compile(x);
        behaviours_numbers(x);
        behaviours_reductions(x);
        printf("# %llu cases\n", (unsigned long long)x->n_cases);
        int r = names_only ? 0 : runner_finish(&x->runner, fallbacks);
        runner_deinit(&x->runner);
        free(x);
        return r;
}
