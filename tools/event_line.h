/* SPDX-License-Identifier: Apache-2.0 */
/* One of the server's events (docs/gate.md) as a line for people. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

/* Prints the line. What others sent is made safe for a terminal. */
void af_event_line(const cJSON *event, bool color, FILE *out);
/* text without control characters, cut to max bytes; static until the fourth call after it. */
const char *af_event_safe(const char *text, size_t max);
