"""U as a transformer whose weights are written down: a model, its input, where its result lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raspire.errors import RaspValueError
from raspire.simulator.target import AttentionTarget, Shape
from raspire.simulator.weights import Array
from raspire.transformer import Cost, Transformer, cost, forward, saturated

Encode = Callable[[AttentionTarget, ArrayLike, ArrayLike | None], Array]


@dataclass(frozen=True, eq=False)
class Network:
    """One construction of U as explicit weights; they follow from the shape, never from a target.

    ``encode(T, X, padding)`` gives the input sequence (N,) or (N, c); ``positions(n)`` are the
    positions of the result for n rows of X, in the order of its rows, ``order`` its index order.
    """

    name: str
    shape: Shape
    model: Transformer
    encode: Encode
    positions: Callable[[int], Any]
    transposed: bool = False

    @property
    def cost(self) -> Cost:
        """Depth, heads, width and weights, counted on the matrices."""
        return cost(self.model)

    def saturated(self, precision: str = "float64") -> Network:
        """The same network on stock softmax attention, certified; see `saturation`."""
        model = saturated(self.model, precision)
        return Network(self.name, self.shape, model, self.encode, self.positions, self.transposed)

    def __call__(
        self,
        target: AttentionTarget,
        x: ArrayLike,
        padding: ArrayLike | None = None,
        **options: Any,
    ) -> Array:
        """T(X), shape (n, d) or (n, heads * d_v); options are those of the forward pass."""
        if target.shape != self.shape:
            raise RaspValueError(
                "the target has another shape than the network was built for",
                expected=str(self.shape),
                found=str(target.shape),
            )
        sequence = self.encode(target, x, padding)
        n = len(np.asarray(x))
        logits = forward(self.model, sequence[None], positions=self.sorted_positions(n), **options)
        return self.decode(logits[0], n)

    def sorted_positions(self, n: int) -> Any:
        """The positions of the result, ascending."""
        return np.sort(self.positions(n))

    def decode(self, values: Array, n: int) -> Array:
        """The result as rows, from the outputs at ``sorted_positions``."""
        order = np.argsort(np.argsort(self.positions(n), kind="stable"), kind="stable")
        rows = values[order]
        if self.transposed:
            rows = rows.reshape(self.shape.heads, n, self.shape.d_v).transpose(1, 0, 2)
        return np.ascontiguousarray(rows.reshape(n, -1))
