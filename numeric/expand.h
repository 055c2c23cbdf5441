/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expansions: each op as a straight-line program over primitives (numeric/prims.def). This is the single definition of what an
 * op computes: the reference evaluates the program, the code generator emits it, the twin's vector calls run the same scalar
 * primitives, so the three agree bit for bit by construction.
 *
 * In a program a bool value is a MASK; loads and stores convert between uint8 and mask. Under `strict` the result is rounded to the
 * node's declared dtype by the program's last cast.
 */
#pragma once

#include <stddef.h>

#include "numeric/mode.h"
#include "numeric/op.h"

enum af_prim {
#define AF_PRIM(ID, call, n_src, kind, dtypes) AF_PRIM_##ID,
#include "numeric/prims.def"
#undef AF_PRIM
        AF_N_PRIMS
};
struct af_prim_info {
        const char *call; /* Ascend C name */
        uint8_t n_src;
        char kind; /* 'V' 'S' 'C' 'M' 'm' (MS) '?' (SEL) 'L' 'D' 'R' */
};
const struct af_prim_info *af_prim_info(enum af_prim prim);

/* One instruction. Value numbers: 0..n_operands-1 are the op's operands, n_operands + i is the result of instruction i. */
struct af_prim_ins {
        uint8_t prim;  /* enum af_prim */
        uint8_t dtype; /* compute dtype: of the sources (CAST: of the source; SELECT: of a and b; mask ops: MASK; DUP: of the scalar) */
        uint8_t to;    /* dtype of the result (= dtype except CAST, CMP -> MASK, BITS) */
        uint8_t mode;  /* enum af_round or enum af_cmp */
        uint16_t src[3];
        uint64_t imm; /* scalar operand, bits of `dtype`, low bytes first */
};

#define AF_PROG_MAX          320 /* instructions in one op's expansion */
#define AF_PROG_MAX_OPERANDS 4
#define AF_PROG_MAX_LIVE     40 /* values alive at once, operands apart */
struct af_prog {
        uint16_t n_operands;
        uint16_t n_ins;
        uint16_t result; /* value number */
        struct af_prim_ins ins[AF_PROG_MAX];
};

/* What an expansion needs to know of one operand. */
struct af_expand_operand {
        enum af_dtype dtype;
        bool is_scalar; /* a constant of shape []: its value is below and it takes no value slot in loads */
        uint64_t bits;  /* the constant, in its own dtype */
};
struct af_expand_attrs {
        double alpha; /* leaky_relu */
        bool gelu_tanh;
        bool has_min, has_max; /* clip */
        double min, max;       /* float dtypes */
        int64_t imin, imax;    /* integer dtypes */
};

#define AF_NUMERIC_VERSION 2 /* part of the environment digest: raise it whenever any expansion or primitive changes a bit */

enum {
        AF_EXPAND_E_UNSUPPORTED =
                1, /* no exact program for these dtypes with the vector unit's calls; *ret_reason says why (static text) */
};

/*
 * Writes the program of op on operands of these dtypes giving out_dtype. For classes ELEMENTWISE, COMPARE, SELECT, CAST. Scalar
 * operands become immediates (they enter unrounded); a program may have operands that it never reads. BROADCAST, EXPAND and VIEW ops are
 * the identity program. Returns 0 or AF_EXPAND_E_UNSUPPORTED.
 */
int af_expand(enum af_op op, const struct af_expand_operand *operands, unsigned n_operands, enum af_dtype out_dtype,
              const struct af_expand_attrs *attrs, struct af_prog *ret_prog, const char **ret_reason);
/*
 * `fast`: as af_expand for chains that stay in float32. Operand i (tensors alone) whose bit in wide_in is set and whose dtype is float16 or
 * bfloat16 comes as float32, unrounded by the node that made it; with wide_out such a result is left as float32. Other dtypes are as they
 * are. The program's operand and result types are those of af_dtype_widened. On values that the narrow dtype holds, the wide result rounded
 * once to that dtype is the strict result in every bit (but for the sign that copysign takes from a NaN). Reductions: af_expand_reduce
 * takes FLOAT32 for in_dtype, out_dtype or both.
 */
int af_expand_wide(enum af_op op, const struct af_expand_operand *operands, unsigned n_operands, enum af_dtype out_dtype,
                   const struct af_expand_attrs *attrs, uint32_t wide_in, bool wide_out, struct af_prog *ret_prog, const char **ret_reason);
enum af_dtype af_dtype_widened(enum af_dtype d); /* FLOAT32 for FLOAT16 and BFLOAT16, else d */

/*
 * Like af_expand but for the definition alone (the reference): int64 and float64-scalar programs that the vector unit cannot run are
 * evaluated by dedicated scalar code. True where af_eval_op covers the combination although af_expand says unsupported.
 */
bool af_eval_op_supported(enum af_op op, const struct af_expand_operand *operands, unsigned n_operands, enum af_dtype out_dtype);

/*
 * Evaluates op elementwise on n elements: srcs[i] points to n elements of operand i's dtype in memory form (bool: uint8 0/1), or is
 * NULL for a scalar operand. Uses af_expand's program where there is one, else the scalar definition. scratch: caller's memory of
 * af_eval_scratch_bytes(n). 0 or AF_EXPAND_E_UNSUPPORTED.
 */
int af_eval_op(enum af_op op, const struct af_expand_operand *operands, unsigned n_operands, enum af_dtype out_dtype,
               const struct af_expand_attrs *attrs, const void *const *srcs, void *dst, size_t n, void *scratch);
size_t af_eval_scratch_bytes(size_t n);

/*
 * Reductions: the value before, the combining and what follows. A reduction of dtype d to dtype out runs as
 *   pre: program from d to acc dtype (often one cast; any/all: to float 0/1), combine in acc order (DESIGN 4), post: program from
 *   acc to out (mean: divide by the count first).
 */
enum af_combine { AF_COMBINE_ADD, AF_COMBINE_MAX, AF_COMBINE_MIN, AF_COMBINE_MUL };
struct af_reduce_plan {
        enum af_combine combine;
        enum af_dtype acc;   /* FLOAT32, FLOAT16 (max/min of halves) or INT32; for the reference alone also INT64 */
        uint64_t identity;   /* bits of acc: +0.0, 1, -inf, +inf, INT_MIN, ... */
        struct af_prog pre;  /* one operand: the input's dtype */
        struct af_prog post; /* one operand: acc */
};
/*
 * count: elements reduced into one result: the divisor of a mean, and where the result is int64 the bound that shows that int32
 * holds every partial sum (where it is not known: the largest it can be). 0 or AF_EXPAND_E_UNSUPPORTED (int64 on the device).
 */
int af_expand_reduce(enum af_op op, enum af_dtype in_dtype, enum af_dtype out_dtype, uint64_t count, struct af_reduce_plan *ret_plan,
                     const char **ret_reason);

/* As af_expand_reduce for the definition alone: covers what it refuses, with INT64 as acc. */
int af_eval_reduce_plan(enum af_op op, enum af_dtype in_dtype, enum af_dtype out_dtype, uint64_t count, struct af_reduce_plan *ret_plan,
                        const char **ret_reason);
/* Bits of acc that change nothing: what an empty run gives. */
uint64_t af_combine_identity(enum af_combine combine, enum af_dtype acc);
/* Whether rounding makes the order of combining matter. */
bool af_combine_ordered(enum af_combine combine, enum af_dtype acc);

/*
 * The ordered combine over one logical run, as DESIGN 4 defines it. `last` tells whether the reduced axis group is the last
 * non-unit one (chunks of 1,024, 64 lanes, adjacent-pair tree) or not (chunks of 32 in sequence). src: n elements of acc at a
 * stride in elements; any n; n == 0 gives the identity.
 */
void af_combine_run(enum af_combine combine, enum af_dtype acc, bool last, const void *src, uint64_t n, int64_t stride, void *ret_value);

/*
 * int64 as two int32 words and back, for broadcasts that move 4 bytes at a time: word 0 (low) or 1 (high) of an int64 operand; the int64 of
 * two int32 operands, low and high.
 */
void af_expand_word(unsigned word, struct af_prog *ret_prog);
void af_expand_words_joined(struct af_prog *ret_prog);
/* An int64 number, without operands. */
void af_expand_const_i64(int64_t v, struct af_prog *ret_prog);

/* Runs a program: operands and result in memory form (bool: uint8). scratch as above. */
void af_prog_eval(const struct af_prog *prog, const enum af_dtype *operand_dtypes, const void *const *srcs, void *dst, size_t n,
                  void *scratch);
/*
 * Most values alive at once, operands apart, where a result takes the place of a source of its element size that dies there. At most
 * AF_PROG_MAX_LIVE for every program of af_expand.
 */
unsigned af_prog_max_live(const struct af_prog *prog);
/* One primitive over n elements of its memory form (MASK: uint8 0/1). dst may be a source of the same element size. */
void af_prim_eval(const struct af_prim_ins *ins, const void *const *srcs, void *dst, size_t n);
/* Whether the primitive exists for these dtypes and this mode: then af_prim_eval may be called. */
bool af_prim_valid(const struct af_prim_ins *ins);
