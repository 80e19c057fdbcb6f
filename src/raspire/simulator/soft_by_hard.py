"""Softmax attention computed by average-hard attention: what each layer does, exactly.

The paper's point is that no softmax is needed in the attention of U. Here it is checked on
explicit weights: every head of the network `long` is average-hard, and the statement below is
read from its layers, not written beside them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from raspire.errors import RaspError
from raspire.simulator.construction import Softmax
from raspire.simulator.direct import attention
from raspire.simulator.networks import Network, long_network
from raspire.simulator.target import AttentionTarget, Shape
from raspire.simulator.weights import Array
from raspire.transformer import Layer

STATEMENT = (
    "For every T of the shape and every X of n rows, the network below returns the softmax "
    "attention T(X), exactly in real arithmetic, and all of its heads are average-hard. Such a "
    "head returns the mean of a value over the keys of greatest score: over one key (a copy), "
    "over a group (a mean), or over the greatest of a row (a maximum). A sum over s keys is their "
    "mean times s, a constant of the head's output map. The feed-forward part sees its own "
    "position only, and has one unit a layer at most: it multiplies two numbers, exponentiates "
    "one, or divides the mean of exp(score)·value by the mean of exp(score), so that the number "
    "of keys cancels."
)

_UNITS = {
    "bilinear": "multiplies two numbers",
    "gated:identity": "multiplies two numbers",
    "gated:exp": "exponentiates one number",
    "gated:recip": "divides two numbers",
}


@dataclass(frozen=True)
class LayerRole:
    """What one layer does: its heads, all average-hard, and its one feed-forward unit, if any."""

    number: int
    heads: tuple[str, ...]
    unit: str

    def __str__(self) -> str:
        return f"average-hard: {', '.join(self.heads)}; feed-forward: {self.unit or 'idle'}"


@dataclass(frozen=True)
class SoftByHard:
    """The average-hard network for one shape and n rows, and what its layers do."""

    network: Network
    layers: tuple[LayerRole, ...]
    statement: str = STATEMENT

    def difference(self, target: AttentionTarget, x: ArrayLike) -> float:
        """The largest difference between the average-hard network and softmax attention."""
        hard: Array = self.network(target, x)
        return float(np.abs(hard - attention(target, x)).max())

    def __str__(self) -> str:
        lines = [f"layer {role.number}: {role}" for role in self.layers]
        return "\n".join([self.statement, *lines])


def soft_by_hard(n: int, shape: Shape, softmax: Softmax = "stable") -> SoftByHard:
    """The network that computes softmax attention without a softmax, and its statement.

    Raises RaspError should a head be other than average-hard, or a layer have several units.

    >>> shown = soft_by_hard(2, Shape(d=1, heads=1, d_k=1, d_v=1, output=False), "plain")
    >>> print(shown.layers[5])
    average-hard: mean over keys; feed-forward: quotient (gated:recip: divides two numbers)
    """
    network = long_network(n, shape, softmax)
    layers = enumerate(network.model.layers, 1)
    return SoftByHard(network, tuple(_role(number, layer) for number, layer in layers))


def _role(number: int, layer: Layer) -> LayerRole:
    soft = [head.name for head in layer.heads if head.kind != "average-hard"]
    if soft or len(layer.units) > 1:
        raise RaspError(
            f"layer {number} is not what soft by hard claims",
            expected="average-hard heads and one feed-forward unit at most",
            found=", ".join(soft) or f"{len(layer.units)} units",
        )
    units = [f"{u.name} ({u.family}: {_UNITS[u.family]})" for u in layer.units]
    return LayerRole(number, tuple(head.name for head in layer.heads), "".join(units))
