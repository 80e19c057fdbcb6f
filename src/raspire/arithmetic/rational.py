"""Exact rationals: Python ints and fractions; a float enters by its exact value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from raspire.arithmetic.interface import Arithmetic, Record
from raspire.errors import RaspValueError, UnsupportedError


def simplest(value: Any) -> Any:
    """A whole fraction becomes an int; anything else stays.

    >>> simplest(Fraction(4, 2)), simplest(Fraction(1, 2))
    (2, Fraction(1, 2))
    """
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    return value


class Rational(Arithmetic):
    """The field of rationals; named functions (exp, sqrt, ...) have no form in it."""

    name = "exact"

    def lift(self, value: Any) -> Any:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise RaspValueError("there is no rational for this float", found=repr(value))
            return simplest(Fraction(value))
        return simplest(value)

    def form(self, record: Record) -> Callable[..., Any]:
        exact = record.exact
        if exact is None:
            raise UnsupportedError(
                f"{record.name} has no form in exact rational arithmetic",
                found=record.name,
                hint="use the arithmetic float64 or ball",
            )
        return lambda *values: self.lift(exact(*values))

    def mean(self, values: Sequence[Any]) -> Any:
        return simplest(Fraction(sum(values)) / len(values))

    def quotient(self, total: Any, count: int) -> Any:
        return simplest(Fraction(total) / count)

    def number(self, value: Any) -> bool:
        return isinstance(value, int | Fraction)


EXACT = Rational()
