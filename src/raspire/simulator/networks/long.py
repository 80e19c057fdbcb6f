"""U, construction `long`, as about 60 weights: 61, and 80 with the output map, for every shape.

Every product of the attention layer has a position of its own. The positional embedding knows the
two addresses from which a position copies its factors and the group in which it is averaged; the
same two address slots and the same group slot serve all layers, because a position belongs to one
block. Nothing is overwritten; every denominator is positive at every position, the idle included.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from raspire.errors import UnsupportedError
from raspire.library.layout import Block
from raspire.simulator.construction import Columns, Softmax, input_blocks, stack
from raspire.simulator.networks.blocks import Addressing, Index, address, digits, groups, table
from raspire.simulator.networks.network import Network
from raspire.simulator.target import Shape
from raspire.simulator.universal import UniversalSimulator
from raspire.transformer import Builder, LayerBuilder, Space, beside, read, write

ROW_RANGE = 2.0**11
"""The stable form finds row maxima while the scores of a row differ by less than this."""


def long_network(n: int, shape: Shape, softmax: Softmax = "plain") -> Network:
    """The explicit weights of `long` for n rows; its input is that of the program `long`.

    >>> network = long_network(2, Shape(d=3, heads=1, d_k=2, d_v=2, output=False))
    >>> network.cost.heads, network.cost.layers, network.cost.width
    ((2, 1, 2, 1, 2, 1), 6, 23)
    """
    if softmax == "stable" and shape.mask == "padding":
        raise UnsupportedError(
            "the explicit weights of `long` have no stable form with a padding mask",
            hint="softmax='plain', or the network `native`, which is always stable",
        )
    program = UniversalSimulator(
        n, shape.d, shape.heads, shape.d_k, shape.d_v, "long", softmax, shape.mask, shape.output
    )
    place = program.parts["result"].place
    model = _Long(n, shape, softmax == "stable").build()
    result = np.asarray(place.positions(), dtype=np.int64)
    return Network("long", shape, model, program.encode, lambda _: result, not shape.output)


@dataclass
class _Positions:
    """What the positional embedding says of every position."""

    left: Index
    right: Index
    flag: Index
    group: Index
    row: Index


class _Layout:
    """Blocks, and per position two addresses and a group."""

    def __init__(self, n: int, shape: Shape) -> None:
        self.n, self.shape = n, shape
        self.columns: Any = Columns(shape)  # columns of whole arrays of coordinates
        self.inputs = input_blocks(n, shape)
        sizes: dict[str, tuple[int, ...]] = {
            "projections": (n, shape.inputs, shape.columns),
            "scores": (shape.heads, n, n, shape.d_k),
            "mixing": (shape.heads, n, n, shape.d_v),
        }
        if shape.output:
            sizes["output"] = (n, shape.merged + 1, shape.d)
        self.products = stack(max(b.end for b in self.inputs.values()), sizes)
        self.length = max(b.end for b in self.products.values())
        self.groups = 1

    def positions(self) -> _Positions:
        """Idle addresses point to the first score, where input and projections are 0."""
        idle = self.products["scores"].base
        one = int(address(self.inputs["X"], 0, self.shape.d))
        fill = [np.full(self.length, value) for value in (idle, idle, one, 0, 0)]
        found = _Positions(*fill)
        self._project(found, self.products["projections"])
        self._score(found, self.products["scores"])
        self._mix(found, self.products["mixing"])
        if self.shape.output:
            self._map_out(found, self.products["output"])
        return found

    def _place(self, found: _Positions, block: Block, left: Any, right: Any, group: Any) -> None:
        rows = slice(block.base, block.end)
        found.left[rows], found.right[rows] = left, right
        found.group[rows] = group + self.groups
        self.groups += int(group.max()) + 1

    def _project(self, found: _Positions, block: Block) -> None:
        i, b, column = digits(block)
        left, right = address(self.inputs["X"], i, b), address(self.inputs["W"], b, column)
        group = groups((i, self.n), (column, self.shape.columns))
        self._place(found, block, left, right, group)

    def _score(self, found: _Positions, block: Block) -> None:
        t, i, j, a = digits(block)
        source = self.products["projections"]
        left = address(source, i, 0, self.columns.query(t, a))
        right = address(source, j, 0, self.columns.key(t, a))
        group = groups((t, self.shape.heads), (i, self.n), (j, self.n))
        self._place(found, block, left, right, group)
        row = groups((t, self.shape.heads), (i, self.n)) + 1
        hidden = (j > i) & (self.shape.mask == "causal")
        rows = slice(block.base, block.end)
        found.row[rows] = np.where(hidden, self.shape.heads * self.n + 1, row)
        if self.shape.mask == "padding":
            found.flag[rows] = address(self.inputs["seen"], j)

    def _mix(self, found: _Positions, block: Block) -> None:
        t, i, j, c = digits(block)
        left = address(self.products["scores"], t, i, j, 0)
        column = self.columns.value(t * self.shape.d_v + c)
        right = address(self.products["projections"], j, 0, column)
        group = groups((t, self.shape.heads), (i, self.n), (c, self.shape.d_v))
        hidden = (j > i) & (self.shape.mask == "causal")
        group = np.where(hidden, int(group.max()) + 1, group)
        self._place(found, block, left, right, group)

    def _map_out(self, found: _Positions, block: Block) -> None:
        i, e, g = digits(block)
        d_v = self.shape.d_v
        left = address(self.products["mixing"], e // d_v, i, 0, e % d_v)
        one = address(self.inputs["X"], 0, self.shape.d)
        left = np.where(e == self.shape.merged, one, left)
        group = groups((i, self.n), (g, self.shape.d))
        self._place(found, block, left, address(self.inputs["WO"], e, g), group)


class _Long:
    """The layers, written once; no number in them but the three that the shape gives."""

    def __init__(self, n: int, shape: Shape, stable: bool) -> None:
        self.shape, self.stable = shape, stable
        self.layout = _Layout(n, shape)
        self.b = Builder(f"U long, n={n}, {shape}")
        self.at = Addressing(self.b, self.layout.length)
        self.left, self.right = self.b.space("left"), self.b.space("right")
        self.group = (self.b.space("group"), self.b.space("group²"))
        self.value = self.b.space("value")
        self.b.values(write(self.value))

    def build(self) -> Any:
        positions = self.layout.positions()
        columns = self.at.columns()
        columns |= {self.left: positions.left, self.right: positions.right}
        columns |= {self.group[0]: positions.group, self.group[1]: positions.group**2}
        flag = self._flag(columns, positions)
        product = self._products("x", "w", self.value, flag)
        projected = self._sum(self.b.layer(), product, "projection", self.shape.inputs)
        products = self._products("query", "key", projected, None)
        weight = self._weigh(products, columns, positions, flag)
        result = self._mix(weight, projected)
        if self.shape.output:
            result = self._map_out(result)
        self.b.numeric(read(result), ["result"])
        self.b.positions(table(columns, self.layout.length))
        self.b.notes["construction"] = "long"
        return self.b.build()

    def _flag(self, columns: dict[Space, Any], positions: _Positions) -> tuple[Space, Space] | None:
        if self.shape.mask != "padding":
            return None
        place, flag = self.b.space("flag address"), self.b.space("seen")
        columns[place] = positions.flag
        return place, flag

    def _products(
        self, one: str, other: str, source: Space, flag: tuple[Space, Space] | None
    ) -> Space:
        """A layer: copy two factors of one source, multiply them."""
        layer = self.b.layer()
        left, right = self._pair(layer, one, other, source, source)
        if flag is not None:
            self.at.copy(layer, "copy seen", flag[0], read(source), write(flag[1]))
        return self._multiply(layer, left, right)

    def _pair(
        self, layer: LayerBuilder, one: str, other: str, source: Space, second: Space
    ) -> tuple[Space, Space]:
        left, right = self.b.space(one), self.b.space(other)
        self.at.copy(layer, f"copy {one}", self.left, read(source), write(left))
        self.at.copy(layer, f"copy {other}", self.right, read(second), write(right))
        return left, right

    def _multiply(self, layer: LayerBuilder, left: Space, right: Space) -> Space:
        product = self.b.space(f"{left.name} · {right.name}")
        layer.units(product.name, "bilinear", read(left), write(product), second=read(right))
        return product

    def _sum(self, layer: LayerBuilder, product: Space, name: str, factor: float) -> Space:
        """The mean over the group, times a factor of the shape."""
        total = self.b.space(name)
        target = write(total, [[factor]])
        self.at.average(layer, f"sum {product.name}", self.group, read(product), target)
        return total

    def _weigh(
        self,
        product: Space,
        columns: dict[Space, Any],
        positions: _Positions,
        flag: tuple[Space, Space] | None,
    ) -> Space:
        """The scores and their exponentials; if stable, the row's maximum first."""
        layer = self.b.layer()
        score = self._sum(layer, product, "score", sqrt(self.shape.d_k))
        exponent = read(score)
        if self.stable:
            layer = self.b.layer()
            exponent = exponent - read(self._maximum(layer, score, columns, positions))
        weight = self.b.space("weight")
        first = None if flag is None else read(flag[1])
        layer.units("exp", "gated:exp", first, write(weight), second=exponent)
        return weight

    def _maximum(
        self, layer: LayerBuilder, score: Space, columns: dict[Space, Any], positions: _Positions
    ) -> Space:
        row, square, top = (self.b.space(s) for s in ("row", "row²", "row maximum"))
        columns |= {row: positions.row, square: positions.row**2}
        one = read(self.at.one)
        query = beside(2 * ROW_RANGE * read(row), -ROW_RANGE * one, one)
        key = beside(read(row), read(square), read(score))
        layer.head("row maximum", query=query, key=key, value=read(score), output=write(top))
        return top

    def _mix(self, weight: Space, projected: Space) -> Space:
        """Two layers: weights times values, their mean over the mean weight."""
        layer = self.b.layer()
        left, right = self._pair(layer, "weight of j", "value of j", weight, projected)
        product = self._multiply(layer, left, right)
        layer = self.b.layer()
        sums = self.b.space("mean product"), self.b.space("mean weight")
        both = beside(read(product), read(left))
        target = beside(write(sums[0]), write(sums[1]))
        self.at.average(layer, "mean over keys", self.group, both, target)
        head = self.b.space("head")
        layer.units("quotient", "gated:recip", read(sums[0]), write(head), second=read(sums[1]))
        return head

    def _map_out(self, head: Space) -> Space:
        """Two layers: the output map; its row of biases meets the 1 in X."""
        layer = self.b.layer()
        left, right = self.b.space("head of e"), self.b.space("w_o")
        source = read(head) + read(self.value)
        self.at.copy(layer, "copy head", self.left, source, write(left))
        self.at.copy(layer, "copy w_o", self.right, read(self.value), write(right))
        product = self._multiply(layer, left, right)
        return self._sum(self.b.layer(), product, "result", self.shape.merged + 1)
