// SPDX-License-Identifier: Apache-2.0
// One function per rule of the checked policy, each of which breaks it; test_checked.c has the messages. a: 1,024 floats, c: as many.
#include "kernel_operator.h"
using namespace AscendC;

struct Env {
        TPipe pipe;
        TQue<TPosition::VECIN, 1> in;
        TQue<TPosition::VECOUT, 1> out;
        TBuf<TPosition::VECCALC> calc;
        GlobalTensor<float> a, c;
        __aicore__ Env(GM_ADDR pa, GM_ADDR pc) {
                pipe.InitBuffer(in, 2, 4096);
                pipe.InitBuffer(out, 2, 4096);
                pipe.InitBuffer(calc, 16384);
                a.SetGlobalBuffer((__gm__ float *)pa, 1024);
                c.SetGlobalBuffer((__gm__ float *)pc, 1024);
        }
        __aicore__ LocalTensor<float> load(uint32_t n) {
                LocalTensor<float> t = in.AllocTensor<float>();
                DataCopyPad(t, a, DataCopyExtParams{1, n * 4, 0, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0});
                in.EnQue(t);
                return in.DeQue<float>();
        }
        __aicore__ void store(LocalTensor<float> t, uint32_t n) {
                out.EnQue(t);
                t = out.DeQue<float>();
                DataCopyPad(c, t, DataCopyExtParams{1, n * 4, 0, 0, 0});
                out.FreeTensor(t);
        }
};

#define RULE(number, ...)                                \
        static void rule_##number(GM_ADDR pa, GM_ADDR pc) { \
                Env e(pa, pc);                           \
                __VA_ARGS__;                             \
        }

RULE(0, LocalTensor<float> x = e.load(100); LocalTensor<float> y = e.out.AllocTensor<float>(); Adds(y, x, 1.0f, 100); e.in.FreeTensor(x); e.store(y, 100))
// capacity and InitBuffer
RULE(1, TBuf<TPosition::VECCALC> b; e.pipe.InitBuffer(b, 170000))
RULE(2, TBuf<TPosition::VECCALC> b; e.pipe.InitBuffer(b, 0))
RULE(3, e.calc.Get<float>(5000))
RULE(4, TQue<TPosition::VECIN, 1> q; q.AllocTensor<float>())
// queues
RULE(5, e.in.AllocTensor<float>(); e.in.AllocTensor<float>(); e.in.AllocTensor<float>())
RULE(6, e.in.DeQue<float>())
RULE(7, LocalTensor<float> x = e.in.AllocTensor<float>(); e.in.EnQue(x); e.in.EnQue(x))
RULE(8, LocalTensor<float> x = e.in.AllocTensor<float>(); e.in.FreeTensor(x); e.in.FreeTensor(x))
RULE(9, LocalTensor<float> x = e.in.AllocTensor<float>(); e.in.EnQue(x); e.in.FreeTensor(x))
RULE(10, LocalTensor<float> x = e.in.AllocTensor<float>(); e.out.EnQue(x))
RULE(11, LocalTensor<float> x = e.in.AllocTensor<float>(); LocalTensor<float> y = e.in.AllocTensor<float>(); e.in.EnQue(x); e.in.EnQue(y))
RULE(12, e.in.AllocTensor<float>())
RULE(13, TQue<TPosition::VECIN, 1> q; e.pipe.InitBuffer(q, 9, 32); for (int i = 0; i < 9; i++) q.AllocTensor<float>())
// alignment, reach, overlap
RULE(14, LocalTensor<float> x = e.calc.Get<float>(); Duplicate(x, 1.0f, 64); Adds(x, x[1], 1.0f, 8))
RULE(15, LocalTensor<float> x = e.load(64); LocalTensor<float> y = e.calc.Get<float>(); Adds(y, x, 1.0f, 1025))
RULE(16, LocalTensor<float> x = e.calc.Get<float>(); Duplicate(x, 1.0f, 256); Adds(x[8], x, 1.0f, 64))
RULE(17, LocalTensor<float> x = e.calc.Get<float>(); Duplicate(x, 1.0f, 512); LocalTensor<half> h = x.ReinterpretCast<half>(); Cast(h, x, RoundMode::CAST_RINT, 64))
RULE(18, LocalTensor<float> x; Adds(x, x, 1.0f, 8))
// masks and repeats
RULE(19, LocalTensor<float> x = e.calc.Get<float>(); Duplicate(x, 1.0f, 256); Adds(x, x, 1.0f, (uint64_t)65, (uint8_t)1, UnaryRepeatParams(1, 1, 8, 8)))
RULE(20, LocalTensor<float> x = e.calc.Get<float>(); Duplicate(x, 1.0f, 256); Adds(x, x, 1.0f, (uint64_t)64, (uint8_t)256, UnaryRepeatParams(1, 1, 8, 8)))
RULE(21, LocalTensor<float> x = e.calc.Get<float>(); Duplicate(x, 1.0f, 4096); Adds(x, x, 1.0f, (uint64_t)64, (uint8_t)65, UnaryRepeatParams(1, 1, 8, 8)))
RULE(22, LocalTensor<float> x = e.calc.Get<float>(); Duplicate(x, 1.0f, 256); WholeReduceSum(x, x, (int32_t)64, (int32_t)256, 1, 1, 8))
// modes
RULE(23, LocalTensor<float> x = e.calc.Get<float>(); Duplicate(x, 1.0f, 64); Cast(x.ReinterpretCast<bfloat16_t>()[2048], x, RoundMode::CAST_NONE, 64))
RULE(24, LocalTensor<float> x = e.calc.Get<float>(); Duplicate(x, 1.0f, 64); CompareScalar(x.ReinterpretCast<uint8_t>()[4096], x, 1.0f, CMPMODE::LT, 60))
RULE(25, LocalTensor<int32_t> x = e.calc.Get<int32_t>(); Duplicate(x, (int32_t)1, 64); CompareScalar(x.ReinterpretCast<uint8_t>()[4096], x, (int32_t)1, CMPMODE::LT, 64))
RULE(26, LocalTensor<float> x = e.calc.Get<float>(); Duplicate(x, 1.0f, 256); Select(x, x[128].ReinterpretCast<uint8_t>(), x, 1.0f, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64))
// DMA
RULE(27, LocalTensor<float> x = e.in.AllocTensor<float>(); DataCopy(x, e.a, 100))
RULE(28, LocalTensor<float> x = e.in.AllocTensor<float>(); DataCopyPad(x, e.a, DataCopyExtParams{4096, 4, 0, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0}))
RULE(29, LocalTensor<float> x = e.in.AllocTensor<float>(); DataCopyPad(x, e.a, DataCopyExtParams{1, 2097152, 0, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0}))
RULE(30, LocalTensor<float> x = e.in.AllocTensor<float>(); DataCopyPad(x, e.a, DataCopyExtParams{1, 10, 0, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0}))
RULE(31, LocalTensor<float> x = e.in.AllocTensor<float>(); DataCopyPad(x, e.a[1000], DataCopyExtParams{1, 100, 0, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0}))
RULE(32, LocalTensor<float> x = e.in.AllocTensor<float>(); DataCopyPad(x, e.a, DataCopyExtParams{1, 40, 0, 0, 0}, DataCopyPadExtParams<float>{true, 9, 0, 0}))
RULE(33, LocalTensor<float> x = e.in.AllocTensor<float>(); DataCopyPad(x, e.a, DataCopyExtParams{130, 4, 4, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0}))
RULE(34, GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float *)pa, 1025))
RULE(35, GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float *)pa); g.SetValue(1024, 1.0f))
// order
RULE(36, LocalTensor<float> x = e.calc.Get<float>(); DataCopy(x, e.a, 64); Adds(x, x, 1.0f, 64))
RULE(37, LocalTensor<float> x = e.calc.Get<float>(); Duplicate(x, 1.0f, 64); DataCopy(e.c, x, 64))
RULE(38, LocalTensor<float> x = e.load(64); LocalTensor<float> y = e.out.AllocTensor<float>(); Adds(y, x, 1.0f, 64); DataCopy(x, e.a, 64))
RULE(39, LocalTensor<float> x = e.load(64); LocalTensor<float> y = e.out.AllocTensor<float>(); Adds(y, x, 1.0f, 64); e.in.FreeTensor(x); e.store(y, 64); LocalTensor<float> z = e.in.AllocTensor<float>(); DataCopy(z, e.c, 64))
RULE(40, WaitFlag<HardEvent::V_MTE3>(EVENT_ID0))
RULE(41, SetFlag<HardEvent::V_MTE3>(EVENT_ID0); SetFlag<HardEvent::V_MTE3>(EVENT_ID0))
RULE(42, SetFlag<HardEvent::V_MTE3>(EVENT_ID3))
RULE(43, for (int i = 0; i < 7; i++) e.pipe.AllocEventID<HardEvent::V_S>())
// undefined bytes
RULE(44, LocalTensor<float> x = e.out.AllocTensor<float>(); Duplicate(x, 1.0f, 60); e.store(x, 64))
RULE(45, LocalTensor<float> x = e.load(60); LocalTensor<float> y = e.calc.Get<float>(); Adds(y, x, 1.0f, 64); y.GetValue(62))
RULE(46, LocalTensor<float> x = e.load(60); LocalTensor<float> y = e.calc.Get<float>(); WholeReduceSum(y, x, (int32_t)64, (int32_t)1, 1, 1, 8))
RULE(47, LocalTensor<float> x = e.load(64); LocalTensor<uint32_t> o = e.calc.Get<uint32_t>(); LocalTensor<float> y = e.calc.GetWithOffset<float>(64, 4096); Gather(y, x, o, 0u, 64))
RULE(48, LocalTensor<float> x = e.load(64); LocalTensor<uint32_t> o = e.calc.Get<uint32_t>(); LocalTensor<float> y = e.calc.GetWithOffset<float>(64, 4096); Duplicate(o, 4096u, 64); Gather(y, x, o, 0u, 64))
RULE(49, SetAtomicAdd<float>())
// fine: bits of a tail that is undefined stay apart from the bits before them
RULE(50, LocalTensor<float> x = e.load(60); LocalTensor<uint8_t> m = e.calc.Get<uint8_t>(); LocalTensor<float> y = e.out.AllocTensor<float>(); CompareScalar(m, x, 0.0f, CMPMODE::GT, 64);
     Not(m.ReinterpretCast<uint16_t>(), m.ReinterpretCast<uint16_t>(), 4); Select(y, m, x, 1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64); e.in.FreeTensor(x); e.store(y, 60))
RULE(51, LocalTensor<float> x = e.load(60); LocalTensor<uint8_t> m = e.calc.Get<uint8_t>(); LocalTensor<float> y = e.out.AllocTensor<float>(); CompareScalar(m, x, 0.0f, CMPMODE::GT, 64);
     Select(y, m, x, 1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64); e.in.FreeTensor(x); e.store(y, 61))
RULE(52, if (GetBlockIdx() == 0) return; SyncAll())

extern "C" __global__ __aicore__ void rules(GM_ADDR a, GM_ADDR c, uint32_t rule) {
        typedef void (*Rule)(GM_ADDR, GM_ADDR);
        static const Rule all[] = {rule_0,  rule_1,  rule_2,  rule_3,  rule_4,  rule_5,  rule_6,  rule_7,  rule_8,  rule_9,  rule_10, rule_11, rule_12, rule_13,
                                   rule_14, rule_15, rule_16, rule_17, rule_18, rule_19, rule_20, rule_21, rule_22, rule_23, rule_24, rule_25, rule_26, rule_27,
                                   rule_28, rule_29, rule_30, rule_31, rule_32, rule_33, rule_34, rule_35, rule_36, rule_37, rule_38, rule_39, rule_40, rule_41,
                                   rule_42, rule_43, rule_44, rule_45, rule_46, rule_47, rule_48, rule_49, rule_50, rule_51, rule_52};
        all[rule](a, c);
}
