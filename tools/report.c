/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/report.h"

#include <string.h>

const char *af_hit_name(enum autofuse_hit hit) {
        switch (hit) {
        case AUTOFUSE_HIT_COMPILED:
                return "compiled";
        case AUTOFUSE_HIT_JOINED:
                return "joined";
        case AUTOFUSE_HIT_STORE:
                return "store";
        case AUTOFUSE_HIT_MEMO:
                return "memo";
        case AUTOFUSE_HIT_PACK:
                return "pack";
        case AUTOFUSE_HIT_HOT:
                return "hot";
        }
        return "unknown";
}

void af_report_stem(const char *path, char *out, size_t size) {
        const char *slash = strrchr(path, '/');
        snprintf(out, size, "%s", slash ? slash + 1 : path);
        char *dot = strrchr(out, '.');
        if (dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".onnx") == 0))
                *dot = 0;
}

uint32_t af_report_free_nodes(const struct af_frag *frag, const struct autofuse_bundle_info *info) {
        uint32_t placed = info->n_nodes_fused + info->n_framework_steps;
        return frag->f.n_nodes > placed ? frag->f.n_nodes - placed : 0;
}

static cJSON *kernel_json(const struct autofuse_bundle *bundle, uint32_t i) {
        struct autofuse_kernel_info k;
        cJSON *o = cJSON_CreateObject();
        if (!autofuse_bundle_kernel(bundle, i, &k))
                return o;
        cJSON_AddStringToObject(o, "symbol", k.symbol);
        cJSON_AddStringToObject(o, "ops", k.ops);
        cJSON_AddStringToObject(o, "key", k.key);
        cJSON_AddStringToObject(o, "toolchain", k.toolchain);
        cJSON_AddNumberToObject(o, "nodes", k.n_nodes);
        cJSON_AddNumberToObject(o, "block_dim", k.block_dim);
        cJSON_AddNumberToObject(o, "ub_bytes", k.ub_bytes);
        cJSON_AddNumberToObject(o, "workspace_bytes", (double)k.workspace_bytes);
        cJSON_AddNumberToObject(o, "hbm_bytes", (double)k.hbm_bytes);
        cJSON_AddNumberToObject(o, "modelled_cycles", (double)k.modelled_cycles);
        cJSON_AddNumberToObject(o, "binary_bytes", (double)k.binary_bytes);
        return o;
}

static cJSON *fallbacks_json(const struct autofuse_bundle *bundle) {
        cJSON *list = cJSON_CreateArray();
        struct autofuse_step_info s;
        for (uint32_t i = 0; autofuse_bundle_step(bundle, i, &s); i++) {
                if (s.kind != AUTOFUSE_STEP_FRAMEWORK)
                        continue;
                cJSON *o = cJSON_CreateObject();
                cJSON_AddStringToObject(o, "node", s.name);
                cJSON_AddStringToObject(o, "op", s.op);
                if (s.origin)
                        cJSON_AddStringToObject(o, "origin", s.origin);
                cJSON_AddStringToObject(o, "reason", s.reason);
                cJSON_AddItemToArray(list, o);
        }
        return list;
}

cJSON *af_report_bundle(const struct af_frag *frag, const struct autofuse_bundle *bundle) {
        struct autofuse_bundle_info info;
        cJSON *o = cJSON_CreateObject(), *kernels = cJSON_CreateArray();
        autofuse_bundle_info(bundle, &info);
        cJSON_AddStringToObject(o, "file", frag->path);
        cJSON_AddStringToObject(o, "name", frag->f.name);
        cJSON_AddStringToObject(o, "fragment", info.fragment);
        cJSON_AddStringToObject(o, "environment", info.environment);
        cJSON_AddStringToObject(o, "hit", af_hit_name(info.hit));
        cJSON_AddNumberToObject(o, "compile_us", (double)info.compile_us);
        cJSON_AddNumberToObject(o, "nodes", frag->f.n_nodes);
        cJSON_AddNumberToObject(o, "nodes_fused", info.n_nodes_fused);
        cJSON_AddNumberToObject(o, "launches", info.n_kernel_steps);
        cJSON_AddNumberToObject(o, "temp_bytes", (double)info.temp_bytes);
        cJSON_AddNumberToObject(o, "hbm_bytes", (double)info.hbm_bytes);
        cJSON_AddNumberToObject(o, "bundle_bytes", (double)info.bundle_bytes);
        for (uint32_t i = 0; i < info.n_kernels; i++)
                cJSON_AddItemToArray(kernels, kernel_json(bundle, i));
        cJSON_AddItemToObject(o, "kernels", kernels);
        cJSON_AddItemToObject(o, "fallbacks", fallbacks_json(bundle));
        return o;
}

void af_report_fallbacks(const struct autofuse_bundle *bundle, FILE *out) {
        struct autofuse_step_info s;
        for (uint32_t i = 0; autofuse_bundle_step(bundle, i, &s); i++)
                if (s.kind == AUTOFUSE_STEP_FRAMEWORK)
                        fprintf(out, "  Fallback %s $reason: %s\n", s.origin ? s.origin : s.op, s.reason);
}
