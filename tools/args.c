/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HELP_COLUMN 28

static int find_long(const struct af_command *c, const char *name, size_t n) {
        for (int i = 0; c->options[i].name; i++)
                if (strlen(c->options[i].name) == n && memcmp(c->options[i].name, name, n) == 0)
                        return i;
        return -1;
}

static int find_letter(const struct af_command *c, char letter) {
        for (int i = 0; c->options[i].name; i++)
                if (c->options[i].letter == letter)
                        return i;
        return -1;
}

static int index_of(const struct af_args *args, const char *name) {
        int i = find_long(args->command, name, strlen(name));
        if (i < 0)
                abort(); /* the table and the code that reads it differ */
        return i;
}

static void print_wrapped(FILE *out, const char *text, int column) {
        int at = column;
        while (*text) {
                size_t n = strcspn(text, " \n");
                if (at > column && at + 1 + (int)n > 100) {
                        fprintf(out, "\n%*s", column, "");
                        at = column;
                }
                at += fprintf(out, "%s%.*s", at > column ? " " : "", (int)n, text);
                text += n;
                while (*text == ' ' || *text == '\n')
                        text++;
        }
        fputc('\n', out);
}

void af_args_help(const struct af_command *command, FILE *out) {
        fprintf(out, "usage: autofusectl %s [options]%s%s\n\n", command->name, command->operands[0] ? " " : "", command->operands);
        print_wrapped(out, command->summary, 0);
        fputs("\noptions:\n", out);
        for (const struct af_option *o = command->options; o->name; o++) {
                char head[128];
                snprintf(head, sizeof(head), "  %c%c%s --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ', o->letter ? "," : " ",
                         o->name, o->value ? " " : "", o->value ? o->value : "");
                int n = fprintf(out, "%-*s", HELP_COLUMN, head);
                if (n > HELP_COLUMN)
                        fprintf(out, "\n%*s", HELP_COLUMN, "");
                print_wrapped(out, o->help, HELP_COLUMN);
        }
        for (const char *p = command->details; p && *p;) {
                const char *end = strstr(p, "\n\n");
                char paragraph[1024];
                snprintf(paragraph, sizeof(paragraph), "%.*s", (int)(end ? end - p : (long)strlen(p)), p);
                fputc('\n', out);
                print_wrapped(out, paragraph, 0);
                p = end ? end + 2 : p + strlen(p);
        }
}

static int usage(const struct af_args *args, const char *what, const char *which, int n) {
        fprintf(stderr, "autofusectl %s: %s%.*s\n", args->command->name, what, n, which);
        fprintf(stderr, "usage: autofusectl %s [options]%s%s (--help tells more)\n", args->command->name,
                args->command->operands[0] ? " " : "", args->command->operands);
        return 1;
}

static bool is_number(const char *s) {
        char *end;
        errno = 0;
        strtoull(s, &end, 0);
        return s[0] >= '0' && s[0] <= '9' && *end == 0 && errno == 0;
}

static int store(struct af_args *args, int option, const char *value) {
        const struct af_option *o = &args->command->options[option];
        if (o->kind == AF_OPTION_NUMBER && !is_number(value))
                return usage(args, "not a number: --", o->name, (int)strlen(o->name));
        if (o->kind == AF_OPTION_LIST) {
                args->list_values[args->n_list] = value;
                args->list_options[args->n_list++] = (uint32_t)option;
        }
        args->values[option] = value;
        return 0;
}

/* argv[*i] starts with "--". */
static int parse_long(struct af_args *args, int argc, char **argv, int *i) {
        const char *name = argv[*i] + 2, *equals = strchr(name, '=');
        size_t n = equals ? (size_t)(equals - name) : strlen(name);
        int option = find_long(args->command, name, n);
        if (option < 0)
                return usage(args, "unknown option: --", name, (int)n);
        if (args->command->options[option].kind == AF_OPTION_FLAG)
                return equals ? usage(args, "takes no value: --", name, (int)n) : store(args, option, "1");
        if (!equals && *i + 1 >= argc)
                return usage(args, "needs a value: --", name, (int)n);
        return store(args, option, equals ? equals + 1 : argv[++*i]);
}

/* argv[*i] is "-x…": letters, the last of which may take a value, attached or next. */
static int parse_letters(struct af_args *args, int argc, char **argv, int *i) {
        for (const char *p = argv[*i] + 1; *p; p++) {
                int option = find_letter(args->command, *p);
                if (option < 0)
                        return usage(args, "unknown option: -", p, 1);
                if (args->command->options[option].kind == AF_OPTION_FLAG) {
                        int r = store(args, option, "1");
                        if (r)
                                return r;
                        continue;
                }
                if (p[1])
                        return store(args, option, p + 1);
                return *i + 1 < argc ? store(args, option, argv[++*i]) : usage(args, "needs a value: -", p, 1);
        }
        return 0;
}

static int parse_all(struct af_args *args, int argc, char **argv, const char **operands) {
        bool only_operands = false;
        int r = 0;
        for (int i = 0; i < argc && r == 0; i++) {
                if (only_operands || argv[i][0] != '-' || argv[i][1] == 0)
                        operands[args->n_operands++] = argv[i];
                else if (strcmp(argv[i], "--") == 0)
                        only_operands = true;
                else if (argv[i][1] == '-')
                        r = parse_long(args, argc, argv, &i);
                else
                        r = parse_letters(args, argc, argv, &i);
        }
        return r;
}

int af_args_parse(const struct af_command *command, int argc, char **argv, struct af_args *ret_args) {
        struct af_args args = {.command = command};
        const char **operands = calloc((size_t)argc + 1, sizeof(*operands));
        args.operands = operands;
        args.list_values = calloc((size_t)argc + 1, sizeof(*args.list_values));
        args.list_options = calloc((size_t)argc + 1, sizeof(*args.list_options));
        int r = operands && args.list_values && args.list_options ? parse_all(&args, argc, argv, operands) : -ENOMEM;
        if (r == 0 && af_args_flag(&args, "help")) {
                af_args_help(command, stdout);
                r = 2;
        }
        if (r == 0 && args.n_operands < command->min_operands)
                r = usage(&args, "missing: ", command->operands, (int)strlen(command->operands));
        if (r == 0 && command->max_operands && args.n_operands > command->max_operands)
                r = usage(&args, "too many arguments from: ", args.operands[command->max_operands],
                          (int)strlen(args.operands[command->max_operands]));
        if (r != 0) {
                af_args_deinit(&args);
                return r;
        }
        *ret_args = args;
        return 0;
}

void af_args_deinit(struct af_args *args) {
        free((void *)args->operands);
        free(args->list_values);
        free(args->list_options);
        *args = (struct af_args){0};
}

bool af_args_flag(const struct af_args *args, const char *name) {
        return args->values[index_of(args, name)] != NULL;
}

const char *af_args_text(const struct af_args *args, const char *name) {
        return args->values[index_of(args, name)];
}

uint64_t af_args_number(const struct af_args *args, const char *name, uint64_t otherwise) {
        const char *s = args->values[index_of(args, name)];
        return s ? strtoull(s, NULL, 0) : otherwise;
}

uint64_t af_args_seconds(const struct af_args *args, const char *name, uint64_t otherwise) {
        return AF_MIN(af_args_number(args, name, otherwise), (uint64_t)1000000000);
}

const char *af_args_list(const struct af_args *args, const char *name, uint32_t i) {
        uint32_t option = (uint32_t)index_of(args, name);
        for (uint32_t j = 0; j < args->n_list; j++)
                if (args->list_options[j] == option && i-- == 0)
                        return args->list_values[j];
        return NULL;
}
