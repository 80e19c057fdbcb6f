"""Lipschitz and Hölder functions on a box, within any error, as programs (universal approximation).

With grid points ``x_k`` of covering radius δ in the sup norm, and a function with
``|f(x) - f(y)| <= L |x - y|^α``, the lower extension ``max_k (f(x_k) - L |x - x_k|^α)`` and the
upper one ``min_k (f(x_k) + L |x - x_k|^α)`` enclose f, and their mean is within ``L δ^α`` of it.
One position holds one grid point; MaxMin (Lemma 7) takes the maximum and the minimum. The size is
the covering number of the box: it is stated before anything is built, and a request beyond the
budget is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

from raspire.errors import BudgetError, RaspValueError
from raspire.library.layout import fetch, total
from raspire.program.embedding import (
    aggregate,
    apply,
    hardmax,
    indicator,
    indices,
    lookup,
    maximum,
    select,
    sqrt,
    tokens,
)
from raspire.program.facts import Cost, cost
from raspire.program.nodes import SOp

Box: TypeAlias = Sequence[tuple[float, float]]
BUDGET = 100_000
SOURCE = "universal approximation"


@dataclass(frozen=True)
class Grid:
    """A covering of a box: ``counts[a]`` points along axis a, each in the middle of its cell.

    >>> Grid(((0.0, 1.0), (0.0, 2.0)), (2, 4)).points
    8
    """

    box: tuple[tuple[float, float], ...]
    counts: tuple[int, ...]

    @property
    def points(self) -> int:
        """How many points: the covering number of this grid."""
        return math.prod(self.counts)

    @property
    def radius(self) -> float:
        """The covering radius in the sup norm."""
        sides = zip(self.box, self.counts, strict=True)
        return max((high - low) / (2 * count) for (low, high), count in sides)

    def axis(self, index: int) -> list[float]:
        """The coordinates along one axis."""
        (low, high), count = self.box[index], self.counts[index]
        return [low + (high - low) * (2 * k + 1) / (2 * count) for k in range(count)]

    def __iter__(self) -> Any:
        return iter(product(*(self.axis(a) for a in range(len(self.box)))))


def covering(box: Box, *, lipschitz: float, eps: float, alpha: float = 1.0) -> Grid:
    """The grid that :func:`approximate` would use: its size, without building anything.

    Raises RaspValueError for a box, a constant or an exponent that makes no sense.

    >>> covering([(0, 1)], lipschitz=2, eps=0.1).points
    10
    """
    sides = tuple((float(low), float(high)) for low, high in box)
    _check(sides, lipschitz, eps, alpha)
    counts = tuple(_count(high - low, lipschitz, eps, alpha) for low, high in sides)
    return Grid(sides, counts)


def _count(side: float, lipschitz: float, eps: float, alpha: float) -> int:
    """The least number of cells of a side whose half width keeps the promise, up to rounding."""
    if lipschitz == 0 or side == 0:
        return 1
    ratio: float = (lipschitz / eps) ** (1 / alpha)
    least = math.floor(side / 2 * ratio * (1 - 1e-9))
    count = max(1, least)
    while lipschitz * (side / (2 * count)) ** alpha > eps * (1 + 1e-12):
        count += 1
    return count


@dataclass(frozen=True)
class Approximation:
    """A program within ``bound`` of a function on a box, in real arithmetic.

    ``rounding`` is what binary64 may add. The point is written at the first positions, one
    coordinate a token; N positions in all, the rest 0. The result is read at the first ``outputs``
    positions.
    """

    program: SOp
    grid: Grid
    bound: float
    rounding: float
    outputs: int
    length: int

    @property
    def cost(self) -> Cost:
        """What the program costs as a transformer."""
        return cost(self.program)

    def encode(self, point: Sequence[float]) -> list[float]:
        """The input sequence for a point of the box.

        Raises RaspValueError for a point outside it: there nothing is promised.
        """
        inside = len(point) == len(self.grid.box) and all(
            low <= x <= high for x, (low, high) in zip(point, self.grid.box, strict=True)
        )
        if not inside:
            raise RaspValueError(
                "the point is outside the box of this approximation",
                expected=" x ".join(f"[{low:g}, {high:g}]" for low, high in self.grid.box),
                found=str(tuple(point)),
            )
        return [*map(float, point), *[0.0] * (self.length - len(point))]

    def __call__(self, *point: float, **options: Any) -> Any:
        """The value at a point; a list of them for a sequence-to-sequence map."""
        values = self.program(self.encode(point), positions=list(range(self.outputs)), **options)
        return values[0] if self.outputs == 1 else values


def approximate(
    function: Callable[..., Any],
    box: Box,
    *,
    lipschitz: float,
    eps: float,
    alpha: float = 1.0,
    outputs: int = 1,
    budget: int = BUDGET,
) -> Approximation:
    """A program within eps of a function on a box, in the sup norm.

    The function takes one number per side of the box and satisfies
    ``|f(x) - f(y)| <= lipschitz * max|x_a - y_a|^alpha`` in every output (this is believed, not
    checked, except on neighbouring grid points); with ``outputs`` > 1 it returns a sequence, and
    the program maps a sequence to a sequence. Raises BudgetError, before building, if the grid
    needs more than ``budget`` points.

    >>> line = approximate(lambda x: abs(x - 0.3), [(0, 1)], lipschitz=1, eps=0.05)
    >>> line.grid.points, abs(line(0.8) - 0.5) <= line.bound
    (10, True)
    """
    grid = covering(box, lipschitz=lipschitz, eps=eps, alpha=alpha)
    if grid.points > budget:
        raise BudgetError(
            "the approximation needs more grid points than the budget",
            expected=f"at most {budget} points",
            found=f"{' x '.join(map(str, grid.counts))} = {grid.points} points",
            hint="allow a larger eps or a larger budget",
        )
    values = _values(function, grid, outputs)
    _check_neighbours(values, grid, lipschitz, alpha)
    length = max(grid.points, len(box), outputs)
    return Approximation(
        _program(values, grid, lipschitz, alpha),
        grid,
        float(lipschitz * grid.radius**alpha),
        _rounding(values, grid, lipschitz, alpha),
        outputs,
        length,
    )


def _rounding(values: list[list[float]], grid: Grid, lipschitz: float, alpha: float) -> float:
    """Coordinates, their differences, the power, the cone and the mean, each rounded once."""
    unit = 2.0**-53
    reach = max(max(abs(low), abs(high), high - low) for low, high in grid.box)
    side = max(high - low for low, high in grid.box)
    largest = max(abs(v) for row in values for v in row) + lipschitz * side**alpha
    return float(8 * unit * largest + lipschitz * (4 * unit * reach) ** alpha)


def _values(function: Callable[..., Any], grid: Grid, outputs: int) -> list[list[float]]:
    """For every output, its value at every grid point."""
    rows = [function(*point) for point in grid]
    table = [[float(row)] if outputs == 1 else [float(x) for x in row] for row in rows]
    if any(len(row) != outputs for row in table):
        raise RaspValueError(
            "the function returns another number of values than it was said to",
            expected=str(outputs),
            found=str(len(table[0])),
        )
    return [list(column) for column in zip(*table, strict=True)]


def _program(values: list[list[float]], grid: Grid, lipschitz: float, alpha: float) -> SOp:
    slope = lipschitz * _distance(grid, alpha)
    if len(values) == 1:
        return _mean_extension(_table(values[0], grid), slope, None)
    parts = [
        _mean_extension(_table(row, grid), slope, indicator(indices == output))
        for output, row in enumerate(values)
    ]
    return total(parts)


def _mean_extension(value: SOp, slope: SOp, reader: SOp | None) -> SOp:
    """The mean of lower and upper extension, at the positions where ``reader`` is 1, else 0."""
    low, below = value - slope, -(value + slope)
    among = None if reader is None else select(1, reader, "==")
    lower = aggregate(hardmax(low, among), low)
    upper = -aggregate(hardmax(below, among), below)  # the minimum, read as its own score
    return (lower + upper) / 2


def _distance(grid: Grid, alpha: float) -> SOp:
    """The distance of the point to this position's grid point, to the power alpha."""
    stride = grid.points
    gaps: list[SOp] = []
    for axis, count in enumerate(grid.counts):
        stride //= count
        digit = (indices // stride) % count if stride > 1 else indices % count
        gaps.append(abs(fetch(tokens, axis) - lookup(grid.axis(axis))(digit)))
    while len(gaps) > 1:
        pairs = [maximum(a, b) for a, b in zip(gaps[::2], gaps[1::2], strict=False)]
        gaps = pairs + ([gaps[-1]] if len(gaps) % 2 else [])
    if alpha == 1:
        return gaps[0]
    return sqrt(gaps[0]) if alpha == 0.5 else apply("pow", gaps[0], alpha)


def _table(values: list[float], grid: Grid) -> SOp:
    """A constant per grid point, as a part of the positional embedding."""
    return lookup(values)(indices % grid.points)


def _check_neighbours(
    values: list[list[float]], grid: Grid, lipschitz: float, alpha: float
) -> None:
    """Refuse a constant that the function breaks between neighbouring grid points."""
    stride = grid.points
    for axis, count in enumerate(grid.counts):
        stride //= count
        low, high = grid.box[axis]
        allowed = lipschitz * ((high - low) / count) ** alpha * (1 + 1e-9) + 1e-12
        for row in values:
            for k in range(grid.points):
                last = (k // stride) % count == count - 1
                if not last and abs(row[k + stride] - row[k]) > allowed:
                    raise RaspValueError(
                        "the function changes faster than its constant permits",
                        expected=f"a change of at most {allowed:.6g} between neighbours",
                        found=f"{abs(row[k + stride] - row[k]):.6g}",
                        hint="give a larger lipschitz constant",
                    )


def _check(
    sides: tuple[tuple[float, float], ...], lipschitz: float, eps: float, alpha: float
) -> None:
    if not sides or any(not (math.isfinite(l) and math.isfinite(h) and l <= h) for l, h in sides):
        raise RaspValueError(
            "a box has one bounded side per variable",
            expected="pairs (low, high) with low <= high",
            found=str(sides),
        )
    if not (eps > 0 and lipschitz >= 0 and 0 < alpha <= 1 and math.isfinite(lipschitz)):
        raise RaspValueError(
            "these constants promise nothing",
            expected="eps > 0, lipschitz >= 0, 0 < alpha <= 1",
            found=f"eps={eps}, lipschitz={lipschitz}, alpha={alpha}",
        )
