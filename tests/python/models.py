#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models from transformers and torch with random weights: results beside a float64 run, fused fraction, and what training does to them.

    models.py [--inductor] [--train] [NAME…]

Without --inductor the bound is eager's own error against float64, twice, and a rounding of the largest element; with it Inductor's error,
twice.
"""
import argparse
import copy
import sys

import aftorch
from aftorch import framework_nodes, front, made, run_tests, torch
from autofuse.torch.views import is_view

import zoo

EPS = torch.finfo(torch.float32).eps
options = argparse.Namespace(inductor=False, train=False, names=list(zoo.MODELS))


def in_double(inputs):
    return {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}


def distance(a, b):
    return (a.double() - b).abs().max().item() if a.numel() else 0.0


def allowed(reference, peer_error):
    """Twice a peer's error; where that is less than what a few roundings of the largest element are, those."""
    return max(2 * peer_error, 8 * EPS * reference.abs().max().item())


def fused_fraction(graphs):
    """Nodes with a canonical op that run in kernels, of all such nodes; views and PyTorch's own do not count."""
    fused = left = 0
    for g in graphs:
        fused += len({e.source for e in g.translation.b.nodes if e.op != 'opaque' and not is_view(e.source)} - set(g.translation.reasons))
        left += sum(not aftorch.is_declared(g, s) for s in g.bundle.steps if isinstance(s, aftorch.FrameworkStep))
    return fused / (fused + left) if fused + left else 1.0


def compiled(model, backend):
    torch._dynamo.reset()
    return torch.compile(model, backend=backend)


def check_close(what, ours, peers, reference):
    """Each tensor: same shape, stride and dtype as the peer's, and at most twice as far from the reference."""
    assert ours.keys() == peers.keys()
    scale = max((r.abs().max().item() for r in reference.values() if r.is_floating_point() and r.numel()), default=0.0)
    for k, want in peers.items():
        got = ours[k]
        assert got.shape == want.shape and got.stride() == want.stride() and got.dtype == want.dtype, (what, k, got.stride(), want.stride())
        if not want.is_floating_point():
            assert torch.equal(got, want), (what, k)
            continue
        if reference[k].numel() and reference[k].abs().max().item() < 1e-9 * scale:  # zero, but for rounding
            assert distance(got, reference[k]) <= EPS * scale, (what, k)
            continue
        error, bound = distance(got, reference[k]), allowed(reference[k], distance(want, reference[k]))
        assert error <= bound, f'{what}: {k} is {error:.3g} from the float64 run, {bound:.3g} are allowed'


def forward(name):
    model, inputs = zoo.make(name)
    model.eval()
    reference = copy.deepcopy(model).double()
    with torch.no_grad():
        exact = zoo.result(reference(**in_double(inputs)))
        before = len(made)
        c = compiled(model, front.autofuse)
        c(**inputs)
        ours = zoo.result(c(**inputs))
        graphs = made[before:]
        peers = zoo.result((compiled(model, 'inductor') if options.inductor else model)(**inputs))
    check_close(name, ours, peers, exact)
    assert graphs, f'{name}: no graph was compiled'
    fraction = fused_fraction(graphs)
    kernels = sum(g.bundle.info.n_kernel_steps for g in graphs)
    nodes = sum(len(framework_nodes(g)) for g in graphs)
    print(f'# {name}: {len(graphs)} graphs, {kernels} launches of kernels, {nodes} nodes of PyTorch, '
          f'{fraction:.3f} of the fusable nodes fused')
    assert fraction >= 0.95, f'{name}: {fraction:.3f} fused'


def three_steps(model, inputs):
    """Gradients of the first step, parameters and buffers after three."""
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, 1e-2, momentum=0.9)
    gradients = None
    for _ in range(3):
        optimizer.zero_grad()
        zoo.loss(model(**inputs)).backward()
        if gradients is None:
            gradients = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
        optimizer.step()
    state = {n: v.detach().clone() for n, v in [*model.named_parameters(), *model.named_buffers()]}
    return gradients, state


def plain_names(d):
    return {k.removeprefix('_orig_mod.'): v for k, v in d.items()}


def training(name):
    """SGD, whose steps are continuous in the gradients: Adam's first ones are their signs, where any rounding near zero decides."""
    model, inputs = zoo.make(name)
    for m in model.modules():
        if isinstance(m, torch.nn.Dropout):
            m.p = 0.0  # float64 draws other masks
        for field in ('attention_dropout', 'dropout_prob'):
            if isinstance(getattr(m, field, None), float):
                setattr(m, field, 0.0)
    model.train()
    reference, peer = copy.deepcopy(model).double(), copy.deepcopy(model)
    exact = three_steps(reference, in_double(inputs))
    before = len(made)
    ours = three_steps(compiled(model, front.autofuse), inputs)
    graphs = made[before:]
    theirs = three_steps(compiled(peer, 'inductor') if options.inductor else peer, inputs)
    for i, what in enumerate(('gradients', 'state after three steps')):
        check_close(f'{name}, {what}', plain_names(ours[i]), plain_names(theirs[i]), {k: v.double() for k, v in exact[i].items()})
    assert len(graphs) >= 2, f'{name}: {len(graphs)} graphs'
    fraction = fused_fraction(graphs)
    print(f'# {name} in training: {len(graphs)} graphs, {sum(g.bundle.info.n_kernel_steps for g in graphs)} launches of kernels, '
          f'{fraction:.3f} of the fusable nodes fused')
    assert fraction >= 0.95, f'{name}: {fraction:.3f} fused'


def named(fn, name):
    def test():
        fn(name)
    test.__name__ = f'{name}_{fn.__name__}'
    return test


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--inductor', action='store_true')
    p.add_argument('--train', action='store_true')
    p.add_argument('names', nargs='*', choices=[*zoo.MODELS, []])
    p.parse_args(namespace=options)
    names = options.names or list(zoo.MODELS)
    tests = [named(forward, n) for n in names]
    if options.train:
        tests += [named(training, n) for n in names if n in zoo.TRAINED]
    return run_tests(tests)


sys.exit(main())
