# SPDX-License-Identifier: Apache-2.0
"""Building a graph fragment. docs/fragment.md has ops, attributes and limits."""
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Union

from autofuse._ffi import ffi, lib
from autofuse.errors import Invalid, check, new_error

Dim = Union[int, str]
"""A size, or an expression over the symbols: "s0*2+1"."""
Output = tuple[Any, ...]
"""(name, dtype, shape) or (name, dtype, shape, strides)."""

DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
DTYPE_ID = {name: i + 1 for i, name in enumerate(DTYPES)}
DTYPE_NAME = {i: name for name, i in DTYPE_ID.items()}
DTYPE_SIZE = dict(zip(DTYPES, (1, 1, 1, 2, 4, 8, 2, 2, 4, 8)))

_INT, _INTS, _FLOAT, _BOOL, _STRING, _DIMS = range(6)
ATTRS = {
    "axes": _INTS, "keepdims": _BOOL, "axis": _INT, "alpha": _FLOAT, "min": _FLOAT, "max": _FLOAT, "shape": _DIMS, "approximate": _STRING,
    "effects": _BOOL, "perm": _INTS, "starts": _DIMS, "stops": _DIMS, "steps": _INTS, "low": _DIMS, "high": _DIMS, "sizes": _DIMS,
    "start": _FLOAT, "step": _FLOAT, "exclusive": _BOOL, "reverse": _BOOL, "epsilon": _FLOAT, "groups": _INT, "correction": _FLOAT,
    "select_last": _BOOL, "depth": _INT, "diagonal": _INT, "repeats": _DIMS, "beta": _FLOAT, "gamma": _FLOAT,
}  # proto/fragment.h's AF_ATTRS; a test compares
_NUMERICS = {"strict": 0, "fast": 1}
_TWINS = {"default": 0, "fast": 1, "checked": 2}


class Node(NamedTuple):
    """A node as it was added: outputs are (name, dtype, shape, …)."""

    name: str
    op: str
    origin: str | None
    inputs: Sequence[str]
    outputs: Sequence[Output]
    attrs: dict[str, Any]


def choose(table: Mapping[str, int], name: str, what: str) -> int:
    """table[name], or Invalid with the names that there are."""
    if name not in table:
        raise Invalid(f"{name!r} is no {what}: " + ", ".join(table))
    return table[name]


class Arguments:
    """C memory of one call: what is made here lives as long as this does."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def string(self, value: str | None) -> Any:
        """char *, NULL for None."""
        if value is None:
            return ffi.NULL
        made = ffi.new("char[]", value.encode())
        self.kept.append(made)
        return made

    def array(self, kind: str, values: list[Any]) -> Any:
        """An array, never of length 0."""
        made = ffi.new(f"{kind}[]", values or 1)
        self.kept.append(made)
        return made

    def dim(self, value: Dim) -> tuple[int, Any]:
        """struct autofuse_dim."""
        return (0, self.string(value)) if isinstance(value, str) else (int(value), ffi.NULL)

    def dims(self, values: Sequence[Dim]) -> Any:
        """struct autofuse_dim *."""
        return self.array("struct autofuse_dim", [self.dim(v) for v in values])

    def tensor(self, name: str, dtype: str, shape: Sequence[Dim], strides: Sequence[Dim] | None = None) -> tuple[Any, ...]:
        """struct autofuse_tensor_spec."""
        if strides is not None and len(strides) != len(shape):
            raise Invalid(f"{name}: {len(strides)} strides for {len(shape)} dimensions")
        kind = choose(DTYPE_ID, dtype, "dtype")
        return self.string(name), kind, len(shape), self.dims(shape), ffi.NULL if strides is None else self.dims(strides)

    def attr(self, name: str, value: Any) -> tuple[Any, ...]:
        """struct autofuse_attr."""
        kind = choose(ATTRS, name, "attribute")
        i, f, s, ints, dims, n = 0, 0.0, ffi.NULL, ffi.NULL, ffi.NULL, 0
        if kind == _FLOAT and isinstance(value, int):
            kind, i = _INT, int(value)
        elif kind in (_INT, _BOOL):
            i = int(value)
        elif kind == _FLOAT:
            f = float(value)
        elif kind == _STRING:
            s = self.string(value)
        elif kind == _INTS:
            ints, n = self.array("int64_t", [int(v) for v in value]), len(value)
        else:
            dims, n = self.dims(value), len(value)
        return self.string(name), kind, i, f, s, ints, dims, n


class Fragment:
    """A fragment under construction, for one thread at a time. Once it is submitted, validated or asked for its digest it is fixed; then
    any thread may submit it, any number of times. What a node means is checked then, all mistakes at once."""

    def __init__(self, name: str = "fragment") -> None:
        made, error = ffi.new("struct autofuse_fragment **"), new_error()
        check(lib().autofuse_fragment_new(name.encode(), made, error), error)
        self.handle = ffi.gc(made[0], lib().autofuse_fragment_free)
        self.name = name
        self.symbols: list[str] = []
        self.inputs: list[str] = []
        self.nodes: list[Node] = []
        self.outputs: list[str] = []

    def target(self, soc: str | None = None, toolchain: str | None = None, twin: str = "default") -> "Fragment":
        """soc, toolchain: None for the server's default. twin ("default", "fast", "checked") is for the host toolchain."""
        a, error = Arguments(), new_error()
        mode = choose(_TWINS, twin, "twin")
        check(lib().autofuse_fragment_set_target(self.handle, a.string(soc), a.string(toolchain), mode, error), error)
        return self

    def numerics(self, mode: str) -> "Fragment":
        """"strict" or "fast" (docs/numerics.md)."""
        error = new_error()
        check(lib().autofuse_fragment_set_numerics(self.handle, choose(_NUMERICS, mode, "mode of numerics"), error), error)
        return self

    def symbol(self, name: str, min: int = 0, max: int = 2**63 - 1, multiple_of: int = 1, hint: int = -1) -> str:
        """A size known per call; before its first use. Returns the name."""
        error = new_error()
        check(lib().autofuse_fragment_add_symbol(self.handle, name.encode(), min, max, multiple_of, hint, error), error)
        self.symbols.append(name)
        return name

    def input(self, name: str, dtype: str, shape: Sequence[Dim], strides: Sequence[Dim] | None = None, offset: Dim = 0, align: int = 0,
              buffer: str | None = None, host: bool = False) -> str:
        """offset: elements from the pointer to the first element. align: bytes that the pointer keeps to. Inputs with one `buffer` share
        memory. host: a scalar that changes per call. Returns the name."""
        a, error = Arguments(), new_error()
        spec = a.array("struct autofuse_input_spec",
                       [(a.tensor(name, dtype, shape, strides), a.dim(offset), align, a.string(buffer), host)])
        check(lib().autofuse_fragment_add_input(self.handle, spec, error), error)
        self.inputs.append(name)
        return name

    def constant(self, name: str, dtype: str, shape: Sequence[int], data: Any) -> str:
        """data: little-endian elements, contiguous: bytes, or anything with the buffer protocol. Returns the name."""
        a, error = Arguments(), new_error()
        spec = a.array("struct autofuse_tensor_spec", [a.tensor(name, dtype, shape)])
        with memoryview(data) as view:
            n = view.nbytes
            check(lib().autofuse_fragment_add_constant(self.handle, spec, ffi.from_buffer(view) if n else ffi.NULL, n, error), error)
        return name

    def node(self, op: str, inputs: Sequence[str], outputs: Sequence[Output], attrs: Mapping[str, Any] | None = None,
             name: str | None = None, origin: str | None = None) -> tuple[str, ...]:
        """op: canonical ("add", "reduce_sum"), or "opaque" for what only the framework can do (attrs {"effects": True}: order matters).
        origin: the framework's name for it. Attributes that are None are left out. Returns the names of the outputs."""
        a, error = Arguments(), new_error()
        name = name or f"n{len(self.nodes)}"
        given = [a.attr(k, v) for k, v in (attrs or {}).items() if v is not None]
        spec = a.array("struct autofuse_node_spec", [(
            a.string(name), a.string(op), a.string(origin), a.array("char *", [a.string(i) for i in inputs]), len(inputs),
            a.array("struct autofuse_attr", given), len(given), a.array("struct autofuse_tensor_spec", [a.tensor(*o) for o in outputs]),
            len(outputs))])
        check(lib().autofuse_fragment_add_node(self.handle, spec, error), error)
        self.nodes.append(Node(name, op, origin, inputs, outputs, dict(attrs or {})))
        return tuple(o[0] for o in outputs)

    def output(self, value: str, strides: Sequence[Dim] | None = None, alias_of: str | None = None) -> None:
        """strides: kept exactly; None: as the value has them. alias_of: the input that this updates in place."""
        a, error = Arguments(), new_error()
        spec = a.array("struct autofuse_output_spec",
                       [(a.string(value), ffi.NULL if strides is None else a.dims(strides), len(strides or ()), a.string(alias_of))])
        check(lib().autofuse_fragment_add_output(self.handle, spec, error), error)
        self.outputs.append(value)

    def validate(self) -> None:
        """Checks all that submitting checks, and fixes the fragment. Invalid has one mistake a line."""
        error = new_error()
        check(lib().autofuse_fragment_validate(self.handle, error), error)

    def digest(self) -> str:
        """64 hex digits: the fragment's part of the key. Validates."""
        hex64, error = ffi.new("char[65]"), new_error()
        check(lib().autofuse_fragment_digest(self.handle, hex64, error), error)
        return str(ffi.string(hex64).decode())
