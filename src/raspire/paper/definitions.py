"""Textbook definitions in any arithmetic: the other side of an identity, and nothing clever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

from raspire.arithmetic import Arithmetic
from raspire.arithmetic.field import PrimeField
from raspire.library.layout import LaidOut, flatten, nest
from raspire.paper.attention import Matrix, product
from raspire.program.primitives import primitive
from raspire.verify.certificate import Certificate
from raspire.verify.degrees import CONSTANT, Degree
from raspire.verify.identity import FunctionSide, ProgramSide, identity


def transposed(a: Matrix) -> Matrix:
    """Rows become columns."""
    return [list(column) for column in zip(*a, strict=True)]


def determinant(a: Matrix) -> Any:
    """Leibniz's sum over permutations."""
    size = len(a)
    total: Any = 0
    for order in permutations(range(size)):
        term: Any = 1
        for i, j in enumerate(order):
            term = term * a[i][j]
        swaps = sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
        total = total - term if swaps % 2 else total + term
    return total


def inverse(a: Matrix) -> Matrix:
    """The adjugate over the determinant."""
    size, whole = len(a), determinant(a)

    def cofactor(i: int, j: int) -> Any:
        rest = [[a[r][c] for c in range(size) if c != j] for r in range(size) if r != i]
        return determinant(rest) if (i + j) % 2 == 0 else 0 - determinant(rest)

    return [[cofactor(j, i) / whole for j in range(size)] for i in range(size)]


def solution(a: Matrix, b: Matrix) -> Matrix:
    """The inverse times the right side."""
    return product(inverse(a), b)


def power(a: Matrix, exponent: int) -> Matrix:
    """The product of so many factors, at least 1."""
    result = a
    for _ in range(exponent - 1):
        result = product(result, a)
    return result


def softmax(rows: Matrix, arithmetic: Arithmetic) -> Matrix:
    """exp of each entry over the sum of its row."""
    exp = arithmetic.form(primitive("exp"))
    weights = [[exp(x) for x in row] for row in rows]
    sums = [sum(row[1:], row[0]) for row in weights]
    return [[w / whole for w in row] for row, whole in zip(weights, sums, strict=True)]


def prove(
    program: LaidOut,
    definition: Callable[..., Any],
    result: Degree,
    argument: Degree = CONSTANT,
    *,
    error: float = 1e-12,
) -> Certificate:
    """A program of the library equals a definition, for all inputs of its shape, over GF(p).

    ``definition`` takes one nested list per input (and ``arithmetic`` if it has that parameter).
    """
    takes_arithmetic = "arithmetic" in getattr(definition, "__annotations__", {})

    def values(tokens: Sequence[Any], field: PrimeField) -> list[Any]:
        arrays = [
            nest(list(tokens[block.base : block.end]), block.shape)
            for block in program.inputs.values()
        ]
        found = definition(*arrays, field) if takes_arithmetic else definition(*arrays)
        return flatten(found)[1]

    end = max(block.end for block in program.inputs.values())
    return identity(
        f"{program.name}, for every input",
        ProgramSide(program.program, [int(p) for p in program.output.positions()]),
        FunctionSide(values, result, argument),
        lambda field: [field.draw() if p < end else 0 for p in range(program.length)],
        error=error,
    )
