"""Lemmas 3, 4, 5, 7 and 10: matrices, softmax, MaxMin and sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from raspire.library import inverse, linear_algebra, sorting
from raspire.library.layout import LaidOut
from raspire.paper import definitions
from raspire.paper.attention import product
from raspire.paper.claims import Claim
from raspire.verify.certificate import Certificate
from raspire.verify.degrees import VARIABLE, Degree
from raspire.verify.exhaustive import exhaustive
from raspire.verify.identity import ProgramSide, identity
from raspire.verify.network import NetworkSide

if TYPE_CHECKING:
    from raspire.compile import Compiled

FIELD = "identity over GF(p)"
ORDERS = "exhaustive over all orders"
MATRIX = "row-major, one scalar a token; the result at the same positions"


def _sorted(program: LaidOut, n: int, truth: Callable[[list[int]], list[int]]) -> Certificate:
    """All weak orders of n values: the program compares and copies, so they stand for all reals."""
    claim = f"{program.name}, for every order of {n} values"
    return exhaustive(claim, program, truth, range(n), n, shortest=n)


def _inverse_claim(m: int, construction: inverse.Construction, expected: int) -> Claim:
    def program() -> LaidOut:
        return inverse.faddeev_leverrier(m, construction)

    return Claim(
        f"inverse-{m}x{m}-{construction}",
        "past Lemma 10",
        f"the inverse of an {m}×{m} matrix by Faddeev-LeVerrier, {construction}",
        MATRIX if construction == "wide" else "A, then m³ positions for products; result at A",
        program,
        (expected, expected),
        FIELD,
        lambda: definitions.prove(program(), definitions.inverse, Degree(m - 1, m)),
    )


ALGEBRA = (
    Claim(
        "transposition",
        "Lemma 3",
        "a permutation of the sequence transposes a matrix",
        "A row-major, one scalar a token; Aᵀ row-major in the same positions",
        lambda: linear_algebra.transpose(3, 4),
        (1, 1),
        FIELD,
        lambda: definitions.prove(linear_algebra.transpose(3, 4), definitions.transposed, VARIABLE),
        paper_layers=2,
    ),
    Claim(
        "softmax",
        "Lemma 4",
        "the softmax of every row: exp, mean over the row, quotient",
        MATRIX,
        lambda: linear_algebra.row_softmax(3, 4),
        (1, 2),
        FIELD,
        lambda: definitions.prove(
            linear_algebra.row_softmax(3, 4), definitions.softmax, Degree(1, 1), VARIABLE
        ),
    ),
    Claim(
        "softmax-stable",
        "Lemma 4",
        "the same with the row's maximum subtracted first, found by a head",
        MATRIX,
        lambda: linear_algebra.row_softmax(3, 4, stable=True),
        (2, 3),
        FIELD + ", exp(a-M) := exp(a)/exp(M)",
        lambda: definitions.prove(
            linear_algebra.row_softmax(3, 4, stable=True),
            definitions.softmax,
            Degree(1, 1),
            VARIABLE,
        ),
    ),
    Claim(
        "product",
        "Lemma 5",
        "a matrix product with no padding: a position copies all factors of its sum",
        "A then B, row-major; the result from position 0",
        lambda: linear_algebra.matmul(3, 2, 3),
        (1, 1),
        FIELD,
        lambda: definitions.prove(linear_algebra.matmul(3, 2, 3), product, Degree(2, 0)),
        paper_layers=3,
    ),
    Claim(
        "product-long",
        "Lemma 5",
        "a matrix product with two heads and a position for every product",
        "A, B, then r·k·c positions for products; the result at (i, 0, j)",
        lambda: linear_algebra.matmul(3, 2, 3, "long"),
        (2, 2),
        FIELD,
        lambda: definitions.prove(linear_algebra.matmul(3, 2, 3, "long"), product, Degree(2, 0)),
        paper_layers=3,
    ),
    Claim(
        "power",
        "past Lemma 5",
        "the fifth power of a matrix, by a tree of products",
        MATRIX,
        lambda: inverse.matrix_power(3, 5),
        (3, 3),
        FIELD,
        lambda: definitions.prove(
            inverse.matrix_power(3, 5), lambda a: definitions.power(a, 5), Degree(5, 0)
        ),
    ),
    Claim(
        "maxmin",
        "Lemma 7",
        "the maximum and the minimum: a head each, with score x and -x",
        "n values; the maximum at position 0, the minimum elsewhere",
        lambda: sorting.maxmin(4),
        (1, 1),
        ORDERS,
        lambda: _sorted(sorting.maxmin(4), 4, lambda x: [max(x), min(x)]),
    ),
    Claim(
        "sort-pairs",
        "Lemma 7",
        "sort reals with a position for every pair",
        "n values, then n² positions for pairs; the result at the values",
        lambda: sorting.sort_pairs(4),
        (3, 3),
        ORDERS,
        lambda: _sorted(sorting.sort_pairs(4), 4, sorted),
    ),
    Claim(
        "sort-wide",
        "Lemma 7",
        "sort reals with n heads and no padding",
        "n values; the result at the same positions",
        lambda: sorting.sort_wide(4),
        (1, 2),
        ORDERS,
        lambda: _sorted(sorting.sort_wide(4), 4, sorted),
    ),
    Claim(
        "sort-alphabet",
        "Lemma 7",
        "sort over a finite alphabet, for every length: rank by selector width, copy by rank",
        "n tokens; the result at the same positions",
        lambda: sorting.sort(),
        (2, 3),
        "exhaustive up to length 5",
        lambda: exhaustive("sort over three tokens", sorting.sort(), sorted, range(3), 5),
    ),
    Claim(
        "determinant",
        "Lemma 10",
        "the determinant of a 4×4 matrix by a product tree of minors",
        "A row-major; the result at every position",
        lambda: inverse.determinant(4),
        (1, 2),
        FIELD,
        lambda: definitions.prove(inverse.determinant(4), definitions.determinant, Degree(4, 0)),
    ),
    Claim(
        "inverse-3x3",
        "Lemma 10",
        "the inverse of a 3×3 matrix by cofactors",
        MATRIX,
        lambda: inverse.inverse_3x3(),
        (1, 3),
        FIELD,
        lambda: definitions.prove(inverse.inverse_3x3(), definitions.inverse, Degree(2, 3)),
        paper_layers=5,
    ),
    _inverse_claim(4, "wide", 4),
    _inverse_claim(3, "long", 5),
    Claim(
        "determinant-any",
        "past Lemma 10",
        "the determinant of a 4×4 matrix by Faddeev-LeVerrier",
        "A row-major; the result at every position",
        lambda: inverse.faddeev_determinant(4),
        (4, 4),
        FIELD,
        lambda: definitions.prove(
            inverse.faddeev_determinant(4), definitions.determinant, Degree(4, 0)
        ),
    ),
    Claim(
        "linear-system",
        "past Lemma 10",
        "the solution of A x = b, 3×3",
        "A, then b; the result at b",
        lambda: inverse.linear_system(3),
        (3, 4),
        FIELD,
        lambda: definitions.prove(inverse.linear_system(3), definitions.solution, Degree(3, 3)),
    ),
)


# --------------------------------------------------------------------- the same, as networks


def _network(key: str, program: Callable[[], LaidOut], expected: tuple[int, int]) -> Claim:
    """A claim's program compiled over the reals, and proved equal to it over GF(p)."""

    def build() -> Compiled:
        from raspire.compile import REALS, compile

        made = program()
        return compile(made.program, alphabet=REALS, max_length=made.length)

    def check() -> Certificate:
        made = program()
        positions = [int(p) for p in made.output.positions()]
        return identity(
            f"the network of {made.name} is its program, for every input",
            NetworkSide(build().transformer, positions),
            ProgramSide(made.program, positions),
            made.length,
        )

    known = {claim.key: claim for claim in ALGEBRA}[key]
    return Claim(
        f"{key}-network",
        known.result,
        f"{known.statement}, compiled",
        "a beginning of sequence, then " + known.layout,
        build,
        expected,
        FIELD + ", of the weights",
        check,
        paper_layers=known.paper_layers,
        kind="network",
    )


COMPILED: tuple[Claim, ...] = (
    _network("transposition", lambda: linear_algebra.transpose(3, 4), (1, 1)),
    _network("softmax", lambda: linear_algebra.row_softmax(3, 4), (1, 2)),
    _network("product", lambda: linear_algebra.matmul(3, 2, 3), (1, 1)),
    _network("product-long", lambda: linear_algebra.matmul(3, 2, 3, "long"), (2, 2)),
    _network("determinant", lambda: inverse.determinant(4), (2, 2)),
    _network("inverse-3x3", lambda: inverse.inverse_3x3(), (2, 3)),
    _network("inverse-4x4-wide", lambda: inverse.faddeev_leverrier(4), (4, 4)),
)
