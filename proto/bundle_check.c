/* SPDX-License-Identifier: Apache-2.0 */
/* af_bundle_open: after it, every offset, id, count and range of the file may be used as it stands. */
#include <stdint.h>
#include <string.h>

#include "numeric/op.h"
#include "proto/bundle_layout.h"
#include "proto/expr.h"

#define MAX_ALIGN     4096u
#define MAX_BLOCK_DIM 65535u
#define ARENA_ALIGN   512u

/* Each check returns NULL, or what is wrong in a few static words. */
#define REQUIRE(condition, text)                                                                                                           \
        do {                                                                                                                               \
                if (!(condition))                                                                                                          \
                        return text;                                                                                                       \
        } while (0)

static uint32_t count(const struct af_bundle *b, enum af_bundle_section section) {
        return af_bundle_count(b, section);
}

static const char *check_header(const uint8_t *data, size_t n, const struct af_bundle_header *h, bool verified) {
        static const uint8_t zero[sizeof(h->zero)];
        struct af_check check;

        REQUIRE(h->total_bytes == n, "size differs from the header's");
        REQUIRE((h->flags & ~AF_BUNDLE_SKELETON) == 0, "unknown flags");
        REQUIRE(memcmp(h->zero, zero, sizeof(zero)) == 0, "reserved bytes are not zero");
        if (verified)
                return NULL;
        af_bundle_check_of(data, n, &check);
        REQUIRE(memcmp(&check, &h->check, sizeof(check)) == 0, "check sum differs");
        return NULL;
}

static const char *check_sections(const struct af_bundle *b) {
        uint64_t end = AF_BUNDLE_TABLES_START;

        for (unsigned i = 0; i < AF_N_SECTIONS; i++) {
                const struct af_bundle_section_entry *s = &b->sections[i];
                REQUIRE(s->zero == 0, "reserved bytes are not zero");
                if (s->bytes == 0) {
                        REQUIRE(s->count == 0 && s->offset == 0, "empty section with an offset or elements");
                        continue;
                }
                REQUIRE(s->offset % 64 == 0 && s->offset >= end, "section misplaced");
                REQUIRE((uint64_t)s->offset + s->bytes <= b->size, "section beyond the end");
                REQUIRE((uint64_t)s->count * af_bundle_elem_size(i) == s->bytes, "section's count does not fit its size");
                end = (uint64_t)s->offset + s->bytes;
        }
        return NULL;
}

static bool blob_ok(const struct af_bundle *b, struct af_blob_ref ref, uint32_t align) {
        uint32_t n = b->sections[AF_SECTION_BLOB].bytes;

        if (ref.size == 0)
                return ref.offset <= n;
        return ref.offset <= n && ref.size <= n - ref.offset && ref.offset % align == 0;
}

/* Bytes inside BLOB without a zero among them and with one after them. */
static bool str_ok(const struct af_bundle *b, struct af_blob_ref ref) {
        const uint8_t *blob = b->data + b->sections[AF_SECTION_BLOB].offset;

        if (!blob_ok(b, ref, 1))
                return false;
        if (ref.size == 0)
                return true;
        return ref.size < b->sections[AF_SECTION_BLOB].bytes - ref.offset && blob[ref.offset + ref.size] == 0 &&
               !memchr(blob + ref.offset, 0, ref.size);
}

static const char *check_exprs(const struct af_bundle *b) {
        for (uint32_t i = 0; i < count(b, AF_SECTION_SYMBOLS); i++) {
                const struct af_bundle_symbol *s = af_bundle_at(b, AF_SECTION_SYMBOLS, i);
                REQUIRE(s->min >= 0 && s->min <= s->max && s->multiple_of >= 1, "symbol: range");
        }
        for (uint32_t i = 0; i < count(b, AF_SECTION_EXPRS); i++) {
                const struct af_bundle_expr *e = af_bundle_at(b, AF_SECTION_EXPRS, i);
                REQUIRE(e->kind <= AF_EXPR_MIN && e->zero == 0, "expression: kind");
                if (e->kind == AF_EXPR_SYMBOL)
                        REQUIRE(e->value >= 0 && e->value < count(b, AF_SECTION_SYMBOLS), "expression: symbol out of range");
                if (e->kind > AF_EXPR_SYMBOL)
                        REQUIRE(e->a < i && e->b < i, "expression: operand out of range");
        }
        return NULL;
}

static const char *check_patches(const struct af_bundle *b) {
        static const uint32_t sections = 1u << AF_SECTION_KERNELS | 1u << AF_SECTION_ARGS | 1u << AF_SECTION_BUFFERS |
                                         1u << AF_SECTION_TENSORS | 1u << AF_SECTION_BLOB;
        for (uint32_t i = 0; i < count(b, AF_SECTION_PATCHES); i++) {
                const struct af_bundle_patch *p = af_bundle_at(b, AF_SECTION_PATCHES, i);
                REQUIRE(p->kind < AF_N_PATCH_KINDS, "patch: kind");
                uint32_t size = p->kind == AF_PATCH_I64 ? 8 : 4;
                REQUIRE(p->section < AF_N_SECTIONS && sections >> p->section & 1, "patch: section");
                REQUIRE(p->offset % size == 0 && (uint64_t)p->offset + size <= b->sections[p->section].bytes, "patch: out of range");
                REQUIRE(p->expr < count(b, AF_SECTION_EXPRS), "patch: expression out of range");
        }
        return NULL;
}

static const char *check_guards(const struct af_bundle *b) {
        for (uint32_t i = 0; i < count(b, AF_SECTION_GUARDS); i++) {
                const struct af_bundle_guard *g = af_bundle_at(b, AF_SECTION_GUARDS, i);
                REQUIRE(g->expr < count(b, AF_SECTION_EXPRS), "guard: expression out of range");
                REQUIRE(str_ok(b, g->why), "guard: text");
        }
        return NULL;
}

static const char *check_buffer(const struct af_bundle *b, const struct af_bundle_buffer *buffer) {
        REQUIRE(buffer->kind <= AF_BUFFER_CONST, "buffer: kind");
        REQUIRE(buffer->bytes <= AF_BUNDLE_MAX_BYTES, "buffer: size");
        switch ((enum af_buffer_kind)buffer->kind) {
        case AF_BUFFER_INPUT:
                REQUIRE(buffer->slot < count(b, AF_SECTION_INPUTS), "buffer: input slot out of range");
                break;
        case AF_BUFFER_OUTPUT:
                REQUIRE(buffer->slot < count(b, AF_SECTION_OUTPUTS), "buffer: output slot out of range");
                break;
        case AF_BUFFER_TEMP:
                REQUIRE(buffer->offset % ARENA_ALIGN == 0 && buffer->bytes % ARENA_ALIGN == 0, "buffer: not a multiple of 512");
                REQUIRE(buffer->offset <= AF_BUNDLE_MAX_BYTES, "buffer: offset");
                break;
        case AF_BUFFER_CONST:
                REQUIRE(buffer->data.size == buffer->bytes, "buffer: constant's size differs from its data");
                REQUIRE(blob_ok(b, buffer->data, 64), "buffer: constant's data out of range or not aligned");
                break;
        }
        return NULL;
}

static const char *check_buffers(const struct af_bundle *b) {
        for (uint32_t i = 0; i < count(b, AF_SECTION_BUFFERS); i++) {
                const char *why = check_buffer(b, af_bundle_at(b, AF_SECTION_BUFFERS, i));
                if (why)
                        return why;
        }
        return NULL;
}

/* First and last element that a view addresses, relative to its buffer. False where it overflows or is empty (then *ret_empty). */
static bool view_bounds(const struct af_bundle_tensor *t, int64_t *ret_low, int64_t *ret_high, bool *ret_empty) {
        int64_t low = t->offset, high = t->offset;

        *ret_empty = false;
        for (uint32_t i = 0; i < t->rank; i++)
                if (t->dims[i] == 0)
                        *ret_empty = true;
        for (uint32_t i = 0; i < t->rank && !*ret_empty; i++) {
                int64_t span;
                if (__builtin_mul_overflow(t->dims[i] - 1, t->strides[i], &span))
                        return false;
                if (span < 0 ? __builtin_add_overflow(low, span, &low) : __builtin_add_overflow(high, span, &high))
                        return false;
        }
        *ret_low = low;
        *ret_high = high;
        return true;
}

static const char *check_tensor(const struct af_bundle *b, const struct af_bundle_tensor *t) {
        const struct af_bundle_buffer *buffer = af_bundle_at(b, AF_SECTION_BUFFERS, t->buffer);
        int64_t low, high;
        bool empty;

        REQUIRE(buffer, "tensor: buffer out of range");
        REQUIRE(t->dtype > AF_DTYPE_INVALID && t->dtype < AF_N_DTYPES, "tensor: dtype");
        REQUIRE(t->rank <= AF_BUNDLE_MAX_RANK, "tensor: rank");
        REQUIRE(t->zero == 0, "tensor: flags");
        for (uint32_t i = 0; i < t->rank; i++)
                REQUIRE(t->dims[i] >= 0, "tensor: negative dimension");
        REQUIRE(t->offset >= 0, "tensor: negative offset");
        REQUIRE(view_bounds(t, &low, &high, &empty), "tensor: extent overflows");
        if (!empty)
                REQUIRE(low >= 0 && (uint64_t)high < buffer->bytes / af_dtype_size((enum af_dtype)t->dtype),
                        "tensor: reaches beyond its buffer");
        return NULL;
}

static const char *check_tensors(const struct af_bundle *b) {
        for (uint32_t i = 0; i < count(b, AF_SECTION_TENSORS); i++) {
                const char *why = check_tensor(b, af_bundle_at(b, AF_SECTION_TENSORS, i));
                if (why)
                        return why;
        }
        for (uint32_t i = 0; i < count(b, AF_SECTION_FALLBACK_VALUES); i++)
                REQUIRE(*(const uint32_t *)af_bundle_at(b, AF_SECTION_FALLBACK_VALUES, i) < count(b, AF_SECTION_TENSORS),
                        "framework step: tensor out of range");
        return NULL;
}

static const char *check_slots(const struct af_bundle *b) {
        for (uint32_t i = 0; i < count(b, AF_SECTION_INPUTS); i++) {
                const struct af_bundle_input *in = af_bundle_at(b, AF_SECTION_INPUTS, i);
                const struct af_bundle_tensor *t = af_bundle_at(b, AF_SECTION_TENSORS, in->tensor);
                REQUIRE(t, "input: tensor out of range");
                const struct af_bundle_buffer *buffer = af_bundle_at(b, AF_SECTION_BUFFERS, t->buffer);
                REQUIRE(buffer->kind == AF_BUFFER_INPUT && buffer->slot == i, "input: its tensor lies elsewhere");
                REQUIRE(in->align <= MAX_ALIGN && (in->align & (in->align - 1)) == 0, "input: alignment");
                REQUIRE(in->flags <= 1 && in->zero == 0, "input: flags");
        }
        for (uint32_t i = 0; i < count(b, AF_SECTION_OUTPUTS); i++) {
                const struct af_bundle_output *out = af_bundle_at(b, AF_SECTION_OUTPUTS, i);
                REQUIRE(out->tensor < count(b, AF_SECTION_TENSORS), "output: tensor out of range");
                REQUIRE(out->alias_of == AF_NONE || out->alias_of < count(b, AF_SECTION_INPUTS), "output: aliased input out of range");
        }
        return NULL;
}

static const char *check_kernels(const struct af_bundle *b) {
        bool skeleton = b->header->flags & AF_BUNDLE_SKELETON;

        for (uint32_t i = 0; i < count(b, AF_SECTION_KERNELS); i++) {
                const struct af_bundle_kernel *k = af_bundle_at(b, AF_SECTION_KERNELS, i);
                REQUIRE(k->symbol.size > 0 && str_ok(b, k->symbol), "kernel: symbol");
                REQUIRE(str_ok(b, k->source), "kernel: source");
                REQUIRE(k->toolchain.size > 0 && str_ok(b, k->toolchain), "kernel: toolchain");
                REQUIRE(str_ok(b, k->ops), "kernel: ops");
                REQUIRE(blob_ok(b, k->tiling, 1), "kernel: tiling out of range");
                REQUIRE(blob_ok(b, k->binary, 64), "kernel: binary out of range or not aligned");
                REQUIRE(skeleton == (k->binary.size == 0), "kernel: binary in a skeleton, or none in a bundle");
                REQUIRE(k->block_dim >= 1 && k->block_dim <= MAX_BLOCK_DIM, "kernel: block_dim");
                REQUIRE(k->workspace_bytes <= AF_BUNDLE_MAX_BYTES, "kernel: workspace");
                REQUIRE(k->workspace_zeroed <= 1 && k->needs_sync_all <= 1 && k->zero == 0, "kernel: flags");
        }
        return NULL;
}

/* A constant is never written; an input only where some output says that it updates it in place. */
static bool may_write(const struct af_bundle *b, const struct af_bundle_buffer *buffer) {
        if (buffer->kind != AF_BUFFER_INPUT)
                return buffer->kind != AF_BUFFER_CONST;
        for (uint32_t i = 0; i < count(b, AF_SECTION_OUTPUTS); i++)
                if (((const struct af_bundle_output *)af_bundle_at(b, AF_SECTION_OUTPUTS, i))->alias_of == buffer->slot)
                        return true;
        return false;
}

static const char *check_args(const struct af_bundle *b) {
        for (uint32_t i = 0; i < count(b, AF_SECTION_ARGS); i++) {
                const struct af_bundle_arg *a = af_bundle_at(b, AF_SECTION_ARGS, i);
                const struct af_bundle_buffer *buffer = af_bundle_at(b, AF_SECTION_BUFFERS, a->buffer);
                REQUIRE(buffer, "argument: buffer out of range");
                REQUIRE(a->access >= AF_ACCESS_READ && a->access <= (AF_ACCESS_READ | AF_ACCESS_WRITE), "argument: access");
                REQUIRE(a->range_begin <= a->range_end, "argument: range");
                REQUIRE(a->byte_offset <= buffer->bytes && a->range_end <= buffer->bytes - a->byte_offset,
                        "argument: range beyond its buffer");
                if (!(a->access & AF_ACCESS_WRITE))
                        continue;
                REQUIRE(may_write(b, buffer), "argument: writes a constant, or an input that no output updates");
        }
        return NULL;
}

static const char *check_framework_step(const struct af_bundle *b, const struct af_bundle_step *s) {
        REQUIRE(s->op < AF_N_OPS, "step: op");
        REQUIRE((uint64_t)s->first_value + s->n_inputs + s->n_outputs <= count(b, AF_SECTION_FALLBACK_VALUES), "step: values out of range");
        for (uint32_t i = 0; i < s->n_outputs; i++) {
                const uint32_t *id = af_bundle_at(b, AF_SECTION_FALLBACK_VALUES, s->first_value + s->n_inputs + i);
                const struct af_bundle_tensor *t = af_bundle_at(b, AF_SECTION_TENSORS, *id);
                REQUIRE(may_write(b, af_bundle_at(b, AF_SECTION_BUFFERS, t->buffer)),
                        "step: the framework writes a constant, or an input that no output updates");
        }
        return NULL;
}

static const char *check_step(const struct af_bundle *b, const struct af_bundle_step *s) {
        REQUIRE(s->kind <= AF_STEP_FRAMEWORK && s->zero == 0, "step: kind");
        REQUIRE(str_ok(b, s->reason), "step: reason");
        if (s->kind == AF_STEP_FRAMEWORK)
                return check_framework_step(b, s);
        const struct af_bundle_kernel *k = af_bundle_at(b, AF_SECTION_KERNELS, s->kernel);
        REQUIRE(k, "step: kernel out of range");
        REQUIRE((uint64_t)s->first_arg + s->n_args <= count(b, AF_SECTION_ARGS), "step: arguments out of range");
        REQUIRE(s->n_args == k->n_pointer_args, "step: number of arguments differs from the kernel's");
        return NULL;
}

static const char *check_steps(const struct af_bundle *b) {
        for (uint32_t i = 0; i < count(b, AF_SECTION_STEPS); i++) {
                const char *why = check_step(b, af_bundle_at(b, AF_SECTION_STEPS, i));
                if (why)
                        return why;
        }
        for (uint32_t i = 0; i < count(b, AF_SECTION_DECISIONS); i++) {
                const struct af_bundle_decision *d = af_bundle_at(b, AF_SECTION_DECISIONS, i);
                REQUIRE(d->kind <= 2, "decision: kind");
                REQUIRE(d->group == AF_NONE || d->group < count(b, AF_SECTION_STEPS), "decision: step out of range");
                REQUIRE(str_ok(b, d->rule) && str_ok(b, d->reason), "decision: text");
        }
        return NULL;
}

const char *af_bundle_check_tables(const struct af_bundle *b) {
        /* In this order: each relies on the ones before it. */
        static const char *(*const checks[])(const struct af_bundle *b) = {
                check_sections, check_exprs, check_guards,  check_patches, check_buffers,
                check_tensors,  check_slots, check_kernels, check_args,    check_steps,
        };
        const char *why = NULL;

        for (size_t i = 0; i < AF_ARRAY_SIZE(checks) && !why; i++)
                why = checks[i](b);
        return why;
}

static int open_bundle(const void *data, size_t n, bool verified, struct af_bundle *ret_bundle, const char **ret_why) {
        const char *ignored;
        const char **why = ret_why ? ret_why : &ignored;
        struct af_bundle b = {.data = data, .size = n};

        *why = NULL;
        if (n < AF_BUNDLE_TABLES_START || (uintptr_t)data % 8 != 0) {
                *why = n < AF_BUNDLE_TABLES_START ? "too short" : "not aligned to 8 bytes";
                return AF_BUNDLE_E_DAMAGED;
        }
        b.header = data;
        b.sections = (const struct af_bundle_section_entry *)(b.data + AF_BUNDLE_HEADER_BYTES);
        if (b.header->magic != AF_BUNDLE_MAGIC) {
                *why = "not a bundle";
                return AF_BUNDLE_E_DAMAGED;
        }
        if (b.header->version != AF_BUNDLE_VERSION) {
                *why = "another version of the format";
                return AF_BUNDLE_E_VERSION;
        }
        *why = check_header(b.data, b.size, b.header, verified);
        if (!*why)
                *why = af_bundle_check_tables(&b);
        if (*why)
                return AF_BUNDLE_E_DAMAGED;
        *ret_bundle = b;
        return 0;
}

int af_bundle_open(const void *data, size_t n, struct af_bundle *ret_bundle, const char **ret_why) {
        return open_bundle(data, n, false, ret_bundle, ret_why);
}

int af_bundle_open_verified(const void *data, size_t n, struct af_bundle *ret_bundle, const char **ret_why) {
        return open_bundle(data, n, true, ret_bundle, ret_why);
}
