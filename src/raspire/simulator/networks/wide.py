"""U, construction `wide`, as explicit weights: one head for every factor of every sum.

The reference paper's shape: depth constant, heads growing with the shape. Every layer starts at
position 0; a position past a layer's block repeats the block, so that all it holds stays finite.
A causal target hides values at one sink position, which holds 0; a padding mask multiplies values
and counts by the flag of their key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raspire.library.layout import Block
from raspire.simulator.construction import Columns, input_blocks
from raspire.simulator.networks.blocks import Addressing, address, table, wrapped
from raspire.simulator.networks.network import Network
from raspire.simulator.target import AttentionTarget, Shape
from raspire.simulator.universal import UniversalSimulator
from raspire.simulator.weights import Array
from raspire.transformer import Builder, LayerBuilder, Space, beside, read, write


def wide_network(n: int, shape: Shape) -> Network:
    """The explicit weights of `wide` for n rows; its input is that of the program `wide`.

    A causal mask adds one position, the sink, at the end.

    >>> wide_network(2, Shape(d=3, heads=1, d_k=2, d_v=2, output=False)).cost.heads
    (8, 4, 4, 0)
    """
    program = UniversalSimulator(
        n, shape.d, shape.heads, shape.d_k, shape.d_v, "wide", "plain", shape.mask, shape.output
    )
    layers = _Wide(n, shape, program.sequence_length)
    result = np.asarray(program.parts["result"].place.positions(), dtype=np.int64)

    def encode(target: AttentionTarget, x: ArrayLike, padding: ArrayLike | None) -> Array:
        sequence = program.encode(target, x, padding)
        return np.concatenate([sequence, np.zeros(layers.length - len(sequence))])

    return Network("wide", shape, layers.build(), encode, lambda _: result)


@dataclass
class _Wide:
    n: int
    shape: Shape
    base_length: int
    columns: dict[Space, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, shape = self.n, self.shape
        self.length = self.base_length + (shape.mask == "causal")
        self.column: Any = Columns(shape)  # columns of whole arrays of coordinates
        self.inputs = input_blocks(n, shape)
        self.projected = Block(0, (n, shape.columns))
        self.scored = Block(0, (shape.heads, n, n))
        self.mixed = Block(0, (n, shape.heads, shape.d_v))
        self.mapped = Block(0, (n, shape.d))
        self.b = Builder(f"U wide, n={n}, {shape}")
        self.at = Addressing(self.b, self.length)
        self.columns |= self.at.columns()
        self.value = self.b.space("value")
        self.b.values(write(self.value))

    def build(self) -> Any:
        projected, flag = self._project()
        score, projected = self._score(projected, flag)
        sums = self._mix(score, projected, flag)
        head = self._divide(*sums)
        if self.shape.output:
            head = self._map_out(head)
        self.b.numeric(read(head), ["result"])
        self.b.positions(table(self.columns, self.length))
        self.b.notes["construction"] = "wide"
        return self.b.build()

    def _copy(self, layer: LayerBuilder, name: str, source: Space, places: Any) -> Space:
        """A head that copies ``source`` at an address of its own, and the slot it fills."""
        at, target = self.b.space(f"address of {name}"), self.b.space(name)
        self.columns[at] = places
        self.at.copy(layer, name, at, read(source), write(target))
        return target

    def _project(self) -> tuple[Space, Space | None]:
        """Layer 1: d + 1 pairs of factors, one sum; with a padding mask the flag of row i."""
        layer = self.b.layer()
        i, column = wrapped(self.projected, self.length)
        x, w = self.inputs["X"], self.inputs["W"]
        pairs = []
        for c in range(self.shape.inputs):
            left, right = address(x, i, c), address(w, c, column)
            if self.shape.mask == "causal":  # the sink copies itself, a zero
                left[-1] = right[-1] = self.length - 1
            pairs.append(
                (
                    self._copy(layer, f"x[{c}]", self.value, left),
                    self._copy(layer, f"w[{c}]", self.value, right),
                )
            )
        projected = self._sum(layer, "projection", pairs, 1.0)
        if self.shape.mask != "padding":
            return projected, None
        seen = self.inputs["seen"]
        return projected, self._copy(layer, "seen", self.value, address(seen, i))

    def _sum(
        self, layer: LayerBuilder, name: str, pairs: list[tuple[Space, Space]], factor: float
    ) -> Space:
        """One bilinear unit for each pair, all into one slot."""
        total = self.b.space(name)
        first = beside(*(read(left) for left, _ in pairs))
        second = beside(*(read(right) for _, right in pairs))
        target = write(total, np.full((len(pairs), 1), factor))
        layer.units(name, "bilinear", first, target, second=second)
        return total

    def _score(self, projected: Space, flag: Space | None) -> tuple[Space, Space]:
        """Layer 2: d_k pairs of a query and a key; values are masked by their row's flag."""
        layer = self.b.layer()
        t, i, j = wrapped(self.scored, self.length)
        pairs = []
        for a in range(self.shape.d_k):
            left = address(self.projected, i, self.column.query(t, a))
            right = address(self.projected, j, self.column.key(t, a))
            pairs.append(
                (
                    self._copy(layer, f"query[{a}]", projected, left),
                    self._copy(layer, f"key[{a}]", projected, right),
                )
            )
        score = self._sum(layer, "score", pairs, 1 / sqrt(self.shape.d_k))
        if flag is None:
            return score, projected
        masked = self._sum(layer, "masked projection", [(projected, flag)], 1.0)
        return score, masked

    def _mix(self, score: Space, projected: Space, flag: Space | None) -> tuple[Space, Space]:
        """Layer 3: n scores and n values; sums of weighted values and of weights."""
        layer = self.b.layer()
        i, t, c = wrapped(self.mixed, self.length)
        column = self.column.value(t * self.shape.d_v + c)
        scores, values, counts = [], [], []
        for j in range(self.n):
            place = address(self.projected, j, column)
            visible = np.ones(self.length, dtype=bool)
            if self.shape.mask == "causal":
                visible = j <= i
                place = np.where(visible, place, self.length - 1)
            scores.append(self._copy(layer, f"score[{j}]", score, address(self.scored, t, i, j)))
            values.append(self._copy(layer, f"value[{j}]", projected, place))
            if flag is not None:
                where = address(self.projected, j, 0) + np.zeros(self.length, dtype=np.int64)
                counts.append(self._copy(layer, f"seen[{j}]", flag, where))
            elif self.shape.mask == "causal":
                counts.append(self.b.space(f"visible[{j}]"))
                self.columns[counts[-1]] = visible
        product, weight = self.b.space("sum of products"), self.b.space("sum of weights")
        exponent = beside(*(read(s) for s in scores))
        ones = np.ones((self.n, 1))
        first = beside(*(read(v) for v in values))
        layer.units("products", "gated:exp", first, write(product, ones), second=exponent)
        count = beside(*(read(s) for s in counts)) if counts else None
        layer.units("weights", "gated:exp", count, write(weight, ones), second=exponent)
        return product, weight

    def _divide(self, product: Space, weight: Space) -> Space:
        """Layer 4: the quotient; no attention."""
        head = self.b.space("head")
        self.b.layer().units(
            "quotient", "gated:recip", read(product), write(head), second=read(weight)
        )
        return head

    def _map_out(self, head: Space) -> Space:
        """The last layer: the output map, and its biases times 1."""
        layer = self.b.layer()
        i, g = wrapped(self.mapped, self.length)
        heads, w = Block(0, (self.n, self.shape.merged)), self.inputs["WO"]
        pairs = []
        for e in range(self.shape.merged):
            left = self._copy(layer, f"head[{e}]", head, address(heads, i, e))
            right = self._copy(layer, f"w_o[{e}]", self.value, address(w, e, g))
            pairs.append((left, right))
        bias = self._copy(layer, "b_o", self.value, address(w, self.shape.merged, g))
        return self._sum(layer, "result", [*pairs, (self.at.one, bias)], 1.0)
