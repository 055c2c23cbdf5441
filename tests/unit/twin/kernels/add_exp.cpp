// SPDX-License-Identifier: Apache-2.0
// select(y > 3, y, 3) with y = 2 exp(a + b): two loads in one queue buffer, double-buffered, ragged tails.
#include "kernel_operator.h"
using namespace AscendC;

struct Tiling {
        uint32_t n;
        uint32_t tile;
};

extern "C" __global__ __aicore__ void add_exp(GM_ADDR a, GM_ADDR b, GM_ADDR c, Tiling t) {
        KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
        TPipe pipe;
        TQue<TPosition::VECIN, 1> loads;
        TQue<TPosition::VECOUT, 1> stores;
        TBuf<TPosition::VECCALC> calc;
        pipe.InitBuffer(loads, 2, t.tile * 8);
        pipe.InitBuffer(stores, 2, t.tile * 4);
        pipe.InitBuffer(calc, 8192);
        GlobalTensor<float> x, y, z;
        x.SetGlobalBuffer((__gm__ float *)a, t.n);
        y.SetGlobalBuffer((__gm__ float *)b, t.n);
        z.SetGlobalBuffer((__gm__ float *)c, t.n);
        for (uint32_t i = GetBlockIdx() * t.tile; i < t.n; i += t.tile * GetBlockNum()) {
                uint32_t m = t.n - i < t.tile ? t.n - i : t.tile;
                DataCopyExtParams rows{1, m * 4, 0, 0, 0};
                DataCopyPadExtParams<float> pad{false, 0, 0, 0};
                LocalTensor<float> in = loads.AllocTensor<float>();
                DataCopyPad(in, x[i], rows, pad);
                DataCopyPad(in[t.tile], y[i], rows, pad);
                loads.EnQue(in);
                in = loads.DeQue<float>();
                LocalTensor<float> out = stores.AllocTensor<float>();
                LocalTensor<uint8_t> mask = calc.Get<uint8_t>();
                Add(out, in, in[t.tile], m);
                Exp(out, out, m);
                Muls(out, out, 2.0f, m);
                CompareScalar(mask, out, 3.0f, CMPMODE::GT, (m + 63) / 64 * 64);
                Select(out, mask, out, 3.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, m);
                loads.FreeTensor(in);
                stores.EnQue(out);
                out = stores.DeQue<float>();
                DataCopyPad(z[i], out, rows);
                stores.FreeTensor(out);
        }
}
