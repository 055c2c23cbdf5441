/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire frames of the Unix stream, version 1. Little-endian.
 *
 *   0  u32 magic "AFW1"        4  u8 version (1)     5  u8 type      6  u16 flags
 *   8  u64 request id         16  u32 body bytes    20  u32 deadline, ms from receipt (0: the server's default)
 *  24  u8 priority (0 waiting rank .. 255 warm-up)  25  u8 n_fds (0 or 1)    26  u16 zero    28  u32 zero
 *  32  body
 *
 * A descriptor travels with SCM_RIGHTS on the first byte of its frame's header. Bodies are sequences of fields
 * { u16 tag, u16 zero, u32 bytes, bytes, zero padding to 4 }; an unknown tag is skipped, a missing required one is an error.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/digest.h"

#define AF_FRAME_MAGIC        0x31574641u /* "AFW1" */
#define AF_FRAME_VERSION      1
#define AF_FRAME_HEADER_BYTES 32u
#define AF_FRAME_MAX_BODY     (72u << 20)

enum af_frame_type {
        AF_FRAME_HELLO = 1,     /* both ways, first; see tags */
        AF_FRAME_SUBMIT = 2,    /* client: compile or look up */
        AF_FRAME_PROGRESS = 3,  /* server: TEXT, ELAPSED_MS, WAITERS */
        AF_FRAME_PART = 4,      /* server, where SUBMIT asked for PARTS: KEY, PART, N_PARTS, BUNDLE; may be ignored */
        AF_FRAME_RESULT = 5,    /* server: KEY, HIT, bundle as BUNDLE bytes or a sealed memfd (n_fds 1, BUNDLE_BYTES) */
        AF_FRAME_ERROR = 6,     /* server: CODE, RETRYABLE, TEXT */
        AF_FRAME_CANCEL = 7,    /* client: the request id is no longer wanted; answered by ERROR canceled */
        AF_FRAME_TOUCH = 8,     /* client: KEYs used from a cheaper path, for recency; no answer */
        AF_FRAME_DRAIN = 9,     /* server: finish what is under way elsewhere; no new requests are taken */
        AF_FRAME_STATS = 10,    /* client: asks; server: JSON in TEXT */
        AF_FRAME_CLEAR = 11,    /* client (same user or root): drops every entry; server: STATS-like reply */
        AF_FRAME_WATCH = 12,    /* client: wants EVENTs from now on; server: JSON of STATS in TEXT */
        AF_FRAME_EVENT = 13,    /* server, request id 0: EVENTs in order, LOST before them where some were dropped */
        AF_FRAME_HISTORY = 14,  /* client: QUERY; server: JSON in TEXT (docs/protocol.md) */
        AF_FRAME_WHY = 15,      /* client: KEY or FRAGMENT; server: JSON in TEXT */
        AF_FRAME_MAINTAIN = 16, /* client (same user or root): QUERY; server: PROGRESS, then JSON in TEXT, an export with its file (n_fds 1,
                                   BUNDLE_BYTES) */
        AF_FRAME_IMPORT = 17,   /* client (same user or root): KEY, SOC, TOOLCHAIN, TWIN, CANON, BUNDLE; server: JSON in TEXT */
        AF_FRAME_SOURCE = 18,   /* client: the 32 bytes of a kernel's key in KEY; server: its source in TEXT */
};

enum af_frame_tag {
        AF_TAG_VERSIONS = 1,      /* u16 min, u16 max */
        AF_TAG_CAPABILITIES = 2,  /* u64 bits, AF_CAP_* */
        AF_TAG_CANON_VERSION = 3, /* u32 */
        AF_TAG_PEER_NAME = 4,     /* text, for logs: escaped there */
        AF_TAG_ENV_DIGEST = 5,    /* 32 bytes: default toolchain's environment (server's hello) */
        AF_TAG_HOT_BYTES = 6,     /* u64: size of the hot area whose descriptor comes with the server's hello (hot/layout.h) */
        AF_TAG_CANON = 16,        /* canonical bytes of a fragment */
        AF_TAG_TEXT_JSON = 17,    /* fragment as JSON text instead */
        AF_TAG_ORIGINS = 18,      /* names of nodes for messages, canonical order, u32 count then fields; optional */
        AF_TAG_KEY = 19,          /* 32-byte fragment digest, then 32-byte environment digest */
        AF_TAG_HIT = 20,          /* u8: AF_HIT_* */
        AF_TAG_BUNDLE = 21,       /* inline bytes */
        AF_TAG_BUNDLE_BYTES = 22, /* u64 size of the memfd's content */
        AF_TAG_SLOT_MAP = 23,     /* for JSON requests: proto/bundle.h's struct af_slot_map serialised */
        AF_TAG_CODE = 24,         /* u32 enum af_error_code */
        AF_TAG_RETRYABLE = 25,    /* u8 */
        AF_TAG_TEXT = 26,         /* UTF-8 */
        AF_TAG_ELAPSED_MS = 27,   /* u64 */
        AF_TAG_WAITERS = 28,      /* u32 */
        AF_TAG_COMPILE_US = 29,   /* u64: what the compile cost, 0 on a hit */
        AF_TAG_LOOKUP_ONLY = 30,  /* u8 1: a miss is answered by ERROR not_found, nothing is compiled */
        AF_TAG_EVENT = 40,        /* one JSON object (docs/gate.md) */
        AF_TAG_LOST = 41,         /* u64: events that this watcher did not get */
        AF_TAG_FRAGMENT = 42,     /* 32 bytes: digest of a fragment that the server has; in SUBMIT instead of its bytes */
        AF_TAG_QUERY = 43,        /* JSON object */
        AF_TAG_SOC = 48,          /* text: of a fragment's target, as asked for; "" is the default. TOOLCHAIN likewise */
        AF_TAG_TOOLCHAIN = 49,
        AF_TAG_TWIN = 50, /* u8 */
        AF_TAG_DONE = 51, /* u64 of TOTAL, in the PROGRESS of MAINTAIN */
        AF_TAG_TOTAL = 52,
        AF_TAG_PARTS = 56,   /* u8 1, in SUBMIT: PART frames are wanted */
        AF_TAG_PART = 57,    /* u32: 0 the skeleton, i the binary of its kernel i-1, in BUNDLE */
        AF_TAG_N_PARTS = 58, /* u32: kernels and one */
};
#define AF_CAP_MEMFD 1u
/* Client: takes the hot area. Server: has epochs; answers are asked for again where no area tells that they are still in force. */
#define AF_CAP_HOT 2u

enum af_hit { AF_HIT_COMPILED = 0, AF_HIT_JOINED = 1 /* waited for another's compile */, AF_HIT_STORE = 2 };

/* Codes on the wire: append only. */
enum af_error_code {
        AF_ERROR_PROTOCOL = 1, /* malformed or out of order; the connection closes */
        AF_ERROR_VERSION = 2,  /* no common version */
        AF_ERROR_REFUSED = 3,  /* not admitted */
        AF_ERROR_INVALID = 4,  /* the fragment: text names node and field */
        AF_ERROR_TOO_LARGE = 5,
        AF_ERROR_COMPILE = 6, /* the toolchain refused; text is its message */
        AF_ERROR_DEADLINE = 7,
        AF_ERROR_CANCELED = 8,
        AF_ERROR_DRAINING = 9,  /* retryable */
        AF_ERROR_BUSY = 10,     /* retryable: queue or quota full */
        AF_ERROR_JOB_DIED = 11, /* retryable: plan or compile process killed (memory, signal) */
        AF_ERROR_INTERNAL = 12,
        AF_ERROR_NOT_FOUND = 13,
        AF_ERROR_TOOLCHAIN = 14, /* unknown or unusable toolchain or SoC */
        AF_ERROR_STORAGE = 15,   /* retryable: nowhere to put temporary files */
};
const char *af_error_code_name(enum af_error_code code); /* "deadline" */

struct af_frame_header {
        uint8_t type;
        uint16_t flags;
        uint64_t request_id;
        uint32_t body_bytes;
        uint32_t deadline_ms;
        uint8_t priority;
        uint8_t n_fds;
};

enum { AF_FRAME_E_MAGIC = 1, AF_FRAME_E_VERSION = 2, AF_FRAME_E_SIZE = 3, AF_FRAME_E_RESERVED = 4 };

/* Appends a header whose body length is patched by af_frame_end. Returns where the frame starts in buf. */
size_t af_frame_begin(struct af_buf *buf, const struct af_frame_header *h);
void af_frame_field(struct af_buf *buf, enum af_frame_tag tag, const void *p, size_t n);
void af_frame_field_u8(struct af_buf *buf, enum af_frame_tag tag, uint8_t v);
void af_frame_field_u32(struct af_buf *buf, enum af_frame_tag tag, uint32_t v);
void af_frame_field_u64(struct af_buf *buf, enum af_frame_tag tag, uint64_t v);
void af_frame_field_str(struct af_buf *buf, enum af_frame_tag tag, const char *s);
void af_frame_end(struct af_buf *buf, size_t start);
/* Reads a header from its 32 bytes. 0 or AF_FRAME_E_*. */
int af_frame_header_read(const uint8_t bytes[AF_FRAME_HEADER_BYTES], struct af_frame_header *ret_h) AF_WARN_UNUSED;

struct af_field {
        uint16_t tag;
        const uint8_t *p; /* borrowed from the body */
        uint32_t n;
};
/* Steps through a body; false at the end or on malformed bytes (then c->error). */
bool af_frame_next(struct af_cursor *c, struct af_field *ret_field);
/* Finds the first field with this tag; false where absent. Fields of fixed size must have exactly n bytes where n > 0. */
bool af_frame_find(const uint8_t *body, size_t n_body, enum af_frame_tag tag, size_t n, struct af_field *ret_field);
uint32_t af_field_u32(const struct af_field *f);
uint64_t af_field_u64(const struct af_field *f);
