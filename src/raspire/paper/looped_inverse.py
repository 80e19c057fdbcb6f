"""Newton's iteration for the inverse, X ↦ X (2I - A X), as one looped body of five layers.

Per loop: a linearised product (A X), a transposition of X (three layers), a linearised product
again. The published machine spends 13 layers on a loop; this is the shortest body that we found
with one head a layer, so the comparison is kind to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raspire.paper.looped_blocks import (
    Array,
    Draft,
    Linearised,
    LoopedNetwork,
    Transposition,
    erase,
    move,
    repeat,
)
from raspire.transformer import beside, read, write


@dataclass(frozen=True, eq=False)
class InverseBlock:
    """A ↦ A⁻¹ for d × d matrices, 2d + d² + 1 tokens, five layers a loop."""

    d: int
    network: LoopedNetwork

    @classmethod
    def build(
        cls,
        d: int,
        loops: int = 20,
        constants: Linearised | None = None,
        temperature: float = 20.0,
    ) -> InverseBlock:
        """The looped network; twice the logarithm of the condition number is enough loops."""
        model = _Body(d, constants or Linearised(), temperature).build()
        network = LoopedNetwork("inverse", repeat(model, loops), len(model.layers), loops)
        return cls(d, network)

    def __call__(self, a: ArrayLike, dtype: Any = np.float64) -> Array:
        """A⁻¹, from the start Aᵀ / (|A|₁ |A|∞), which is given to the network as input."""
        matrix = np.asarray(a, dtype=np.float64)
        start = matrix.T / (np.abs(matrix).sum(0).max() * np.abs(matrix).sum(1).max())
        zeros = np.zeros(self.d)
        inputs: dict[int, Any] = {}
        for j in range(self.d):
            inputs[j] = np.concatenate([matrix[j], zeros])
            inputs[self.d + j] = np.concatenate([zeros, start[:, j]])
        return self.network.run(inputs, dtype)[self.d : 2 * self.d].T


class _Body:
    def __init__(self, d: int, constants: Linearised, temperature: float) -> None:
        self.d, self.constants = d, constants
        self.draft = Draft(f"inverse {d}×{d}", temperature)
        self.rows, self.columns = self.draft.tokens(d), self.draft.tokens(d)
        b = self.draft.b
        self.a, self.x = b.space("row of A", d), b.space("column of X", d)
        self.xt, self.y = b.space("column of Xᵀ", d), b.space("column of 2I - AX", d)
        self.product, self.twice = b.space("product", d), b.space("2 e_j", d)
        self.label_a, self.label_x = b.space("label of A", d), b.space("label of X", d)
        self.diluter = b.space("diluter")
        b.values(beside(write(self.a), write(self.x)))

    def build(self) -> Any:
        draft, d = self.draft, self.d
        transposition = Transposition(draft, d, self.columns, self.columns)
        draft.set(draft.tokens(1)[0], self.diluter, 1.0)
        for j in range(d):
            draft.set(self.rows[j], self.label_a, np.eye(d)[j])
            draft.set(self.columns[j], self.label_x, np.eye(d)[j])
            draft.set(self.columns[j], self.twice, 2 * np.eye(d)[j])
        elsewhere = read(draft.outside("not a column of X", self.columns))
        one, diluter = read(draft.one), read(self.diluter)
        target = write(self.product)

        layer = draft.b.layer()
        keys = read(self.a), read(self.label_a)
        self.constants.head(layer, "A X", read(self.x), *keys, one, diluter, target)
        difference = read(self.twice) - read(self.product)
        move(layer, "2I - A X", difference, write(self.y), elsewhere)
        erase(layer, self.product)

        transposition.write(self.x, write(self.xt))

        layer = draft.b.layer()
        keys = read(self.xt), read(self.label_x)
        self.constants.head(layer, "X (2I - A X)", read(self.y), *keys, one, diluter, target)
        change = read(self.product) - read(self.x)
        move(layer, "the next X", change, write(self.x), elsewhere)
        for space in (self.product, self.xt, self.y):
            erase(layer, space)
        return draft.finish(read(self.x))
