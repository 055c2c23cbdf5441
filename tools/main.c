/* SPDX-License-Identifier: Apache-2.0 */
/* autofusectl: the table of commands. */
#include <stdio.h>
#include <string.h>

#include "client/autofuse.h"
#include "tools/commands.h"

static const struct af_command *const commands[] = {
        &af_command_compile, &af_command_run,    &af_command_verify, &af_command_warm,   &af_command_explain,
        &af_command_key,     &af_command_why,    &af_command_watch,  &af_command_top,    &af_command_history,
        &af_command_stats,   &af_command_stop,   &af_command_clear,  &af_command_gc,     &af_command_verify_store,
        &af_command_pack,    &af_command_export, &af_command_import, &af_command_keygen,
};

static void help(FILE *out) {
        fputs("usage: autofusectl COMMAND [options] …\n\ncommands:\n", out);
        for (size_t i = 0; i < AF_ARRAY_SIZE(commands); i++)
                fprintf(out, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
        fputs("\nautofusectl COMMAND --help tells a command's options. Exit code: 0, 1 where it failed, 2 where it was called wrongly.\n",
              out);
}

static int run(const struct af_command *command, int argc, char **argv) {
        struct af_args args;
        int r = af_args_parse(command, argc, argv, &args);
        if (r == 2)
                return AF_EXIT_OK;
        if (r != 0)
                return AF_EXIT_USAGE;
        r = command->run(&args);
        af_args_deinit(&args);
        if (fflush(stdout) != 0 || ferror(stdout))
                return AF_EXIT_FAILED;
        return r;
}

int main(int argc, char **argv) {
        if (argc < 2) {
                help(stderr);
                return AF_EXIT_USAGE;
        }
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
                help(stdout);
                return AF_EXIT_OK;
        }
        if (strcmp(argv[1], "--version") == 0) {
                printf("autofusectl %s\n", autofuse_version());
                return AF_EXIT_OK;
        }
        for (size_t i = 0; i < AF_ARRAY_SIZE(commands); i++)
                if (strcmp(argv[1], commands[i]->name) == 0)
                        return run(commands[i], argc - 2, argv + 2);
        fprintf(stderr, "autofusectl: unknown command: %s\n", argv[1]);
        help(stderr);
        return AF_EXIT_USAGE;
}
