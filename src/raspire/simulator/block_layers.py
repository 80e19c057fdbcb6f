"""U for a whole encoder block, construction `long`: attention, residuals, norms, feed-forward.

Around the layers of attention stand a block of positions for rows, which carries residuals and
norms, and two blocks of products for the matrices of the feed-forward part. A norm is a row mean,
a row mean of squares, and one `gated:rsqrt` unit; every layer has two heads at most.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import cast

from raspire.library.layout import Block, Face, fetch, mean_over
from raspire.library.norms import normalised
from raspire.program.embedding import gelu, relu, silu, tanh, tokens, where
from raspire.program.nodes import SOp
from raspire.simulator.block import Activation, BlockShape
from raspire.simulator.construction import Construction, Part, Softmax, input_shapes, stack
from raspire.simulator.long import LongLayers

# Axes: i a row of X, g a column of X, b a column of X with its column of ones, f a hidden unit,
# e a hidden unit with the one that carries the biases.


def block_long(n: int, shape: BlockShape, softmax: Softmax = "stable") -> Construction:
    """Build U for the blocks of one shape; the result lies at (i, g).

    `parts` has `attention`, `middle` (what the feed-forward part adds to) and `result`, all (n, d).
    """
    return _BlockLayers(n, shape, softmax).build()


def block_inputs(n: int, shape: BlockShape) -> dict[str, Block]:
    """Where ⟨T, X⟩ is written: the attention's blocks, the norms, the feed-forward part."""
    d, f = shape.attention.d, shape.hidden
    shapes = input_shapes(n, shape.attention)
    shapes["norm1"] = shapes["norm2"] = (3, d)  # weight, bias, eps in every column
    shapes["up"] = (d + 1, f)
    if shape.gated:
        shapes["gate"] = (d + 1, f)
    shapes["down"] = (f + 1, d)
    return stack(0, shapes)


def activated(name: Activation, x: SOp) -> SOp:
    """The activation as elementwise functions, one gated unit each.

    >>> activated("relu", tokens)([0.5, 2.0])
    [0.5, 2.0]
    """
    if name == "gelu_tanh":
        inner = x * (x * x * (0.044715 * sqrt(2 / pi)) + sqrt(2 / pi))
        return x * 0.5 * (tanh(inner) + 1)
    return {"relu": relu, "gelu": gelu, "silu": silu}[name](x)


class _BlockLayers:
    def __init__(self, n: int, shape: BlockShape, softmax: Softmax) -> None:
        self.n, self.shape = n, shape
        self.d, self.f = shape.attention.d, shape.hidden
        self.inputs = block_inputs(n, shape)
        start = max(block.end for block in self.inputs.values())
        self.rows = Block(start, (n, self.d))  # (i, g)
        self.attention = _Attention(n, shape, softmax, self)
        end = max(block.end for block in self.attention.products.values())
        sizes: dict[str, tuple[int, ...]] = {
            "hidden": (n, self.d + 1, self.f),  # (i, b, f)
            "down": (n, self.f + 1, self.d),  # (i, e, g)
        }
        self.products = stack(end, sizes)

    def build(self) -> Construction:
        i, g = self.rows.digits()
        x = fetch(tokens, self.inputs["X"].address(i, g)).named("x_row")
        if self.shape.order == "post":
            attended, y = self.attend(x)
            middle = self.norm("norm1", x + y)
            final = middle + self.feed_forward(middle)
            result = self.norm("norm2", final)
        else:
            attended, y = self.attend(self.norm("norm1", x))
            middle = (x + y).named("middle")
            result = middle + self.feed_forward(self.norm("norm2", middle))
        parts = dict(attended.parts)
        parts["attention"] = Part(y, self.rows)
        parts["middle"] = Part(middle, self.rows)
        parts["result"] = Part(result.named("block"), self.rows)
        length = max(block.end for block in self.products.values())
        attention, softmax = self.shape.attention, self.attention.softmax
        return Construction("long", self.n, attention, softmax, self.inputs, length, parts)

    def norm(self, name: str, value: SOp) -> SOp:
        """A norm of the rows: two layers, for a layer norm."""
        return normalised(self.rows, self.inputs[name], value, self.shape.norm, name)

    def attend(self, rows: SOp) -> tuple[Construction, SOp]:
        """The layers of attention over these rows, and their result back at (i, g)."""
        self.attention.source = rows
        built = self.attention.build()
        return built, self._back(built.parts["result"])

    def extended(self, rows: SOp, i: SOp, b: SOp) -> SOp:
        """Entry (i, b) of rows with a column of ones: nothing is there, so the default 1."""
        address = where(b == self.d, -1, self.rows.address(i, b))
        return fetch(rows, address, default=1)

    def feed_forward(self, rows: SOp) -> SOp:
        """Two layers for each matrix, and the activation between them."""
        block = self.products["hidden"]
        i, b, f = block.digits()
        x = self.extended(rows, i, b)
        up = self._hidden("up", x, b, f)
        if self.shape.gated:
            hidden = activated(self.shape.activation, self._hidden("gate", x, b, f)) * up
        else:
            hidden = activated(self.shape.activation, up)
        hidden = hidden.named("hidden")
        block = self.products["down"]
        i, e, g = block.digits()
        address = where(e == self.f, -1, self.products["hidden"].address(i, 0, e))
        factor = fetch(hidden, address, default=1)
        w = fetch(tokens, self.inputs["down"].address(e, g))
        down = (mean_over(block, (0, 2), factor * w) * (self.f + 1)).named("down")
        return self._back(Part(down, Face(block, {1: 0})))

    def _hidden(self, name: str, x: SOp, b: SOp, f: SOp) -> SOp:
        w = fetch(tokens, self.inputs[name].address(b, f))
        block = self.products["hidden"]
        return (mean_over(block, (0, 2), x * w) * (self.d + 1)).named(name)

    def _back(self, part: Part) -> SOp:
        """A result at (i, ., g) of a block of products, at the rows' own positions."""
        i, g = self.rows.digits()
        return fetch(part.sop, cast(Face, part.place).block.address(i, 0, g))


class _Attention(LongLayers):
    """The layers of `long` over the rows, or over X itself while no other source is set."""

    def __init__(self, n: int, shape: BlockShape, softmax: Softmax, block: _BlockLayers) -> None:
        super().__init__(n, shape.attention, softmax, block.inputs, block.rows.end)
        self.block, self.post = block, shape.order == "post"
        self.source: SOp = tokens

    def row(self, i: SOp, b: SOp) -> SOp:
        if self.post:
            return super().row(i, b)
        return self.block.extended(self.source, i, b)
