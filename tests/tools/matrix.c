/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op matrix: every op of the table on every dtype it allows, on shapes and operand forms that are easy to get wrong; reductions over
 * each set of axes; strided inputs; views, long runs and large groups. Each case is a fragment, compiled and compared as in differential.c.
 *
 *   matrix [--only TEXT] [--quick] [--part K/N] [--variants default,unfused,small,fast] [--flags FLAGS] [--fallbacks] [--model]
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/matrix.h"

static unsigned part, n_parts = 1;

bool matrix_begin(struct matrix *x, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(x->what, sizeof(x->what), fmt, ap);
        va_end(ap);
        if ((x->only && !strstr(x->what, x->only)) || x->n_cases++ % n_parts != part)
                return false;
        maker_init(&x->maker);
        return true;
}

void matrix_end(struct matrix *x) {
        if (x->maker.error) {
                char text[200];
                snprintf(text, sizeof(text), "error %d at %s", x->maker.error, x->maker.where);
                runner_report(&x->runner, x->what, "case", text);
        } else {
                runner_add(&x->runner, x->what, &x->maker.f, x->n_cases);
        }
        maker_deinit(&x->maker);
}

int main(int argc, char **argv) {
        struct matrix *x = calloc(1, sizeof(*x));
        const char *names = "default,unfused", *flags = NULL;
        bool fallbacks = false, model = false;
        if (!x)
                return 1;
        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--only") == 0 && i + 1 < argc && (x->only = argv[++i]))
                        continue;
                if (strcmp(argv[i], "--variants") == 0 && i + 1 < argc && (names = argv[++i]))
                        continue;
                if (strcmp(argv[i], "--flags") == 0 && i + 1 < argc && (flags = argv[++i]))
                        continue;
                if (strcmp(argv[i], "--part") == 0 && i + 1 < argc && sscanf(argv[++i], "%u/%u", &part, &n_parts) == 2 && part < n_parts)
                        continue;
                if ((strcmp(argv[i], "--quick") == 0 && (x->quick = true)) || (strcmp(argv[i], "--fallbacks") == 0 && (fallbacks = true)) ||
                    (strcmp(argv[i], "--model") == 0 && (model = true)))
                        continue;
                fprintf(stderr, "matrix: what is %s?\n", argv[i]);
                return 2;
        }
        if (!runner_init(&x->runner, names, flags))
                return 1;
        x->runner.exact_model = model;
        matrix_ops(x);
        matrix_reduce(x);
        matrix_graphs(x);
        printf("# %llu cases\n", (unsigned long long)x->n_cases);
        int r = runner_finish(&x->runner, fallbacks);
        runner_deinit(&x->runner);
        free(x);
        return r;
}
