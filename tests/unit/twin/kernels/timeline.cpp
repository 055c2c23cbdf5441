// SPDX-License-Identifier: Apache-2.0
// Kernels whose time is worked out by hand: turns of load, compute and store; a meeting of unequal blocks; scalar code that waits.
#include "kernel_operator.h"
using namespace AscendC;

struct Turns {
        uint32_t n, tile, buffers, calls; // turns, floats in each, of each queue, Adds of each
};

__aicore__ inline void turns_of(GM_ADDR a, GM_ADDR b, const Turns &t) {
        TPipe pipe;
        TQue<TPosition::VECIN, 1> loads;
        TQue<TPosition::VECOUT, 1> stores;
        pipe.InitBuffer(loads, t.buffers, t.tile * 4);
        pipe.InitBuffer(stores, t.buffers, t.tile * 4);
        GlobalTensor<float> x, y;
        x.SetGlobalBuffer((__gm__ float *)a);
        y.SetGlobalBuffer((__gm__ float *)b);
        for (uint32_t i = 0; i < t.n; ++i) {
                LocalTensor<float> in = loads.AllocTensor<float>();
                DataCopy(in, x[i * t.tile], t.tile);
                loads.EnQue(in);
                in = loads.DeQue<float>();
                LocalTensor<float> out = stores.AllocTensor<float>();
                for (uint32_t k = 0; k < t.calls; ++k)
                        Adds(out, k ? out : in, 1.0f, t.tile);
                loads.FreeTensor(in);
                stores.EnQue(out);
                out = stores.DeQue<float>();
                DataCopy(y[i * t.tile], out, t.tile);
                stores.FreeTensor(out);
        }
}

extern "C" __global__ __aicore__ void turns(GM_ADDR a, GM_ADDR b, Turns t) {
        KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
        turns_of(a, b, t);
}

// Block i has i + 1 turns; all meet; then each has one more.
extern "C" __global__ __aicore__ void meeting(GM_ADDR a, GM_ADDR b, Turns t) {
        KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
        Turns first = t, second = t;
        first.n = (uint32_t)GetBlockIdx() + 1;
        second.n = 1;
        const uint64_t mine = GetBlockIdx() * 8 * t.tile * 4;
        turns_of(a + mine, b + mine, first);
        SyncAll<true>();
        turns_of(a + mine, b + mine, second);
}

// The scalar unit reads a result: it waits for V, and what is issued afterwards starts no sooner.
extern "C" __global__ __aicore__ void scalar(GM_ADDR a, GM_ADDR b, Turns t) {
        KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
        TPipe pipe;
        TQue<TPosition::VECIN, 1> loads;
        TBuf<TPosition::VECCALC> calc;
        pipe.InitBuffer(loads, 2, t.tile * 4);
        pipe.InitBuffer(calc, t.tile * 4);
        GlobalTensor<float> x;
        x.SetGlobalBuffer((__gm__ float *)a);
        LocalTensor<float> v = calc.Get<float>();
        Duplicate(v, 2.0f, t.tile);
        float s = v.GetValue(0);
        LocalTensor<float> in = loads.AllocTensor<float>();
        DataCopy(in, x, t.tile);
        loads.EnQue(in);
        in = loads.DeQue<float>();
        Adds(v, in, s, t.tile);
        loads.FreeTensor(in);
}
