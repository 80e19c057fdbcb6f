"""Degrees of the rational functions that a program computes over a field.

The error probability of an identity test needs them (Schwartz and Zippel). Every s-op is a
quotient of polynomials in the input's values and in the *atoms*, the values of named functions,
each of which counts as a fresh variable. The degrees are upper bounds for all positions at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from raspire.arithmetic.field import BY_ABSOLUTE, PrimeField, Residue
from raspire.program.nodes import Aggregate, Apply, Constant, Node, Selector, SOp, Tokens
from raspire.program.walk import topological


@dataclass(frozen=True)
class Degree:
    """Degrees of numerator and denominator.

    >>> (Degree(1, 0) * Degree(1, 0)).over(Degree(2, 1))
    Degree(top=3, bottom=2)
    """

    top: int
    bottom: int

    def __mul__(self, other: Degree) -> Degree:
        return Degree(self.top + other.top, self.bottom + other.bottom)

    def __add__(self, other: Degree) -> Degree:
        top = max(self.top + other.bottom, other.top + self.bottom)
        return Degree(top, self.bottom + other.bottom)

    def over(self, other: Degree) -> Degree:
        """The quotient."""
        return Degree(self.top + other.bottom, self.bottom + other.top)

    def summed(self, terms: int) -> Degree:
        """A sum of so many different functions of this degree."""
        if terms <= 1:
            return self
        return Degree(self.top + (terms - 1) * self.bottom, terms * self.bottom)

    def joined(self, other: Degree) -> Degree:
        """A bound for either of two functions."""
        return Degree(max(self.top, other.top), max(self.bottom, other.bottom))


CONSTANT, VARIABLE = Degree(0, 0), Degree(1, 0)
EXACT = ("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "floordiv", "mod", "indicator")


def degrees(program: SOp, rows: Mapping[Node, int]) -> tuple[Degree, Degree]:
    """The degree of a merged program, and of the largest argument of a named function in it.

    ``rows`` gives for every selector the most keys that a query selects.
    """
    found: dict[Node, Degree] = {}
    arguments = CONSTANT
    for node in topological(program):
        if isinstance(node, Selector):
            continue
        if isinstance(node, Aggregate):
            found[node] = found[node.value].summed(rows[node.selector])
        elif isinstance(node, Tokens) or (isinstance(node, Constant) and irrational(node.value)):
            found[node] = VARIABLE
        elif isinstance(node, Apply):
            parts = [found[child] for child in node.args]
            found[node] = _apply(node.primitive.name, parts)
            if node.primitive.name not in RULES:
                arguments = arguments.joined(_argument(node.primitive.name, parts))
        else:
            found[node] = CONSTANT
    return found[program], arguments


def irrational(value: Any) -> bool:
    """Whether a constant is a random element in a field, and so a variable.

    >>> irrational(2**0.5), irrational(0.1)
    (True, False)
    """
    return isinstance(PrimeField().constant(value), Residue)


def _argument(name: str, parts: list[Degree]) -> Degree:
    """The degree of what a named function is applied to: of extremes, the difference."""
    found = parts[0]
    for part in parts[1:]:
        found = found + part if name in BY_ABSOLUTE else found.joined(part)
    return found


def _apply(name: str, parts: list[Degree]) -> Degree:
    if name in RULES:
        return RULES[name](*parts)
    if all(part == CONSTANT for part in parts) and name in EXACT:
        return CONSTANT
    if name in BY_ABSOLUTE:
        return _argument(name, parts) + VARIABLE
    # a fresh variable, or a quotient of two for exp(a - M)
    return Degree(1, 1) if name == "exp" else VARIABLE


RULES: dict[str, Callable[..., Degree]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a.over(b),
    "neg": lambda a: a,
    "pos": lambda a: a,
    "to_float": lambda a: a,
    "recip": lambda a: CONSTANT.over(a),
    "where": lambda c, x, y: x.joined(y),
}
