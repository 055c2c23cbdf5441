/* SPDX-License-Identifier: Apache-2.0 */
/* What the builder and the checker of bundles share. */
#pragma once

#include "proto/bundle.h"

#define AF_BUNDLE_HEADER_BYTES 64u
#define AF_BUNDLE_TABLES_START (AF_BUNDLE_HEADER_BYTES + AF_N_SECTIONS * 16u)

/* Bytes of one element of a section; 0 for a section that is not in use. */
size_t af_bundle_elem_size(unsigned section);
/* The header's check over a bundle of n >= AF_BUNDLE_HEADER_BYTES bytes. */
void af_bundle_check_of(const uint8_t *data, size_t n, struct af_check *ret_check);
