/* SPDX-License-Identifier: Apache-2.0 */
/* Builder and accessors; what af_bundle_open checks is in bundle_check.c. */
#include "proto/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/bundle_layout.h"

_Static_assert(sizeof(struct af_bundle_header) == AF_BUNDLE_HEADER_BYTES, "header layout");
_Static_assert(sizeof(struct af_bundle_section_entry) == 16, "section entry layout");
_Static_assert(sizeof(struct af_bundle_step) == 48 && sizeof(struct af_bundle_kernel) == 136 && sizeof(struct af_bundle_arg) == 32 &&
                       sizeof(struct af_bundle_buffer) == 32 && sizeof(struct af_bundle_input) == 16 &&
                       sizeof(struct af_bundle_output) == 8 && sizeof(struct af_bundle_tensor) == 280 &&
                       sizeof(struct af_bundle_decision) == 40 && sizeof(struct af_bundle_expr) == 24 &&
                       sizeof(struct af_bundle_symbol) == 24 && sizeof(struct af_bundle_patch) == 16,
               "table layouts have no holes: bundles are read on other machines");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tables are used in place and little-endian");

size_t af_bundle_elem_size(unsigned section) {
        switch (section) {
        case AF_SECTION_STEPS:
                return sizeof(struct af_bundle_step);
        case AF_SECTION_KERNELS:
                return sizeof(struct af_bundle_kernel);
        case AF_SECTION_ARGS:
                return sizeof(struct af_bundle_arg);
        case AF_SECTION_BUFFERS:
                return sizeof(struct af_bundle_buffer);
        case AF_SECTION_INPUTS:
                return sizeof(struct af_bundle_input);
        case AF_SECTION_OUTPUTS:
                return sizeof(struct af_bundle_output);
        case AF_SECTION_TENSORS:
                return sizeof(struct af_bundle_tensor);
        case AF_SECTION_DECISIONS:
                return sizeof(struct af_bundle_decision);
        case AF_SECTION_FALLBACK_VALUES:
                return sizeof(uint32_t);
        case AF_SECTION_EXPRS:
                return sizeof(struct af_bundle_expr);
        case AF_SECTION_SYMBOLS:
                return sizeof(struct af_bundle_symbol);
        case AF_SECTION_PATCHES:
                return sizeof(struct af_bundle_patch);
        case AF_SECTION_BLOB:
                return 1;
        case AF_SECTION_GUARDS:
                return sizeof(struct af_bundle_guard);
        }
        return 0;
}

void af_bundle_builder_init(struct af_bundle_builder *b) {
        *b = (struct af_bundle_builder){0};
}

void af_bundle_builder_deinit(struct af_bundle_builder *b) {
        for (unsigned i = 0; i < AF_N_SECTIONS; i++)
                af_buf_deinit(&b->sections[i]);
        af_arena_deinit(&b->arena);
}

uint32_t af_bundle_builder_count(const struct af_bundle_builder *b, enum af_bundle_section section) {
        size_t size = af_bundle_elem_size(section);

        return size > 0 ? (uint32_t)(b->sections[section].size / size) : 0;
}

uint32_t af_bundle_add(struct af_bundle_builder *b, enum af_bundle_section section, const void *elem) {
        struct af_buf *table = &b->sections[section];
        uint32_t index = af_bundle_builder_count(b, section);

        af_buf_put(table, elem, af_bundle_elem_size(section));
        return index;
}

/* Notes that offsets of 32 bits no longer reach; af_bundle_finish reports it. */
static bool blob_has_room(struct af_buf *blob, size_t n, size_t align) {
        if (blob->size < UINT32_MAX - align - 1 && n < UINT32_MAX - align - 1 - blob->size)
                return true;
        if (!blob->error)
                blob->error = -EOVERFLOW;
        return false;
}

struct af_blob_ref af_bundle_add_blob(struct af_bundle_builder *b, const void *p, size_t n, size_t align) {
        struct af_buf *blob = &b->sections[AF_SECTION_BLOB];

        if (n == 0 || !blob_has_room(blob, n, align))
                return (struct af_blob_ref){0};
        af_buf_align(blob, align);
        struct af_blob_ref ref = {(uint32_t)blob->size, (uint32_t)n};
        af_buf_put(blob, p, n);
        /* One zero byte more, so that text handed in as bytes reads as a string too. */
        af_buf_put_u8(blob, 0);
        return ref;
}

struct af_blob_ref af_bundle_add_str(struct af_bundle_builder *b, const char *s) {
        size_t n = s ? strlen(s) : 0;
        uint32_t number;
        bool fresh;

        if (n == 0)
                return (struct af_blob_ref){0};
        b->strings.arena = &b->arena;
        int r = af_intern_put(&b->strings, s, n, &number, &fresh);
        if (r == 0 && fresh)
                r = af_arena_grow(&b->arena, &b->string_refs, &b->cap_string_refs, number + 1, sizeof(*b->string_refs));
        if (r < 0) {
                b->sections[AF_SECTION_BLOB].error = r;
                return (struct af_blob_ref){0};
        }
        if (fresh)
                b->string_refs[number] = af_bundle_add_blob(b, s, n, 1);
        return b->string_refs[number];
}

/* Section table at its fixed place, from the sections' sizes; *ret_total is the size of the file. */
static int lay_out(const struct af_bundle_builder *b, struct af_bundle_section_entry table[AF_N_SECTIONS], uint64_t *ret_total) {
        uint64_t at = AF_BUNDLE_TABLES_START;

        for (unsigned i = 0; i < AF_N_SECTIONS; i++) {
                const struct af_buf *s = &b->sections[i];
                if (s->error)
                        return s->error;
                if (s->size == 0)
                        continue;
                if (at + s->size > UINT32_MAX - 64u)
                        return -EOVERFLOW;
                table[i] = (struct af_bundle_section_entry){
                        .offset = (uint32_t)at, .bytes = (uint32_t)s->size, .count = (uint32_t)(s->size / af_bundle_elem_size(i))};
                at = AF_ALIGN_UP(at + s->size, (uint64_t)64);
        }
        *ret_total = at;
        return 0;
}

int af_bundle_finish(struct af_bundle_builder *b, uint16_t flags, struct af_buf *out) {
        struct af_bundle_section_entry table[AF_N_SECTIONS] = {0};
        struct af_bundle_header header = {.magic = AF_BUNDLE_MAGIC, .version = AF_BUNDLE_VERSION, .flags = flags};
        size_t start = out->size;
        int r = lay_out(b, table, &header.total_bytes);

        if (r < 0)
                return r;
        uint8_t *base = af_buf_reserve(out, header.total_bytes);
        if (!base)
                return af_buf_error(out);
        memset(base, 0, header.total_bytes);
        memcpy(base + sizeof(header), table, sizeof(table));
        for (unsigned i = 0; i < AF_N_SECTIONS; i++)
                if (table[i].bytes > 0)
                        memcpy(base + table[i].offset, b->sections[i].data, table[i].bytes);
        memcpy(base, &header, sizeof(header));
        af_bundle_check_of(base, header.total_bytes, &header.check);
        memcpy(base, &header, sizeof(header));
        out->size = start + header.total_bytes;
        return 0;
}

void af_bundle_check_of(const uint8_t *data, size_t n, struct af_check *ret_check) {
        const struct af_piece pieces[2] = {{data, 16}, {data + AF_BUNDLE_HEADER_BYTES, n - AF_BUNDLE_HEADER_BYTES}};

        af_check_pieces(pieces, 2, ret_check);
}

bool af_bundle_is_form(const struct af_bundle *b) {
        return b->sections[AF_SECTION_PATCHES].count > 0;
}

const void *af_bundle_at(const struct af_bundle *b, enum af_bundle_section section, uint32_t i) {
        const struct af_bundle_section_entry *s = &b->sections[section];

        return i < s->count ? b->data + s->offset + (size_t)i * af_bundle_elem_size(section) : NULL;
}

uint32_t af_bundle_count(const struct af_bundle *b, enum af_bundle_section section) {
        return b->sections[section].count;
}

const void *af_bundle_blob(const struct af_bundle *b, struct af_blob_ref ref) {
        const struct af_bundle_section_entry *s = &b->sections[AF_SECTION_BLOB];

        if (ref.size == 0 || ref.offset > s->bytes || ref.size > s->bytes - ref.offset)
                return "";
        return b->data + s->offset + ref.offset;
}

const char *af_bundle_str(const struct af_bundle *b, struct af_blob_ref ref) {
        return af_bundle_blob(b, ref);
}

/* Copies a skeleton's sections into a builder whose tables can be changed. */
static void builder_load(struct af_bundle_builder *b, const struct af_bundle *from) {
        af_bundle_builder_init(b);
        for (unsigned i = 0; i < AF_N_SECTIONS; i++)
                if (from->sections[i].bytes > 0)
                        af_buf_put(&b->sections[i], from->data + from->sections[i].offset, from->sections[i].bytes);
}

int af_bundle_attach(const struct af_bundle *skeleton, const struct af_piece *binaries, uint32_t n, struct af_buf *out) {
        AF_CLEANUP(af_bundle_builder_deinit) struct af_bundle_builder b;

        af_bundle_builder_init(&b);
        if (!(skeleton->header->flags & AF_BUNDLE_SKELETON) || n != af_bundle_count(skeleton, AF_SECTION_KERNELS))
                return AF_BUNDLE_E_DAMAGED;
        builder_load(&b, skeleton);
        for (uint32_t i = 0; i < n; i++) {
                if (binaries[i].n == 0)
                        return AF_BUNDLE_E_DAMAGED;
                struct af_blob_ref ref = af_bundle_add_blob(&b, binaries[i].p, binaries[i].n, 64);
                size_t at = (size_t)i * sizeof(struct af_bundle_kernel) + offsetof(struct af_bundle_kernel, binary);
                af_buf_patch_u32(&b.sections[AF_SECTION_KERNELS], at, ref.offset);
                af_buf_patch_u32(&b.sections[AF_SECTION_KERNELS], at + 4, ref.size);
        }
        return af_bundle_finish(&b, skeleton->header->flags & (uint16_t)~AF_BUNDLE_SKELETON, out);
}

/* Where the first binary begins in BLOB; everything from there on is binaries. */
static uint32_t first_binary(const struct af_bundle *b) {
        uint32_t at = UINT32_MAX;

        for (uint32_t i = 0; i < af_bundle_count(b, AF_SECTION_KERNELS); i++) {
                const struct af_bundle_kernel *k = af_bundle_at(b, AF_SECTION_KERNELS, i);

                at = AF_MIN(at, k->binary.offset);
        }
        return at;
}

int af_bundle_detach(const struct af_bundle *bundle, struct af_buf *out) {
        AF_CLEANUP(af_bundle_builder_deinit) struct af_bundle_builder b;
        AF_CLEANUP(af_buf_deinit) struct af_buf back = AF_BUF_INIT;
        uint32_t n = af_bundle_count(bundle, AF_SECTION_KERNELS), at = first_binary(bundle);
        struct af_piece *pieces = calloc(n + 1, sizeof(*pieces));
        struct af_bundle skeleton;
        size_t from = out->size;
        int r = pieces ? 0 : -ENOMEM;

        af_bundle_builder_init(&b);
        if (r == 0 && (bundle->header->flags & AF_BUNDLE_SKELETON))
                r = AF_BUNDLE_E_DAMAGED;
        if (r == 0) {
                builder_load(&b, bundle);
                b.sections[AF_SECTION_BLOB].size = AF_MIN(b.sections[AF_SECTION_BLOB].size, (size_t)at);
                for (uint32_t i = 0; i < n; i++) {
                        const struct af_bundle_kernel *k = af_bundle_at(bundle, AF_SECTION_KERNELS, i);
                        size_t ref = (size_t)i * sizeof(*k) + offsetof(struct af_bundle_kernel, binary);

                        pieces[i] = (struct af_piece){af_bundle_blob(bundle, k->binary), k->binary.size};
                        af_buf_patch_u32(&b.sections[AF_SECTION_KERNELS], ref, 0);
                        af_buf_patch_u32(&b.sections[AF_SECTION_KERNELS], ref + 4, 0);
                }
                r = af_bundle_finish(&b, bundle->header->flags | AF_BUNDLE_SKELETON, out);
        }
        /* What was cut off had to be the binaries and nothing else. */
        if (r == 0 && (af_bundle_open(out->data + from, out->size - from, &skeleton, NULL) != 0 ||
                       af_bundle_attach(&skeleton, pieces, n, &back) != 0 || back.size != bundle->size ||
                       memcmp(back.data, bundle->data, back.size) != 0))
                r = AF_BUNDLE_E_DAMAGED;
        free(pieces);
        return r;
}
