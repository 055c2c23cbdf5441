# SPDX-License-Identifier: Apache-2.0
"""Builder of fragments, one method per op, shapes and dtypes inferred: what a front end would send."""
import math
import random
import struct

PACK = {"float32": "<f", "float64": "<d", "int32": "<i", "int64": "<q", "bool": "<?"}
SIZE = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4, "int64": 8}


class Value(str):
    """Name of a value, with its dtype and shape."""

    def __new__(cls, name, dtype, shape):
        v = super().__new__(cls, name)
        v.dtype, v.shape = dtype, tuple(shape)
        return v

    @property
    def nbytes(self):
        return math.prod(self.shape) * SIZE[self.dtype]


def together(*shapes):
    """numpy's broadcast of shapes."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(max(column) if 0 not in column else 0 for column in zip(*padded))


class Fragment:
    """
    Values come from input and scalar, nodes from everything else; output ends it. touched: bytes read of an input that is not read whole.
    indices: the elements of an int64 input, in range. by_data: what moves depends on them.
    """

    def __init__(self, name):
        self.doc = {"schema": "autofuse.fragment/1", "name": name, "target": {"soc": "Ascend910B2"}, "numerics": "strict", "symbols": [],
                    "inputs": [], "constants": [], "nodes": [], "outputs": []}
        self.inputs, self.outputs, self.touched, self.indices, self.by_data = [], [], {}, {}, False

    def input(self, *shape, dtype="float32"):
        v = Value(f"x{len(self.inputs)}", dtype, shape)
        self.doc["inputs"].append({"name": v, "dtype": dtype, "shape": list(shape)})
        self.inputs.append(v)
        return v

    def index_input(self, n, high):
        v = self.input(n, dtype="int64")
        chosen = random.Random(f"{self.doc['name']} {n} {high}")
        self.indices[len(self.inputs) - 1] = [chosen.randrange(high) for _ in range(n)]
        return v

    def scalar(self, value, dtype="float32"):
        bits = struct.pack(PACK[dtype], value).hex()
        for c in self.doc["constants"]:
            if c["dtype"] == dtype and c["bits"] == bits:
                return Value(c["name"], dtype, ())
        v = Value(f"c{len(self.doc['constants'])}", dtype, ())
        self.doc["constants"].append({"name": v, "dtype": dtype, "shape": [], "bits": bits})
        return v

    def node(self, op, inputs, *results, origin=None, **attrs):
        """results: (dtype, shape) of each output. One value, or a list of several."""
        number = len(self.doc["nodes"])
        values = [Value(f"t{number}" if len(results) == 1 else f"t{number}_{k}", d, s) for k, (d, s) in enumerate(results)]
        entry = {"name": f"n{number}", "op": op, "inputs": list(inputs), "attrs": attrs,
                 "outputs": [{"name": v, "dtype": v.dtype, "shape": list(v.shape)} for v in values]}
        if origin:
            entry["origin"] = origin
        self.doc["nodes"].append(entry)
        return values[0] if len(values) == 1 else values

    def __getattr__(self, op):
        """f.add(x, 0.5): an elementwise node; numbers become float32 constants (int64's for integer tensors)."""
        if op.startswith("_"):
            raise AttributeError(op)

        def make(*operands, dtype=None, **attrs):
            tensors = [o for o in operands if isinstance(o, Value)]
            main = max(tensors, key=lambda v: (bool(v.shape), v.dtype != "bool"))
            values = [o if isinstance(o, Value) else self.scalar(o, "int64" if main.dtype == "int64" else "float32") for o in operands]
            return self.node(op, values, (dtype or main.dtype, together(*(v.shape for v in values))), **attrs)
        return make

    def compare(self, op, a, b):
        return getattr(self, op)(a, b, dtype="bool")

    def cast(self, x, dtype):
        return self.node("cast", [x], (dtype, x.shape), origin="aten._to_copy.default")

    def reduce(self, op, x, *axes, keepdims=False, dtype=None, **attrs):
        axes = sorted(a % len(x.shape) for a in axes) or list(range(len(x.shape)))
        shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
        return self.node(op, [x], (dtype or x.dtype, shape), axes=axes, keepdims=keepdims, **attrs)

    def argmax(self, x, axis):
        axis %= len(x.shape)
        return self.node("arg_max", [x], ("int64", x.shape[:axis] + x.shape[axis + 1:]), axis=axis, keepdims=False)

    def softmax(self, x, log=False):
        return self.node("log_softmax" if log else "softmax", [x], (x.dtype, x.shape), axis=len(x.shape) - 1)

    def layer_norm(self, x, w, b):
        return self.node("layer_norm", [x, w, b], (x.dtype, x.shape), axis=len(x.shape) - 1, epsilon=1e-5, origin="aten.native_layer_norm.default")

    def view(self, op, x, shape, **attrs):
        return self.node(op, [x], (x.dtype, shape), **attrs)

    def unsqueeze(self, x, axis):
        return self.view("unsqueeze", x, x.shape[:axis] + (1,) + x.shape[axis:], axes=[axis])

    def squeeze(self, x, axis):
        return self.view("squeeze", x, x.shape[:axis] + x.shape[axis + 1:], axes=[axis])

    def slice(self, x, axis, start, stop):
        axis %= len(x.shape)
        starts, stops = [0] * len(x.shape), list(x.shape)
        starts[axis], stops[axis] = start, stop
        return self.view("slice", x, [b - a for a, b in zip(starts, stops)], starts=starts, stops=stops, steps=[1] * len(x.shape))

    def concat(self, *xs, axis):
        axis %= len(xs[0].shape)
        shape = list(xs[0].shape)
        shape[axis] = sum(x.shape[axis] for x in xs)
        return self.node("concat", xs, (xs[0].dtype, shape), axis=axis, origin="aten.cat.default")

    def split(self, x, axis, *sizes):
        axis %= len(x.shape)
        shapes = [x.shape[:axis] + (n,) + x.shape[axis + 1:] for n in sizes]
        return self.node("split", [x], *((x.dtype, s) for s in shapes), axis=axis, sizes=list(sizes), origin="aten.split_with_sizes.default")

    def output(self, *values):
        self.doc["outputs"] += values
        self.outputs += values

    @property
    def least_bytes(self):
        """Every distinct input byte addressed once, every output byte once."""
        return sum(self.touched.get(i, v.nbytes) for i, v in enumerate(self.inputs)) + sum(v.nbytes for v in self.outputs)
