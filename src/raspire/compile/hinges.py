"""Functions of real numbers by ``relu`` alone, to an error that is certified.

A smooth function on an interval is replaced by the broken line through it at equal distances h;
the line is off by at most ``h^2 / 8`` times the greatest second derivative. A product is the
difference of two squares, ``((a + b)/2)^2 - ((a - b)/2)^2``. Absolute values, maxima and choices
by a truth value are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from raspire.compile.linear import Form, constant
from raspire.compile.naming import text_of
from raspire.errors import UnsupportedError
from raspire.program.nodes import Apply, SOp

if TYPE_CHECKING:
    from raspire.compile.resolve import Resolver

Terms = list[tuple[str, Form, Form, float]]
Curve = tuple[Callable[[float], float], float, float]

# The greatest second derivative and the greatest slope on the whole line.
SMOOTH: dict[str, Curve] = {
    "sin": (math.sin, 1.0, 1.0),
    "cos": (math.cos, 1.0, 1.0),
    "tanh": (math.tanh, 0.77, 1.0),
    "sigmoid": (lambda x: 0.5 * (1 + math.tanh(x / 2)), 0.0963, 0.25),
    "erf": (math.erf, 0.968, 1.1284),
}


@dataclass(frozen=True)
class Broken:
    """Units of a broken line, its distance from the function, and the slopes for its arguments."""

    terms: Terms
    error: float
    slopes: list[tuple[Form, float]]


def broken(node: Apply, resolver: Resolver, pieces: int) -> Broken:
    """The function of a node as relu units with so many pieces for every curve.

    Raises UnsupportedError where it jumps, or where an argument is not bounded.
    """
    name, args = node.primitive.name, node.args
    if name == "where":
        return _where(args, resolver)
    numbers = [resolver.number(a) for a in args]
    if name in ("abs", "relu", "maximum", "minimum"):
        return _exact(name, numbers)
    if name == "mul":
        return _product(node, numbers, resolver, pieces)
    if name in SMOOTH or name in ("exp", "recip"):
        low, high = _bounds(node, args[0], resolver)
        curve, bend, slope = _curve(name, low, high, node)
        line = _line(curve, numbers[0], low, high, pieces)
        step = (high - low) / pieces
        return Broken(line, bend * step * step / 8, [(numbers[0], slope)])
    raise UnsupportedError(
        f"{text_of(node)} has no broken line",
        where=node.place,
        expected="+ - *, /, exp, recip, abs, maximum, minimum, where on a truth value, "
        + ", ".join(sorted(SMOOTH)),
        hint="compile without relu_error: gated units compute it exactly",
    )


def _bounds(node: Apply, argument: SOp, resolver: Resolver) -> tuple[float, float]:
    domain = resolver.domain(argument)
    if not (domain.numeric and math.isfinite(domain.low) and math.isfinite(domain.high)):
        raise UnsupportedError(
            f"{text_of(node)} has no broken line: {text_of(argument)} is not bounded",
            where=node.place,
            found=str(domain),
            hint="compile with alphabet=Real(low, high)",
        )
    return domain.low, domain.high


def _curve(name: str, low: float, high: float, node: Apply) -> Curve:
    if name == "exp":
        return math.exp, math.exp(high), math.exp(high)
    if name in SMOOTH:
        return SMOOTH[name]
    if low <= 0 <= high:
        raise UnsupportedError(
            f"{text_of(node)} has no broken line: its argument may be 0",
            where=node.place,
            found=f"[{low:g}, {high:g}]",
        )
    near = min(abs(low), abs(high))
    return (lambda x: 1 / x), 2 / near**3, 1 / near**2


def _line(
    curve: Callable[[float], float], form: Form, low: float, high: float, pieces: int
) -> Terms:
    """The broken line through the curve at ``pieces + 1`` points."""
    points = np.linspace(low, high, pieces + 1)
    values = np.array([curve(float(x)) for x in points])
    slopes = np.diff(values) / np.diff(points)
    start = float(values[0] - slopes[0] * low)
    terms = [*_straight(form * float(slopes[0])), _unit(constant(1), start)]
    for point, bend in zip(points[1:-1], np.diff(slopes), strict=True):
        terms.append(_unit(form - constant(float(point)), float(bend)))
    return terms


def _unit(form: Form, weight: float) -> tuple[str, Form, Form, float]:
    return "relu", form, Form(), weight


def _straight(form: Form, weight: float = 1.0) -> Terms:
    """The form itself: ``relu(x) - relu(-x)``."""
    return [_unit(form, weight), _unit(-form, -weight)]


def _product(node: Apply, numbers: list[Form], resolver: Resolver, pieces: int) -> Broken:
    a, b = numbers
    reach = [max(map(abs, _bounds(node, argument, resolver))) for argument in node.args]
    half = sum(reach) / 2
    plus = _line(_square, (a + b) * 0.5, -half, half, pieces)
    minus = _line(_square, (a - b) * 0.5, -half, half, pieces)
    step = 2 * half / pieces
    terms = plus + [(family, x, y, -weight) for family, x, y, weight in minus]
    slopes = [(a, reach[1] + step), (b, reach[0] + step)]
    return Broken(terms, step * step / 4, slopes)


def _square(x: float) -> float:
    return x * x


def _exact(name: str, numbers: list[Form]) -> Broken:
    slopes = [(form, 1.0) for form in numbers]
    if name == "relu":
        return Broken([_unit(numbers[0], 1.0)], 0.0, slopes)
    if name == "abs":
        return Broken([_unit(numbers[0], 1.0), _unit(-numbers[0], 1.0)], 0.0, slopes)
    a, b = numbers
    above = _unit(b - a, 1.0) if name == "maximum" else _unit(a - b, -1.0)
    return Broken([*_straight(a), above], 0.0, slopes)


def _where(args: tuple[SOp, ...], resolver: Resolver) -> Broken:
    """``no + relu(d - M (1 - c)) - relu(-d - M (1 - c))`` with ``d = yes - no``, ``|d| <= M``."""
    condition, yes, no = args
    domain = resolver.finite(condition)
    if domain is None or not set(domain.values) <= {0, 1}:
        raise UnsupportedError(
            f"a choice by {text_of(condition)} jumps, and no broken line does",
            where=condition.place,
            expected="a condition on positions, symbols or counts",
        )
    c, a, b = (resolver.number(x) for x in args)
    reach = sum(max(map(abs, _bounds_of(x, resolver))) for x in (yes, no)) + 1
    closed = (constant(1) - c) * reach
    chosen = [_unit(a - b - closed, 1.0), _unit(b - a - closed, -1.0)]
    return Broken([*_straight(b), *chosen], 0.0, [(a, 1.0), (b, 1.0)])


def _bounds_of(node: SOp, resolver: Resolver) -> tuple[float, float]:
    domain = resolver.domain(node)
    if not (math.isfinite(domain.low) and math.isfinite(domain.high)):
        raise UnsupportedError(
            f"a choice between values that are not bounded: {text_of(node)}",
            where=node.place,
            found=str(domain),
            hint="compile with alphabet=Real(low, high)",
        )
    return domain.low, domain.high
