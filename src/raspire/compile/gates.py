"""Named functions of numbers as gated units: exact in real arithmetic, one layer each.

A unit is ``first * gate(second)``. Its value at the beginning of sequence is 0: ``first`` is 0
there, and ``second`` is raised to 1 where the gate needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raspire.compile.linear import BOS, Form, constant, of
from raspire.compile.naming import text_of
from raspire.errors import UnsupportedError
from raspire.program.nodes import Apply, SOp

if TYPE_CHECKING:
    from raspire.compile.resolve import Resolver

Terms = list[tuple[str, Form, Form, float]]

UNARY = {
    "exp", "log", "sqrt", "recip", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid", "silu", "gelu",
    "floor",
}  # fmt: skip
COMPARED = {
    "lt": [("step", -1, 1)], "gt": [("step", 1, 1)], "ge": [("step", -1, -1)],
    "le": [("step", 1, -1)], "eq": [("zero", 1, 1)], "ne": [("zero", 1, -1)],
}  # fmt: skip
JUMPS = {*COMPARED, "floor", "ceil", "indicator", "to_bool", "not"}
NAMED = UNARY | set(COMPARED) | {
    "mul", "div", "abs", "relu", "maximum", "minimum", "where", "ceil", "indicator", "to_bool",
    "not", "and", "or",
}  # fmt: skip


def gate_terms(node: Apply, resolver: Resolver, exact: bool) -> Terms:
    """The units that add up to a function of numbers: (family, first, second, weight)."""
    name, args = node.primitive.name, node.args
    if name in JUMPS:
        _check_decidable(node, resolver)
    if name in UNARY:
        return [(f"gated:{name}", constant(1), resolver.number(args[0]) + of(BOS), 1.0)]
    if name == "where":
        return _where(args, resolver, exact)
    if name == "mul":
        return [_product(args[0], args[1], resolver, exact)]
    numbers = [resolver.number(a, exact) for a in args]
    if name == "div":
        return [("gated:recip", numbers[0], numbers[1] + of(BOS), 1.0)]
    if name in COMPARED:
        return _compared(name, numbers[0] - numbers[1], constant(1))
    if name in ("indicator", "to_bool", "not"):
        return _compared("eq" if name == "not" else "ne", numbers[0], constant(1))
    if name == "and":
        return [("bilinear", numbers[0], numbers[1], 1.0)]
    if name == "or":
        both = ("bilinear", numbers[0], numbers[1], -1.0)
        return [_linear(numbers[0]), _linear(numbers[1]), both]
    if name == "ceil":
        return [("gated:floor", constant(1), -numbers[0], -1.0)]
    return _by_relu(name, numbers)


def _check_decidable(node: Apply, resolver: Resolver) -> None:
    """A jump may lie anywhere on the reals, but not where symbols give numbers that are rounded."""
    if isinstance(resolver.alphabet, tuple):
        raise UnsupportedError(
            f"{text_of(node)} cannot be certified: its arguments may come arbitrarily close to "
            "where it jumps",
            where=node.place,
            expected="whole numbers, or rationals with bounded denominators",
            found="; ".join(f"{text_of(a)}: {resolver.domain(a)}" for a in node.args),
            hint="compare counts (selector_width) instead of means of means",
        )


def _product(a: SOp, b: SOp, resolver: Resolver, exact: bool) -> tuple[str, Form, Form, float]:
    """A product; ``a * exp(b)`` is one unit, and so is any named function of a real times ``a``."""
    for first, second in ((a, b), (b, a)):
        if isinstance(second, Apply) and resolver.is_gate(second):
            inner = resolver.number(second.args[0]) + of(BOS)
            return f"gated:{second.primitive.name}", resolver.number(first), inner, 1.0
    return "bilinear", resolver.number(a, exact), resolver.number(b, exact), 1.0


def _by_relu(name: str, numbers: list[Form]) -> Terms:
    nothing = Form()
    if name == "relu":
        return [("relu", numbers[0], nothing, 1.0)]
    if name == "abs":
        return [("relu", numbers[0], nothing, 1.0), ("relu", -numbers[0], nothing, 1.0)]
    a, b = numbers
    if name == "maximum":
        return [_linear(a), ("relu", b - a, nothing, 1.0)]
    return [_linear(a), ("relu", a - b, nothing, -1.0)]


def _linear(form: Form) -> tuple[str, Form, Form, float]:
    return "linear", form, Form(), 1.0


def _compared(name: str, difference: Form, factor: Form) -> Terms:
    """The truth of a comparison with 0, times a factor."""
    terms: Terms = []
    for gate, sign, weight in COMPARED[name]:
        if weight < 0:
            terms.append(("linear", factor, Form(), 1.0))
        terms.append((f"gated:{gate}", factor, difference * sign, float(weight)))
    return terms


def _where(args: tuple[SOp, ...], resolver: Resolver, exact: bool) -> Terms:
    """``no + (yes - no) * condition``; a comparison of reals is the gate itself."""
    condition, yes, no = args
    if isinstance(condition, Apply) and resolver.opens_gate(condition):
        _check_decidable(condition, resolver)
    a, b = resolver.number(yes, exact), resolver.number(no, exact)
    if isinstance(condition, Apply) and resolver.opens_gate(condition):
        x, y = (resolver.number(c) for c in condition.args)
        return [_linear(b), *_compared(condition.primitive.name, x - y, a - b)]
    return [_linear(b), ("bilinear", a - b, resolver.number(condition, exact), 1.0)]
