// SPDX-License-Identifier: Apache-2.0
// One vector call per case on 4,096-byte operands A and B, result Z; test_calls.c computes each with plain loops.
#include "kernel_operator.h"
using namespace AscendC;

constexpr uint32_t BYTES = 4096;
constexpr uint32_t REP = 7; // repeats of the repeat forms

struct Env {
        TPipe pipe;
        TQue<TPosition::VECIN, 1> in;
        TQue<TPosition::VECOUT, 1> out;
        TBuf<TPosition::VECCALC> calc;
        LocalTensor<uint8_t> x, z, m;
        GM_ADDR to;
        uint32_t n;
        __aicore__ Env(GM_ADDR a, GM_ADDR c, uint32_t count) {
                n = count;
                to = c;
                pipe.InitBuffer(in, 1, 2 * BYTES);
                pipe.InitBuffer(out, 1, BYTES);
                pipe.InitBuffer(calc, BYTES);
                GlobalTensor<uint8_t> g;
                g.SetGlobalBuffer((__gm__ uint8_t *)a, 2 * BYTES);
                x = in.AllocTensor<uint8_t>();
                DataCopy(x, g, 2 * BYTES);
                in.EnQue(x);
                x = in.DeQue<uint8_t>();
                z = out.AllocTensor<uint8_t>();
                m = calc.Get<uint8_t>();
                Duplicate(z.ReinterpretCast<int32_t>(), (int32_t)0, BYTES / 4);
                Duplicate(m.ReinterpretCast<int32_t>(), (int32_t)0, BYTES / 4);
        }
        __aicore__ void store() {
                GlobalTensor<uint8_t> g;
                g.SetGlobalBuffer((__gm__ uint8_t *)to, BYTES);
                out.EnQue(z);
                z = out.DeQue<uint8_t>();
                DataCopy(g, z, BYTES);
                out.FreeTensor(z);
                in.FreeTensor(x);
        }
        template <typename T> __aicore__ LocalTensor<T> A() { return x.ReinterpretCast<T>(); }
        template <typename T> __aicore__ LocalTensor<T> B() { return x[BYTES].ReinterpretCast<T>(); }
        template <typename T> __aicore__ LocalTensor<T> Z() { return z.ReinterpretCast<T>(); }
        template <typename T> __aicore__ LocalTensor<T> M() { return m.ReinterpretCast<T>(); }
};

#define A(T) e.A<T>()
#define B(T) e.B<T>()
#define Z(T) e.Z<T>()
#define M(T) e.M<T>()
#define N e.n
#define UNARY_PARAMS UnaryRepeatParams(1, 1, 8, 8)
#define CASES(X)                                                                                                               \
        X(0, Add(Z(float), A(float), B(float), N))                                                                             \
        X(1, Sub(Z(float), A(float), B(float), N))                                                                             \
        X(2, Mul(Z(float), A(float), B(float), N))                                                                             \
        X(3, Div(Z(float), A(float), B(float), N))                                                                             \
        X(4, Max(Z(float), A(float), B(float), N))                                                                             \
        X(5, Min(Z(float), A(float), B(float), N))                                                                             \
        X(6, Add(Z(half), A(half), B(half), N))                                                                                \
        X(7, Sub(Z(half), A(half), B(half), N))                                                                                \
        X(8, Mul(Z(half), A(half), B(half), N))                                                                                \
        X(9, Div(Z(half), A(half), B(half), N))                                                                                \
        X(10, Max(Z(half), A(half), B(half), N))                                                                               \
        X(11, Min(Z(half), A(half), B(half), N))                                                                               \
        X(12, Add(Z(int32_t), A(int32_t), B(int32_t), N))                                                                      \
        X(13, Mul(Z(int16_t), A(int16_t), B(int16_t), N))                                                                      \
        X(14, And(Z(uint16_t), A(uint16_t), B(uint16_t), N))                                                                   \
        X(15, Or(Z(int16_t), A(int16_t), B(int16_t), N))                                                                       \
        X(16, Not(Z(uint16_t), A(uint16_t), N))                                                                                \
        X(17, Abs(Z(float), A(float), N))                                                                                      \
        X(18, Abs(Z(half), A(half), N))                                                                                        \
        X(19, Sqrt(Z(float), A(float), N))                                                                                     \
        X(20, Rsqrt(Z(float), A(float), N))                                                                                    \
        X(21, Reciprocal(Z(float), A(float), N))                                                                               \
        X(22, Relu(Z(float), A(float), N))                                                                                     \
        X(23, Relu(Z(half), A(half), N))                                                                                       \
        X(24, Relu(Z(int32_t), A(int32_t), N))                                                                                 \
        X(25, Exp(Z(float), A(float), N))                                                                                      \
        X(26, Ln(Z(float), A(float), N))                                                                                       \
        X(27, Exp(Z(half), A(half), N))                                                                                        \
        X(28, Ln(Z(half), A(half), N))                                                                                         \
        X(29, Adds(Z(float), A(float), 1.5f, N))                                                                               \
        X(30, Muls(Z(half), A(half), (half)0.3f, N))                                                                           \
        X(31, Maxs(Z(int32_t), A(int32_t), (int32_t)5, N))                                                                     \
        X(32, Mins(Z(int16_t), A(int16_t), (int16_t)-5, N))                                                                    \
        X(33, LeakyRelu(Z(float), A(float), 0.1f, N))                                                                          \
        X(34, LeakyRelu(Z(half), A(half), (half)0.1f, N))                                                                      \
        X(35, ShiftLeft(Z(uint32_t), A(uint32_t), (uint32_t)3, N))                                                             \
        X(36, ShiftLeft(Z(int16_t), A(int16_t), (int16_t)15, N))                                                               \
        X(37, ShiftRight(Z(uint16_t), A(uint16_t), (uint16_t)4, N))                                                            \
        X(38, ShiftRight(Z(int32_t), A(int32_t), (int32_t)31, N))                                                              \
        X(39, ShiftRight(Z(int32_t), A(int32_t), (int32_t)4, (uint64_t)64, (uint8_t)REP, UNARY_PARAMS, true))                  \
        X(40, Duplicate(Z(float), 1.0f, N); Axpy(Z(float), A(float), 2.5f, N))                                                 \
        X(41, Duplicate(Z(float), 0.7f, N); Axpy(Z(float), A(half), (half)1.3f, N))                                            \
        X(42, Duplicate(Z(half), (half)0.7f, N); Axpy(Z(half), A(half), (half)1.3f, N))                                        \
        X(43, Duplicate(Z(float), 0.7f, N); MulAddDst(Z(float), A(float), B(float), N))                                        \
        X(44, Duplicate(Z(float), 0.7f, N); FusedMulAdd(Z(float), A(float), B(float), N))                                      \
        X(45, Cast(Z(float), A(half), RoundMode::CAST_NONE, N))                                                                \
        X(46, Cast(Z(half), A(float), RoundMode::CAST_RINT, N))                                                                \
        X(47, Cast(Z(half), A(float), RoundMode::CAST_FLOOR, N))                                                               \
        X(48, Cast(Z(half), A(float), RoundMode::CAST_CEIL, N))                                                                \
        X(49, Cast(Z(half), A(float), RoundMode::CAST_ROUND, N))                                                               \
        X(50, Cast(Z(half), A(float), RoundMode::CAST_TRUNC, N))                                                               \
        X(51, Cast(Z(half), A(float), RoundMode::CAST_ODD, N))                                                                 \
        X(52, Cast(Z(half), A(float), RoundMode::CAST_NONE, N))                                                                \
        X(53, Cast(Z(bfloat16_t), A(float), RoundMode::CAST_RINT, N))                                                          \
        X(54, Cast(Z(bfloat16_t), A(float), RoundMode::CAST_TRUNC, N))                                                         \
        X(55, Cast(Z(float), A(bfloat16_t), RoundMode::CAST_NONE, N))                                                          \
        X(56, Cast(Z(int32_t), A(float), RoundMode::CAST_RINT, N))                                                             \
        X(57, Cast(Z(int32_t), A(float), RoundMode::CAST_FLOOR, N))                                                            \
        X(58, Cast(Z(int32_t), A(float), RoundMode::CAST_CEIL, N))                                                             \
        X(59, Cast(Z(int32_t), A(float), RoundMode::CAST_ROUND, N))                                                            \
        X(60, Cast(Z(int32_t), A(float), RoundMode::CAST_TRUNC, N))                                                            \
        X(61, Cast(Z(int16_t), A(float), RoundMode::CAST_RINT, N))                                                             \
        X(62, Cast(Z(float), A(float), RoundMode::CAST_FLOOR, N))                                                              \
        X(63, Cast(Z(float), A(float), RoundMode::CAST_ROUND, N))                                                              \
        X(64, Cast(Z(float), A(int32_t), RoundMode::CAST_NONE, N))                                                             \
        X(65, Cast(Z(float), A(int32_t), RoundMode::CAST_CEIL, N))                                                             \
        X(66, Cast(Z(float), A(int16_t), RoundMode::CAST_NONE, N))                                                             \
        X(67, Cast(Z(half), A(int16_t), RoundMode::CAST_FLOOR, N))                                                             \
        X(68, Cast(Z(half), A(uint8_t), RoundMode::CAST_NONE, N))                                                              \
        X(69, Cast(Z(half), A(int8_t), RoundMode::CAST_NONE, N))                                                               \
        X(70, Cast(Z(uint8_t), A(half), RoundMode::CAST_TRUNC, N))                                                             \
        X(71, Cast(Z(int8_t), A(half), RoundMode::CAST_RINT, N))                                                               \
        X(72, Cast(Z(int64_t), A(int32_t), RoundMode::CAST_NONE, N / 2))                                                       \
        X(73, Cast(Z(int32_t), A(int64_t), RoundMode::CAST_NONE, N / 2))                                                       \
        X(74, Cast(Z(float), A(int64_t), RoundMode::CAST_RINT, N / 2))                                                         \
        X(75, Cast(Z(int64_t), A(float), RoundMode::CAST_TRUNC, N / 2))                                                        \
        X(76, Cast(Z(int32_t), A(half), RoundMode::CAST_CEIL, N))                                                              \
        X(77, Cast(Z(int16_t), A(int32_t), RoundMode::CAST_NONE, N))                                                           \
        X(78, Cast(Z(float), A(half), RoundMode::CAST_NONE, (uint64_t)50, (uint8_t)REP, UnaryRepeatParams(1, 1, 8, 4)))        \
        X(79, Compare(Z(uint8_t), A(float), B(float), CMPMODE::LT, 1024))                                                      \
        X(80, Compare(Z(uint8_t), A(half), B(half), CMPMODE::GE, 2048))                                                        \
        X(81, Compare(Z(uint8_t), A(int32_t), B(int32_t), CMPMODE::EQ, 1024))                                                  \
        X(82, CompareScalar(Z(uint8_t), A(float), 0.5f, CMPMODE::LE, 1024))                                                    \
        X(83, CompareScalar(Z(uint8_t), A(half), (half)0.5f, CMPMODE::NE, 2048))                                               \
        X(84, Compare(Z(uint8_t), A(float), B(float), CMPMODE::GT, (uint64_t)64, (uint8_t)REP, BinaryRepeatParams(1, 1, 1, 8, 8, 8))) \
        X(85, Select(Z(float), B(uint8_t), A(float), B(float), SELMODE::VSEL_TENSOR_TENSOR_MODE, N))                           \
        X(86, Select(Z(half), B(uint8_t), A(half), (half)3.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, N))                           \
        X(87, Select(Z(float), B(uint8_t), A(float), B(float), SELMODE::VSEL_CMPMASK_SPR, N))                                  \
        X(88, Select(Z(float), B(uint8_t), A(float), B(float), SELMODE::VSEL_TENSOR_TENSOR_MODE, (uint64_t)40, (uint8_t)REP,   \
                     BinaryRepeatParams(1, 1, 1, 8, 8, 8)))                                                                    \
        X(89, WholeReduceSum(Z(float), A(float), (int32_t)64, (int32_t)16, 1, 1, 8))                                           \
        X(90, WholeReduceSum(Z(float), A(float), (int32_t)37, (int32_t)16, 1, 1, 8))                                           \
        X(91, WholeReduceSum(Z(half), A(half), (int32_t)100, (int32_t)16, 1, 1, 8))                                            \
        X(92, WholeReduceMax(Z(float), A(float), (int32_t)64, (int32_t)16, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE))            \
        X(93, WholeReduceMax(Z(half), A(half), (int32_t)128, (int32_t)16, 1, 1, 8))                                            \
        X(94, WholeReduceMin(Z(float), A(float), (int32_t)33, (int32_t)16, 1, 1, 8, ReduceOrder::ORDER_INDEX_VALUE))           \
        X(95, BlockReduceSum(Z(float), A(float), (int32_t)16, 64, 1, 1, 8))                                                    \
        X(96, BlockReduceMax(Z(half), A(half), (int32_t)16, 100, 1, 1, 8))                                                     \
        X(97, PairReduceSum(Z(float), A(float), (int32_t)15, 64, 1, 1, 8))                                                     \
        X(98, ReduceSum(Z(float), A(float), M(float), (int32_t)N))                                                             \
        X(99, ReduceSum(Z(half), A(half), M(half), (int32_t)N))                                                                \
        X(100, ReduceMax(Z(float), A(float), M(float), (int32_t)N, true))                                                      \
        X(101, ReduceMin(Z(half), A(half), M(half), (int32_t)N, true))                                                         \
        X(102, ReduceSum(Z(float), A(float), M(float), (int32_t)60, (int32_t)16, 8))                                           \
        X(103, ReduceMax(Z(float), A(float), M(float), (int32_t)64, (int32_t)16, 8, true))                                     \
        X(104, Duplicate(Z(half), (half)2.5f, N))                                                                              \
        X(105, Duplicate(Z(int16_t), (int16_t)-7, (uint64_t)100, (uint8_t)REP, (uint16_t)1, (uint8_t)8))                       \
        X(106, Brcb(Z(float), A(float), (uint8_t)16, BrcbRepeatParams(1, 8)))                                                  \
        X(107, Brcb(Z(half), A(half), (uint8_t)8, BrcbRepeatParams(1, 8)))                                                     \
        X(108, ShiftRight(M(uint32_t), B(uint32_t), (uint32_t)22, N); ShiftLeft(M(uint32_t), M(uint32_t), (uint32_t)2, N);     \
          Gather(Z(float), A(float), M(uint32_t), 0u, N))                                                                      \
        X(109, uint64_t got = 0; GatherMask(Z(float), A(float), (uint8_t)1, false, 0u, GatherMaskParams{1, 16, 8, 0}, got))    \
        X(110, uint64_t got = 0; GatherMask(Z(half), A(half), (uint8_t)2, false, 0u, GatherMaskParams{1, 16, 8, 0}, got))      \
        X(111, uint64_t got = 0; GatherMask(Z(float), A(float), (uint8_t)5, false, 0u, GatherMaskParams{1, 16, 8, 0}, got))    \
        X(112, uint64_t got = 0; GatherMask(Z(float), A(float), B(uint32_t), true, 40u, GatherMaskParams{1, 8, 8, 1}, got))    \
        X(113, CreateVecIndex(Z(int32_t), (int32_t)3, N))                                                                      \
        X(114, CreateVecIndex(Z(float), 0.5f, N))                                                                              \
        X(115, Transpose(Z(half), A(half)))                                                                                    \
        X(116, Copy(Z(uint32_t), A(uint32_t), (uint64_t)64, (uint8_t)REP, CopyRepeatParams(1, 0, 8, 1)))                       \
        X(117, DataCopy(Z(float), A(float), DataCopyParams(5, 3, 2, 1)))                                                       \
        X(118, Add(Z(float), A(float), B(float), (uint64_t)37, (uint8_t)REP, BinaryRepeatParams(1, 1, 1, 8, 8, 8)))            \
        X(119, Add(Z(float), Z(float), A(float), (uint64_t)64, (uint8_t)16, BinaryRepeatParams(1, 1, 1, 0, 0, 8)))             \
        X(120, uint64_t bits[2] = {0x5555aaaa0f0f1234ull, 0}; Mul(Z(float), A(float), B(float), bits, (uint8_t)REP,            \
                                                                  BinaryRepeatParams(1, 1, 1, 8, 8, 8)))                       \
        X(121, uint64_t bits[2] = {~0ull, 0xffull}; Adds(Z(half), A(half), (half)1.0f, bits, (uint8_t)REP, UNARY_PARAMS))      \
        X(122, Add(Z(float), A(float), B(float), (uint64_t)64, (uint8_t)REP, BinaryRepeatParams(2, 0, 1, 16, 1, 8)))           \
        X(123, Adds(A(half), A(half), (half)1.0f, N); Adds(Z(half), A(half), (half)0.0f, N))                                   \
        X(124, SetSaturationFlag<SaturationMode::FLOAT>(false); Mul(Z(half), A(half), B(half), N))                             \
        X(125, SetSaturationFlag<SaturationMode::FLOAT>(false); Cast(Z(half), A(float), RoundMode::CAST_RINT, N))              \
        X(126, Axpy(Z(float), A(half), (half)1.3f, (uint64_t)50, (uint8_t)REP, UnaryRepeatParams(1, 1, 8, 4)))                 \
        X(127, Duplicate(Z(float), 0.7f, 1024); MulAddDst(Z(float), A(float), B(float), (uint64_t)64, (uint8_t)REP,            \
                                                          BinaryRepeatParams(1, 1, 1, 8, 8, 8)))                               \
        X(128, Duplicate(Z(half), (half)0.7f, 2048); FusedMulAdd(Z(half), A(half), B(half), (uint64_t)100, (uint8_t)REP,       \
                                                                 BinaryRepeatParams(1, 1, 1, 8, 8, 8)))                        \
        X(129, uint64_t bits[2] = {0x00ff00ff12345678ull, 0}; Select(Z(float), B(uint8_t), A(float), 2.0f,                     \
                                                                     SELMODE::VSEL_TENSOR_SCALAR_MODE, bits, (uint8_t)REP,     \
                                                                     BinaryRepeatParams(1, 1, 1, 8, 8, 8)))                    \
        X(130, LocalTensor<int32_t> z = Z(int32_t); CreateVecIndex(z, (int32_t)3, (uint64_t)64, (uint8_t)REP, (uint16_t)1, (uint8_t)8)) \
        X(131, ReduceRepeat<ReduceType::SUM>(Z(float), A(float), (int32_t)64, (int32_t)16, 1, 1, 8))                           \
        X(132, ReduceDataBlock<ReduceType::MIN>(Z(float), A(float), (int32_t)64, (int32_t)16, 1, 1, 8))                        \
        X(133, ReducePairElem<ReduceType::SUM>(Z(float), A(float), (int32_t)64, (int32_t)15, 1, 1, 8))

#define CASE(number, ...)                                               \
        __aicore__ static void case_##number(GM_ADDR a, GM_ADDR c, uint32_t n) { \
                Env e(a, c, n);                                         \
                __VA_ARGS__;                                            \
                e.store();                                              \
        }
CASES(CASE)

extern "C" __global__ __aicore__ void calls(GM_ADDR a, GM_ADDR c, uint32_t number, uint32_t n) {
        switch (number) {
#define CALL(number, ...) \
        case number: case_##number(a, c, n); break;
                CASES(CALL)
        }
}
