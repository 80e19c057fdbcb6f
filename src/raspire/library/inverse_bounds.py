"""What floating point leaves of a matrix program: running bounds, refusals where they are useless.

A bound takes the matrices and the arithmetic's name, returns the largest error of an entry, and
raises RaspValueError where that exceeds ``tolerance`` (relative to the largest entry), or
RaspZeroDivisionError where the matrix, taken exactly, is singular.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from raspire.errors import RaspValueError
from raspire.library.layout import singular
from raspire.library.rounding import UNITS, Bound, Running


def _running(A: Any, arithmetic: str) -> tuple[Any, Any]:
    """The adjugate (up to its sign) and the last coefficient, each with its running bound."""
    matrix = Running.exact(A, UNITS[arithmetic])
    identity = Running(np.eye(len(matrix.value)), np.zeros(matrix.value.shape), matrix.unit)
    power, adjugate = matrix, identity
    last = -power.trace()
    for k in range(2, len(matrix.value) + 1):
        adjugate = power + last * identity
        power = matrix @ power + last * matrix
        last = (-power.trace()).scaled(1 / k)
    return adjugate, last


def _refused(name: str, bound: float, scale: float, tolerance: float) -> RaspValueError:
    return RaspValueError(
        f"{name}: floating point leaves too few digits of this result",
        expected=f"an error bound of at most {tolerance:g} of {scale:.3g}",
        found=f"a bound of {bound:.3g}",
        hint='run it with arithmetic="exact", or allow a larger tolerance',
    )


def _useful(name: str, result: Any, tolerance: float) -> float:
    scale = float(np.max(np.abs(result.value)))
    if not result.worst <= tolerance * scale:
        raise _refused(name, result.worst, scale, tolerance)
    return float(result.worst)


def bound_of_inverse(tolerance: float) -> Bound:
    """The bound of an inverse by the recursion."""

    @np.errstate(all="ignore")  # what overflows is refused
    def bound(A: Any, *, arithmetic: str = "float64") -> float:
        adjugate, last = _running(A, arithmetic)
        if abs(last.value) <= last.error and _exactly_singular(A):
            raise singular("inverse")
        return _useful("inverse", adjugate / last, tolerance)

    return bound


def bound_of_cofactors(tolerance: float) -> Bound:
    """The bound of a 3×3 inverse by cofactors."""

    @np.errstate(all="ignore")  # what overflows is refused
    def bound(A: Any, *, arithmetic: str = "float64") -> float:
        entries = np.asarray(A, dtype=np.float64)

        def near(u: int, v: int) -> Running:
            turned = np.roll(entries.T, (-v, -u), (0, 1))
            return Running.exact(turned, UNITS[arithmetic])

        cofactors = [
            near(1, (v + 1) % 3) * near(2, (v + 2) % 3)
            - near(1, (v + 2) % 3) * near(2, (v + 1) % 3)
            for v in range(3)
        ]
        products = [near(0, v) * cofactors[v] for v in range(3)]
        det = products[0] + products[1] + products[2]
        if np.any(np.abs(det.value) <= det.error) and _exactly_singular(A):
            raise singular("inverse 3x3")
        return _useful("inverse 3x3", cofactors[0] / det, tolerance)

    return bound


def bound_of_solution(tolerance: float) -> Bound:
    """The bound of the solution of a linear system."""

    @np.errstate(all="ignore")  # what overflows is refused
    def bound(A: Any, b: Any, *, arithmetic: str = "float64") -> float:
        adjugate, last = _running(A, arithmetic)
        if abs(last.value) <= last.error and _exactly_singular(A):
            raise singular("linear system")
        product = adjugate @ Running.exact(b, adjugate.unit)
        return _useful("linear system", product / last, tolerance)

    return bound


def bound_of_determinant(tolerance: float) -> Bound:
    """The bound of a determinant by the recursion, relative to the product of the rows' lengths."""

    @np.errstate(all="ignore")  # what overflows is refused
    def bound(A: Any, *, arithmetic: str = "float64") -> float:
        _, last = _running(A, arithmetic)
        hadamard = float(np.prod(np.linalg.norm(np.asarray(A, dtype=np.float64), axis=1)))
        if not last.worst <= tolerance * hadamard:
            raise _refused("determinant", last.worst, hadamard, tolerance)
        return float(last.worst)

    return bound


def _exactly_singular(A: Any) -> bool:
    """Whether the matrix, taken exactly, has determinant 0: elimination over the rationals."""
    rows = [[Fraction(x) for x in row] for row in (A.tolist() if hasattr(A, "tolist") else A)]
    for k in range(len(rows)):
        pivot = next((row for row in rows[k:] if row[k]), None)
        if pivot is None:
            return True
        rows.remove(pivot)
        rows.insert(k, pivot)
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / pivot[k]
            rows[i] = [x - factor * y for x, y in zip(rows[i], pivot, strict=True)]
    return False
