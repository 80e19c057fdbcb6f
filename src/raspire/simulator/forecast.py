"""What U costs for a shape of any size, without building the look-ups of a large one.

The construction `long` has one program for all sizes. In `wide` every layer's heads are an affine
function of n, d, d_k and heads * d_v; the function is counted on five small programs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from raspire.simulator.construction import Construction, Softmax
from raspire.simulator.estimate import Estimate, estimate
from raspire.simulator.target import Shape
from raspire.simulator.universal import ConstructionName, SimulatorCost, UniversalSimulator
from raspire.simulator.wide import wide_length

BUILT = 2_000
"""A `wide` program with no more heads' factors than this is built and counted itself."""

_BASE = 8


@dataclass(frozen=True)
class Forecast:
    """What U costs for a shape, and what running it would need."""

    shape: Shape
    cost: SimulatorCost
    estimate: Estimate


def forecast(
    n: int,
    d: int,
    heads: int = 1,
    d_k: int | None = None,
    d_v: int | None = None,
    construction: ConstructionName = "long",
    softmax: Softmax = "plain",
    *options: Any,
) -> Forecast:
    """The cost of `UniversalSimulator` of the same arguments, in a time that does not grow.

    `nodes` is None where the program was not built.

    >>> forecast(100_000, 768, 12, construction="wide").cost.heads_per_layer
    (1538, 128, 200000, 0, 1537)
    """
    u = UniversalSimulator(n, d, heads, d_k, d_v, "long", softmax, *options)
    shape = u.shape
    sizes = (n, shape.d, shape.d_k, shape.merged)
    if construction == "long" or sum(sizes) <= BUILT:
        if construction != "long":
            u = UniversalSimulator(n, d, heads, d_k, d_v, construction, softmax, *options)
        return Forecast(shape, u.cost, estimate(u.construction))
    base = _small(shape, softmax, [_BASE] * len(sizes))
    counts = list(base.heads_per_layer)
    for axis, size in enumerate(sizes):
        more = [_BASE + (i == axis) for i in range(len(sizes))]
        for layer, found in enumerate(_small(shape, softmax, more).heads_per_layer):
            counts[layer] += (found - base.heads_per_layer[layer]) * (size - _BASE)
    length = wide_length(n, shape)
    cost = replace(base, heads_per_layer=tuple(counts), sequence_length=length, nodes=None)
    bare = Construction("wide", n, shape, softmax, {}, length, {})
    return Forecast(shape, cost, estimate(bare))


def _small(shape: Shape, softmax: Softmax, sizes: list[int]) -> SimulatorCost:
    """The cost of `wide` for one head of small sizes, with the mask and output of a shape."""
    n, d, d_k, d_v = sizes
    return UniversalSimulator(n, d, 1, d_k, d_v, "wide", softmax, shape.mask, shape.output).cost
