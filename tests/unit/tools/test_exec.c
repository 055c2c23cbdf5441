/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/exec.h"

/* Loads a fragment from text, through a file as a user would. */
static void load(struct af_frag *frag, const char *text) {
        char path[] = "/tmp/autofuse-frag-XXXXXX";
        int fd = mkstemp(path);
        cr_assert(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        close(fd);
        cr_assert_eq(af_frag_load(path, frag), 0);
        unlink(path);
}

Test(exec, gaps_hold_nan_and_shared_buffers_share) {
        struct af_frag frag;
        struct af_exec x;
        load(&frag, "{\"schema\": \"autofuse.fragment/1\", \"inputs\": ["
                    "{\"name\": \"a\", \"dtype\": \"float32\", \"shape\": [2, 3], \"strides\": [5, 1], \"offset\": 2, \"buffer\": \"m\"},"
                    "{\"name\": \"b\", \"dtype\": \"float32\", \"shape\": [16], \"buffer\": \"m\"}], \"constants\": [],"
                    "\"nodes\": [{\"name\": \"n\", \"op\": \"abs\", \"inputs\": [\"a\"], \"outputs\": [{\"name\": \"t\", \"dtype\": "
                    "\"float32\", \"shape\": [2, 3]}]},"
                    "{\"name\": \"m\", \"op\": \"neg\", \"inputs\": [\"b\"], \"outputs\": [{\"name\": \"u\", \"dtype\": \"float32\", "
                    "\"shape\": [16]}]}],"
                    "\"outputs\": [\"t\", \"u\"]}");
        cr_assert_eq(af_exec_init(&x, &frag), 0);
        cr_assert_eq(x.inputs[0].n_bytes, 4 * 10);
        cr_assert_eq(x.inputs[0].base, x.inputs[1].base, "one buffer, the larger input has the memory");
        cr_assert_eq((uint8_t *)x.inputs[0].t.data, x.inputs[1].memory + 8);
        float *memory = (float *)(void *)x.inputs[1].memory;
        cr_assert(isnan(memory[0]) && isnan(memory[15]));
        af_tensor_fill(&x.inputs[0].t, 1, false);
        cr_assert(!isnan(memory[2]) && !isnan(memory[9]) && isnan(memory[5]) && isnan(memory[6]), "rows are filled, gaps stay");
        cr_assert_eq(af_exec_reference(&x), 0);
        cr_assert_eq(((float *)x.expected[0].data)[3], fabsf(memory[7]));
        af_exec_deinit(&x);
        af_frag_deinit(&frag);
}

Test(exec, gather_indices_are_in_range) {
        struct af_frag frag;
        struct af_exec x;
        load(&frag, "{\"schema\": \"autofuse.fragment/1\", \"inputs\": [{\"name\": \"t\", \"dtype\": \"float32\", \"shape\": [4, 7]},"
                    "{\"name\": \"i\", \"dtype\": \"int64\", \"shape\": [50]}], \"constants\": [],"
                    "\"nodes\": [{\"name\": \"n\", \"op\": \"gather\", \"inputs\": [\"t\", \"i\"], \"attrs\": {\"axis\": 1},"
                    "\"outputs\": [{\"name\": \"o\", \"dtype\": \"float32\", \"shape\": [4, 50]}]}], \"outputs\": [\"o\"]}");
        cr_assert_eq(af_exec_init(&x, &frag), 0);
        af_exec_fill(&x, 3, true);
        const int64_t *index = x.inputs[1].t.data;
        int64_t seen = 0;
        for (int i = 0; i < 50; i++) {
                cr_assert(index[i] >= 0 && index[i] < 7);
                seen |= 1 << index[i];
        }
        cr_assert_eq(seen, 127);
        af_exec_deinit(&x);
        af_frag_deinit(&frag);
}
