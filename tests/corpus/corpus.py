#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fusion corpus as a table: launches, bytes, time and equality of every row.

    corpus.py [--only NAME,...] [--json] [--write DIR [--sizes full]]

Bytes and cycles are counted by the checked twin at full size, without computing unless what moves depends on data; what is left to the framework counts as launches that read and
write what the op by itself would. Results are compared with the reference at two other sizes, on ordinary and special values.
Columns: launches/allowed; bytes over the least possible/allowed; the same by TorchInductor's metric, ours and its own; equal to the reference;
cycles; cycles over those of the busiest pipe; lines of source; what is wrong. README.md says what the metric counts.

    --check     as a test: `ok NAME` or `not ok NAME` per row. Rows named in pending.txt need not be within their limits yet, and fail when they are
    --shrink    takes the rows that are within now out of pending.txt
    --sizes     sizes to compare at (small,odd), or of what is written
    --no-run    counts alone
    --measure   bytes of a run at full size instead of a count (slow)
"""
import argparse
import array
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import rows as corpus

PENDING = os.path.join(HERE, "pending.txt")

BELOW = {"causal_softmax_bf16", "residual_layer_norm_bf16", "residual_rms_norm_sum_returned", "layer_norm_backward", "group_norm", "cross_entropy",
         "rotary"}  # rows on which each buffer once must be less than the peer's, not only as little

PARTIAL_RESULTS = 0.005  # what the workspaces may add to that, each once too

LINES = 200  # of a kernel's source
LONGER = {"softmax_long_row": 240, "layer_norm_long_row": 245, "embedding_add": 250, "layer_norm_backward": 265, "cross_entropy": 295,
          "cross_entropy_vocab_151936": 325}  # several phases that have little in common


def write(rows, kind, directory):
    os.makedirs(directory, exist_ok=True)
    paths = []
    for r in rows:
        paths.append(os.path.join(directory, r.name + ".json"))
        fragment = corpus.build(r, kind)
        with open(paths[-1], "w", encoding="utf-8") as out:
            json.dump(fragment.doc, out)
        for i, indices in fragment.indices.items():
            with open(os.path.join(directory, f"{r.name}.{i}.in"), "wb") as out:
                out.write(array.array("q", indices).tobytes())
    return paths


def tool(build, *args):
    p = subprocess.run([os.path.join(build, "tests/tools/fragment_runs"), *args], stdout=subprocess.PIPE, text=True, check=False)
    if p.returncode:
        sys.exit(f"fragment_runs ended with {p.returncode}")
    return {e["name"]: e for e in map(json.loads, p.stdout.splitlines())}


def once_per_kernel(fragment, entry):
    """Bytes with each buffer once per kernel that touches it: inputs, outputs and what kernels hand each other; and workspaces, which one kernel alone knows."""
    total, own = sum(f["bytes"] for f in entry["framework"]), 0
    for k in entry["kernels"]:
        for (kind, index), nbytes in {(kind, index): nbytes for kind, index, nbytes, _ in k["args"]}.items():
            if kind == "work":
                own += nbytes
            else:
                total += fragment.touched.get(index, nbytes) if kind == "in" else nbytes
    return total, own


def judge(r, fragment, counted, runs):
    """The row's figures and what is wrong with them."""
    wrong = [e[key][:160] for e in [counted, *runs] for key in ("error", "why") if e.get(key)][:1]
    kernels, left = counted["kernels"], counted["framework"]
    least = fragment.least_bytes
    moved = sum(k["moved"] for k in kernels) + sum(f["bytes"] for f in left)
    once, own = once_per_kernel(fragment, counted)
    out = {"row": r.name, "launches": len(kernels) + len(left), "launches_allowed": r.launches, "least_bytes": least, "bytes_allowed": r.ratio,
           "kernels": len(kernels), "framework": [f"{f['op']}: {f['reason']}" for f in left], "lines": sum(k["lines"] for k in kernels),
           "peer_kernels": r.peer[0], "peer_once": r.peer[1], "equal": None if not runs or any(e["equal"] is None for e in runs) else all(e["equal"] for e in runs),
           "modelled": [k["modelled"] for k in kernels], "moved": [k["moved"] for k in kernels],
           "bytes": round(moved / least, 4), "once": round(once / least, 4), "once_with_workspaces": round((once + own) / least, 4),
           "cycles": sum(k["cycles"] for k in kernels), "blocks": [k["blocks"] for k in kernels],
           "over_pipe": round(max((k["cycles"] / max(k["mte2"], k["v"], k["mte3"], 1) for k in kernels), default=0), 3)}
    if counted.get("error"):
        out["launches"] = 0
    elif left:
        wrong.append("left to the framework: " + "; ".join(dict.fromkeys(out["framework"])))
    if out["launches"] > r.launches:
        wrong.append("launches")
    if out["bytes"] > r.ratio:
        wrong.append("bytes")
    if (round(out["once"], 3) > r.peer[1] or out["once_with_workspaces"] > r.peer[1] + PARTIAL_RESULTS or
            (r.name in BELOW and out["once_with_workspaces"] >= r.peer[1])):
        wrong.append("bytes once per kernel")
    longest = max((k["lines"] for k in kernels), default=0)
    if longest > LONGER.get(r.name, LINES):
        wrong.append(f"{longest} lines of source")
    if r.name in LONGER and longest <= LINES:
        wrong.append("has no more lines than others, take it out of LONGER")
    if out["equal"] is False:
        wrong.insert(0, "not equal")
    out["wrong"] = wrong
    out["within"] = not wrong
    return out


def measure(o, rows):
    with tempfile.TemporaryDirectory() as d:
        full = os.path.join(d, "full")
        run = [r for r in rows if o.measure or corpus.build(r, "full").by_data]
        count = [r for r in rows if r not in run]
        runs = [tool(o.build, "--run", "--specials", *write(rows, kind, os.path.join(d, kind))) for kind in o.sizes.split(",") if not o.no_run]
        counted = tool(o.build, "--count", *write(count, "full", full)) if count else {}
        runs.append(tool(o.build, "--run", "--inputs", full, "--flags", "-O2", *write(run, "full", full)) if run else {})
        counted.update(runs[-1])
        for r in rows:
            yield judge(r, corpus.build(r, "full"), counted[r.name], [e[r.name] for e in runs if r.name in e])


def line(e):
    times = f"{e['launches']}/{e['launches_allowed']}" if e["launches"] else "-"
    ratio = f"{e['bytes']:.3f}/{e['bytes_allowed']:.2f}" if e["launches"] else "-"
    once = f"{e['once']:.3f} {e['peer_once']:.3f}" if e["launches"] else f"-     {e['peer_once']:.3f}"
    equal = {True: "yes", False: "NO", None: "-"}[e["equal"]]
    return (f"{e['row']:31s} {'ok' if e['within'] else '--':2s} {times:>5s} {ratio:>11s} {once:>11s} {equal:>5s} {e['cycles']:>9d} {e['over_pipe']:>5.2f} "
            f"{e['lines']:>5d}  {'; '.join(e['wrong'])[:150]}")


def pending_lines():
    with open(PENDING, encoding="utf-8") as f:
        return f.read().splitlines()


def check(entries, pending):
    bad = 0
    for e in entries:
        late, wrong = e["row"] in pending, "; ".join(e["wrong"])
        good = e["equal"] is not False and (not e["within"] if late else e["within"])
        bad += not good
        print(f"{'ok' if good else 'not ok'} {e['row']}" + (f" # pending: {wrong}" if late and good else
              ": is within now, take it out of pending.txt" if late and e["within"] else f": {wrong}" if not good else ""), flush=True)
    return bad


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=os.environ.get("AF_BUILD_ROOT", os.path.join(ROOT, "build")))
    p.add_argument("--only", default="")
    p.add_argument("--json", action="store_true")
    p.add_argument("--check", action="store_true")
    p.add_argument("--shrink", action="store_true")
    p.add_argument("--figures", action="store_true", help="one JSON object per figure, for bench/run")
    p.add_argument("--write", metavar="DIR")
    p.add_argument("--sizes", default=None)
    p.add_argument("--no-run", action="store_true")
    p.add_argument("--measure", action="store_true")
    o = p.parse_args()
    rows = [r for r in corpus.ROWS if not o.only or any(part in r.name for part in o.only.split(","))]
    if o.write:
        print("\n".join(path for kind in (o.sizes or "full").split(",") for path in write(rows, kind, os.path.join(o.write, kind))))
        return 0
    o.sizes = o.sizes or "small,odd"
    if not rows:
        sys.exit(f"no row has {o.only!r} in its name")
    entries = list(measure(o, rows))
    if o.shrink:
        within = {e["row"] for e in entries if e["within"]}
        kept = "".join(w + "\n" for w in pending_lines() if w not in within)
        with open(PENDING, "w", encoding="utf-8") as f:
            f.write(kept)
    if o.check:
        pending = {w for w in pending_lines() if w[0] != "#"}
        unknown = pending - {r.name for r in corpus.ROWS}
        if unknown:
            print(f"not ok pending.txt names no row: {', '.join(sorted(unknown))}")
        return 1 if check(entries, pending) or unknown else 0
    if o.figures:
        for name, value in (("within", sum(e["within"] for e in entries)), ("total", len(entries))):
            print(json.dumps({"name": "corpus_rows_" + name, "value": value, "unit": "rows"}))
        return 0
    if o.json:
        print(json.dumps(entries, indent=1))
        return 0
    print(f"{'row':31s} {'':2s} {'launch':>5s} {'bytes':>11s} {'once  peer':>11s} {'equal':>5s} {'cycles':>9s} {'/pipe':>5s} {'lines':>5s}")
    for e in entries:
        print(line(e))
    print(f"{sum(e['within'] for e in entries)} of {len(entries)} rows within")
    return 0


if __name__ == "__main__":
    sys.exit(main())
