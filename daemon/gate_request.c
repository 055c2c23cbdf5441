/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the outermost object of a request, and no more: values are stepped over by their brackets and quotes. What is inside a fragment
 * is checked where it is read, in a job of the core; its text goes there byte for byte, since numbers must not be printed anew.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/gate.h"

struct scan {
        const char *p, *end;
        bool error;
};
struct span {
        const char *p;
        size_t n;
};

static void skip_blank(struct scan *s) {
        while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
                s->p++;
}

static bool take(struct scan *s, char c) {
        skip_blank(s);
        if (s->p == s->end || *s->p != c)
                return false;
        s->p++;
        return true;
}

/* Behind the opening quote; to behind the closing one. */
static void skip_string(struct scan *s) {
        while (s->p < s->end && *s->p != '"')
                s->p += *s->p == '\\' ? 2 : 1;
        if (s->p >= s->end) {
                s->p = s->end; /* a backslash at the end steps over it */
                s->error = true;
        } else {
                s->p++;
        }
}

static struct span take_string(struct scan *s) {
        struct span out = {0};

        if (!take(s, '"')) {
                s->error = true;
                return out;
        }
        out.p = s->p;
        skip_string(s);
        out.n = s->error ? 0 : (size_t)(s->p - out.p) - 1;
        return out;
}

static void skip_nested(struct scan *s) {
        size_t depth = 0;

        do {
                char c = *s->p++;

                if (c == '"')
                        skip_string(s);
                else if (c == '{' || c == '[')
                        depth++;
                else if (c == '}' || c == ']')
                        depth--;
        } while (!s->error && depth > 0 && s->p < s->end);
        s->error |= depth > 0;
}

static struct span take_value(struct scan *s) {
        struct span out;

        skip_blank(s);
        out.p = s->p;
        if (s->p == s->end) {
                s->error = true;
        } else if (*s->p == '"') {
                s->p++;
                skip_string(s);
        } else if (*s->p == '{' || *s->p == '[') {
                skip_nested(s);
        } else {
                while (s->p < s->end && !strchr(",}] \t\r\n", *s->p))
                        s->p++;
        }
        out.n = s->error ? 0 : (size_t)(s->p - out.p);
        s->error |= out.n == 0;
        return out;
}

/* ---- members ---- */

static bool is(struct span s, const char *text) {
        return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

static bool read_number(struct span v, uint64_t max, uint64_t *ret) {
        char text[24];
        char *end;

        if (v.n == 0 || v.n >= sizeof(text) || v.p[0] < '0' || v.p[0] > '9')
                return false;
        memcpy(text, v.p, v.n);
        text[v.n] = 0;
        *ret = strtoull(text, &end, 10);
        return *end == 0 && *ret <= max;
}

static const char *set_want(struct af_gate_request *r, struct span v) {
        if (is(v, "\"bundle\""))
                r->want = AF_GATE_WANT_BUNDLE;
        else if (is(v, "\"key\""))
                r->want = AF_GATE_WANT_KEY;
        else if (is(v, "\"stats\""))
                r->want = AF_GATE_WANT_STATS;
        else
                return "must be \"bundle\", \"key\" or \"stats\"";
        return NULL;
}

/* NULL, or what is wrong. */
static const char *set(struct af_gate_request *r, struct span name, struct span v) {
        uint64_t n = 0;

        if (is(name, "fragment")) {
                if (r->fragment)
                        return "stands there twice";
                r->fragment = v.p;
                r->n_fragment = v.n;
                return v.p[0] == '{' ? NULL : "must be an object";
        }
        if (is(name, "want"))
                return set_want(r, v);
        if (is(name, "lookup_only")) {
                r->lookup_only = is(v, "true");
                return is(v, "true") || is(v, "false") ? NULL : "must be true or false";
        }
        if (is(name, "deadline_ms")) {
                if (!read_number(v, UINT32_MAX, &n))
                        return "must be a number of milliseconds";
                r->deadline_ms = (uint32_t)n;
        } else if (is(name, "wait_ms")) {
                if (!read_number(v, UINT32_MAX, &n))
                        return "must be a number of milliseconds";
                r->wait_ms = (uint32_t)n;
        } else if (is(name, "max_bytes")) {
                return read_number(v, UINT64_MAX >> 1, &r->max_bytes) ? NULL : "must be a number of bytes";
        } else if (is(name, "priority")) {
                if (!read_number(v, 255, &n))
                        return "must be 0 to 255";
                r->priority = (uint8_t)n;
        } else {
                return "is no member of a request";
        }
        return NULL;
}

static int invalid(char why[160], struct span name, const char *what) {
        snprintf(why, 160, "\"%.*s\": %s", (int)AF_MIN(name.n, (size_t)64), name.n ? name.p : "", what);
        return AF_GATE_E_INVALID;
}

static int read_envelope(struct scan s, struct af_gate_request *r, char why[160]) {
        do {
                struct span name = take_string(&s), value;
                const char *wrong;

                s.error |= !take(&s, ':');
                value = take_value(&s);
                if (s.error)
                        break;
                wrong = set(r, name, value);
                if (wrong)
                        return invalid(why, name, wrong);
        } while (take(&s, ','));
        s.error |= !take(&s, '}');
        skip_blank(&s);
        if (s.error || s.p != s.end) {
                snprintf(why, 160, "the request is no whole JSON object");
                return AF_GATE_E_INVALID;
        }
        if (!r->fragment && r->want != AF_GATE_WANT_STATS) {
                snprintf(why, 160, "the request has no fragment");
                return AF_GATE_E_INVALID;
        }
        return 0;
}

/* Whether one of the members is an envelope's. What is no object at all is left to whoever reads fragments. */
static bool is_envelope(struct scan s) {
        do {
                struct span name = take_string(&s);

                if (s.error || !take(&s, ':'))
                        return false;
                if (is(name, "fragment") || is(name, "want"))
                        return true;
                (void)take_value(&s);
        } while (!s.error && take(&s, ','));
        return false;
}

int af_gate_request_read(const char *text, size_t n, struct af_gate_request *ret_request, char why[160]) {
        struct scan s = {text, text + n, false};

        *ret_request = (struct af_gate_request){.fragment = text, .n_fragment = n, .max_bytes = AF_GATE_MAX_REPLY_BYTES};
        if (!take(&s, '{') || !is_envelope(s))
                return 0;
        ret_request->fragment = NULL;
        ret_request->n_fragment = 0;
        return read_envelope(s, ret_request, why);
}
