#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every lowering of the PyTorch front end against eager, op by op (aten_check.py has the rule).

    test_aten.py                                    calls by hand (aten_cases.py), and a part of PyTorch's own samples
    test_aten.py --op-infos [--samples N] [--dtypes A,B] [--part K/N] [--gradients] [--only NAME]     PyTorch's own samples
    test_aten.py --kernels [--part K/N]             the fragments of the calls by hand through fragment_runs: kernels give the reference's bits

PyTorch's own samples are its OpInfo database's, which it tests its operators with: what the sampled functions call is checked, and what the
front end's decompositions make of that. Skipped (exit 77) where there is no torch.
"""
from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
import zlib
from typing import Any, Iterator

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../python"), os.path.join(HERE, "..")]
from other_python import need  # noqa: E402

need("torch", "cffi")
import torch  # noqa: E402
from torch._decomp import core_aten_decompositions  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

import aten_cases  # noqa: E402
import aten_check  # noqa: E402
from autofuse.torch.lowering import LOWERINGS  # noqa: E402

QUICK_PART = 24  # of PyTorch's operators, one in so many by default
#: What these samples want is not on this machine, or no dense tensor.
LEFT_OUT = ("jiterator", "sparse", "to_sparse")
EVERY = "float32,bfloat16,float16,int64,int32,uint8,int8,int16,bool"


def own(mode: aten_check.Checked) -> None:
    """The calls by hand."""
    for group, cases in aten_cases.GROUPS.items():
        n, before = 0, sum(mode.checked.values())
        for name, call in cases():
            n += 1
            try:
                with mode:
                    call()
            except Exception as e:  # noqa: BLE001: which case it was is what helps
                mode.failures.append(f"{group}, {name}: {type(e).__name__}: {e}")
        print(f"# {group}: {n} cases, {sum(mode.checked.values()) - before} ops checked")


def op_infos() -> list[Any]:
    """PyTorch's database; its module wants expecttest, of which it uses a base class."""
    stand_in = types.ModuleType("expecttest")
    stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    sys.modules.setdefault("expecttest", stand_in)
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if not op.name.startswith(LEFT_OUT)]


def samples(op: Any, dtype: torch.dtype, gradients: bool, most: int) -> Iterator[Any]:
    """An operator's samples; none where PyTorch itself cannot make them."""
    try:
        yield from itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=gradients), most)
    except (RuntimeError, ValueError, NotImplementedError, unittest.SkipTest):
        return


def differentiate(result: Any, sample: Any) -> None:
    """The gradients of a sample's result."""
    outputs = [t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
    inputs = [t for t in pytree.tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(t, torch.Tensor) and t.requires_grad]
    if outputs and inputs:
        torch.autograd.grad(outputs, inputs, [torch.randn_like(t) for t in outputs], allow_unused=True)


def run_sample(mode: aten_check.Checked, op: Any, sample: Any, gradients: bool) -> None:
    """One sample. What eager itself refuses is no failure; what goes wrong in the lowerings is."""
    try:
        with mode:
            result = op(sample.input, *sample.args, **sample.kwargs)
            if gradients:
                differentiate(result, sample)
    except Exception as e:  # noqa: BLE001
        frame = e.__traceback__
        while frame:
            if "/autofuse/torch/" in frame.tb_frame.f_code.co_filename or frame.tb_frame.f_code.co_name in ("check_one", "compare"):
                mode.failures.append(f"{op.name}: {type(e).__name__}: {e}")
                return
            frame = frame.tb_next


def of_pytorch(mode: aten_check.Checked, args: argparse.Namespace) -> None:
    """PyTorch's own samples."""
    part, parts = (int(v) for v in args.part.split("/"))
    n = 0
    for op in op_infos():
        if (args.only and op.name != args.only) or zlib.crc32(op.name.encode()) % parts != part - 1:
            continue
        for name in (EVERY if args.dtypes == "all" else args.dtypes).split(","):
            dtype = getattr(torch, name)
            if not op.supports_dtype(dtype, "cpu"):
                continue
            gradients = bool(args.gradients and op.supports_autograd and dtype.is_floating_point)
            for sample in samples(op, dtype, gradients, args.samples):
                n += 1
                run_sample(mode, op, sample, gradients)
    print(f"# PyTorch's samples: {n}")


def kernels(args: argparse.Namespace) -> int:
    """Writes the fragments of the calls by hand and has fragment_runs compare their kernels with the reference, on special values too."""
    part, parts = (int(v) for v in args.part.split("/"))
    mode = aten_check.Checked({})
    seen: set[bytes] = set()
    with tempfile.TemporaryDirectory() as folder:

        def keep(name: str, text: bytes, inputs: list[torch.Tensor]) -> None:
            if text not in seen and zlib.crc32(text) % parts == part - 1:
                with open(os.path.join(folder, f"{len(seen)}_{name}.json"), "wb") as f:
                    f.write(text)
            seen.add(text)

        mode.fragments = keep
        own(mode)
        files = sorted(os.path.join(folder, f) for f in os.listdir(folder))
        tool = os.path.join(aten_check.ROOT, "tests/tools/fragment_runs")
        lines = []
        for i in range(0, len(files), 200):
            done = subprocess.run([tool, "--run", "--specials", *files[i : i + 200]], capture_output=True, text=True, check=False)
            lines += done.stdout.splitlines()
    reports = [json.loads(line) for line in lines]
    wrong = [r for r in reports if not (r.get("identical") or r.get("equal"))]
    for r in wrong:
        print(f"# {str(r)[:400]}")
    complete = len(reports) == len(files) and files
    print(f"# {len(reports)} of {len(files)} fragments ran")
    print("ok kernels" if complete and not wrong else "not ok kernels")
    return 0 if complete and not wrong else 1


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--op-infos", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--dtypes", default="float32,bfloat16,int64")
    parser.add_argument("--part", default="")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if args.kernels:
        args.part = args.part or "1/1"
        return kernels(args)
    args.part = args.part or ("1/1" if args.op_infos else f"1/{QUICK_PART}")
    mode = aten_check.Checked(dict(core_aten_decompositions()))
    if not args.op_infos:
        own(by_hand := aten_check.Checked({}))
        never = sorted(set(LOWERINGS) - set(by_hand.checked))
        mode.failures += by_hand.failures + [f"{name} is in the table and no case calls it" for name in never]
        by_hand.close()
    of_pytorch(mode, args)
    mode.close()
    for text in mode.failures:
        print(f"# {text}")
    for name, n in sorted(mode.left.items()) if args.only else []:
        print(f"# left: {name} {n}")
    print(f"# {len(mode.checked)} overloads, {sum(mode.checked.values())} ops of PyTorch's samples checked")
    print("ok aten" if not mode.failures else f"not ok aten: {len(mode.failures)} failures")
    return 1 if mode.failures else 0


if __name__ == "__main__":
    sys.exit(main())
