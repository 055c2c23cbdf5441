/* SPDX-License-Identifier: Apache-2.0 */
/*
 * int64, and float64 scalars, on a vector unit that has neither: its And, Or and Not take any bits, and its Cast goes from int64 to float32
 * and back exactly where the value has at most 24 significant bits. So a value is taken apart by masks into three pieces that float32
 * holds,
 *
 *   x = a 2^40 + b 2^16 + c,  a in [-2^23, 2^23), b in [0, 2^24), c in [0, 2^16)
 *
 * is compared by them, or computed on as int32 limbs, and put together again by Cast and Or.
 */
#include "numeric/build_macros.h"

#define OR(x, y) AF_B2(AF_PRIM_OR, x, y)
#define NOT(x)   af_b_unary(b, AF_PRIM_NOT, x)

enum { N_PARTS = 3 };
static const int part_shift[N_PARTS] = {40, 16, 0};
static const int64_t part_mask[N_PARTS] = {-((int64_t)1 << 40), ((int64_t)1 << 40) - ((int64_t)1 << 16), ((int64_t)1 << 16) - 1};

/* int32 limbs; raw ones may be beyond the ranges above. */
struct limbs {
        af_val part[N_PARTS];
};

static af_val from_f32(struct af_builder *b, af_val x) {
        return af_b_cast(b, x, AF_DTYPE_INT64, AF_ROUND_TRUNC);
}

/* A constant of 4 bytes as int64, once per program. */
static af_val wide_const(struct af_builder *b, af_val dup) {
        const struct af_prog *p = b->prog;

        for (unsigned i = 0; i < p->n_ins; i++)
                if (p->ins[i].prim == AF_PRIM_CAST && p->ins[i].src[0] == dup && p->ins[i].to == AF_DTYPE_INT64)
                        return (af_val)(p->n_operands + i);
        return af_b_cast(b, dup, AF_DTYPE_INT64, af_build_type(b, dup) == AF_DTYPE_INT32 ? AF_ROUND_NONE : AF_ROUND_TRUNC);
}

af_val af_b_const_i64(struct af_builder *b, int64_t v) {
        af_val r = 0;
        bool first = true;

        if (v == (int32_t)v)
                return wide_const(b, af_b_dup(b, AF_DTYPE_INT32, (uint32_t)v));
        for (int i = 0; i < N_PARTS; i++) {
                int64_t part = v & part_mask[i];
                af_val p;

                if (!part)
                        continue;
                p = wide_const(b, DUP((float)part)); /* exact */
                r = first ? p : OR(r, p);
                first = false;
        }
        return r;
}

/* Piece i of x as float32, times 2^part_shift[i]. */
static af_val piece(struct af_builder *b, af_val x, int i) {
        return TO_F32(AND(x, af_b_const_i64(b, part_mask[i])));
}

static struct limbs take_apart(struct af_builder *b, af_val x) {
        struct limbs l;

        for (int i = 0; i < N_PARTS; i++) {
                af_val p = piece(b, x, i);

                l.part[i] = TO_I32(part_shift[i] ? MULS(p, 1.0f / (float)((int64_t)1 << part_shift[i])) : p);
        }
        return l;
}

/* Carries; what is beyond 64 bits is lost. */
static struct limbs normal(struct af_builder *b, struct limbs l) {
        static const unsigned bits[N_PARTS] = {24, 24, 16};

        for (int i = N_PARTS - 1; i > 0; i--) {
                l.part[i - 1] = ADD(l.part[i - 1], INT_SHR(l.part[i], bits[i]));
                l.part[i] = AND(l.part[i], INT_DUP(AF_DTYPE_INT32, (1u << bits[i]) - 1));
        }
        l.part[0] = af_b_wrap(b, l.part[0], 24, true);
        return l;
}

static af_val put_together(struct af_builder *b, struct limbs l) {
        af_val r = af_b_cast(b, l.part[2], AF_DTYPE_INT64, AF_ROUND_NONE);

        for (int i = 0; i < 2; i++)
                r = OR(r, from_f32(b, MULS(TO_F32(l.part[i]), (float)((int64_t)1 << part_shift[i]))));
        return r;
}

/* The low 31 bits by Cast, which they fit; the 32nd as a float of 0 or -2^31. */
af_val af_b_low_i32(struct af_builder *b, af_val x) {
        af_val low = af_b_cast(b, AND(x, af_b_const_i64(b, 0x7fffffff)), AF_DTYPE_INT32, AF_ROUND_NONE);
        af_val top = TO_F32(AND(x, af_b_const_i64(b, 0x80000000)));

        return OR(low, TO_I32(MULS(top, -1.0f)));
}

static af_val select_i64(struct af_builder *b, af_val mask, af_val x, af_val y) {
        af_val all = from_f32(b, SELECT(mask, DUP(-1.0f), DUP(0.0f)));

        return OR(AND(x, all), AND(y, NOT(all)));
}

af_val af_x_select_i64(struct af_builder *b, af_val mask, af_val x, af_val y) {
        return select_i64(b, mask, x, y);
}

/* Mask: x < y, by the pieces from the top. */
static af_val less(struct af_builder *b, af_val x, af_val y) {
        af_val px[N_PARTS], py[N_PARTS], r;

        for (int i = 0; i < N_PARTS; i++) {
                px[i] = piece(b, x, i);
                py[i] = piece(b, y, i);
        }
        r = CMP(AF_CMP_LT, px[2], py[2]);
        for (int i = 1; i >= 0; i--) {
                af_val below = CMP(AF_CMP_LT, px[i], py[i]), same = CMP(AF_CMP_EQ, px[i], py[i]);

                r = MASK_OR(below, MASK_AND(same, r));
        }
        return r;
}

static af_val negative(struct af_builder *b, af_val x) {
        return IF(LT, TO_F32(x), 0.0f);
}

af_val af_x_compare_i64(struct af_builder *b, enum af_op op, af_val x, af_val y) {
        af_val r;

        switch (op) {
        case AF_OP_EQ:
        case AF_OP_NE: /* rounding never makes a nonzero integer zero */
                r = TO_F32(af_x_bit_xor(b, x, y));
                return af_b_cmps_f32(b, op == AF_OP_EQ ? AF_CMP_EQ : AF_CMP_NE, r, 0.0f);
        case AF_OP_LT:
                return less(b, x, y);
        case AF_OP_GT:
                return less(b, y, x);
        case AF_OP_GE:
                return MASK_NOT(less(b, x, y));
        default:
                return MASK_NOT(less(b, y, x));
        }
}

/* x + sign y */
static af_val sum(struct af_builder *b, af_val x, af_val y, bool subtract) {
        struct limbs l = take_apart(b, x), m = take_apart(b, y);

        for (int i = 0; i < N_PARTS; i++)
                l.part[i] = subtract ? SUB(l.part[i], m.part[i]) : ADD(l.part[i], m.part[i]);
        return put_together(b, normal(b, l));
}

/* ~x + 1 without a second operand to take apart. */
static af_val negated(struct af_builder *b, af_val x) {
        struct limbs l = take_apart(b, NOT(x));

        l.part[2] = INT_ADDS(l.part[2], 1);
        return put_together(b, normal(b, l));
}

enum { N_DIGITS = 6, DIGIT_BITS = 11 };

/* Digits of 11 bits, the lowest first; the last has the 9 that are left. Products of two, and sums of six of these, fit int32. */
static void digits(struct af_builder *b, af_val x, af_val ret[N_DIGITS]) {
        struct limbs l = take_apart(b, x);
        /* c: digit 0 and 5 bits; b: 6 bits, digit 2, 7 bits; a: 4 bits, digit 4, 9 bits */
        static const struct {
                uint8_t part, shift, bits, up, more, more_bits; /* more: low bits of the part above, moved up */
        } d[N_DIGITS] = {{2, 0, 11, 0, 0, 0}, {2, 11, 5, 5, 1, 6}, {1, 6, 11, 0, 0, 0},
                         {1, 17, 7, 7, 0, 4}, {0, 4, 11, 0, 0, 0}, {0, 15, 9, 0, 0, 0}};

        for (int i = 0; i < N_DIGITS; i++) {
                af_val v = d[i].shift ? INT_SHR(l.part[d[i].part], d[i].shift) : l.part[d[i].part];

                v = AND(v, INT_DUP(AF_DTYPE_INT32, (1u << d[i].bits) - 1));
                if (d[i].more_bits) {
                        af_val w = AND(l.part[d[i].more], INT_DUP(AF_DTYPE_INT32, (1u << d[i].more_bits) - 1));

                        v = OR(v, INT_SHL(w, d[i].up));
                }
                ret[i] = v;
        }
}

/* The value of digits in range. */
static af_val from_digits(struct af_builder *b, const af_val s[N_DIGITS]) {
        struct limbs l;

        l.part[2] = OR(s[0], INT_SHL(AND(s[1], INT_DUP(AF_DTYPE_INT32, 31)), 11));
        l.part[1] = OR(INT_SHR(s[1], 5), INT_SHL(s[2], 6));
        l.part[1] = OR(l.part[1], INT_SHL(AND(s[3], INT_DUP(AF_DTYPE_INT32, 127)), 17));
        l.part[0] = OR(INT_SHR(s[3], 7), INT_SHL(s[4], 4));
        l.part[0] = af_b_wrap(b, OR(l.part[0], INT_SHL(s[5], 15)), 24, true);
        return put_together(b, l);
}

static af_val low_digit(struct af_builder *b, af_val x) {
        return AND(x, INT_DUP(AF_DTYPE_INT32, (1u << DIGIT_BITS) - 1));
}

static af_val product(struct af_builder *b, af_val x, af_val y) {
        af_val p[N_DIGITS], q[N_DIGITS], s[N_DIGITS], carry = 0;

        digits(b, x, p);
        if (x == y)
                memcpy(q, p, sizeof(q));
        else
                digits(b, y, q);
        for (int k = 0; k < N_DIGITS; k++) {
                for (int i = 0; i <= k; i++) {
                        af_val t = MUL(p[i], q[k - i]);

                        s[k] = i ? ADD(s[k], t) : t;
                }
                if (k)
                        s[k] = ADD(s[k], carry);
                carry = INT_SHR(s[k], DIGIT_BITS);
                s[k] = low_digit(b, s[k]);
        }
        return from_digits(b, s);
}

/* Digit i is made of digits i - k and i - k - 1 (n = 11 k + r), or to the right of i + k and i + k + 1. */
static af_val shift_left(struct af_builder *b, af_val x, unsigned n) {
        af_val d[N_DIGITS], s[N_DIGITS], zero = INT_DUP(AF_DTYPE_INT32, 0);
        int k = (int)n / DIGIT_BITS;
        unsigned r = n % DIGIT_BITS;

        digits(b, x, d);
        for (int i = 0; i < N_DIGITS; i++) {
                s[i] = i < k ? zero : r ? INT_SHL(d[i - k], r) : d[i - k];
                if (r && i > k)
                        s[i] = OR(s[i], INT_SHR(d[i - k - 1], DIGIT_BITS - r));
                if (r && i >= k)
                        s[i] = low_digit(b, s[i]);
        }
        return from_digits(b, s);
}

static af_val shift_right(struct af_builder *b, af_val x, unsigned n) {
        af_val d[N_DIGITS + 1], s[N_DIGITS], sign_bits;
        int k = (int)n / DIGIT_BITS;
        unsigned r = n % DIGIT_BITS;

        digits(b, x, d);
        sign_bits = SELECT(negative(b, x), INT_DUP(AF_DTYPE_INT32, 0xffffffffu), INT_DUP(AF_DTYPE_INT32, 0));
        /* The last digit has 9 bits: the sign above them. */
        d[5] = OR(d[5], INT_SHL(sign_bits, 9));
        d[6] = sign_bits;
        for (int i = 0; i < N_DIGITS; i++) {
                af_val low = d[i + k < N_DIGITS ? i + k : N_DIGITS], up = d[i + k + 1 < N_DIGITS ? i + k + 1 : N_DIGITS];

                s[i] = r ? OR(INT_SHR(low, r), INT_SHL(up, DIGIT_BITS - r)) : low;
                s[i] = low_digit(b, s[i]);
        }
        return from_digits(b, s);
}

/* -l where mask, else l: raw. */
static struct limbs negate_where(struct af_builder *b, af_val mask, struct limbs l) {
        for (int i = 0; i < N_PARTS; i++)
                l.part[i] = SELECT(mask, af_b_scalar(b, AF_PRIM_MULS, l.part[i], 0xffffffffu), l.part[i]);
        return l;
}

/*
 * One step of long division by y < 2^22: (rest 2^shift + limb) / y in float32 is below 2^24 and off by at most 3; the rest of that, in
 * wrapping int32, is divided once more, and a negative one put right. Returns the quotient's limb; *rest: in [0, y).
 */
static af_val divide_step(struct af_builder *b, af_val *rest, bool first, unsigned shift, af_val limb, int32_t y) {
        af_val f = TO_F32(limb), r = limb, q, q2, below;

        if (!first) {
                f = ADD(MULS(TO_F32(*rest), (float)(1u << shift)), f);
                r = ADD(INT_SHL(*rest, shift), limb);
        }
        q = TO_I32(DIV(f, DUP((float)y)));
        r = SUB(r, af_b_scalar(b, AF_PRIM_MULS, q, (uint32_t)y));
        q2 = TO_I32(DIV(TO_F32(r), DUP((float)y)));
        r = SUB(r, af_b_scalar(b, AF_PRIM_MULS, q2, (uint32_t)y));
        below = INT_SHR(r, 31);
        *rest = ADD(r, AND(below, INT_DUP(AF_DTYPE_INT32, (uint32_t)y)));
        return ADD(ADD(q, q2), below);
}

/* By |y| in [1, 2^22): limbs of the magnitude, the sign put on last. */
static af_val divide(struct af_builder *b, enum af_op op, af_val x, int32_t y) {
        static const unsigned width[N_PARTS] = {24, 24, 16};
        bool floor = op == AF_OP_FLOOR_DIV || op == AF_OP_REMAINDER, rest_wanted = op == AF_OP_REMAINDER || op == AF_OP_FMOD;
        int32_t ay = y < 0 ? -y : y;
        af_val below = negative(b, x), rest = 0, off;
        struct limbs l = normal(b, negate_where(b, below, take_apart(b, x)));

        l.part[0] = AND(l.part[0], INT_DUP(AF_DTYPE_INT32, 0xffffffu)); /* 2^63 for the least number */
        for (int i = 0; i < N_PARTS; i++)
                l.part[i] = divide_step(b, &rest, i == 0, width[i], l.part[i], ay);
        rest = SELECT(below, af_b_scalar(b, AF_PRIM_MULS, rest, 0xffffffffu), rest);
        /* -1 where the rest is on the other side of zero than y. */
        off = INT_SHR(y < 0 ? af_b_scalar(b, AF_PRIM_MULS, rest, 0xffffffffu) : rest, 31);
        if (rest_wanted)
                return af_b_cast(b, floor ? ADD(rest, AND(off, INT_DUP(AF_DTYPE_INT32, (uint32_t)y))) : rest, AF_DTYPE_INT64,
                                 AF_ROUND_NONE);
        l = negate_where(b, y < 0 ? MASK_NOT(below) : below, l);
        if (floor)
                l.part[2] = ADD(l.part[2], off);
        return put_together(b, normal(b, l));
}

af_val af_x_by_const_i64(struct af_builder *b, enum af_op op, af_val x, int64_t n) {
        bool inside = n >= 0 && n <= 63;

        switch (op) {
        case AF_OP_SHIFT_LEFT:
                return inside ? shift_left(b, x, (unsigned)n) : af_b_const_i64(b, 0);
        case AF_OP_POW:
                if (n < 0 || n > 3)
                        break;
                return n == 0 ? af_b_const_i64(b, 1) : n == 1 ? x : product(b, n == 3 ? product(b, x, x) : x, x);
        case AF_OP_SHIFT_RIGHT:
                return shift_right(b, x, inside ? (unsigned)n : 63);
        case AF_OP_DIV:
        case AF_OP_TRUNC_DIV:
        case AF_OP_FLOOR_DIV:
        case AF_OP_REMAINDER:
        case AF_OP_FMOD:
                if (n == 0)
                        return af_b_const_i64(b, 0);
                if (n > -(1 << 22) && n < 1 << 22)
                        return divide(b, op, x, (int32_t)n);
                break;
        default:
                break;
        }
        return af_x_binary_i64(b, op, x, af_b_const_i64(b, n));
}

static af_val sign(struct af_builder *b, af_val x) {
        af_val f = TO_F32(x), low = SELECT(IF(LT, f, 0.0f), DUP(-1.0f), DUP(0.0f));

        return from_f32(b, SELECT(IF(GT, f, 0.0f), DUP(1.0f), low));
}

static af_val clip(struct af_builder *b, const struct af_expand_attrs *attrs, af_val x) {
        if (attrs && attrs->has_min) {
                af_val low = af_b_const_i64(b, attrs->imin);

                x = select_i64(b, less(b, x, low), low, x);
        }
        if (attrs && attrs->has_max) {
                af_val high = af_b_const_i64(b, attrs->imax);

                x = select_i64(b, less(b, high, x), high, x);
        }
        return x;
}

af_val af_x_unary_i64(struct af_builder *b, enum af_op op, const struct af_expand_attrs *attrs, af_val x) {
        af_val below;

        switch (op) {
        case AF_OP_ABS:
                below = negative(b, x);
                return select_i64(b, below, negated(b, x), x);
        case AF_OP_NEG:
                return negated(b, x);
        case AF_OP_SIGN:
                return sign(b, x);
        case AF_OP_RELU:
                return AND(x, from_f32(b, SELECT(negative(b, x), DUP(0.0f), DUP(-1.0f))));
        case AF_OP_SQUARE:
                return product(b, x, x);
        case AF_OP_CLIP:
                return clip(b, attrs, x);
        case AF_OP_BITWISE_NOT:
                return NOT(x);
        default: /* the rounding ops */
                return x;
        }
}

af_val af_x_binary_i64(struct af_builder *b, enum af_op op, af_val x, af_val y) {
        switch (op) {
        case AF_OP_ADD:
        case AF_OP_SUB:
                return sum(b, x, y, op == AF_OP_SUB);
        case AF_OP_MUL:
                return product(b, x, y);
        case AF_OP_MAXIMUM:
                return select_i64(b, less(b, x, y), y, x);
        case AF_OP_MINIMUM:
                return select_i64(b, less(b, x, y), x, y);
        case AF_OP_BITWISE_AND:
        case AF_OP_BITWISE_OR:
        case AF_OP_BITWISE_XOR:
                return af_x_bits(b, op, x, y);
        default:
                b->reason = b->reason ? b->reason
                                      : "int64 quotients, shifts and powers on the vector unit are by constants alone (below 2^22; 0 to 3)";
                return 0;
        }
}

/*
 * float64 bits: sign, e (11), significand m (52). Numbers whose float32 is normal: the 53-bit significand by Cast, rounded to 24 bits,
 * times 2^(e - 1075). Smaller ones in units of 2^-149: the upper 24 bits as a float, rounded to an integer; the rest decides a tie.
 */
static af_val tiny_f64(struct af_builder *b, af_val upper, af_val rest, af_val e) {
        /* Below 2^-151 the result is zero: e - 926 from -80 down counts as that. */
        af_val k = af_b_scalar(b, AF_PRIM_MAXS, INT_ADDS(e, -926), -80 & 0xffffffffu);
        af_val v = af_b_scale(b, upper, k), n = ROUND(RINT, v);
        af_val up = MASK_AND(IF(EQ, SUB(v, n), 0.5f), IF(NE, rest, 0.0f));

        return AS_F32(TO_I32(SELECT(up, ADDS(n, 1.0f), n)));
}

af_val af_b_f64_to_f32(struct af_builder *b, af_val x) {
        const int64_t hidden = (int64_t)1 << 52, low = ((int64_t)1 << 29) - 1;
        af_val i = af_b_bits(b, x, AF_DTYPE_INT64), m, e, f, r, upper, rest, small, special;
        af_val ef = MULS(TO_F32(AND(i, af_b_const_i64(b, (int64_t)0x7ff << 52))), 0x1p-52f);

        e = TO_I32(ef);
        m = OR(AND(i, af_b_const_i64(b, hidden - 1)), af_b_const_i64(b, hidden));
        f = TO_F32(m);
        /* e - 1075 from -230 to 0 and beyond to infinity; 2^-230 is where tiny ones take over. */
        r = af_b_scale(b, f, af_b_scalar(b, AF_PRIM_MINS, af_b_scalar(b, AF_PRIM_MAXS, INT_ADDS(e, -1075), (uint32_t)-230), 100));
        upper = TO_F32(AND(m, af_b_const_i64(b, ~low)));
        rest = TO_F32(AND(m, af_b_const_i64(b, low)));
        small = tiny_f64(b, upper, rest, e);
        r = SELECT(IF(LT, ef, 897.0f), small, r);
        special = SELECT(IF(EQ, TO_F32(AND(i, af_b_const_i64(b, hidden - 1))), 0.0f), DUP(af_f32_from_bits(AF_F32_INF)),
                         af_b_dup(b, AF_DTYPE_FLOAT32, AF_F32_NAN));
        r = SELECT(IF(EQ, ef, 2047.0f), special, r);
        f = TO_F32(i);
        f = af_b_copysign(b, r, f);
        return SELECT(CMP(AF_CMP_NE, r, r), r, f);
}

void af_expand_word(unsigned word, struct af_prog *ret_prog) {
        const struct af_expand_operand o = {.dtype = AF_DTYPE_INT64};
        struct af_builder builder, *b = &builder;
        struct limbs l;
        af_val r;

        af_build_start(b, ret_prog, &o, 1);
        if (word == 0) {
                r = af_b_low_i32(b, 0);
        } else {
                l = take_apart(b, 0);
                r = OR(INT_SHL(l.part[0], 8), INT_SHR(l.part[1], 16));
        }
        ret_prog->result = r;
}

void af_expand_words_joined(struct af_prog *ret_prog) {
        const struct af_expand_operand o[2] = {{.dtype = AF_DTYPE_INT32}, {.dtype = AF_DTYPE_INT32}};
        struct af_builder builder, *b = &builder;
        struct limbs l;

        af_build_start(b, ret_prog, o, 2);
        l.part[2] = AND(0, INT_DUP(AF_DTYPE_INT32, 0xffffu));
        l.part[1] = AND(INT_SHR(0, 16), INT_DUP(AF_DTYPE_INT32, 0xffffu));
        l.part[1] = OR(l.part[1], INT_SHL(AND(1, INT_DUP(AF_DTYPE_INT32, 0xffu)), 16));
        l.part[0] = INT_SHR(1, 8);
        ret_prog->result = put_together(b, l);
}

void af_expand_const_i64(int64_t v, struct af_prog *ret_prog) {
        struct af_builder builder, *b = &builder;

        af_build_start(b, ret_prog, NULL, 0);
        ret_prog->result = af_b_const_i64(b, v);
}
