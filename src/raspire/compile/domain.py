"""Value domains: what an s-op can be, from the alphabet and the maximal length alone.

A domain is a finite set of values, a set of rationals with bounded denominators that is too large
to list, or a real interval. Values that Python calls equal (1, 1.0, True) are one value. A domain
may be too large; it is never too small, which is what certificates rest on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raspire.errors import UnsupportedError

LISTED = 60_000
"""The most values that are listed one by one."""

Vector: TypeAlias = NDArray[np.float64]


class _Undefined:
    """The result of a function where it has none; no input reaches it without an error."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = _Undefined()


@dataclass(frozen=True)
class Finite:
    """A listed set of values, numbers in ascending order before everything else."""

    values: tuple[Any, ...]

    @cached_property
    def place(self) -> dict[Any, int]:
        return {value: i for i, value in enumerate(self.values)}

    @cached_property
    def numeric(self) -> bool:
        return all(is_number(v) for v in self.values)

    @cached_property
    def whole(self) -> bool:
        """Whether every value is an integer (or a truth value)."""
        return all(isinstance(v, int) for v in self.values)

    @cached_property
    def floats(self) -> Vector:
        """The values as floats; they have to stay apart."""
        numbers = np.array([float(v) for v in self.values])
        if (np.diff(numbers) == 0).any():
            raise UnsupportedError(
                "two values of one expression are the same float",
                found=str(self),
                hint="smaller numbers, or symbols (strings) in their place",
            )
        return numbers

    @property
    def low(self) -> float:
        return float(self.values[0])

    @property
    def high(self) -> float:
        return float(self.values[-1])

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.values[:6]))
        return f"{{{shown}{', ...' if len(self.values) > 6 else ''}}} ({len(self.values)} values)"


@dataclass(frozen=True)
class Ratio:
    """Rationals p/q from ``low`` to ``high`` with q at most ``denominator``; none is None."""

    low: float
    high: float
    denominator: int
    numeric = True

    def __str__(self) -> str:
        return f"rationals in [{self.low:g}, {self.high:g}] with denominators to {self.denominator}"


@dataclass(frozen=True)
class Real:
    """A real interval."""

    low: float = -math.inf
    high: float = math.inf
    numeric = True

    def __str__(self) -> str:
        return f"reals in [{self.low:g}, {self.high:g}]"


Domain: TypeAlias = Finite | Ratio | Real


def is_number(value: Any) -> bool:
    """Whether the value is a bool, an int, a float or a rational."""
    return isinstance(value, int | float | Fraction)


def simplest(value: Any) -> Any:
    """A whole fraction or float as an int; everything else as it is."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def finite(values: Iterable[Any]) -> Finite:
    """The set of some values; truth values become numbers where numbers are among them.

    >>> finite([True, 2, 1.0, "b"]).values
    (1, 2, 'b')
    """
    known = list(dict.fromkeys(simplest(v) for v in values if v is not UNDEFINED))
    numbers = [v for v in known if is_number(v)]
    others = [v for v in known if not is_number(v)]
    if not all(isinstance(v, bool) for v in numbers):
        numbers = [int(v) if isinstance(v, bool) else v for v in numbers]
    return Finite((*sorted(numbers), *sorted(others, key=_rank)))


def _rank(value: Any) -> tuple[str, str]:
    return ("" if value is None else type(value).__name__, repr(value))


def mean_of(domain: Domain, most: int) -> Domain:
    """Every mean of at least one and at most ``most`` values of a numeric domain.

    >>> mean_of(Finite((0, 1)), 3).values
    (0, Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), 1)
    """
    if isinstance(domain, Real):
        return domain
    if isinstance(domain, Ratio):
        return _bounded(domain.low, domain.high, domain.denominator**most * most)
    unit = _common_denominator(domain.values)
    if unit is None:
        return Real(domain.low, domain.high)
    whole = [int(Fraction(v) * unit) for v in domain.values]
    step = math.gcd(*(v - whole[0] for v in whole)) or 1
    spread = (whole[-1] - whole[0]) // step
    if spread * most * (most + 1) // 2 + most > LISTED:
        return _bounded(domain.low, domain.high, most * unit)
    return finite(
        Fraction(m * whole[0] + step * t, m * unit)
        for m in range(1, most + 1)
        for t in range(m * spread + 1)
    )


def _common_denominator(values: Iterable[Any]) -> int | None:
    """The least common denominator, or None where it passes ten thousand."""
    unit = 1
    for value in values:
        unit = math.lcm(unit, Fraction(value).denominator)
        if unit > 10_000:
            return None
    return unit


def _bounded(low: float, high: float, denominator: int) -> Domain:
    """Integers are listed where they are not too many, rationals bounded."""
    if denominator == 1 and high - low < LISTED:
        return Finite(tuple(range(int(low), int(high) + 1)))
    return Ratio(low, high, denominator) if denominator < 2**40 else Real(low, high)


def denominator_of(domain: Domain) -> int | None:
    """A bound of the denominators of a numeric domain's values, None where there is none."""
    if isinstance(domain, Ratio):
        return domain.denominator
    if isinstance(domain, Real):
        return None
    return max((Fraction(v).denominator for v in domain.values), default=1)


def combine(name: str, left: Domain, right: Domain) -> Domain:
    """The domain of a sum, difference or product of domains that are too large to list."""
    ends = [_OPERATIONS[name](a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    known = [0.0 if math.isnan(e) else e for e in ends]
    a, b = denominator_of(left), denominator_of(right)
    if a is None or b is None:
        return Real(min(known), max(known))
    return _bounded(min(known), max(known), a * b)


_OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}
