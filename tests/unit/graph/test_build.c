/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/lib/fragment_text.h"

Test(build, empty) {
        struct af_test_graph t;

        af_test_graph_make(&t, "'nodes': [], 'outputs': []");
        cr_expect_eq(t.r, 0);
        af_test_graph_deinit(&t);
}
