/* SPDX-License-Identifier: Apache-2.0 */
/* The template subset against Jinja2 itself, byte for byte: a fixed corpus and random templates (the seed is printed). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spawn.h"
#include "compiler/codegen/jinja.h"

/* ---- contexts ---- */
#define STR(x)                                                                                                                             \
        { .kind = AF_JVAL_STR, .s = x }
#define INT(x)                                                                                                                             \
        { .kind = AF_JVAL_INT, .i = x }
#define BOOL(x)                                                                                                                            \
        { .kind = AF_JVAL_BOOL, .i = x }
#define LIST(x)                                                                                                                            \
        { .kind = AF_JVAL_LIST, .items = x, .n = AF_ARRAY_SIZE(x) }
#define DICT(k, x)                                                                                                                         \
        { .kind = AF_JVAL_DICT, .keys = k, .items = x, .n = AF_ARRAY_SIZE(x) }

static const struct af_jval ints[] = {INT(3), INT(-1), INT(0)};
static const struct af_jval strs[] = {STR("x"), STR("two words"), STR(""), STR("y'\"\\")};
static const struct af_jval pair0[] = {STR("a"), INT(1)}, pair1[] = {STR("b"), INT(2)};
static const struct af_jval pairs[] = {LIST(pair0), LIST(pair1)};
static const char *const arg_keys[] = {"name", "dtype", "n", "last"};
static const struct af_jval arg0[] = {STR("x"), STR("float"), INT(12), BOOL(false)}, arg1[] = {STR("y"), STR("half"), INT(0), BOOL(true)};
static const struct af_jval args[] = {DICT(arg_keys, arg0), DICT(arg_keys, arg1)};
static const struct af_jval nested[] = {LIST(ints), LIST(strs)};
static const char *const context_keys[] = {"i", "n", "z", "s", "t", "e", "b", "f", "L", "M", "P", "A", "D", "E", "N", "u"};
static const struct af_jval context_items[] = {INT(7),
                                               INT(-2),
                                               INT(0),
                                               STR("Abs Relu"),
                                               STR("<&>"),
                                               STR(""),
                                               BOOL(true),
                                               BOOL(false),
                                               LIST(ints),
                                               LIST(strs),
                                               LIST(pairs),
                                               LIST(args),
                                               DICT(arg_keys, arg0),
                                               {.kind = AF_JVAL_LIST},
                                               LIST(nested),
                                               STR("tile µ")};
static const struct af_jval context = DICT(context_keys, context_items);

static void put_json_str(struct af_buf *buf, const char *s, size_t n) {
        af_buf_put_u8(buf, '"');
        for (size_t i = 0; i < n; i++) {
                unsigned char c = s[i];
                if (c == '"' || c == '\\' || c < 0x20)
                        af_buf_printf(buf, "\\u%04x", c);
                else
                        af_buf_put_u8(buf, c);
        }
        af_buf_put_u8(buf, '"');
}

static void put_json(struct af_buf *buf, const struct af_jval *v) {
        if (v->kind == AF_JVAL_STR) {
                put_json_str(buf, v->s, strlen(v->s));
        } else if (v->kind == AF_JVAL_INT) {
                af_buf_printf(buf, "%lld", (long long)v->i);
        } else if (v->kind == AF_JVAL_BOOL) {
                af_buf_put_str(buf, v->i ? "true" : "false");
        } else {
                bool dict = v->kind == AF_JVAL_DICT;
                af_buf_put_u8(buf, dict ? '{' : '[');
                for (uint32_t i = 0; i < v->n; i++) {
                        if (i > 0)
                                af_buf_put_u8(buf, ',');
                        if (dict) {
                                put_json_str(buf, v->keys[i], strlen(v->keys[i]));
                                af_buf_put_u8(buf, ':');
                        }
                        put_json(buf, &v->items[i]);
                }
                af_buf_put_u8(buf, dict ? '}' : ']');
        }
}

/* ---- comparison ---- */

/* Our result in the oracle's form: JSON of the text, or null. */
static void render_json(const char *text, size_t n, struct af_buf *line) {
        struct af_arena arena;
        struct af_diags diags = {0};
        struct af_buf out = AF_BUF_INIT;
        const struct af_template *t;
        af_arena_init(&arena, 0);
        int k = af_jinja_parse(&arena, "t.j2", text, n, &t, &diags);
        if (!k)
                k = af_jinja_render(t, &context, &out, &diags);
        cr_assert_geq(k, 0);
        cr_assert_eq(k > 0, diags.n_errors > 0);
        if (k)
                af_buf_put_str(line, "null");
        else
                put_json_str(line, out.data ? (char *)out.data : "", out.size);
        af_buf_deinit(&out);
        af_diags_deinit(&diags);
        af_arena_deinit(&arena);
}

/* Brings Python's JSON text into put_json_str's spelling. */
static void normalise_line(const char *s, size_t n, struct af_buf *out) {
        if (n == 0 || s[0] != '"') {
                af_buf_put(out, s, n);
                return;
        }
        struct af_buf raw = AF_BUF_INIT;
        for (size_t i = 1; i + 1 < n; i++) {
                if (s[i] != '\\') {
                        af_buf_put_u8(&raw, s[i]);
                        continue;
                }
                char c = s[++i];
                if (c == 'u') {
                        char hex[5] = {s[i + 1], s[i + 2], s[i + 3], s[i + 4], 0};
                        unsigned v = strtoul(hex, NULL, 16);
                        if (v >= 0x80)
                                af_buf_put_u8(&raw, 0xc0 | v >> 6);
                        af_buf_put_u8(&raw, v < 0x80 ? v : 0x80 | (v & 0x3f));
                        i += 4;
                } else {
                        static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
                        const char *f = strchr(from, c);
                        af_buf_put_u8(&raw, f ? to[f - from] : c);
                }
        }
        put_json_str(out, raw.data ? (char *)raw.data : "", raw.size);
        af_buf_deinit(&raw);
}

/* cases: NUL-terminated templates. */
static void compare_with_jinja2(char *const *cases, size_t n, const char *label) {
        struct af_buf in = AF_BUF_INIT, out = AF_BUF_INIT, err = AF_BUF_INIT;
        char script[4096];
        const char *argv[] = {"/usr/bin/python3", script, NULL};
        struct af_spawn_result result;
        snprintf(script, sizeof(script), "%s/tests/unit/codegen/jinja_oracle.py", getenv("AF_SOURCE_ROOT"));
        af_buf_put_u8(&in, '[');
        for (size_t i = 0; i < n; i++) {
                af_buf_put_str(&in, i ? ",[" : "[");
                put_json_str(&in, cases[i], strlen(cases[i]));
                af_buf_put_u8(&in, ',');
                put_json(&in, &context);
                af_buf_put_u8(&in, ']');
        }
        af_buf_put_u8(&in, ']');
        struct af_spawn spawn = {.argv = argv, .input = in.data, .input_size = in.size, .lifeline_fd = -1, .max_output_bytes = 64 << 20};
        cr_assert_eq(af_spawn_run(&spawn, &out, &err, &result), 0);
        cr_assert(result.signal == 0 && result.exit_code == 0, "python3-jinja2: %.*s", (int)err.size, err.data);

        const char *at = (char *)out.data, *end = at + out.size;
        size_t n_ok = 0;
        for (size_t i = 0; i < n; i++) {
                const char *nl = memchr(at, '\n', end - at);
                struct af_buf want = AF_BUF_INIT, got = AF_BUF_INIT;
                cr_assert_not_null(nl);
                normalise_line(at, nl - at, &want);
                render_json(cases[i], strlen(cases[i]), &got);
                cr_expect(want.size == got.size && memcmp(want.data, got.data, want.size) == 0,
                          "%s case %zu: template [%s]\n jinja2 %.*s\n here   %.*s", label, i, cases[i], (int)want.size, want.data,
                          (int)got.size, got.data);
                n_ok += got.data[0] == '"';
                af_buf_deinit(&want);
                af_buf_deinit(&got);
                at = nl + 1;
        }
        cr_log_info("%s: %zu templates, %zu rendered", label, n, n_ok);
        af_buf_deinit(&in);
        af_buf_deinit(&out);
        af_buf_deinit(&err);
}

Test(jinja, corpus) {
        /* clang-format off */
        static const char *const corpus[] = {
                "", "\n", "\n\n", "a\n", "a\r\nb\rc\r\n", "a", "{{ i }}", "{{i}}\n", "{{ i }}\n\n", "x{{- i -}} y", "x {{- i -}}\n\n y",
                "x {{+ i }} y", "{% if b %}yes{% endif %}", "{% if f %}yes{% else %}no{% endif %}",
                "{% if f %}1{% elif z %}2{% elif b %}3{% else %}4{% endif %}", "{% if b -%}\n  yes\n{%- endif %}",
                "{%+ if b +%}\n yes\n{%+ endif +%}\n", "{# c #}", "a {#- c -#} b", "a {#-#} b", "a {##} b", "{#- - -#}",
                "a\n{#\nmany\nlines\n-#}\nb", "{% for x in L %}{{ x }}{% endfor %}",
                "{% for x in L %}{{ x }}, {% else %}none{% endfor %}", "{% for x in E %}{{ x }}{% else %}none{% endfor %}",
                "{% for x in L %}{{ loop.index }}/{{ loop.length }}:{{ loop.index0 }}{{ loop.first }}{{ loop.last }} {{ loop.revindex }}{{ loop.revindex0 }}\n{% endfor %}",
                "{% for a in A %}{{ a.name }}:{{ a['dtype'] }}{% if not loop.last %}, {% endif %}{% endfor %}",
                "{% for k, v in P %}{{ k }}={{ v }};{% endfor %}",
                "{% for k in D %}{{ k }} {% endfor %}",
                "{% for row in N %}{% for x in row %}[{{ x }} {{ loop.index }}]{% endfor %}{{ loop.index }}{% endfor %}",
                "{% for i in L %}{{ i }}{% endfor %}{{ i }}", "{% for L in L %}{{ L }}{% endfor %}",
                "{% for x in L %}{% for y in E %}{% else %}{{ loop.index }}{% endfor %}{% endfor %}", "{{ L|join }}", "{{ L|join(', ') }}",
                "{{ M | join(\"-\") | upper }}", "{{ s|upper }} {{ s|lower }} {{ s|length }} {{ u|length }}",
                "{{ L|length }}{{ D|length }}{{ E|length }}", "{{ b|upper }}{{ i|upper }}", "{{ D|join(',') }}",
                "{{ D.name }}{{ D['n'] }}{{ A[0].n }}{{ A[-1]['name'] }}{{ L[1] }}", "{{ A[1].last }}", "{{ N[0][0] }}",
                "{{ 'a\\n\\t\\\\\\'\\\"' }}", "{{ \"{{ x }}\" }}", "{{ '}}' }}", "{{ '%}' }}", "{{ '{%' ~ i ~ '%}' }}",
                "{ {% if b %}}{% endif %} }", "{{ 1 + 2 * 3 }}", "{{ -1 }}", "{{-1}}", "{{ - 1 }}", "{{ --1 }}", "{{ i - 1 }}",
                "{{ i -1 }}", "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 // -2 }} {{ -7 % 3 }} {{ 7 % -3 }}", "{{ 'a' + 'b' }}", "{{ 1 ~ 2 + 3 }}",
                "{{ 1 + 2 ~ 3 }}", "{{ 'a' ~ b ~ 1 }}", "{{ true }}{{ False }}{{ True }}{{ false }}", "{{ true + 1 }}", "{{ 1 < 2 }}",
                "{{ 1 < 2 < 3 }}", "{{ 1 < 3 < 2 }}", "{{ 1 == 1 == 1 }}", "{{ 1 == true }}", "{{ '1' == 1 }}", "{{ 'a' < 'b' }}",
                "{{ 'a' <= 'B' }}", "{{ L == L }}", "{{ L == M }}", "{{ L != E }}", "{{ D == D }}", "{{ D == A[0] }}", "{{ 3 in L }}",
                "{{ 3 not in L }}", "{{ 'x' in M }}", "{{ 'wo' in 'two' }}", "{{ 'name' in D }}", "{{ 'q' in D }}", "{{ 1 in D }}",
                "{{ not 3 in L }}", "{{ not b }}", "{{ not not s }}", "{{ b and s }}", "{{ f and s }}", "{{ e or 'default' }}",
                "{{ f or z or i }}", "{{ b or nothing }}", "{{ f and nothing }}", "{{ 'a' if b else 'c' }}",
                "{{ 'a' if f else nothing2 if f else 'd' }}", "{{ ('a' if b else 'c') ~ 'x' }}", "{{ (i) }}", "{{ ((i + 1) * 2) }}",
                "{{ (A)[0].name }}", "{{ -i|length }}", "{{ 'x'|upper ~ 'y' }}", "{{ i % 2 == 1 and b }}", "{{ t }}", "{{ u }}",
                "a{% if b %}\n{% endif %}\nb\n", "  {% if b %}  {%- endif %}  ", "\v\f {{- i -}} \v\f.", "{{ i }}}", "{{{ i }}", "{{ i }",
                "{{ i", "{% if b %}", "{% endif %}", "{% else %}", "{% for x in L %}{% endif %}", "{% if b %}{% endfor %}",
                "{% if %}{% endif %}", "{{ }}", "{% %}", "{# open", "{{ 'open }}", "{{ nothing }}", "{{ D.nothing }}", "{{ D['nothing'] }}",
                "{{ L[3] }}", "{{ L[-4] }}", "{% if nothing %}{% endif %}", "{% for x in nothing %}{% endfor %}", "{{ nothing == 1 }}",
                "{{ nothing|upper }}", "{{ loop.index }}", "{% for x in L %}{{ loop.nothing }}{% endfor %}",
                "{% for loop in L %}{% endfor %}", "{% for k, v in L %}{% endfor %}", "{% for k, v, w in P %}{% endfor %}", "{{ 1 < 'a' }}",
                "{{ 1 + 'a' }}", "{{ 'a' - 1 }}", "{{ i|length }}", "{{ i // z }}", "{{ i % 0 }}", "{{ L < 1 }}", "{{ 1 in i }}",
                "{{ L in D }}", "{{ 1 in s }}", "{% for x in i %}{% endfor %}", "{{ i i }}", "{{ i | nofilter }}", "{{ i. }}", "{{ i[ }}",
                "{{ (i }}", "{{ 012 }}", "{{ 1abc }}", "{{ i | }}", "{{ i and }}", "{{ not }}", "{{ i == }}", "{{ i +}}", "{{ i ? 1 }}",
                "{% frob %}", "{% if b %}{% else %}{% else %}{% endif %}", "{% if b %}{% elif %}{% endif %}", "{% if b x %}{% endif %}",
                "{% if b %}{% endif x %}", "{% for x L %}{% endfor %}", "{% for in L %}{% endfor %}", "{%if b%}x{%endif%}",
                "{%-if b-%}x{%-endif-%}", "{{i-}} x", "{{ i\n}}\n{{\ns }}", "{% for x\nin L\n%}{{ x }}{% endfor %}"};
        /* clang-format on */
        compare_with_jinja2((char *const *)corpus, AF_ARRAY_SIZE(corpus), "corpus");
}

/* ---- random templates ---- */
static uint64_t rng;
static unsigned pick(unsigned n) {
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        return (unsigned)((rng >> 11) % n);
}
static void put_one(struct af_buf *b, const char *const *list, unsigned n) {
        af_buf_put_str(b, list[pick(n)]);
}
#define ONE(b, ...)                                                                                                                        \
        do {                                                                                                                               \
                static const char *const list_[] = {__VA_ARGS__};                                                                          \
                put_one(b, list_, AF_ARRAY_SIZE(list_));                                                                                   \
        } while (0)

static void gen_bool(struct af_buf *b, unsigned depth);

static void gen_int(struct af_buf *b, unsigned depth) {
        switch (depth ? pick(9) : pick(3)) {
        case 0:
                ONE(b, "i", "n", "z", "L[0]", "L[-1]", "D.n", "A[1]['n']", "i");
                break;
        case 1:
                ONE(b, "0", "1", "42", "9", "True", "b", "L[1]");
                break;
        case 2:
                ONE(b, "L|length", "s|length", "D|length", "E|length", "(i)", "-i", "-3");
                break;
        case 3:
                af_buf_put_u8(b, '(');
                gen_int(b, depth - 1);
                af_buf_put_u8(b, ')');
                break;
        default:
                gen_int(b, depth - 1);
                ONE(b, " + ", " - ", " * ", "-", "+", " // ", " % ", " * ");
                gen_int(b, depth - 1);
                break;
        }
}

static void gen_str(struct af_buf *b, unsigned depth) {
        switch (depth ? pick(8) : pick(3)) {
        case 0:
                ONE(b, "s", "t", "e", "M[0]", "D.name", "A[0].dtype", "u", "M[-1]");
                break;
        case 1:
                ONE(b, "'a'", "\"B c\"", "''", "'}}'", "\"-%}\"", "'\\n'", "'{#'");
                break;
        case 2:
                ONE(b, "L|join(', ')", "M|join", "s|upper", "s|lower", "M|join('-')|upper", "D|join('+')");
                break;
        case 3:
                gen_str(b, depth - 1);
                af_buf_put_str(b, " ~ ");
                gen_int(b, depth - 1);
                break;
        case 4:
                af_buf_put_u8(b, '(');
                gen_str(b, depth - 1);
                af_buf_put_str(b, " if ");
                gen_bool(b, depth - 1);
                af_buf_put_str(b, " else ");
                gen_str(b, depth - 1);
                af_buf_put_u8(b, ')');
                break;
        default:
                gen_str(b, depth - 1);
                ONE(b, " ~ ", " + ", "~");
                gen_str(b, depth - 1);
                break;
        }
}

static void gen_bool(struct af_buf *b, unsigned depth) {
        switch (depth ? pick(7) : pick(2)) {
        case 0:
                ONE(b, "b", "f", "true", "false", "L", "E", "s", "e", "i", "z", "D.last");
                break;
        case 1:
                ONE(b, "3 in L", "i not in L", "'name' in D", "s == t", "'x' in M", "nope");
                break;
        case 2:
                af_buf_put_str(b, "not ");
                gen_bool(b, depth - 1);
                break;
        case 3:
                gen_str(b, depth - 1);
                ONE(b, " == ", " != ", " < ", ">=", " in ");
                gen_str(b, depth - 1);
                break;
        case 4:
                gen_int(b, depth - 1);
                ONE(b, " == ", " != ", " < ", "<=", ">", " >= ");
                gen_int(b, depth - 1);
                break;
        default:
                gen_bool(b, depth - 1);
                ONE(b, " and ", " or ");
                gen_bool(b, depth - 1);
                break;
        }
}

static void open_tag(struct af_buf *b, const char *open) {
        af_buf_put_str(b, open);
        ONE(b, " ", " ", "-", "- ", "", "+ ", " \n ");
}
static void close_tag(struct af_buf *b, const char *close) {
        bool block = close[0] == '%';
        const char *const ends[] = {" ", " ", " -", "-", "", "\n", block ? "+" : " "};
        put_one(b, ends, AF_ARRAY_SIZE(ends));
        af_buf_put_str(b, close);
}

static void gen_body(struct af_buf *b, unsigned depth, unsigned loops);

static void gen_word(struct af_buf *b, const char *word) {
        open_tag(b, "{%");
        af_buf_put_str(b, word);
        close_tag(b, "%}");
}

static void gen_print(struct af_buf *b, unsigned loops) {
        open_tag(b, "{{");
        if (loops && pick(3) == 0)
                ONE(b, "loop.index", "loop.first", "loop.last", "loop.index0 + 1", "x", "loop.length");
        else if (pick(2))
                gen_str(b, 2);
        else
                gen_int(b, 2);
        close_tag(b, "}}");
}

static void gen_if(struct af_buf *b, unsigned depth, unsigned loops) {
        for (unsigned i = 0, n = 1 + pick(3); i < n; i++) {
                open_tag(b, "{%");
                af_buf_put_str(b, i ? "elif " : "if ");
                gen_bool(b, i ? 1 : 2);
                close_tag(b, "%}");
                gen_body(b, depth, loops);
        }
        if (pick(2)) {
                gen_word(b, "else");
                gen_body(b, depth, loops);
        }
        gen_word(b, "endif");
}

static void gen_for(struct af_buf *b, unsigned depth, unsigned loops) {
        open_tag(b, "{%");
        af_buf_put_str(b, "for x in ");
        ONE(b, "L", "M", "D", "E", "N[0]", "N[1]");
        close_tag(b, "%}");
        gen_body(b, depth, loops + 1);
        if (pick(3) == 0) {
                gen_word(b, "else");
                gen_body(b, depth, loops);
        }
        gen_word(b, "endfor");
}

static void gen_body(struct af_buf *b, unsigned depth, unsigned loops) {
        for (unsigned n = 1 + pick(4); n > 0; n--) {
                switch (depth ? pick(8) : pick(4)) {
                case 0:
                case 1:
                        ONE(b, " ", "\n", "  \n\n", "text", "\r\n", "{ a }", "%}", "}}\n", "# \t", " x\r", "µ ", "{", "\f\n");
                        break;
                case 2:
                        gen_print(b, loops);
                        break;
                case 3:
                        open_tag(b, "{#");
                        ONE(b, "note", "", "{{ i }}", "\n", "-");
                        ONE(b, "#}", "-#}", " #}", "+#}");
                        break;
                case 4:
                case 5:
                        gen_if(b, depth - 1, loops);
                        break;
                default:
                        gen_for(b, depth - 1, loops);
                        break;
                }
        }
}

Test(jinja, random) {
        enum { N = 1500 };
        const char *env = getenv("AF_TEST_SEED");
        uint64_t seed = env ? strtoull(env, NULL, 0) : 20240611;
        static char *cases[N];
        cr_log_info("seed %llu (AF_TEST_SEED)", (unsigned long long)seed);
        rng = seed * 0x9e3779b97f4a7c15u | 1;
        for (size_t i = 0; i < N; i++) {
                struct af_buf b = AF_BUF_INIT;
                gen_body(&b, 3, 0);
                size_t n;
                cases[i] = (char *)af_buf_take(&b, &n);
                cr_assert_not_null(cases[i]);
        }
        compare_with_jinja2(cases, N, "random");
        for (size_t i = 0; i < N; i++)
                free(cases[i]);
}

/* ---- messages and limits ---- */
static void expect_message(const char *text, int code, const char *where, const char *what) {
        struct af_arena arena;
        struct af_diags diags = {0};
        struct af_buf out = AF_BUF_INIT;
        const struct af_template *t;
        af_arena_init(&arena, 0);
        int k = af_jinja_parse(&arena, "kernel.j2", text, strlen(text), &t, &diags);
        if (!k)
                k = af_jinja_render(t, &context, &out, &diags);
        cr_expect_eq(k, code, "[%.60s]: %d", text, k);
        cr_assert_eq(diags.n_items, 1);
        cr_expect_str_eq(diags.items[0].where, where);
        cr_expect(strstr(diags.items[0].what, what), "%s", diags.items[0].what);
        af_buf_deinit(&out);
        af_diags_deinit(&diags);
        af_arena_deinit(&arena);
}

Test(jinja, messages_name_template_and_line) {
        expect_message("a\n{{ b }}\n{{ missing }}\n", AF_JINJA_E_UNDEFINED, "kernel.j2:3", "unknown variable missing");
        expect_message("\n{{ D.missing }}", AF_JINJA_E_UNDEFINED, "kernel.j2:2", "missing");
        expect_message("{{ L[9] }}", AF_JINJA_E_UNDEFINED, "kernel.j2:1", "index");
        expect_message("\n\n{{ D.items }}", AF_JINJA_E_SYNTAX, "kernel.j2:3", "method");
        expect_message("{{ L }}", AF_JINJA_E_TYPE, "kernel.j2:1", "cannot print a list");
        expect_message("{% if b %}\n\n", AF_JINJA_E_SYNTAX, "kernel.j2:2", "without an end");
        expect_message("{{ 9999999999999999999 }}", AF_JINJA_E_SYNTAX, "kernel.j2:1", "64 bits");
        expect_message("{{ 9223372036854775807 + 1 }}", AF_JINJA_E_TYPE, "kernel.j2:1", "64 bits");
        expect_message("{{ i|default(1) }}", AF_JINJA_E_SYNTAX, "kernel.j2:1", "unknown filter");
        expect_message("{% set x = 1 %}", AF_JINJA_E_SYNTAX, "kernel.j2:1", "unknown or misplaced");
        expect_message("{{ u|upper }}", AF_JINJA_E_TYPE, "kernel.j2:1", "ASCII");
}

Test(jinja, nesting_is_limited) {
        static const char *const pieces[] = {"(", "{% if b %}", "{% for x in L %}", "not ", "x["};
        for (size_t k = 0; k < AF_ARRAY_SIZE(pieces); k++) {
                struct af_buf b = AF_BUF_INIT;
                if (pieces[k][0] != '{')
                        af_buf_put_str(&b, "{{ ");
                for (unsigned i = 0; i < 100000; i++)
                        af_buf_put_str(&b, pieces[k]);
                af_buf_put_u8(&b, 0);
                expect_message((char *)b.data, AF_JINJA_E_SYNTAX, "kernel.j2:1", "nested too deeply");
                af_buf_deinit(&b);
        }
}
