/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of each object of a fragment's JSON, as parser and printer use them. X(key, 1 where it is required) */
#pragma once

#include <stdbool.h>

#define AF_KEYS_FRAGMENT(X)                                                                                                                \
        X(schema, 1)                                                                                                                       \
        X(name, 0)                                                                                                                         \
        X(target, 0) X(numerics, 0) X(symbols, 0) X(inputs, 0) X(constants, 0) X(nodes, 1) X(outputs, 1)
#define AF_KEYS_TARGET(X)   X(soc, 0) X(toolchain, 0) X(twin, 0)
#define AF_KEYS_SYMBOL(X)   X(name, 1) X(min, 0) X(max, 0) X(hint, 0) X(multiple_of, 0)
#define AF_KEYS_INPUT(X)    X(name, 1) X(dtype, 1) X(shape, 1) X(strides, 0) X(offset, 0) X(align, 0) X(buffer, 0) X(host, 0)
#define AF_KEYS_CONSTANT(X) X(name, 1) X(dtype, 1) X(shape, 1) X(bits, 0) X(value, 0)
#define AF_KEYS_NODE(X)     X(name, 1) X(op, 1) X(inputs, 1) X(attrs, 0) X(origin, 0) X(outputs, 1)
#define AF_KEYS_RESULT(X)   X(name, 1) X(dtype, 1) X(shape, 1) X(strides, 0)
#define AF_KEYS_OUTPUT(X)   X(value, 1) X(strides, 0) X(alias_of, 0)

struct af_json_key {
        const char *name; /* NULL ends a list */
        bool required;
};
#define AF_KEY_ENTRY(key, is_required) {#key, is_required},
#define AF_KEY_LIST(keys)                                                                                                                  \
        {                                                                                                                                  \
                keys(AF_KEY_ENTRY) {                                                                                                       \
                        0                                                                                                                  \
                }                                                                                                                          \
        }
#define AF_MAX_KEYS 10

/* Indices of a kind's keys: KEY_INPUT_shape, ... */
#define AF_KEY_FRAGMENT(key, r) KEY_FRAGMENT_##key,
#define AF_KEY_TARGET(key, r)   KEY_TARGET_##key,
#define AF_KEY_SYMBOL(key, r)   KEY_SYMBOL_##key,
#define AF_KEY_INPUT(key, r)    KEY_INPUT_##key,
#define AF_KEY_CONSTANT(key, r) KEY_CONSTANT_##key,
#define AF_KEY_NODE(key, r)     KEY_NODE_##key,
#define AF_KEY_RESULT(key, r)   KEY_RESULT_##key,
#define AF_KEY_OUTPUT(key, r)   KEY_OUTPUT_##key,
enum { AF_KEYS_FRAGMENT(AF_KEY_FRAGMENT) };
enum { AF_KEYS_TARGET(AF_KEY_TARGET) };
enum { AF_KEYS_SYMBOL(AF_KEY_SYMBOL) };
enum { AF_KEYS_INPUT(AF_KEY_INPUT) };
enum { AF_KEYS_CONSTANT(AF_KEY_CONSTANT) };
enum { AF_KEYS_NODE(AF_KEY_NODE) };
enum { AF_KEYS_RESULT(AF_KEY_RESULT) };
enum { AF_KEYS_OUTPUT(AF_KEY_OUTPUT) };
