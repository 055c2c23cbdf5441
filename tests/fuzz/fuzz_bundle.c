/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a bundle (under a right check sum and size, so that the checks behind them are reached), as a plan and as a slot map: what
 * opens may be read.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/bundle_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t read_texts(const struct af_bundle *b) {
        size_t n = 0;

        for (uint32_t i = 0; i < af_bundle_count(b, AF_SECTION_STEPS); i++) {
                const struct af_bundle_step *s = af_bundle_at(b, AF_SECTION_STEPS, i);
                n += strlen(af_bundle_str(b, s->reason));
                for (uint32_t j = 0; s->kind == AF_STEP_KERNEL && j < s->n_args; j++) {
                        const struct af_bundle_arg *a = af_bundle_at(b, AF_SECTION_ARGS, s->first_arg + j);
                        n += ((const struct af_bundle_buffer *)af_bundle_at(b, AF_SECTION_BUFFERS, a->buffer))->kind;
                }
                for (uint32_t j = 0; s->kind == AF_STEP_FRAMEWORK && j < s->n_inputs + s->n_outputs; j++) {
                        const uint32_t *t = af_bundle_at(b, AF_SECTION_FALLBACK_VALUES, s->first_value + j);
                        n += ((const struct af_bundle_tensor *)af_bundle_at(b, AF_SECTION_TENSORS, *t))->rank;
                }
        }
        for (uint32_t i = 0; i < af_bundle_count(b, AF_SECTION_KERNELS); i++) {
                const struct af_bundle_kernel *k = af_bundle_at(b, AF_SECTION_KERNELS, i);
                n += strlen(af_bundle_str(b, k->symbol)) + strlen(af_bundle_str(b, k->source)) + strlen(af_bundle_str(b, k->ops));
                if (k->binary.size > 0)
                        n += ((const uint8_t *)af_bundle_blob(b, k->binary))[k->binary.size - 1];
        }
        return n;
}

static void try_bundle(uint8_t *copy, size_t size) {
        struct af_bundle_header *h = (struct af_bundle_header *)(void *)copy;
        struct af_bundle b;

        if (size >= AF_BUNDLE_TABLES_START) {
                h->magic = AF_BUNDLE_MAGIC;
                h->version = AF_BUNDLE_VERSION;
                h->total_bytes = size;
                af_bundle_check_of(copy, size, &h->check);
        }
        if (af_bundle_open(copy, size, &b, NULL) == 0 && read_texts(&b) == SIZE_MAX)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct af_plan_view plan;
        struct af_slot_map map;
        uint8_t *copy = malloc(size > 0 ? size : 1);

        if (!copy)
                return 0;
        memcpy(copy, data, size);
        if (af_plan_read(copy, size, &plan) == 0) {
                for (uint32_t i = 0; i < plan.n_kernels; i++)
                        if (strlen(plan.kernels[i].symbol) > size)
                                abort();
                af_plan_view_deinit(&plan);
        }
        if (af_slot_map_read(copy, size, &map) == 0)
                af_slot_map_deinit(&map);
        try_bundle(copy, size);
        free(copy);
        return 0;
}
