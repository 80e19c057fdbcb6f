"""Determinants, inverses, linear systems and powers of matrices as programs (Lemma 10).

The paper inverts 3x3 matrices in 5 layers. Here is the cofactor construction in 3, the product
tree of minors for a determinant of any size, and Faddeev and LeVerrier's recursion, which inverts
a matrix of any size in as many attention layers as it has rows:

    P_1 = A,  c_k = -tr(P_k)/k,  P_{k+1} = A P_k + c_k A,
    det A = (-1)^m c_m,  A^-1 = -(P_{m-1} + c_{m-1} I) / c_m.

Over the rationals every program here is exact. In floating point the recursion loses digits fast:
its programs carry a running bound on the error, and a run in floating point is refused where that
bound exceeds ``tolerance`` (relative to the largest entry of the result).
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Literal, TypeAlias

from raspire.errors import RaspValueError
from raspire.library.inverse_bounds import (
    bound_of_cofactors,
    bound_of_determinant,
    bound_of_inverse,
    bound_of_solution,
)
from raspire.library.layout import Block, LaidOut, fetch, total
from raspire.program.embedding import aggregate, indicator, recip, select, tokens
from raspire.program.nodes import SOp

Construction: TypeAlias = Literal["wide", "long"]
SOURCE = "Lemma 10"
TOLERANCE = 1e-6


def determinant(m: int) -> LaidOut:
    """The determinant of an m×m matrix by a product tree of minors, at every position.

    Attention depth 1, ceil(log2 m) layers, m² heads; the feed-forward width is exponential in m,
    so it stops at m = 8. Raises RaspValueError beyond.

    >>> determinant(3)([[2, 0, 1], [1, 3, 0], [0, 1, 1]])
    7
    """
    _check_size(m, 8, "faddeev_leverrier(m) has no such limit")
    matrix = Block(0, (m, m))
    entry = [[fetch(tokens, matrix.address(i, j)) for j in range(m)] for i in range(m)]

    @cache
    def minor(top: int, rows: int, columns: tuple[int, ...]) -> SOp:
        if rows == 1:
            return entry[top][columns[0]]
        upper = 1 << (rows - 1).bit_length() - 1  # a full tree above, the rest below: least depth
        terms: list[SOp] = []
        for chosen in combinations(range(rows), upper):
            rest = tuple(c for c in range(rows) if c not in chosen)
            product = minor(top, upper, tuple(columns[c] for c in chosen)) * minor(
                top + upper, rows - upper, tuple(columns[c] for c in rest)
            )
            odd = (sum(chosen) - upper * (upper - 1) // 2) % 2
            terms.append(-product if odd else product)
        return total(terms)

    program = minor(0, m, tuple(range(m)))
    return LaidOut(f"determinant {m}x{m}", program, {"A": matrix}, Block(0, ()), m * m, SOURCE)


def inverse_3x3(*, tolerance: float = TOLERANCE) -> LaidOut:
    """The inverse of a 3×3 matrix by cofactors, in 3 layers of which one attends.

    Position (i, j) copies ``A[(j+u) mod 3, (i+v) mod 3]``: its own cofactor is always the first.
    The flag is true where the determinant is zero.

    >>> inverse_3x3()([[2, 0, 0], [0, 4, 0], [0, 0, 1]])[1]
    [0.0, 0.25, 0.0]
    """
    matrix = Block(0, (3, 3))
    i, j = matrix.digits()
    near = [
        [fetch(tokens, matrix.address((j + u) % 3, (i + v) % 3)) for v in range(3)]
        for u in range(3)
    ]
    cofactors = [
        near[1][(v + 1) % 3] * near[2][(v + 2) % 3] - near[1][(v + 2) % 3] * near[2][(v + 1) % 3]
        for v in range(3)
    ]
    det = total([near[0][v] * cofactors[v] for v in range(3)])
    return LaidOut(
        "inverse 3x3",
        cofactors[0] * recip(det),
        {"A": matrix},
        matrix,
        9,
        SOURCE,
        flag=det == 0,
        bound=bound_of_cofactors(tolerance),
    )


# ------------------------------------------------------------- Faddeev and LeVerrier's recursion


class Recursion:
    """P_k and c_k as s-ops at the positions of A, in the construction asked for."""

    def __init__(self, m: int, construction: Construction) -> None:
        _check_size(m, 64)
        self.m = m
        self.matrix = Block(0, (m, m))
        self.products = Block(m * m, (m, m, m))
        self.row, self.column = self.matrix.digits()
        self.diagonal = select(indicator((self.row == self.column) & self.matrix.holds()), 1, "==")
        self.step = {"wide": self._wide, "long": self._long}[construction]
        self.padding = self.products.size if construction == "long" and m > 1 else 0
        self.powers: list[SOp] = []
        self.coefficients: list[SOp] = []
        self._run()

    def _run(self) -> None:
        power: SOp = tokens
        for k in range(1, self.m + 1):
            coefficient = -self.trace(power) / k
            self.powers.append(power)
            self.coefficients.append(coefficient)
            if k < self.m:
                power = self.step(power) + coefficient * tokens

    def trace(self, power: SOp) -> SOp:
        """The trace, by one head that averages the diagonal."""
        return aggregate(self.diagonal, power) * self.m

    def _wide(self, power: SOp) -> SOp:
        return total([self.left(term) * self.right(power, term) for term in range(self.m)])

    def left(self, term: int) -> SOp:
        """A[i, term] at position (i, j)."""
        return fetch(tokens, self.matrix.address(self.row, term))

    def right(self, power: SOp, term: int) -> SOp:
        """P[term, j] at position (i, j)."""
        return fetch(power, self.matrix.address(term, self.column))

    def _long(self, power: SOp) -> SOp:
        return long_product(tokens, power, self.matrix, self.products)

    @property
    def identity(self) -> SOp:
        """1 on the diagonal, else 0."""
        return indicator(self.row == self.column)

    @property
    def adjugate(self) -> SOp:
        """``P_{m-1} + c_{m-1} I``: the adjugate of A up to the sign (-1)^(m-1)."""
        if self.m == 1:
            return self.identity
        # The coefficient is the same everywhere: on the diagonal it is added by a gated unit.
        return self.powers[-2] + self.coefficients[-2] * self.identity


def long_product(left: SOp, right: SOp, matrix: Block, products: Block) -> SOp:
    """The product of two square matrices, with one position for every (i, l, j) (Lemma 5).

    Two layers: copy both factors to (i, l, j) and multiply; average over l, times m.
    """
    m = matrix.shape[0]
    i, term, j = products.digits()
    factors = fetch(left, matrix.address(i, term)) * fetch(right, matrix.address(term, j))
    local = products.digits()
    key = select_key(products, local[0] * m + local[2])
    row, column = matrix.digits()
    return aggregate(select(key, row * m + column, "=="), factors) * m


def select_key(block: Block, key: SOp) -> SOp:
    """A group key inside a block and -1 outside, by position alone."""
    inside = indicator(block.holds())
    return key * inside + inside - 1


def faddeev_leverrier(
    m: int, construction: Construction = "wide", *, tolerance: float = TOLERANCE
) -> LaidOut:
    """The inverse of an m×m matrix by Faddeev and LeVerrier's recursion.

    ``wide``: attention depth m, N = m², heads 2m+1, then m+1, last 1. ``long``: depth 2m-1,
    N = m² + m³, heads 3, 1, then 2, 1, ..., last 1. The flag is true where det A = 0.

    >>> faddeev_leverrier(2)([[2, 1], [1, 1]], arithmetic="exact")
    [[1, -1], [-1, 2]]
    """
    run = Recursion(m, construction)
    last = run.coefficients[-1]
    return LaidOut(
        f"inverse {m}x{m}, Faddeev-LeVerrier, {construction}",
        -run.adjugate * recip(last),
        {"A": run.matrix},
        run.matrix,
        run.matrix.size + run.padding,
        SOURCE,
        flag=last == 0,
        bound=bound_of_inverse(tolerance),
    )


def faddeev_determinant(
    m: int, construction: Construction = "wide", *, tolerance: float = TOLERANCE
) -> LaidOut:
    """The determinant of an m×m matrix by Faddeev and LeVerrier's recursion, at every position.

    In floating point the tolerance is relative to Hadamard's bound, the product of the rows'
    lengths.

    >>> faddeev_determinant(2)([[2, 1], [1, 1]], arithmetic="exact")
    1
    """
    run = Recursion(m, construction)
    last = run.coefficients[-1]
    return LaidOut(
        f"determinant {m}x{m}, Faddeev-LeVerrier, {construction}",
        last if m % 2 == 0 else -last,
        {"A": run.matrix},
        Block(0, ()),
        run.matrix.size + run.padding,
        SOURCE,
        bound=bound_of_determinant(tolerance),
    )


def linear_system(m: int, right_sides: int = 1, *, tolerance: float = TOLERANCE) -> LaidOut:
    """The solution of A x = b for m×m A and an m×r right side b.

    Attention depth m, m+1 layers: the last attention copies the adjugate's row and b's column
    beside the trace, one layer multiplies, one divides. The flag is true where det A = 0.

    >>> linear_system(2)([[2, 1], [1, 1]], [[3], [2]], arithmetic="exact")
    [[1], [1]]
    """
    run = Recursion(m, "wide")
    sides = Block(run.matrix.end, (m, right_sides))
    i, c = sides.digits()
    adjugate, last = run.adjugate, run.coefficients[-1]
    terms = [
        fetch(adjugate, run.matrix.address(i, term)) * fetch(tokens, sides.address(term, c))
        for term in range(m)
    ]
    return LaidOut(
        f"linear system {m}x{m}",
        -total(terms) * recip(last),
        {"A": run.matrix, "b": sides},
        sides,
        sides.end,
        SOURCE,
        flag=last == 0,
        bound=bound_of_solution(tolerance),
    )


def matrix_power(m: int, exponent: int, construction: Construction = "wide") -> LaidOut:
    """The power of an m×m matrix, by a product tree: ceil(log2 exponent) products deep.

    A product is one layer (``wide``) or two (``long``). Raises RaspValueError for a negative
    exponent.

    >>> matrix_power(2, 5)([[1, 1], [1, 0]])
    [[8, 5], [5, 3]]
    """
    _check_size(m, 64)
    if exponent < 0:
        raise RaspValueError(
            "matrix_power takes a natural exponent",
            expected="0, 1, 2, ...",
            found=str(exponent),
            hint="invert the matrix first",
        )
    matrix, products = Block(0, (m, m)), Block(m * m, (m, m, m))
    row, column = matrix.digits()

    @cache
    def power(e: int) -> SOp:
        if e <= 1:
            return tokens
        left, right = power((e + 1) // 2), power(e // 2)
        if construction == "long":
            return long_product(left, right, matrix, products)
        return total(
            [
                fetch(left, matrix.address(row, term)) * fetch(right, matrix.address(term, column))
                for term in range(m)
            ]
        )

    program = power(exponent) if exponent else indicator(row == column)
    padding = products.size if construction == "long" and exponent > 1 else 0
    return LaidOut(
        f"power {exponent} of {m}x{m}, {construction}",
        program,
        {"A": matrix},
        matrix,
        matrix.size + padding,
        "Lemma 5",
    )


def _check_size(m: int, most: int, hint: str = "") -> None:
    if not 1 <= m <= most:
        raise RaspValueError(
            "this size of a matrix is not offered",
            expected=f"1 to {most} rows",
            found=str(m),
            hint=hint,
        )
