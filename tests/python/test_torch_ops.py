#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ops that models need, through the server and as kernels: norms with their statistics, copies, fills, parts, indices; nothing is left to PyTorch.
tests/python/test_aten.py compares every lowering with eager; here they come together in graphs."""
import sys

from aftorch import check, framework_nodes, front, kernels, made, run_tests, same, torch
import torch.nn.functional as F

randn = torch.randn


def whole(graphs):
    """Every node became a kernel's."""
    assert graphs
    for g in graphs:
        assert framework_nodes(g) == [] and not g.translation.opaque, framework_nodes(g)
    return graphs


def norms_with_their_statistics():
    def fn(x, w, b):
        y, mean, rstd = torch.native_layer_norm(x, [x.shape[-1]], w, b, 1e-5)
        return y, mean, rstd, *torch.var_mean(x, dim=1, correction=2)

    with torch.no_grad():
        g = whole(check(fn, randn(33, 67), randn(67), randn(67)))
        assert len(kernels(g[0])) == 1, kernels(g[0])  # one read of x for all
        whole(check(lambda x, w, b: torch.native_group_norm(x, w, b, 2, 6, 15, 3, 1e-5), randn(2, 6, 15), randn(6), randn(6)))


def batch_norm_updates_its_statistics():
    def fn(x, mean, var, w, b):
        return F.batch_norm(x, mean, var, w, b, training=True, momentum=0.1)

    with torch.no_grad():
        whole(check(fn, randn(4, 6, 5, 3), randn(6), torch.rand(6) + 0.5, randn(6), randn(6)))


def copies_fills_parts_and_indices():
    def fn(x, i):
        parts = torch.slice_scatter(x, torch.ones(7, 1), 1, 2, 3), torch.select_scatter(x, x[0] * 2, 0, -1)
        rows = x[i, i % 5], torch.as_strided(x, (3, 4), (5, 1), 2).clone(), x.masked_fill(x > 0, 1.5)
        return x.clone(), x.t().contiguous(), torch.full((3,), 2.0), torch.scalar_tensor(7.0), *parts, *rows, torch.tril(x), x.clamp_min(0.25)

    with torch.no_grad():
        whole(check(fn, randn(7, 5), torch.tensor([0, 6, 3]), exact=True))


def losses_and_their_gradients():
    def fn(x, y):
        return F.cross_entropy(x, y) + F.softplus(x).mean() + F.gelu(x, approximate='tanh').sum() / 100

    torch._dynamo.reset()
    y, before = torch.randint(0, 13, (9,)), len(made)
    ours = randn(9, 13, requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    got, want = torch.compile(fn, backend=front.autofuse)(ours, y), fn(theirs, y)
    got.backward()
    want.backward()
    same([want.detach(), theirs.grad], [got.detach(), ours.grad])
    assert len(whole(made[before:])) == 2  # forward, backward


if __name__ == '__main__':
    sys.exit(run_tests([norms_with_their_statistics, batch_norm_updates_its_statistics, copies_fills_parts_and_indices, losses_and_their_gradients]))
