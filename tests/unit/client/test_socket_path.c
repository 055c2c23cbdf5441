/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "client/socket_path.h"

static void check(const char *option, const char *env, const char *runtime, const char *first, const char *second, bool named) {
        struct af_socket_paths p;
        cr_assert_eq(af_socket_paths_make(option, env, runtime, 1234, &p), 0);
        cr_assert_eq(p.n_items, second ? 2 : 1);
        cr_assert_str_eq(p.items[0].path, first);
        cr_assert_eq(p.items[0].named, named);
        if (second)
                cr_assert_str_eq(p.items[1].path, second);
        af_socket_paths_deinit(&p);
        cr_assert_eq(p.n_items, 0);
}

Test(socket_path, order) {
        check("/a/b.sock", "/c/d.sock", "/run/user/1234", "/a/b.sock", NULL, true);
        check(NULL, "/c/d.sock", "/run/user/1234", "/c/d.sock", NULL, true);
        check(NULL, NULL, "/run/user/1234", "/run/autofused/core.sock", "/run/user/1234/autofused/core.sock", false);
        check("", "", "", "/run/autofused/core.sock", "/tmp/autofused-1234/core.sock", false);
        check(NULL, NULL, NULL, "/run/autofused/core.sock", "/tmp/autofused-1234/core.sock", false);
}

Test(socket_path, trust) {
        cr_assert(af_server_is_trusted(0, 1000, -1));
        cr_assert(af_server_is_trusted(1000, 1000, -1));
        cr_assert(!af_server_is_trusted(1001, 1000, -1));
        cr_assert(af_server_is_trusted(1001, 1000, 1001));
        cr_assert(!af_server_is_trusted((uid_t)-1, 1000, -1));
        cr_assert(!af_server_is_trusted(1001, 1000, 1002));
}
