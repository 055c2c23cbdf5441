/* SPDX-License-Identifier: Apache-2.0 */
#include "hot/pack_format.h"

#include "base/le.h"

void pack_header_write(const struct pack_header *h, uint8_t out[PACK_HEADER_BYTES]) {
        memset(out, 0, PACK_HEADER_BYTES);
        af_le_put(out, AF_PACK_MAGIC, 4);
        af_le_put(out + 4, h->version, 4);
        af_le_put(out + 8, h->flags, 4);
        af_le_put(out + 12, h->canon_version, 4);
        af_le_put(out + 16, h->n_entries, 8);
        af_le_put(out + 24, h->entries_at, 8);
        af_le_put(out + 32, h->n_targets, 8);
        af_le_put(out + 40, h->targets_at, 8);
        af_le_put(out + 48, h->machine_at, 8);
        af_le_put(out + 56, h->machine_bytes, 8);
        af_le_put(out + 64, h->file_bytes, 8);
        memcpy(out + 96, h->digest.bytes, sizeof(h->digest.bytes));
        memcpy(out + 128, h->signature, sizeof(h->signature));
}

int pack_header_read(const uint8_t in[PACK_HEADER_BYTES], struct pack_header *ret_h) {
        if (af_le_get(in, 4) != AF_PACK_MAGIC)
                return AF_PACK_E_DAMAGED;
        ret_h->version = (uint32_t)af_le_get(in + 4, 4);
        if (ret_h->version != AF_PACK_VERSION)
                return AF_PACK_E_VERSION;
        ret_h->flags = (uint32_t)af_le_get(in + 8, 4);
        ret_h->canon_version = (uint32_t)af_le_get(in + 12, 4);
        ret_h->n_entries = af_le_get(in + 16, 8);
        ret_h->entries_at = af_le_get(in + 24, 8);
        ret_h->n_targets = af_le_get(in + 32, 8);
        ret_h->targets_at = af_le_get(in + 40, 8);
        ret_h->machine_at = af_le_get(in + 48, 8);
        ret_h->machine_bytes = af_le_get(in + 56, 8);
        ret_h->file_bytes = af_le_get(in + 64, 8);
        memcpy(ret_h->digest.bytes, in + 96, sizeof(ret_h->digest.bytes));
        memcpy(ret_h->signature, in + 128, sizeof(ret_h->signature));
        return 0;
}

void pack_entry_write(const struct pack_entry *e, uint8_t out[PACK_ENTRY_BYTES]) {
        memset(out, 0, PACK_ENTRY_BYTES);
        memcpy(out, e->fragment.bytes, 32);
        memcpy(out + 32, e->environment.bytes, 32);
        af_le_put(out + 64, e->canon_at, 8);
        af_le_put(out + 72, e->n_canon, 8);
        af_le_put(out + 80, e->bundle_at, 8);
        af_le_put(out + 88, e->n_bundle, 8);
        memcpy(out + 96, e->check.bytes, 16);
        memcpy(out + 112, e->content.bytes, 32);
}

void pack_entry_read(const uint8_t in[PACK_ENTRY_BYTES], struct pack_entry *ret_e) {
        memcpy(ret_e->fragment.bytes, in, 32);
        memcpy(ret_e->environment.bytes, in + 32, 32);
        ret_e->canon_at = af_le_get(in + 64, 8);
        ret_e->n_canon = af_le_get(in + 72, 8);
        ret_e->bundle_at = af_le_get(in + 80, 8);
        ret_e->n_bundle = af_le_get(in + 88, 8);
        memcpy(ret_e->check.bytes, in + 96, 16);
        memcpy(ret_e->content.bytes, in + 112, 32);
}

void pack_target_write(const struct pack_target *t, uint8_t out[PACK_TARGET_BYTES]) {
        memset(out, 0, PACK_TARGET_BYTES);
        memcpy(out, t->environment.bytes, 32);
        af_le_put(out + 32, t->twin, 4);
        memcpy(out + 64, t->soc, strlen(t->soc));
        memcpy(out + 128, t->toolchain, strlen(t->toolchain));
}

void pack_target_read(const uint8_t in[PACK_TARGET_BYTES], struct pack_target *ret_t) {
        *ret_t = (struct pack_target){.twin = (uint32_t)af_le_get(in + 32, 4)};
        memcpy(ret_t->environment.bytes, in, 32);
        memcpy(ret_t->soc, in + 64, AF_PACK_MAX_NAME);
        memcpy(ret_t->toolchain, in + 128, AF_PACK_MAX_NAME);
}

int pack_entry_compare(const struct pack_entry *a, const struct af_digest *fragment, const struct af_digest *environment) {
        int c = memcmp(a->fragment.bytes, fragment->bytes, 32);

        return c ? c : memcmp(a->environment.bytes, environment->bytes, 32);
}

void pack_entry_check(const struct pack_entry *e, const void *canon, const void *bundle, struct af_check *ret_check) {
        const struct af_piece pieces[4] = {{e->fragment.bytes, 32}, {e->environment.bytes, 32}, {canon, e->n_canon}, {bundle, e->n_bundle}};

        af_check_pieces(pieces, 4, ret_check);
}

void pack_entry_content(const struct pack_entry *e, const void *canon, const void *bundle, struct af_digest *ret_digest) {
        struct af_hasher h;

        af_hasher_init(&h, "autofuse.pack.entry/1");
        af_hasher_field(&h, "fragment", e->fragment.bytes, 32);
        af_hasher_field(&h, "environment", e->environment.bytes, 32);
        af_hasher_field(&h, "canon", canon, e->n_canon);
        af_hasher_field(&h, "bundle", bundle, e->n_bundle);
        af_hasher_final(&h, ret_digest);
}

void pack_digest(const uint8_t header[PACK_DIGESTED], const void *entries, size_t n_entries, const void *targets, size_t n_targets,
                 const void *machine, size_t n_machine, struct af_digest *ret_digest) {
        struct af_hasher h;

        af_hasher_init(&h, "autofuse.pack/1");
        af_hasher_field(&h, "header", header, PACK_DIGESTED);
        af_hasher_field(&h, "entries", entries, n_entries);
        af_hasher_field(&h, "targets", targets, n_targets);
        af_hasher_field(&h, "machine", machine, n_machine);
        af_hasher_final(&h, ret_digest);
}
