/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "compiler/driver/env.h"

static const char *soc_dir(void) {
        static char dir[4096];
        snprintf(dir, sizeof(dir), "%s/rules/soc", getenv("AF_SOURCE_ROOT"));
        return dir;
}

Test(soc_load, every_file_of_the_tree_loads_without_a_warning) {
        static const char *const names[] = {"Ascend910B1",    "Ascend910B2", "Ascend910B3", "Ascend910B4",
                                            "Ascend910_9391", "Ascend310P3", "Ascend950PR"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(names); i++) {
                struct af_diags diags = {0};
                struct af_soc soc;
                cr_assert_eq(af_soc_load(soc_dir(), names[i], &soc, NULL, &diags), 0, "%s", names[i]);
                cr_assert_eq(diags.n_items, 0, "%s: %s", names[i], diags.n_items ? diags.items[0].what : "");
                cr_assert(soc.vector_cores > 0 && soc.ub_bytes >= 184 * 1024 - 256);
                af_diags_deinit(&diags);
        }
}

Test(soc_load, figures_arrive) {
        struct af_soc soc;
        cr_assert_eq(af_soc_load(soc_dir(), "Ascend910B2", &soc, NULL, NULL), 0);
        cr_assert_eq(soc.vector_cores, 48);
        cr_assert_eq(soc.load.a, 9.9074);
        cr_assert_eq(soc.head_mte2_small_bytes, 25000);
        cr_assert(soc.data_copy_pad);
        cr_assert(soc.dtypes & AF_DTYPE_BIT(AF_DTYPE_BFLOAT16));
        cr_assert_eq(af_soc_load(soc_dir(), "Ascend310P3", &soc, NULL, NULL), 0);
        cr_assert_not(soc.dtypes & AF_DTYPE_BIT(AF_DTYPE_BFLOAT16));
        cr_assert_not(soc.data_copy_pad);
}

Test(soc_load, a_name_is_never_a_path) {
        static const char *const names[] = {"", "../soc/Ascend910B2", "Ascend910B2.yaml", "a/b", "Ascend910B2\n", "ascend910b2"};
        for (size_t i = 0; i < AF_ARRAY_SIZE(names); i++) {
                struct af_diags diags = {0};
                struct af_soc soc;
                cr_assert_eq(af_soc_load(soc_dir(), names[i], &soc, NULL, &diags), AF_ENV_E_SOC, "'%s'", names[i]);
                cr_assert_eq(diags.n_errors, 1);
                af_diags_deinit(&diags);
        }
}

Test(soc_load, mistakes_are_named_with_line) {
        AF_CLEANUP(af_freep) char *dir = NULL;
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        char path[4200];
        struct af_diags diags = {0};
        struct af_soc soc;
        cr_assert_eq(af_io_temp_dir(NULL, "soc", &dir), 0);
        snprintf(path, sizeof(path), "%s/Ascend910B2.yaml", soc_dir());
        cr_assert_eq(af_io_read_file(path, 1 << 20, &text), 0);
        af_buf_put_u8(&text, 0);
        char *cores = strstr((char *)text.data, "vector_cores: 48");
        char *name = strstr((char *)text.data, "name: Ascend910B2");
        cr_assert(cores && name);
        memcpy(cores, "vector_cores: -1", 16);
        memcpy(name, "nam_", 4);
        snprintf(path, sizeof(path), "%s/Ascend910B2.yaml", dir);
        cr_assert_eq(af_io_publish_file(path, text.data, text.size - 1, 0600), 0);
        cr_assert_eq(af_soc_load(dir, "Ascend910B2", &soc, NULL, &diags), AF_ENV_E_INVALID);
        cr_assert_eq(diags.n_errors, 2, "both mistakes in one run");
        cr_assert(strstr(diags.items[0].what, "unknown key 'nam_'"));
        cr_assert(strstr(diags.items[1].what, "key 'name' is missing"));
        cr_assert(strstr(diags.items[2].where, "Ascend910B2.yaml:6"), "%s", diags.items[2].where);
        cr_assert(strstr(diags.items[2].what, "a whole number above 0"));
        af_diags_deinit(&diags);
        cr_assert_eq(af_io_remove_tree(dir), 0);
}
