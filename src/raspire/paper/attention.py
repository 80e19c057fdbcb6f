"""Attention by its definition and nothing else, in an arithmetic that is a parameter.

This is the other side of every proof about U: the same lines run on field elements, on balls and
on floats. It reads ⟨T, X⟩ where U reads it and returns the results in U's order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from raspire.arithmetic import Arithmetic
from raspire.program.primitives import primitive
from raspire.simulator.construction import Construction
from raspire.verify.degrees import VARIABLE, Degree

Matrix = list[list[Any]]
Scale = Callable[[Any, Arithmetic], Any]


class Definition:
    """T(X) from ⟨T, X⟩ by the textbook's formula, with the results in U's order."""

    def __init__(self, construction: Construction, scale: Scale | None = None) -> None:
        self.shape, self.n = construction.shape, construction.n
        self.inputs = construction.inputs
        self.by_head = len(construction.parts["result"].shape) == 3  # (heads, n, d_v)
        self.scale = scale or self._scaled

    def __call__(self, tokens: Sequence[Any], arithmetic: Arithmetic) -> list[Any]:
        """The results as U orders them."""
        heads = [self.head(t, tokens, arithmetic) for t in range(self.shape.heads)]
        if self.by_head:
            return [value for head in heads for row in head for value in row]
        merged = [[value for head in heads for value in head[i]] for i in range(self.n)]
        if self.shape.output:
            merged = product([[*row, 1] for row in merged], self.matrix("WO", tokens))
        return [value for row in merged for value in row]

    def matrix(self, name: str, tokens: Sequence[Any]) -> Matrix:
        """One input of ⟨T, X⟩ with two axes."""
        block = self.inputs[name]
        rows, columns = block.shape
        cells = tokens[block.base : block.end]
        return [list(cells[columns * i : columns * (i + 1)]) for i in range(rows)]

    def number(self, name: str, tokens: Sequence[Any], *place: int) -> Any:
        """One number of an input."""
        address = self.inputs[name].address(*place)
        assert isinstance(address, int)
        return tokens[address]

    def head(self, t: int, tokens: Sequence[Any], arithmetic: Arithmetic) -> Matrix:
        """softmax(Q Kᵀ / sqrt(d_k)) V of head t."""
        exp = arithmetic.form(primitive("exp"))
        q, k, v = self.projections(t, tokens)
        result = []
        for i in range(self.n):
            seen = [j for j in range(len(k)) if self.seen(i, j, tokens)]
            weights = [exp(self.score(t, i, j, dot(q[i], k[j]), tokens, arithmetic)) for j in seen]
            whole = sum(weights[1:], weights[0])
            columns = range(self.shape.d_v)
            result.append([dot(weights, [v[j][c] for j in seen]) / whole for c in columns])
        return result

    def projections(self, t: int, tokens: Sequence[Any]) -> tuple[Matrix, Matrix, Matrix]:
        """Queries, keys and values of head t, one row for each row of X."""
        shape = self.shape
        x, w = self.matrix("X", tokens), self.matrix("W", tokens)
        keys_from, values_from = shape.heads * shape.d_k, 2 * shape.heads * shape.d_k
        q = product(x, columns(w, t * shape.d_k, shape.d_k))
        k = product(x, columns(w, keys_from + t * shape.d_k, shape.d_k))
        v = product(x, columns(w, values_from + t * shape.d_v, shape.d_v))
        return self.turned(q, tokens), self.turned(k, tokens), v

    def turned(self, rows: Matrix, tokens: Sequence[Any]) -> Matrix:
        """Rotary positions: a coordinate and its partner half a head away, by two numbers each."""
        if not self.shape.rotary:
            return rows
        d_k = self.shape.d_k
        return [
            [
                row[a] * self.number("turns", tokens, i, a, 0)
                + row[(a + d_k // 2) % d_k] * self.number("turns", tokens, i, a, 1)
                for a in range(d_k)
            ]
            for i, row in enumerate(rows)
        ]

    def score(
        self, t: int, i: int, j: int, product: Any, tokens: Sequence[Any], arithmetic: Arithmetic
    ) -> Any:
        """The scaled product, with the bias of the distance i - j if there is one."""
        score = self.scale(product, arithmetic)
        if self.shape.relative:
            score = score + self.number("relative", tokens, t, i - j + self.n - 1)
        return score

    def seen(self, i: int, j: int, tokens: Sequence[Any]) -> bool:
        """Whether row i may see key j."""
        if self.shape.window is not None and abs(i - j) >= self.shape.window:
            return False
        if self.shape.mask == "padding":
            return bool(self.number("seen", tokens, j) == 1)
        return self.shape.mask == "none" or j <= i

    def _scaled(self, score: Any, arithmetic: Arithmetic) -> Any:
        return score / arithmetic.form(primitive("sqrt"))(self.shape.d_k)

    # -------------------------------------------------------------------------- degrees

    def degree(self) -> tuple[Degree, Degree]:
        """The degree of a result and of an argument of a named function, as the formula shows."""
        entry = VARIABLE * VARIABLE  # of Q, K, V
        turned = entry * VARIABLE + entry * VARIABLE if self.shape.rotary else entry
        score = (turned * turned).over(VARIABLE)  # sqrt(d_k) is a variable of its own
        if self.shape.relative:
            score = score + VARIABLE
        return self.mapped(quotient(VARIABLE, entry, self.n)), score

    def mapped(self, head: Degree) -> Degree:
        """The degree after the output map."""
        if not self.shape.output:
            return head
        return (head * VARIABLE).summed(self.shape.merged + 1)


def quotient(weight: Degree, value: Degree, keys: int) -> Degree:
    """The degree of a weighted mean."""
    return (weight * value).summed(keys).over(weight.summed(keys))


def dot(left: list[Any], right: list[Any]) -> Any:
    """The sum of products of two lists of equal length, at least 1."""
    terms = [a * b for a, b in zip(left, right, strict=True)]
    return sum(terms[1:], terms[0])


def product(left: Matrix, right: Matrix) -> Matrix:
    """The product of two matrices as nested lists."""
    turned = [list(column) for column in zip(*right, strict=True)]
    return [[dot(row, column) for column in turned] for row in left]


def columns(matrix: Matrix, first: int, count: int) -> Matrix:
    """Some neighbouring columns of a matrix."""
    return [row[first : first + count] for row in matrix]
