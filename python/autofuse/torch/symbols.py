# SPDX-License-Identifier: Apache-2.0
"""Sizes that PyTorch keeps as sympy expressions, as the expressions that a fragment knows (+ - * // % max min over symbols)."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Union

import sympy
import torch

Dim = Union[int, str]

MAX_SIZE = 2**31 - 1  # where PyTorch knows no upper bound; beyond it a call runs eager


class Unsupported(Exception):
    """A size that no fragment can express; the text says which."""


def _product(parts: list[str]) -> str:
    return "*".join(parts) if parts else "1"


def _power(expr: sympy.Expr) -> str:
    base, exponent = expr.args
    if not exponent.is_Integer or int(exponent) < 0 or int(exponent) > 8:
        raise Unsupported(f"the size {expr} is no polynomial of the symbols")
    return _product([f"({text(base)})"] * int(exponent))


def _floor_div(expr: sympy.Expr) -> str:
    whole = sympy.cancel(expr.args[0] / expr.args[1])
    if whole.is_polynomial() and all(c.is_Integer for c in sympy.Poly(whole, *whole.free_symbols).coeffs() if whole.free_symbols):
        return text(whole)  # (s0*s1)//s1
    return f"(({text(expr.args[0])})//({text(expr.args[1])}))"


def _remainder(expr: sympy.Expr) -> str:
    return f"(({text(expr.args[0])})%({text(expr.args[1])}))"


def _modular_indexing(expr: sympy.Expr) -> str:
    base, divisor, modulus = expr.args
    return f"((({text(base)})//({text(divisor)}))%({text(modulus)}))"


def _call(name: str) -> Callable[[sympy.Expr], str]:
    return lambda expr: f"{name}({','.join(text(a) for a in expr.args)})"


_FUNCTIONS: dict[str, Callable[[sympy.Expr], str]] = {
    "FloorDiv": _floor_div,
    "CleanDiv": _floor_div,
    "Mod": _remainder,
    "PythonMod": _remainder,
    "ModularIndexing": _modular_indexing,
    "Max": _call("max"),
    "Min": _call("min"),
}


def text(expr: sympy.Expr) -> str:
    """A sympy size as a fragment's expression; raises Unsupported."""
    if expr.is_Integer:
        return str(int(expr)) if int(expr) >= 0 else f"(0-{-int(expr)})"
    if expr.is_Symbol:
        return str(expr.name)
    if expr.is_Add:
        return "(" + "+".join(text(a) for a in expr.args) + ")"
    if expr.is_Mul:
        return _product([f"({text(a)})" for a in expr.args])
    if expr.is_Pow:
        return _power(expr)
    function = _FUNCTIONS.get(type(expr).__name__)
    if function is None:
        raise Unsupported(f"the size {expr} has {type(expr).__name__}, which sizes do not know")
    return function(expr)


def symint_expr(size: torch.SymInt) -> sympy.Expr:
    """The expression behind a SymInt, with what is already known put in. Adds no guard."""
    node = size.node
    expr = node.shape_env.replace(node.expr) if node.shape_env is not None else node.expr
    return sympy.sympify(expr)


def dim(size: Any) -> Dim:
    """An int or a SymInt as a dimension of a fragment. Adds no guard."""
    if isinstance(size, torch.SymInt):
        expr = symint_expr(size)
        return int(expr) if expr.is_Integer else text(expr)
    return int(size)


def dims(sizes: Any) -> tuple[Dim, ...]:
    """The same for a list of sizes."""
    return tuple(dim(s) for s in sizes)


def evaluate(expr: Dim, values: Mapping[str, int]) -> int:
    """What a dimension is where the symbols have these values."""
    if isinstance(expr, int):
        return expr
    return int(eval(compile(expr, "<size>", "eval"), {"__builtins__": {}, "max": max, "min": min}, dict(values)))  # noqa: S307


def bounds(shape_env: Any, symbol: sympy.Symbol) -> tuple[int, int]:
    """The range that the shape environment has for a symbol, without adding a guard."""
    known = shape_env.var_to_range.get(symbol)
    low, high = 0, MAX_SIZE
    if known is not None:
        low = int(known.lower) if known.lower.is_Integer else 0
        high = int(known.upper) if known.upper.is_Integer else MAX_SIZE
    return max(low, 0), min(high, MAX_SIZE)
