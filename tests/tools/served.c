/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tools/served.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "client/bundle.h"
#include "client/strided.h"
#include "tests/lib/bind.h"
#include "tests/lib/eval.h"
#include "tools/exec.h"

#define MAX_SYMBOLS 16u

struct one { /* a case in a pass */
        struct served *s;
        const char *what;
        const struct af_fragment *f;
        uint64_t seed;
        const double *const *in, *const *out; /* NULL: random; what the reference gives */
        struct af_buf text;                   /* the fragment as it was sent */
        struct af_buf results;                /* the outputs' bits, dense, in order */
};

static void fail(const struct one *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fail(const struct one *o, const char *fmt, ...) {
        va_list ap;
        printf("not ok %s %s: ", o->what, o->s->pass);
        va_start(ap, fmt);
        vprintf(fmt, ap);
        va_end(ap);
        printf("\n");
        o->s->n_failed++;
}

static void fail_with(const struct one *o, enum autofuse_status status, struct autofuse_error *error) {
        fail(o, "%s", error ? autofuse_error_text(error) : autofuse_status_name(status));
        autofuse_error_free(error);
}

bool served_open(struct served *s, const char *socket) {
        struct autofuse_options o = AUTOFUSE_OPTIONS_INIT;
        struct autofuse_error *error = NULL;
        *s = (struct served){.pass = ""};
        o.socket = socket;
        o.client_name = "behaviours";
        o.connect_timeout_ms = 60000;
        o.memo_bytes = UINT64_C(1) << 30;
        if (autofuse_context_open(&o, &s->context, &error) == AUTOFUSE_OK)
                return true;
        printf("not ok context: %s\n", error ? autofuse_error_text(error) : "");
        autofuse_error_free(error);
        return false;
}

void served_close(struct served *s) {
        for (uint32_t i = 0; i < s->n_ahead; i++)
                autofuse_request_free(s->ahead[i]);
        free(s->ahead);
        autofuse_context_close(s->context);
}

void served_begin(struct served *s, const char *pass) {
        s->pass = pass;
        s->next = 0;
        if (strcmp(pass, "memo") != 0)
                autofuse_context_forget(s->context);
}

static enum autofuse_status submit(struct served *s, const struct af_buf *text, struct autofuse_request **ret,
                                   struct autofuse_error **ret_error) {
        struct autofuse_submit_options o = AUTOFUSE_SUBMIT_INIT;
        o.bypass_memo = strcmp(s->pass, "memo") != 0 && strcmp(s->pass, "hot") != 0;
        o.deadline_ms = 3600 * 1000;
        return autofuse_submit_text(s->context, (const char *)text->data, text->size, &o, ret, ret_error);
}

static void ask_ahead(struct one *o) {
        struct served *s = o->s;
        struct autofuse_request *request = NULL;
        struct autofuse_error *error = NULL;
        if (s->n_ahead == s->cap_ahead) {
                uint32_t cap = s->cap_ahead ? s->cap_ahead * 2 : 64;
                struct autofuse_request **grown = realloc(s->ahead, cap * sizeof(*grown));
                if (!grown)
                        abort();
                s->ahead = grown;
                s->cap_ahead = cap;
        }
        enum autofuse_status status = submit(s, &o->text, &request, &error);
        if (status != AUTOFUSE_OK)
                fail_with(o, status, error);
        s->ahead[s->n_ahead++] = request;
}

static struct autofuse_bundle *answer(struct one *o) {
        struct served *s = o->s;
        struct autofuse_request *request = NULL;
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_error *error = NULL;
        enum autofuse_status status = AUTOFUSE_OK;
        if (s->next < s->n_ahead && s->ahead[s->next]) {
                request = s->ahead[s->next];
                s->ahead[s->next] = NULL;
        } else {
                status = submit(s, &o->text, &request, &error);
        }
        s->next++;
        if (status == AUTOFUSE_OK)
                status = autofuse_request_wait(request, -1, &bundle, &error);
        if (status != AUTOFUSE_OK)
                fail_with(o, status, error);
        autofuse_request_free(request);
        return bundle;
}

static int64_t count_of(const struct af_tensor *t) {
        int64_t n = 1;
        for (uint32_t i = 0; i < t->rank; i++)
                n *= t->dims[i];
        return n;
}

/* The numbers by hand, where there are some: NaN is NaN, -0.0 is not 0.0. */
static bool by_hand(const struct one *o, uint32_t output, const struct af_tensor *dense) {
        const double *want = o->out ? o->out[output] : NULL;
        for (int64_t k = 0; want && k < count_of(dense); k++) {
                double v = af_test_number_get((const char *)dense->data + k * af_dtype_size(dense->dtype), dense->dtype);
                if ((isnan(v) && isnan(want[k])) || (v == want[k] && signbit(v) == signbit(want[k])))
                        continue;
                fail(o, "output %u[%lld] is %g, not %g", output, (long long)k, v, want[k]);
                return false;
        }
        return true;
}

static void look_at(struct one *o, const struct af_exec *x) {
        for (uint32_t i = 0; i < x->frag->g.n_outputs; i++) {
                const struct af_tensor *got = &x->outputs[i].t;
                struct af_tensor dense = *got;
                double error;
                uint64_t first, differ = af_tensor_compare(got, &x->expected[i], &error, &first);
                size_t n = (size_t)count_of(got) * af_dtype_size(got->dtype);
                if (differ) {
                        fail(o, "output %u: %llu elements are not the reference's, first %llu, largest error %g", i,
                             (unsigned long long)differ, (unsigned long long)first, error);
                        return;
                }
                dense.data = malloc(n + 1);
                if (!dense.data)
                        abort();
                af_strided_dense(dense.dims, dense.rank, dense.strides);
                af_strided_copy(dense.data, dense.strides, got->data, got->strides, got->dims, got->rank, af_dtype_size(got->dtype));
                bool good = by_hand(o, i, &dense);
                af_buf_put(&o->results, dense.data, n);
                free(dense.data);
                if (!good)
                        return;
        }
}

static void run_with(struct one *o, const struct af_frag *frag, struct autofuse_bundle *bundle) {
        struct autofuse_error *error = NULL;
        struct af_exec x;
        o->s->n_runs++;
        if (af_exec_init(&x, frag)) {
                fail(o, "no inputs");
                return;
        }
        af_exec_fill(&x, o->seed, false);
        for (uint32_t i = 0; o->in && i < frag->g.n_inputs; i++)
                if (o->in[i])
                        af_test_numbers_put(&x.inputs[i].t, o->in[i]);
        if (af_exec_reference(&x)) {
                fail(o, "the reference cannot run it");
        } else {
                enum autofuse_status status = af_exec_run(&x, bundle, false, &error);
                if (status != AUTOFUSE_OK)
                        fail_with(o, status, error);
                else
                        look_at(o, &x);
        }
        af_exec_deinit(&x);
}

/* As it was built; one with symbols, whose graph gets sizes, is read once more from the text. */
static int make_frag(const struct one *o, struct af_frag *frag, struct af_diags *diags) {
        int r = 0;
        if (!o->f->n_symbols)
                frag->f = *o->f;
        else if (!(r = af_fragment_init(&frag->f, &frag->arena)))
                r = af_fragment_parse(&frag->f, (const char *)o->text.data, o->text.size, diags);
        return r ? r : af_frag_resolve(frag, diags);
}

/* status, error: of solving for the sizes that the graph has. */
static void run_solved(struct one *o, const struct af_frag *frag, struct autofuse_bundle *solved, enum autofuse_status status,
                       struct autofuse_error *error) {
        bool refused = status == AUTOFUSE_E_SHAPE && strstr(autofuse_error_text(error), "of nothing: axis");
        if (refused != bind_reduces_nothing(&frag->g))
                fail(o, "a node reduces nothing: %s", refused ? "refused though none does" : "not refused");
        else if (status != AUTOFUSE_OK && !refused)
                fail(o, "%s", autofuse_error_text(error));
        else if (!refused)
                run_with(o, frag, solved);
        autofuse_error_free(error);
}

/* Choice k of the symbols' values (0 where there are none). False: there is no such choice. */
static bool run_choice(struct one *o, struct autofuse_bundle *bundle, uint32_t k) {
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        struct af_frag frag = {.path = o->what};
        struct autofuse_bundle *solved = NULL;
        struct autofuse_error *error = NULL;
        int64_t values[MAX_SYMBOLS];
        bool more = k == 0;
        af_arena_init(&frag.arena, 0);
        if (make_frag(o, &frag, &diags) || frag.g.n_symbols > MAX_SYMBOLS) {
                fail(o, "no graph that this can run");
        } else if (!frag.g.n_symbols) {
                more = false;
                run_with(o, &frag, bundle);
        } else if ((more = bind_choice(&frag.g, k, 0, values))) {
                enum autofuse_status status = autofuse_bundle_solve(bundle, values, frag.g.n_symbols, &solved, &error);
                if (af_graph_bind(&frag.g, values))
                        fail(o, "a size overflows");
                else
                        run_solved(o, &frag, solved, status, error);
        }
        autofuse_bundle_unref(solved);
        af_arena_deinit(&frag.arena);
        return more;
}

static void check_hex(const void *p, size_t n, char *out) {
        struct af_check check;
        af_check_bytes(p, n, &check);
        af_hex(check.bytes, sizeof(check.bytes), out);
}

static void run_case(struct one *o, struct autofuse_bundle *bundle) {
        static const char *const hits[] = {"compiled", "joined", "store", "memo", "hot"};
        struct autofuse_bundle_info info;
        char bundle_hex[33], results_hex[33];
        for (uint32_t k = 0; run_choice(o, bundle, k); k++)
                ;
        autofuse_bundle_info(bundle, &info);
        check_hex(bundle->content->data, bundle->content->size, bundle_hex);
        check_hex(o->results.data, o->results.size, results_hex);
        printf("= %s\t%s\t%s\t%s\t%s\n", o->s->pass, o->what, hits[info.hit], bundle_hex, results_hex);
}

void served_case(struct served *s, const char *what, const struct af_fragment *f, uint64_t seed, const double *const *in,
                 const double *const *out) {
        struct one o = {.s = s, .what = what, .f = f, .seed = seed, .in = in, .out = out};
        if (s->text)
                af_buf_put_str(&o.text, s->text);
        else
                af_fragment_print(f, 0, &o.text);
        s->text = NULL;
        if (af_buf_error(&o.text))
                abort();
        if (strcmp(s->pass, "ahead") == 0) {
                ask_ahead(&o);
        } else {
                struct autofuse_bundle *bundle = answer(&o);
                if (bundle)
                        run_case(&o, bundle);
                autofuse_bundle_unref(bundle);
        }
        af_buf_deinit(&o.results);
        af_buf_deinit(&o.text);
}
