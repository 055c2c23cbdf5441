#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX's own backend test runner over autofuse.onnx.Backend: the node tests of the onnx package, through a private server.

Nothing is picked by hand. Each test is compiled and run, and ONNX compares the results, except where the importer names an op, dtype or
shape that it cannot express, or the compiler left every node that computes to the framework: these are skipped with that reason. What runs
is counted inside run(), and only where a kernel was launched or the model only moves views. Whatever else happens fails.

    test_onnx_backend.py            a sample in name order, and all models through the importer
    test_onnx_backend.py --all      every node test
    test_onnx_backend.py --light    the package's nine networks without weights, convolutions by onnx.reference
"""
import argparse, collections, concurrent.futures, contextlib, json, os, re, sys, tempfile, unittest, warnings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from other_python import need

need('cffi', 'numpy', 'ml_dtypes', 'onnx')
import numpy as np
import onnx

warnings.filterwarnings('ignore')
from afpy import BUILD, autofuse, server  # noqa: E402

os.environ.setdefault('AUTOFUSE_ONNX_LIBRARY', os.path.join(BUILD, 'importer', 'libautofuse-onnx.so.0'))
import autofuse.onnx as ao  # noqa: E402
from onnx.backend.test import BackendTest  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402

LEAST_RUN, LEAST_EXPRESSED, LEAST_SAMPLE = 1200, 1450, 20
EVERY = 56  # of the sample
# A refusal's first words; what does not begin so is no reason to skip.
REASON = re.compile(r'(op \w+|dtype:? |shape)')
# Results in float16 where the order of roundings makes more of a difference than the runner's tolerance of about one ulp: the expected ones
# are within 8.7e-4 of a float64 evaluation, ours within 6.9e-4, and up to 1.2e-3 lie between them. These are held against float64.
COARSE = re.compile(r'test_attention_4d_causal_fp16(_expanded)?$')


class Counts:
    """What run() did, by the test's model."""

    def __init__(self):
        self.launched, self.moved, self.partly, self.kernels, self.left = set(), set(), set(), 0, collections.Counter()

    def add(self, name, plan):
        assert plan.n_kernels or plan.only_moves or not plan.left, name
        (self.launched if plan.n_kernels else self.moved).add(name)
        self.kernels += plan.n_kernels
        if plan.left:
            self.partly.add(name)
            self.left.update({left.op for left in plan.left})


class Strict(ao.Backend):
    """Runs no model by onnx.reference as a whole: that is a skip, with its reason."""
    context, counts = None, Counts()

    @classmethod
    def prepare(cls, model, device='CPU', **kwargs):
        return StrictModel(model, cls.context)


class StrictModel(ao.Prepared):
    def run(self, inputs, **kwargs):
        feeds = self.arrays(self.in_order(inputs))
        if feeds is None:
            raise unittest.SkipTest('dtype: a sequence, map, optional value or text')
        try:
            plan = self.plan(feeds)
        except ao.Refused as e:
            assert REASON.match(e.reason), e
            raise unittest.SkipTest(e.reason) from e
        if plan.n_kernels == 0 and not plan.only_moves and plan.left:
            raise unittest.SkipTest(f'no kernel: {plan.left[0].reason}')
        for left in plan.left:
            if draws(left.op):
                raise unittest.SkipTest(f'op {left.op} draws numbers, of a generator of its own')
        results = plan(feeds)
        if COARSE.match(self.model.graph.name):
            assert_near_float64(feeds, results[0])
            raise unittest.SkipTest('dtype float16: the expected results are farther from float64 ones than ours, too far from these')
        Strict.counts.add(self.model.graph.name, plan)
        return results


def draws(op):
    """Whether ONNX leaves the op's numbers to a generator."""
    schema = onnx.defs.get_schema(op) if onnx.defs.has(op) else None
    return schema is not None and schema.node_determinism == onnx.defs.OpSchema.NodeDeterminism.NonDeterministic


def assert_near_float64(feeds, got):
    """Causal attention in float64 is within the runner's tolerance of these results."""
    q, k, v = (a.astype(np.float64) for a in feeds[:3])
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores[..., np.triu(np.ones(scores.shape[-2:], bool), 1)] = -np.inf
    e = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(got.astype(np.float64), (e / e.sum(-1, keepdims=True)) @ v, rtol=1e-3, atol=1e-7)


class Result(unittest.TestResult):
    """Knows what passed."""

    def __init__(self):
        super().__init__()
        self.passed = set()

    def addSuccess(self, test):
        self.passed.add(name_of(test))


def name_of(test):
    return test.id().rpartition('.')[2].removesuffix('_cpu')


def feeds_of(case, data_set):
    """The inputs of a test as run() gets them."""
    return [onnx.numpy_helper.to_array(i) if isinstance(i, onnx.TensorProto) else i for i in data_set[0]]


def ahead(cases, context):
    """Compiles all models, several at a time, so that the runner's requests are hits."""
    def one(case):
        try:
            model = ao.Prepared(case.model, context)
            for data_set in case.data_sets:
                feeds = model.arrays(feeds_of(case, data_set))
                if feeds is not None:
                    model.plan(feeds)
        except Exception:  # noqa: BLE001 - the runner meets it again, and tells
            pass

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(one, cases))


def run_tests(names, context, kind='Node'):
    """The runner's CPU tests with these names."""
    Strict.context, Strict.counts = context, Counts()
    tests = BackendTest(Strict, __name__).test_cases[f'OnnxBackend{kind}ModelTest']
    result = Result()
    unittest.TestSuite(tests(n + '_cpu') for n in names).run(result)
    return result


def judge(result, listing):
    """How many ran; -1 where something failed. Prints what was skipped and left, and why."""
    counts, wrong = Strict.counts, result.errors + result.failures
    for why, n in sorted(collections.Counter(why for _, why in result.skipped).items(), key=lambda x: (-x[1], x[0])):
        print(f'# {n:4} skipped: {why[:160]}')
    for op, n in sorted(counts.left.items(), key=lambda x: (-x[1], x[0])):
        print(f'# {n:4} tests with {op} by onnx.reference between kernels')
    for test, why in result.skipped if listing else []:
        print(f'# {name_of(test)}: {why}')
    for test, why in wrong:
        print(f'not ok {name_of(test)}: {why.strip().splitlines()[-1][:300]}\n# ' + why.replace('\n', '\n# '))
    ran = result.passed & (counts.launched | counts.moved)
    for name in sorted(result.passed - ran):
        print(f'not ok {name}: passed, but run() did not count it')
    print(f'# {result.testsRun} tests: {len(ran)} run, {len(ran & counts.launched)} with kernels ({counts.kernels} launches), '
          f'{len(ran & counts.moved)} of views alone, {len(ran & counts.partly)} with nodes by onnx.reference; '
          f'{len(result.skipped)} skipped, {len(wrong)} failed')
    return len(ran) if not wrong and ran == result.passed else -1


def expressed(cases):
    """How many models the importer reads, each with its own inputs; every refusal has a reason that is one."""
    n, good = 0, True
    for case in cases:
        model = ao.Prepared(case.model)
        feeds = model.arrays(feeds_of(case, case.data_sets[0]))
        try:
            n += feeds is not None and bool(ao.read(model.graph, [*feeds, *model.graph.weights]))
        except ao.Refused as e:
            if not REASON.match(e.reason):
                print(f'not ok {case.name}: refused as {e.reason!r}')
                good = False
    return n if good else -1


def light(pattern):
    """The networks that the package has without their weights: each through kernels, equal to what the package expects."""
    names = sorted(c.name for c in load_model_tests(kind='real')
                   if c.url.startswith('onnx/backend/test/data/light/') and re.search(pattern, c.name))
    good = bool(names)
    with tempfile.TemporaryDirectory() as home, server(**{'toolchain.host.flags': '-O1'}) as s, autofuse.Context(socket=s.path) as context:
        os.environ['ONNX_HOME'] = home
        for name in names:
            result = run_tests([name], context, 'Real')
            for _, why in result.errors + result.failures + result.skipped:
                print('# ' + why.replace('\n', '\n# '))
            counts = Strict.counts
            what = f'{name}: {counts.kernels} kernels, {sorted(counts.left)} by onnx.reference'
            good = say(result.passed == {name} and counts.kernels > 0, what) and good
    return good


def say(good, what):
    print(('ok ' if good else 'not ok ') + what, flush=True)
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--all', action='store_true')
    p.add_argument('--light', action='store_true')
    p.add_argument('--only', help='tests that match')
    p.add_argument('--list', action='store_true', help='each skip with its reason')
    p.add_argument('--json', action='store_true', help='the figure as bench/ wants it, and nothing else')
    a = p.parse_args()
    if a.light:
        return not light(a.only or '')
    cases = {c.name: c for c in load_model_tests(kind='node')}
    names = sorted(n for n in cases if re.search(a.only, n)) if a.only else sorted(cases)
    if a.json:
        with contextlib.redirect_stdout(sys.stderr):
            n = whole(cases, names, False)
        print(json.dumps({'name': 'onnx_backend_run', 'value': n, 'unit': 'tests', 'of': len(cases), 'package': onnx.__version__}))
        return n < LEAST_RUN
    if a.all or a.only:
        n, least = whole(cases, names, a.list), 0 if a.only else LEAST_RUN
        return not say(n >= least, f'{n} of {len(names)} node tests of onnx {onnx.__version__} run, at least {least}')
    n = expressed(cases.values())
    good = say(n >= LEAST_EXPRESSED, f'{n} of {len(cases)} models are read, at least {LEAST_EXPRESSED}')
    n = whole(cases, names[::EVERY], a.list)
    return not (say(n >= LEAST_SAMPLE, f'{n} of every {EVERY}th test run, at least {LEAST_SAMPLE}') and good)


def whole(cases, names, listing):
    """Compiles and runs these tests on a server of their own."""
    # What the compiler would gain by -O3 these small kernels lose twice over in compiling; no bit depends on it.
    with server(**{'toolchain.host.flags': '-O1'}) as s, autofuse.Context(socket=s.path) as context:
        ahead([cases[n] for n in names], context)
        return judge(run_tests(names, context), listing)


if __name__ == '__main__':
    sys.exit(main())
