# SPDX-License-Identifier: Apache-2.0
"""Files that show people what was compiled: one directory per fragment, DIR/NAME_DIGEST/.

graph_before.pbtxt  the fragment's nodes             SYMBOL.asc         a kernel's source, as the server's store has it
graph_after.pbtxt   kernels and what stays           SYMBOL.tiling.bin  what it is passed by value after its pointers
timeline.json       modelled cycles per step, for a trace viewer (one microsecond there is one cycle)
"""
import json
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from autofuse.bundle import Bundle, KernelStep
from autofuse.errors import AutofuseError
from autofuse.fragment import Node


def nodes_of_text(source: str | bytes) -> list[Node]:
    """Of a fragment's JSON."""
    found = json.loads(source)["nodes"]
    return [Node(n["name"], n["op"], n.get("origin"), n.get("inputs", []),
                 [(o["name"], o["dtype"], o["shape"]) for o in n["outputs"]], n.get("attrs", {})) for n in found]


def _node(name: str, op: str, inputs: Iterable[str], attrs: dict[str, Any]) -> str:
    quoted = json.dumps  # its escapes are the text format's too
    lines = [f"  name: {quoted(name)}", f"  op: {quoted(op)}", *(f"  input: {quoted(i)}" for i in inputs)]
    lines += [f"  attr {{ key: {quoted(k)} value {{ s: {quoted(str(v))} }} }}" for k, v in attrs.items() if v is not None]
    return "node {\n" + "\n".join(lines) + "\n}\n"


def before(nodes: Iterable[Node]) -> str:
    """The graph as it was sent."""
    return "".join(_node(n.name, n.op, n.inputs, {**n.attrs, "origin": n.origin,
                                                  "outputs": ", ".join(f"{o[0]}: {o[1]}{list(o[2])}" for o in n.outputs)}) for n in nodes)


def after(bundle: Bundle) -> str:
    """Steps and the buffers that they read and write."""
    def buffer(index: int) -> str:
        b = bundle.buffers[index]
        if b.kind == "input":
            return bundle.inputs[b.index].name
        return bundle.outputs[b.index].name if b.kind == "output" else f"{b.kind}{index}"

    text = ""
    for s in bundle.steps:
        if isinstance(s, KernelStep):
            k = bundle.kernels[s.kernel]
            text += _node(f"step{s.index}", k.symbol, [buffer(a.buffer) for a in s.args if a.reads], {
                "writes": ", ".join(buffer(a.buffer) for a in s.args if a.writes), "ops": k.ops, "block_dim": k.block_dim,
                "hbm_bytes": k.hbm_bytes, "modelled_cycles": k.modelled_cycles, "toolchain": k.toolchain})
        else:
            text += _node(f"step{s.index}", s.op, [buffer(t.buffer) for t in s.inputs], {
                "writes": ", ".join(buffer(t.buffer) for t in s.outputs), "node": s.name, "origin": s.origin, "reason": s.reason})
    return text


def timeline(bundle: Bundle) -> str:
    """Kernels one after the other, in modelled cycles; what the framework does takes none."""
    events, at = [], 0
    for s in bundle.steps:
        kernel = bundle.kernels[s.kernel] if isinstance(s, KernelStep) else None
        cycles = kernel.modelled_cycles if kernel else 0
        name = kernel.symbol if kernel else getattr(s, "origin") or getattr(s, "op")
        events.append({"name": name, "ph": "X", "ts": at, "dur": cycles, "pid": 0, "tid": 0 if kernel else 1,
                       "args": {"hbm_bytes": kernel.hbm_bytes} if kernel else {}})
        at += cycles
    return json.dumps({"traceEvents": events})


def dump(directory: str, name: str, nodes: Iterable[Node], bundle: Bundle, source: Callable[[int], str]) -> str:
    """Writes everything; source(i) is a kernel's. Returns the fragment's directory. OSError where it cannot be written."""
    where = os.path.join(directory, f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:80]}_{bundle.info.fragment[:12]}")
    os.makedirs(where, exist_ok=True)
    files: dict[str, str | bytes] = {"graph_before.pbtxt": before(nodes), "graph_after.pbtxt": after(bundle),
                                     "timeline.json": timeline(bundle)}
    for i, k in enumerate(bundle.kernels):
        try:
            files[f"{k.symbol}.asc"] = source(i)
        except AutofuseError as e:
            files[f"{k.symbol}.asc"] = f"// not at hand: {e}\n"
        if k.tiling:
            files[f"{k.symbol}.tiling.bin"] = k.tiling
    for file, content in files.items():
        with open(os.path.join(where, file), "wb") as f:
            f.write(content.encode() if isinstance(content, str) else content)
    return where
