/* SPDX-License-Identifier: Apache-2.0 */
/* Command line from tables: each command lists its options; --help is written from the same table. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/macros.h"

#define AF_ARGS_MAX_OPTIONS 24

enum af_option_kind { AF_OPTION_FLAG, AF_OPTION_TEXT, AF_OPTION_NUMBER, AF_OPTION_LIST /* may be given many times */ };
struct af_option {
        char letter;      /* 0: none */
        const char *name; /* "output": --output; NULL ends a table */
        enum af_option_kind kind;
        const char *value; /* what --help calls the value: "FILE" */
        const char *help;
};

/* The options that every command has, first in each table. */
#define AF_OPTIONS_COMMON                                                                                                                  \
        {'h', "help", AF_OPTION_FLAG, NULL, "show this help"}, {                                                                           \
                0, "json", AF_OPTION_FLAG, NULL, "print the result as JSON"                                                                \
        }
/* Of commands that talk to the server. */
#define AF_OPTIONS_SERVER                                                                                                                  \
        {'s', "socket", AF_OPTION_TEXT, "PATH", "socket of the server (else $AUTOFUSE_SOCKET, the system's, this user's)"}, {              \
                't', "timeout", AF_OPTION_NUMBER, "SECONDS", "deadline of each request (600)"                                              \
        }

struct af_args;
struct af_command {
        const char *name, *operands, *summary;
        const char *details; /* paragraphs after the options; NULL: none */
        const struct af_option *options;
        uint32_t min_operands, max_operands;    /* max 0: any number */
        int (*run)(const struct af_args *args); /* returns the process's exit code */
};
struct af_args {
        const struct af_command *command;
        const char *values[AF_ARGS_MAX_OPTIONS]; /* by index into the table; a flag that was given: "1"; LIST: the last */
        const char *const *operands;
        uint32_t n_operands;
        const char **list_values; /* LIST options in order of appearance, with the option's index */
        uint32_t *list_options;
        uint32_t n_list;
};

enum { AF_EXIT_OK = 0, AF_EXIT_FAILED = 1, AF_EXIT_USAGE = 2 };

/*
 * Parses argv[0 .. argc) (after the command's name); "--" ends options, "-" is an operand, --name=value and --name value both work. 0; or
 * 1: a usage error was printed to stderr; or 2: help was asked for and printed to stdout. -ENOMEM.
 */
int af_args_parse(const struct af_command *command, int argc, char **argv, struct af_args *ret_args) AF_WARN_UNUSED;
void af_args_deinit(struct af_args *args);
/* name is one of the command's options. */
bool af_args_flag(const struct af_args *args, const char *name);
const char *af_args_text(const struct af_args *args, const char *name); /* NULL where absent */
uint64_t af_args_number(const struct af_args *args, const char *name, uint64_t otherwise);
/* At most 10^9, so that no unit of it overflows. */
uint64_t af_args_seconds(const struct af_args *args, const char *name, uint64_t otherwise);
/* The i-th value of a LIST option, or NULL. */
const char *af_args_list(const struct af_args *args, const char *name, uint32_t i);
void af_args_help(const struct af_command *command, FILE *out);
