"""That U computes other attention mechanisms, for all weights and inputs of a shape, over GF(p).

Each is written here from its definition, over ⟨T, X⟩ as U receives it. The maps of Linformer are
numbers of the target like any other, so the identity holds whatever they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raspire.arithmetic import Arithmetic
from raspire.arithmetic.field import MERSENNE_61
from raspire.paper.attention import Definition, Matrix, dot, product, quotient
from raspire.paper.proofs import drawn, positions
from raspire.program.primitives import primitive
from raspire.simulator.construction import Construction
from raspire.verify.certificate import Certificate
from raspire.verify.degrees import VARIABLE, Degree
from raspire.verify.identity import FunctionSide, ProgramSide, identity

ENTRY = VARIABLE * VARIABLE  # of Q, K, V


class CrossDefinition(Definition):
    """The last rows of X are a memory: keys and values. The first n are queries."""

    def projections(self, t: int, tokens: Sequence[Any]) -> tuple[Matrix, Matrix, Matrix]:
        q, k, v = super().projections(t, tokens)
        return q[: self.n], k[self.n :], v[self.n :]

    def degree(self) -> tuple[Degree, Degree]:
        memory = self.inputs["X"].shape[0] - self.n
        score = (ENTRY * ENTRY).over(VARIABLE)
        return self.mapped(quotient(VARIABLE, ENTRY, memory)), score


class LinformerDefinition(Definition):
    """Keys and values are reduced along the sequence by maps before they are scored."""

    def projections(self, t: int, tokens: Sequence[Any]) -> tuple[Matrix, Matrix, Matrix]:
        q, k, v = super().projections(t, tokens)
        return q, self._reduced(0, t, k, tokens), self._reduced(1, t, v, tokens)

    def _reduced(self, kind: int, t: int, rows: Matrix, tokens: Sequence[Any]) -> Matrix:
        reduced = [
            [self.number("reduce", tokens, kind, t, p, j) for j in range(self.n)]
            for p in range(self.rows)
        ]
        return product(reduced, rows)

    @property
    def rows(self) -> int:
        """How many rows are left of the sequence."""
        return self.inputs["reduce"].shape[2]

    def degree(self) -> tuple[Degree, Degree]:
        reduced = (ENTRY * VARIABLE).summed(self.n)
        score = (ENTRY * reduced).over(VARIABLE)
        return self.mapped(quotient(VARIABLE, reduced, self.rows)), score


class LinearDefinition(Definition):
    """Linear attention: a weight is a product of features, elu(x) + 1, relu(x) or exp(x)."""

    def __init__(self, construction: Construction, feature: str = "elu") -> None:
        super().__init__(construction)
        self.feature = feature

    def head(self, t: int, tokens: Sequence[Any], arithmetic: Arithmetic) -> Matrix:
        q, k, v = self.projections(t, tokens)
        queries, keys = (
            [[self.featured(x, arithmetic) for x in row] for row in rows] for rows in (q, k)
        )
        result = []
        for i in range(self.n):
            seen = [j for j in range(self.n) if self.seen(i, j, tokens)]
            weights = [dot(queries[i], keys[j]) for j in seen]
            whole = sum(weights[1:], weights[0])
            values = ([v[j][c] for j in seen] for c in range(self.shape.d_v))
            result.append([dot(weights, value) / whole for value in values])
        return result

    def featured(self, x: Any, arithmetic: Arithmetic) -> Any:
        """The feature map; elu(x) + 1 is exp(min(x, 0)) + max(x, 0)."""
        exp, relu, minimum = (
            arithmetic.form(primitive(name)) for name in ("exp", "relu", "minimum")
        )
        if self.feature == "elu":
            return exp(minimum(x, 0)) + relu(x)
        return relu(x) if self.feature == "relu" else exp(x)

    def degree(self) -> tuple[Degree, Degree]:
        feature = ENTRY + VARIABLE + VARIABLE
        weight = (feature * feature).summed(self.shape.d_k)
        return self.mapped(quotient(weight, ENTRY, self.n)), ENTRY + VARIABLE


def prove_mechanism(
    definition: Definition,
    construction: Construction,
    name: str,
    *,
    error: float = 1e-9,
    prime: int | None = MERSENNE_61,
    seed: int = 0,
    seen: Sequence[int] | None = None,
) -> Certificate:
    """A construction returns what the definition says, for every target and input, over GF(p).

    >>> from raspire.simulator.mechanism_layers import cross_long
    >>> from raspire.simulator.target import Shape
    >>> u = cross_long(1, 2, Shape(1, 1, 1, 1, output=False))
    >>> prove_mechanism(CrossDefinition(u), u, "cross-attention").holds
    True
    """
    return identity(
        f"U for {name} (n={construction.n}, {construction.shape}) returns it for every T and X",
        ProgramSide(construction.program, positions(construction)),
        FunctionSide(lambda tokens, field: definition(tokens, field), *definition.degree()),
        drawn(construction, seen),
        error=error,
        prime=prime,
        seed=seed,
    )
