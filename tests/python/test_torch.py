#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.compile(…, backend="autofuse") against eager: the samples, layouts, mutation, sizes that change, training, what stays eager."""
import sys
import threading

from aftorch import check, clones, framework_nodes, front, kernels, made, run_tests, same, tensors, torch
import torch.nn.functional as F

rand, randn = torch.rand, torch.randn


def the_samples_are_one_kernel_each():
    def add_ge(x, y, z):
        return (x + y) >= z

    def mul_sum(x, y):
        return torch.sum(x * y)

    def gather_add(table, index, y):
        return torch.index_select(table, 0, index) + y

    with torch.no_grad():
        g = check(add_ge, *[randn(128, 50) for _ in range(3)], exact=True)
        assert [kernels(x) for x in g] == [['add,ge']] and framework_nodes(g[0]) == []
        g = check(mul_sum, randn(256, 100), randn(256, 100), tolerance={'rtol': 1e-5, 'atol': 1e-4})
        assert len(g) == 1 and len(kernels(g[0])) == 1 and framework_nodes(g[0]) == []
        g = check(gather_add, randn(1000, 64), torch.randint(0, 1000, (256,)), randn(256, 64), exact=True)
        assert [kernels(x) for x in g] == [['gather,add']]
        assert g[0].bundle.kernels[0].symbol.startswith('autofused_')


def results_have_eagers_strides():
    x = randn(6, 8, 10)
    with torch.no_grad():
        check(lambda a: (a.permute(2, 0, 1) * 2, (a + 1).transpose(0, 1), a.abs()[:, 1:3], a[1:].exp()), x)
        check(lambda a: torch.relu(a).t(), randn(12, 7).t())
        check(lambda a: a.expand(5, 3, 4) + 1, randn(1, 3, 4))
        check(lambda a: a * 2, randn(5, 6)[:, ::2])
        check(lambda a, b: F.relu(a.t() @ b).view(-1), randn(8, 4), randn(8, 5))
        check(lambda a: (a.view(3, 2, 4) + 1, a.unsqueeze(0), a.select(0, 1)), randn(6, 4))


def results_that_are_arguments_or_come_twice():
    def fn(x, y):
        t = x + y
        return x, t, t, None, y.t(), 3, t[1:], x.clone()

    with torch.no_grad():
        torch._dynamo.reset()
        x, y = randn(4, 5), randn(4, 5)
        got = torch.compile(fn, backend=front.autofuse)(x, y)
        same(tensors(fn(x, y)), tensors(got))
        assert got[0] is x and got[3] is None and got[5] == 3 and got[4].data_ptr() == y.data_ptr()
        assert got[1].data_ptr() == got[2].data_ptr() and got[7].data_ptr() != x.data_ptr()
        old = got[1].clone()
        again = torch.compile(fn, backend=front.autofuse)(x * 2, y)
        assert torch.equal(got[1], old) and again[1].data_ptr() != old.data_ptr()  # what was returned is nobody else's


def arguments_are_updated_in_place():
    def adam(p, g, m, v):
        m.mul_(0.9).add_(g * 0.1)
        v.mul_(0.999).add_(g * g * 0.001)
        p.sub_(1e-3 * m / (v.sqrt() + 1e-8))

    def before_and_after(x, y):
        old = x.clone()
        x.add_(y)
        return old, x * 2

    def part(x, y):
        x[1:3].mul_(y)
        return x.sum()

    def both(x):
        y = x + 1
        x.copy_(y)
        return y

    def by_opaque(x, y):
        x.copy_(x @ y)
        return x + 1

    with torch.no_grad():
        g = check(adam, randn(64, 32), randn(64, 32), randn(64, 32), rand(64, 32))
        assert len(g) == 1 and len(kernels(g[0])) == 1, kernels(g[0])
        assert g[0].plan([randn(64, 32) for _ in range(4)]).updates == []  # written where they lie
        check(before_and_after, randn(8, 9), randn(8, 9))
        check(part, randn(5, 6), randn(2, 6))
        check(both, randn(5, 6))
        check(by_opaque, randn(6, 6), randn(6, 6))
        x = randn(40)
        check(lambda a, b: a.add_(b), x[:20], x[20:])


def an_argument_given_twice():
    def fn(x, y):
        x.add_(1)
        return x * y

    with torch.no_grad():
        torch._dynamo.reset()
        c = torch.compile(fn, backend=front.autofuse)
        a, b = randn(7), None
        b = a.clone()
        same([fn(b, b)], [c(a, a)])
        same([b], [a])


def sizes_that_change():
    def fn(x, y):
        return torch.softmax(x + y, -1).sum(0) * x.shape[0]

    def views(x, y):
        return (x.view(-1) + y.reshape(-1))[: x.shape[0]], x[1:] * 2, torch.cat([x, y], 1)

    for dynamic in (True, None, False):
        torch._dynamo.reset()
        before = len(made)
        c, v = torch.compile(fn, backend=front.autofuse, dynamic=dynamic), torch.compile(views, backend=front.autofuse, dynamic=dynamic)
        with torch.no_grad():
            for n in (16, 9, 31, 16):
                x, y = randn(n, 24), randn(n, 24)
                same([fn(x, y)], [c(x, y)], rtol=1e-5, atol=1e-5)
                same(list(views(x, y)), list(v(x, y)))
        n_graphs = len(made) - before
        assert n_graphs == {True: 2, None: 4, False: 6}[dynamic], (dynamic, n_graphs)


def numbers_that_change():
    def fn(x, a):
        return x * a + 1

    torch._dynamo.reset()
    c = torch.compile(fn, backend=front.autofuse, dynamic=True)
    with torch.no_grad():
        for a in (0.5, 0.25, 1e-3):
            x = randn(33)
            same([fn(x, a)], [c(x, a)])
        n = len(made)
        x = randn(33)
        same([fn(x, 0.75)], [c(x, 0.75)])
        assert len(made) == n


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = torch.nn.Linear(16, 32), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4)
        self.bn = torch.nn.BatchNorm1d(4)

    def forward(self, x):
        return self.bn(self.b(F.gelu(self.norm(self.a(x)))))


def training_gives_eagers_gradients():
    torch.manual_seed(3)
    ours, theirs = Small(), Small()
    theirs.load_state_dict(ours.state_dict())
    torch._dynamo.reset()
    before = len(made)
    c = torch.compile(ours, backend=front.autofuse)
    opt = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (ours, theirs)]
    for _ in range(3):
        x, y = randn(8, 16), randn(8, 4)
        for m, o in ((c, opt[0]), (theirs, opt[1])):
            o.zero_grad()
            F.mse_loss(m(x), y).backward()
        for p, q in zip(ours.parameters(), theirs.parameters()):
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-5)
        for o in opt:
            o.step()
    for (n, p), q in zip(ours.state_dict().items(), theirs.state_dict().values()):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5, msg=n)
    assert len(made) - before == 2  # forward and backward
    ours.eval(), theirs.eval()
    with torch.no_grad():
        same([theirs(x)], [c(x)], rtol=1e-4, atol=1e-5)


def dropout_masks_are_eagers():
    def fn(x):
        return F.dropout(x, 0.3, True) * 2, F.dropout(x + 1, 0.5, True)

    torch._dynamo.reset()
    c = torch.compile(fn, backend=front.autofuse)
    x = randn(64, 33, requires_grad=True)
    for seed in (1, 2):
        torch.manual_seed(seed)
        want = fn(x)
        torch.manual_seed(seed)
        got = c(x)
        for a, b in zip(want, got):
            assert torch.equal(a, b)
        g1, = torch.autograd.grad(want[0].sum() + want[1].sum(), x)
        g2, = torch.autograd.grad(got[0].sum() + got[1].sum(), x)
        assert torch.equal(g1, g2)


def graph_breaks():
    def fn(x):
        y = torch.relu(x) + 1
        if y.sum() > 0:  # the graph ends here
            return y * 2
        return y - 1

    with torch.no_grad():
        g = check(fn, randn(5, 6), tolerance={'rtol': 1e-5, 'atol': 1e-5})
        assert len(g) == 2
        torch._dynamo.reset()
        try:
            torch.compile(fn, backend=front.autofuse, fullgraph=True)(randn(3))
        except torch._dynamo.exc.Unsupported:
            pass
        else:
            raise AssertionError('fullgraph did not refuse')
        check(lambda x: torch.relu(x) + 1, randn(4), fullgraph=True)


def dtypes_without_kernels_stay_eager():
    with torch.no_grad():
        g = check(lambda x, y: (x * 2 + 1, y * 2), randn(8, 4, dtype=torch.float64), randn(8, 4))
        assert set(framework_nodes(g[0])) == {'aten.mul.Tensor', 'aten.add.Tensor'} and kernels(g[0]) == ['mul']
        check(lambda x: (torch.view_as_real(x * 2) + 1, x.real.abs()), torch.randn(5, 3, dtype=torch.complex64))
        check(lambda x, y: torch.cat([x, y]).sort()[0].exp() + 1, randn(5), randn(4))
        check(lambda x, i: torch.relu(x).index_put((i,), torch.ones(3)), randn(8), torch.tensor([1, 2, 5]))


def inference_mode_and_bfloat16():
    with torch.inference_mode():
        check(lambda x, w: F.silu(x @ w) * 0.1, randn(16, 8).bfloat16(), randn(8, 8).bfloat16(), tolerance={'rtol': 2e-2, 'atol': 1e-3})
        check(lambda x: (x * 0.1 + 3).to(torch.float32), randn(64).half(), exact=True)


def inference_mode_and_then_without():
    def fn(x, w):
        return torch.relu(torch.relu(x) @ w) @ w + 1

    torch._dynamo.reset()
    c, x, w = torch.compile(fn, backend=front.autofuse), randn(9, 9), randn(9, 9)
    with torch.inference_mode():
        want = fn(x, w)
        same([want], [c(x, w)], rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        same([want], [c(x, w)], rtol=1e-5, atol=1e-5)
    x.requires_grad_(True)
    same(list(torch.autograd.grad(fn(x, w).sum(), x)), list(torch.autograd.grad(c(x, w).sum(), x)), rtol=1e-5, atol=1e-5)


def autocast():
    def fn(x, w):
        return F.gelu(x @ w) * 2 + x

    x, w = randn(16, 16, requires_grad=True), randn(16, 16)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        g = check(fn, x, w, tolerance={'rtol': 2e-2, 'atol': 2e-2})
    assert 'aten.mm.default' in framework_nodes(g[0])


def a_fault_of_ours_runs_eager():
    import autofuse.torch.compile as compiling
    real, n = compiling.Translation, len(made)

    def broken(*args):
        raise KeyError('on purpose')

    compiling.Translation = broken
    try:
        with torch.no_grad():
            check(lambda x: torch.exp(x) + 7, randn(5))
    finally:
        compiling.Translation = real
    assert len(made) == n


def threads_at_once():
    torch._dynamo.reset()

    def fn(x, w):
        return torch.relu(torch.relu(x) @ w) + x

    c = torch.compile(fn, backend=front.autofuse)
    w, wrong = randn(32, 32), []
    with torch.no_grad():
        c(randn(32, 32), w)

    def work(seed):
        with torch.no_grad():
            for i in range(20):
                x = torch.full((32, 32), seed + i / 7)
                if not torch.allclose(c(x, w), fn(x, w), rtol=1e-4, atol=1e-4):
                    wrong.append((seed, i))

    ts = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    assert not wrong, wrong


def install_routes_the_published_spelling():
    def fn(x):
        return torch.exp(x) + 1

    x, options = randn(9), {'npu_backend': 'ascendc'}
    plain, before = torch.compile, len(made)
    front.install()
    try:
        torch._dynamo.reset()
        with torch.no_grad():
            same([fn(x)], [torch.compile(fn, backend='inductor', options=options)(x)])
        assert len(made) == before + 1
    finally:
        front.uninstall()
    assert torch.compile is plain
    try:
        torch._dynamo.reset()
        torch.compile(fn, backend='inductor', options=options)(x)
    except Exception as e:
        assert 'npu_backend' in str(e), e
    else:
        raise AssertionError('stock PyTorch took npu_backend')
    try:
        torch._dynamo.reset()
        torch.compile(fn, backend=front.autofuse, options={'speed': 'more'})(x)
    except Exception as e:
        assert "'speed'" in str(e), e
    else:
        raise AssertionError('an unknown option was taken')


def args_are_let_go():
    """A boxed call's list is emptied, and nothing of the call stays alive behind it."""
    import weakref
    torch._dynamo.reset()
    c = torch.compile(lambda x, w: torch.relu(x) @ w + 1, backend=front.autofuse)
    with torch.no_grad():
        x, w = randn(8, 8), randn(8, 8)
        out = c(x, w)
        seen = weakref.ref(x), weakref.ref(out)
        args = clones([x, w])
        made[-1].boxed()(args)
        assert args == []
        del x, out
    assert seen[0]() is None and seen[1]() is None


sys.exit(run_tests([the_samples_are_one_kernel_each, results_have_eagers_strides, results_that_are_arguments_or_come_twice,
                    arguments_are_updated_in_place, an_argument_given_twice, sizes_that_change, numbers_that_change,
                    training_gives_eagers_gradients, dropout_masks_are_eagers, graph_breaks, dtypes_without_kernels_stay_eager, inference_mode_and_bfloat16,
                    inference_mode_and_then_without, autocast, a_fault_of_ours_runs_eager, threads_at_once,
                    install_routes_the_published_spelling, args_are_let_go]))
