/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "numeric/build_macros.h"

void af_build_start(struct af_builder *b, struct af_prog *prog, const struct af_expand_operand *operands, unsigned n_operands) {
        memset(b, 0, sizeof(*b));
        b->prog = prog;
        b->operands = operands;
        b->n_operands = n_operands;
        prog->n_operands = (uint16_t)n_operands;
        prog->n_ins = 0;
        prog->result = 0;
        for (unsigned i = 0; i < n_operands; i++)
                b->types[i] = operands[i].dtype == AF_DTYPE_BOOL ? AF_DTYPE_MASK : (uint8_t)operands[i].dtype;
}

int af_build_finish(struct af_builder *b, af_val result, const char **ret_reason) {
        const char *reason = b->reason;

        if (!reason && b->full)
                reason = "the expansion has too many instructions";
        if (reason) {
                *ret_reason = reason;
                return AF_EXPAND_E_UNSUPPORTED;
        }
        b->prog->result = result;
        return 0;
}

static af_val emit(struct af_builder *b, enum af_prim prim, enum af_dtype dtype, enum af_dtype to, unsigned mode, af_val s0, af_val s1,
                   af_val s2, uint64_t imm) {
        struct af_prog *p = b->prog;
        struct af_prim_ins *ins;

        if (b->full || b->reason || p->n_ins == AF_PROG_MAX) {
                b->full |= !b->reason;
                return 0;
        }
        ins = &p->ins[p->n_ins];
        memset(ins, 0, sizeof(*ins));
        ins->prim = (uint8_t)prim;
        ins->dtype = (uint8_t)dtype;
        ins->to = (uint8_t)to;
        ins->mode = (uint8_t)mode;
        ins->src[0] = s0;
        ins->src[1] = s1;
        ins->src[2] = s2;
        ins->imm = imm;
        b->types[p->n_operands + p->n_ins] = (uint8_t)to;
        return (af_val)(p->n_operands + p->n_ins++);
}

af_val af_b_binary(struct af_builder *b, enum af_prim prim, af_val x, af_val y) {
        return emit(b, prim, af_build_type(b, x), af_build_type(b, x), 0, x, y, 0, 0);
}

af_val af_b_scalar(struct af_builder *b, enum af_prim prim, af_val x, uint64_t imm) {
        return emit(b, prim, af_build_type(b, x), af_build_type(b, x), 0, x, 0, 0, imm);
}

af_val af_b_unary(struct af_builder *b, enum af_prim prim, af_val x) {
        return emit(b, prim, af_build_type(b, x), af_build_type(b, x), 0, x, 0, 0, 0);
}

af_val af_b_cast(struct af_builder *b, af_val x, enum af_dtype to, enum af_round mode) {
        return emit(b, AF_PRIM_CAST, af_build_type(b, x), to, mode, x, 0, 0, 0);
}

af_val af_b_cmp(struct af_builder *b, enum af_cmp mode, af_val x, af_val y) {
        return emit(b, AF_PRIM_CMP, af_build_type(b, x), AF_DTYPE_MASK, mode, x, y, 0, 0);
}

af_val af_b_cmps(struct af_builder *b, enum af_cmp mode, af_val x, uint64_t imm) {
        return emit(b, AF_PRIM_CMPS, af_build_type(b, x), AF_DTYPE_MASK, mode, x, 0, 0, imm);
}

af_val af_b_select(struct af_builder *b, af_val mask, af_val x, af_val y) {
        return emit(b, AF_PRIM_SELECT, af_build_type(b, x), af_build_type(b, x), 0, mask, x, y, 0);
}

af_val af_b_bits(struct af_builder *b, af_val x, enum af_dtype to) {
        return emit(b, AF_PRIM_BITS, af_build_type(b, x), to, 0, x, 0, 0, 0);
}

af_val af_b_dup(struct af_builder *b, enum af_dtype d, uint64_t imm) {
        const struct af_prog *p = b->prog;

        for (unsigned i = 0; i < p->n_ins; i++)
                if (p->ins[i].prim == AF_PRIM_DUP && p->ins[i].dtype == d && p->ins[i].imm == imm)
                        return (af_val)(p->n_operands + i);
        return emit(b, AF_PRIM_DUP, d, d, 0, 0, 0, 0, imm);
}

af_val af_b_dup_f32(struct af_builder *b, float x) {
        return af_b_dup(b, AF_DTYPE_FLOAT32, af_bits_f32(x));
}

af_val af_b_adds_f32(struct af_builder *b, af_val x, float s) {
        return af_b_scalar(b, AF_PRIM_ADDS, x, af_bits_f32(s));
}

af_val af_b_muls_f32(struct af_builder *b, af_val x, float s) {
        return af_b_scalar(b, AF_PRIM_MULS, x, af_bits_f32(s));
}

af_val af_b_cmps_f32(struct af_builder *b, enum af_cmp mode, af_val x, float s) {
        return af_b_cmps(b, mode, x, af_bits_f32(s));
}

af_val af_b_horner(struct af_builder *b, af_val x, const float *c, unsigned n) {
        af_val p = af_b_adds_f32(b, af_b_muls_f32(b, x, c[0]), c[1]);

        for (unsigned i = 2; i < n; i++)
                p = af_b_adds_f32(b, MUL(p, x), c[i]);
        return p;
}

af_val af_b_copysign(struct af_builder *b, af_val x, af_val s) {
        af_val sign = AND(s, af_b_dup(b, AF_DTYPE_FLOAT32, 0x80000000u));

        return AF_B2(AF_PRIM_OR, af_b_unary(b, AF_PRIM_ABS, x), sign);
}

af_val af_b_high_part(struct af_builder *b, af_val x) {
        return AND(x, af_b_dup(b, AF_DTYPE_FLOAT32, 0xfffff000u));
}

af_val af_b_two_product(struct af_builder *b, af_val x, af_val y, af_val *ret_low) {
        af_val xh = af_b_high_part(b, x), yh = af_b_high_part(b, y);
        af_val xl = SUB(x, xh), yl = SUB(y, yh);
        af_val p = MUL(x, y);
        af_val e = SUB(MUL(xh, yh), p);

        e = ADD(e, MUL(xh, yl));
        e = ADD(e, MUL(xl, yh));
        *ret_low = ADD(e, MUL(xl, yl));
        return p;
}

af_val af_b_split_float(struct af_builder *b, af_val a, af_val *ret_k) {
        const int32_t half = 0x3f3504f3; /* sqrt(1/2) */
        af_val tiny = IF(LT, a, 0x1p-126f);
        af_val i = INT_ADDS(AS_INT(SELECT(tiny, MULS(a, 0x1p24f), a)), -half);
        af_val k = af_b_cast(b, INT_SHR(i, 23), AF_DTYPE_FLOAT32, AF_ROUND_RINT);
        af_val m = AND(i, af_b_dup(b, AF_DTYPE_INT32, 0x7fffffu));

        *ret_k = SELECT(tiny, ADDS(k, -24.0f), k);
        return AS_F32(INT_ADDS(m, half));
}

af_val af_b_scale(struct af_builder *b, af_val x, af_val k) {
        af_val k1 = INT_SHR(k, 1), k2 = SUB(k, k1);

        x = MUL(x, AS_F32(INT_SHL(INT_ADDS(k1, 127), 23)));
        return MUL(x, AS_F32(INT_SHL(INT_ADDS(k2, 127), 23)));
}

af_val af_b_mask_const(struct af_builder *b, bool value) {
        return af_b_cmps(b, value ? AF_CMP_EQ : AF_CMP_NE, af_b_dup(b, AF_DTYPE_FLOAT16, 0), 0);
}

af_val af_b_mask_xor(struct af_builder *b, af_val x, af_val y) {
        af_val any = MASK_OR(x, y);
        af_val both = MASK_AND(x, y);

        return MASK_AND(any, af_b_unary(b, AF_PRIM_MASK_NOT, both));
}

af_val af_b_wrap(struct af_builder *b, af_val x, unsigned bits, bool is_signed) {
        enum af_dtype d = af_build_type(b, x);
        unsigned unused = af_dtype_size(d) * 8 - bits;

        if (!is_signed)
                return AND(x, af_b_dup(b, d, ((uint64_t)1 << bits) - 1));
        return af_b_scalar(b, AF_PRIM_SHR, af_b_scalar(b, AF_PRIM_SHL, x, unused), unused);
}
