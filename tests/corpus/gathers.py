#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Gathers whose rows come in the order of their index, on every kind of index: equal, sorted, few, negative, out of range.

    gathers.py [--all] [--only NAME,...] [--write DIR]

Every shape must be planned with bins (its kernel has more than one phase) and give the reference's bits for every index, on all cores and on
few. Prints `ok NAME` or `not ok NAME` per fragment and index. --all: every index for every shape; else each shape has its share.
"""
import argparse
import array
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from fragment import Fragment

ROOT = os.path.dirname(os.path.dirname(HERE))
FEW_CORES = 5


def uniform(r, n, extent):
    return [r.randrange(extent) for _ in range(n)]


def beyond(r, n, extent):
    """Half of them outside, by a little and by all that there is."""
    far = (extent, extent + 1, -extent - 1, 2 ** 31 - 1, -2 ** 31)
    return [r.choice((r.randrange(extent), r.choice(far))) for _ in range(n)]


INDICES = {
    "uniform": uniform,
    "equal": lambda r, n, extent: [extent // 2] * n,
    "sorted": lambda r, n, extent: sorted(uniform(r, n, extent)),
    "reversed": lambda r, n, extent: sorted(uniform(r, n, extent), reverse=True),
    "negative": lambda r, n, extent: [r.randrange(-extent, extent) for _ in range(n)],
    "beyond": beyond,
    "outside": lambda r, n, extent: [extent] * n,
    "turns": lambda r, n, extent: [i % 3 % extent for i in range(n)],
    "bin": lambda r, n, extent: [r.randrange((extent + 31) // 32) * 32 % extent for _ in range(n)],  # all of one bin
    "common": lambda r, n, extent: [min(int(extent * r.random() ** 6), extent - 1) for _ in range(n)],
    "distinct": lambda r, n, extent: [i * 7 % extent for i in range(n)],
}


def gather(f, table, index, axis=0):
    return f.node("gather", [table, index], (table.dtype, index.shape + table.shape[1:]), axis=axis)


def index_of(f, n, dtype="int64"):
    return f.input(n, dtype=dtype)


def bias(f):
    """Rows of no whole sector, an odd tail of rows."""
    table, index, p = f.input(97, 250), index_of(f, 6001), f.input(250)
    f.output(f.add(gather(f, table, index), p))
    return 97


def alone(f):
    """Nothing but the gather, of bytes."""
    f.output(gather(f, f.input(40, 1001, dtype="int8"), index_of(f, 5000, "int32")))
    return 40


def wide(f):
    f.output(gather(f, f.input(300, 129, dtype="int64"), index_of(f, 4096)))
    return 300


def halves(f):
    """Whole rows beside it, and a column."""
    table, index, x, c = f.input(500, 512, dtype="float16"), index_of(f, 6000, "int32"), f.input(6000, 512, dtype="float16"), f.input(6000, 1, dtype="float16")
    f.output(f.mul(f.add(gather(f, table, index), x), c))
    return 500


def two_tables(f):
    """One index for both, and one that another names; two outputs."""
    a, b, index, other = f.input(64, 300), f.input(64, 300), index_of(f, 5003), index_of(f, 5003, "int32")
    s, t = gather(f, a, index), gather(f, b, index)
    f.output(f.add(s, f.abs(t)), f.mul(t, gather(f, f.input(64, 300), other)))
    return 64


def norm(f):
    table, index = f.input(200, 768), index_of(f, 4001)
    w, b = f.input(768), f.input(768)
    f.output(f.layer_norm(f.add(gather(f, table, index), f.input(4001, 768)), w, b))
    return 200


def joined(f):
    """Two gathers by one index, side by side."""
    a, b, index = f.input(90, 200), f.input(90, 104), index_of(f, 6007)
    f.output(f.concat(gather(f, a, index), f.relu(gather(f, b, index)), axis=-1))
    return 90


def chain(f):
    """What an index names names rows again, beside rows that it names itself."""
    table, names, index = f.input(150, 260), f.input(90, dtype="int32"), index_of(f, 6000, "int32")
    f.output(f.add(gather(f, f.input(90, 260), index), gather(f, table, gather(f, names, index))))
    return 90


def one_row(f):
    f.output(f.exp(gather(f, f.input(1, 640), index_of(f, 3000))))
    return 1


SHAPES = [bias, alone, wide, halves, two_tables, norm, joined, chain, one_row]
FEW = [bias, two_tables, norm]


def write(directory, pairs):
    os.makedirs(directory, exist_ok=True)
    paths = []
    for shape, kind in pairs:
        f = Fragment(f"{shape.__name__}_{kind}")
        extent = shape(f)
        paths.append(os.path.join(directory, f.doc["name"] + ".json"))
        with open(paths[-1], "w", encoding="utf-8") as out:
            json.dump(f.doc, out)
        for i, v in enumerate(f.inputs):
            if v.dtype in ("int32", "int64") and len(v.shape) == 1:
                values = INDICES[kind](random.Random(f"{f.doc['name']} {i}"), v.shape[0], extent)
                if kind == "beyond" and v.dtype == "int64":
                    values[:4] = [2 ** 63 - 1, -2 ** 63, 2 ** 32, -2 ** 32]
                with open(os.path.join(directory, f"{f.doc['name']}.{i}.in"), "wb") as out:
                    out.write(array.array("i" if v.dtype == "int32" else "q", values).tobytes())
    return paths


def run(build, directory, paths, *options):
    command = [os.path.join(build, "tests/tools/fragment_runs"), "--run", "--inputs", directory, "--flags", "-O1", *options, *paths]
    p = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if p.returncode:
        sys.exit(f"fragment_runs ended with {p.returncode}")
    return list(map(json.loads, p.stdout.splitlines()))


def judge(e):
    kinds = {kind for k in e["kernels"] for kind, *_ in k["args"]}
    return (e.get("error") or e.get("why") or ("" if e["equal"] else "not equal") or
            ("" if "work" in kinds else "planned without bins"))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=os.environ.get("AF_BUILD_ROOT", os.path.join(ROOT, "build")))
    p.add_argument("--only", default="")
    p.add_argument("--all", action="store_true")
    p.add_argument("--write", metavar="DIR")
    o = p.parse_args()
    pairs = [(s, k) for i, s in enumerate(SHAPES) for j, k in enumerate(INDICES)
             if (o.all or s is bias or (i + j) % 5 == 0) and (not o.only or any(w in f"{s.__name__}_{k}" for w in o.only.split(",")))]
    if o.write:
        print("\n".join(write(o.write, pairs)))
        return 0
    bad = 0
    with tempfile.TemporaryDirectory() as d:
        paths = write(d, pairs)
        few = [path for path, (s, _) in zip(paths, pairs) if o.all or s in FEW]
        for options, some in ((), paths), (("--cores", str(FEW_CORES)), few):
            for e in run(o.build, d, some, *options) if some else ():
                wrong = judge(e)
                bad += bool(wrong)
                print(f"{'not ok' if wrong else 'ok'} {e['name']}{' on few cores' if options else ''}{': ' + wrong if wrong else ''}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
