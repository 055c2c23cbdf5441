/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/numeric/identity.h"

int main(void) {
        print_identity();
        return 0;
}
