// SPDX-License-Identifier: Apache-2.0
// Data movement, flags, atomics and meetings of blocks.
#include "kernel_operator.h"
using namespace AscendC;

// rows x cols window of a wider matrix into a packed one, right padding to whole blocks
struct Window {
        uint32_t rows, width, col, cols;
};
extern "C" __global__ __aicore__ void window(GM_ADDR a, GM_ADDR c, Window w) {
        TPipe p;
        TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> q;
        uint32_t line = (w.cols * sizeof(half) + 31) / 32 * 32;
        p.InitBuffer(q, 1, w.rows * line);
        GlobalTensor<half> x, y;
        x.SetGlobalBuffer((__gm__ half *)a);
        y.SetGlobalBuffer((__gm__ half *)c);
        LocalTensor<half> t = q.AllocTensor<half>();
        DataCopyPad(t, x[w.col], DataCopyExtParams{(uint16_t)w.rows, w.cols * 2, (w.width - w.cols) * 2, 0, 0},
                    DataCopyPadExtParams<half>{true, 0, (uint8_t)(line / 2 - w.cols), (half)0});
        q.EnQue(t);
        t = q.DeQue<half>();
        DataCopyPad(y, t, DataCopyExtParams{(uint16_t)w.rows, w.cols * 2, 0, 0, 0});
        q.FreeTensor(t);
}

// each block adds its part to one output
extern "C" __global__ __aicore__ void atomic_add(GM_ADDR a, GM_ADDR c, uint32_t n) {
        TPipe p;
        TBuf<TPosition::VECCALC> b;
        p.InitBuffer(b, n * 4);
        GlobalTensor<float> x, y;
        x.SetGlobalBuffer((__gm__ float *)a + GetBlockIdx() * n);
        y.SetGlobalBuffer((__gm__ float *)c);
        LocalTensor<float> t = b.Get<float>();
        DataCopy(t, x, n);
        int32_t id = GetTPipePtr()->FetchEventID(HardEvent::MTE2_MTE3);
        SetFlag<HardEvent::MTE2_MTE3>(id);
        WaitFlag<HardEvent::MTE2_MTE3>(id);
        SetAtomicAdd<float>();
        DataCopy(y, t, n);
        SetAtomicNone();
}

// each block writes its part, all meet, each reads its neighbour's
template <bool soft> __aicore__ inline void neighbour(GM_ADDR a, GM_ADDR mid, GM_ADDR c, GM_ADDR ws, uint32_t n) {
        TPipe p;
        TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> q;
        TBuf<TPosition::VECCALC> tb;
        p.InitBuffer(q, 1, n * 4);
        p.InitBuffer(tb, 32 * GetBlockNum());
        GlobalTensor<float> x, m, y;
        GlobalTensor<int32_t> w;
        x.SetGlobalBuffer((__gm__ float *)a);
        m.SetGlobalBuffer((__gm__ float *)mid);
        y.SetGlobalBuffer((__gm__ float *)c);
        w.SetGlobalBuffer((__gm__ int32_t *)ws);
        uint32_t me = GetBlockIdx(), you = (me + 1) % GetBlockNum();
        LocalTensor<float> t = q.AllocTensor<float>();
        DataCopy(t, x[me * n], n);
        q.EnQue(t);
        t = q.DeQue<float>();
        DataCopy(m[me * n], t, n);
        q.FreeTensor(t);
        if (soft)
                SyncAll(w, tb.Get<int32_t>());
        else
                SyncAll<true>();
        t = q.AllocTensor<float>();
        DataCopy(t, m[you * n], n);
        q.EnQue(t);
        t = q.DeQue<float>();
        DataCopy(y[me * n], t, n);
        q.FreeTensor(t);
}
extern "C" __global__ __aicore__ void neighbour_soft(GM_ADDR a, GM_ADDR mid, GM_ADDR c, GM_ADDR ws, uint32_t n) {
        neighbour<true>(a, mid, c, ws, n);
}
extern "C" __global__ __mix__(0, 1) __aicore__ void neighbour_hard(GM_ADDR a, GM_ADDR mid, GM_ADDR c, GM_ADDR ws, uint32_t n) {
        KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
        neighbour<false>(a, mid, c, ws, n);
}

// values of mixed sizes by value, each at its alignment
struct Pod {
        uint8_t a;
        int64_t b;
};
extern "C" __global__ __aicore__ void by_value(GM_ADDR out, uint8_t x, Pod pod, float f, uint64_t y) {
        GlobalTensor<float> g;
        g.SetGlobalBuffer((__gm__ float *)out, 5);
        g.SetValue(0, x);
        g.SetValue(1, pod.a);
        g.SetValue(2, pod.b);
        g.SetValue(3, f);
        g.SetValue(4, y);
}
