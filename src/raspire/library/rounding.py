"""Running bounds on rounding errors: a float beside a bound on how far it is from the truth.

After Higham, *Accuracy and Stability of Numerical Algorithms* (running error analysis): every
operation adds its own rounding to what it inherits. The bound holds for any order of summation,
so for every engine that may have evaluated the program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

UNITS = {"float64": 2.0**-53, "float32": 2.0**-24}
TINY = 1e-300  # what underflow may cost, and what makes a bound of a computed bound
SLACK = 1 + 1e-9  # the bounds are themselves computed in binary64


@dataclass(frozen=True)
class Running:
    """Values, a bound on the error of each, and the unit roundoff they are computed with."""

    value: Array
    error: Array
    unit: float

    @staticmethod
    def exact(value: Any, unit: float) -> Running:
        """Values that are as they were given, up to one rounding into the arithmetic.

        >>> float(Running.exact([0.5], 2.0**-53).error[0]) < 1e-15
        True
        """
        array = np.asarray(value, dtype=np.float64)
        return Running(array, unit * np.abs(array), unit)

    def _rounded(self, value: Array, inherited: Array, size: Array | None = None) -> Running:
        made = np.abs(value) if size is None else size
        return Running(value, (inherited + self.unit * made) * SLACK + TINY, self.unit)

    def __add__(self, other: Running) -> Running:
        return self._rounded(self.value + other.value, self.error + other.error)

    def __sub__(self, other: Running) -> Running:
        return self + -other

    def __neg__(self) -> Running:
        return Running(-self.value, self.error, self.unit)

    def __mul__(self, other: Running) -> Running:
        inherited = (
            np.abs(self.value) * other.error
            + self.error * np.abs(other.value)
            + self.error * other.error
        )
        return self._rounded(self.value * other.value, inherited)

    def __truediv__(self, other: Running) -> Running:
        """The quotient; its bound is infinite where the divisor may be zero."""
        safe = np.abs(other.value) - other.error
        with np.errstate(all="ignore"):
            value = self.value / other.value
            inherited = np.where(
                safe > 0, (self.error + np.abs(value) * other.error) / safe, np.inf
            )
        # two roundings: a reciprocal, then a product
        return self._rounded(value, inherited, 2 * np.abs(value))

    def __matmul__(self, other: Running) -> Running:
        terms = self.value.shape[-1]
        size = np.abs(self.value) @ np.abs(other.value)
        inherited = (
            np.abs(self.value) @ other.error
            + self.error @ np.abs(other.value)
            + self.error @ other.error
        )
        # products, sums, and in the long form a mean and a scaling
        return self._rounded(self.value @ other.value, inherited, (terms + 8) * size)

    def trace(self) -> Running:
        """The trace as a mean of the diagonal, scaled."""
        terms = len(self.value)
        size = np.abs(np.diag(self.value)).sum()
        inherited = np.diag(self.error).sum()
        return self._rounded(np.trace(self.value), inherited, (terms + 8) * size)

    def scaled(self, factor: float) -> Running:
        """The product with an exact number."""
        return self._rounded(
            self.value * factor, self.error * abs(factor), 2 * abs(self.value * factor)
        )

    @property
    def worst(self) -> float:
        """The largest bound."""
        return float(np.max(self.error))


Bound = Callable[..., float]
