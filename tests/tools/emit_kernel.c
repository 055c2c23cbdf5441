/* SPDX-License-Identifier: Apache-2.0 */
/* Plans a fragment without its toolchain and prints each kernel's source after a line `// kernel SYMBOL blocks N`. */
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "compiler/driver/driver.h"

static void dump(void *userdata, const char *pass, const char *text) {
        if (strcmp(pass, userdata) == 0)
                fputs(text, stdout);
}

int main(int argc, char **argv) {
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf canon = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf plan = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf lines = AF_BUF_INIT;
        struct af_diags diags = {0};
        struct af_env_config config = {0};
        struct af_env env;
        struct af_driver_opts opts = {.dump = dump, .userdata = argc > 2 ? argv[2] : "emit", .no_fuse = argc > 3};
        af_arena_init(&arena, 0);
        int r = argc < 2 ? -1 : af_io_read_file(argv[1], 1 << 26, &text);
        if (!r)
                r = af_env_load(&env, &arena, &config, NULL, NULL, AF_TWIN_FAST, &diags);
        if (!r)
                r = af_driver_canonicalise((const char *)text.data, text.size, &canon, NULL, &diags);
        if (!r)
                r = af_driver_plan(&env, canon.data, canon.size, &opts, &plan, &diags);
        af_diags_format(&diags, &lines);
        fprintf(stderr, "%.*s", (int)lines.size, (const char *)lines.data);
        if (r)
                fprintf(stderr, "error %d\n", r);
        return r != 0;
}
