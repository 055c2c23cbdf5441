/* SPDX-License-Identifier: Apache-2.0 */
/* Golden files: tests/golden/<name> holds what a test expects; AF_BLESS=1 in the environment writes it anew. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether text equals the file; prints the first line that differs. */
bool golden_equal(const char *name, const void *text, size_t n);
