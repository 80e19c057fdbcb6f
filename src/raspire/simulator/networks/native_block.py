"""A whole encoder block as explicit weights: `native` with residuals, norms, feed-forward part.

Every number of the block is input, one row of a matrix a token; all of them are copied in the
first layer, so the attention depth stays 2 for every activation, norm and order of norms. A norm
is four layers of idle attention: the row's mean is taken out, its mean square found, the quotient
by its root, the scale and bias (an RMS norm needs three).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raspire.simulator.block import BlockShape, EncoderBlock
from raspire.simulator.networks.native import parts, seen_rows
from raspire.simulator.networks.rows import (
    RowTokens,
    attend,
    data_columns,
    entries,
    products,
    turned,
)
from raspire.simulator.weights import Array
from raspire.transformer import (
    Builder,
    Cost,
    Form,
    LayerBuilder,
    Space,
    Transformer,
    cost,
    forward,
    read,
    repeated,
    saturated,
    write,
)


@dataclass(frozen=True, eq=False)
class BlockNetwork:
    """One transformer that runs every encoder block of its shape, for every n."""

    shape: BlockShape
    model: Transformer
    tokens: RowTokens

    @property
    def cost(self) -> Cost:
        """Depth, heads, width and weights, counted on the matrices."""
        return cost(self.model)

    def saturated(self, precision: str = "float64") -> BlockNetwork:
        """The same network on stock softmax attention, certified."""
        return BlockNetwork(self.shape, saturated(self.model, precision), self.tokens)

    def encode(self, block: EncoderBlock, x: ArrayLike, padding: ArrayLike | None = None) -> Array:
        """The block and X as rows (N, c); padding rows are NaN."""
        contents = parts(block.attention, x, padding)
        part = block.feed_forward
        contents["UP"] = np.vstack([part.up, part.b_up])
        contents["DOWN"] = np.vstack([part.down, part.b_down])
        if part.gate is not None:
            assert part.b_gate is not None
            contents["GATE"] = np.vstack([part.gate, part.b_gate])
        for name, norm in (("NORM1", block.norm1), ("NORM2", block.norm2)):
            rows = np.zeros((3, len(norm.weight)))
            rows[0], rows[1], rows[2, 0] = norm.weight, norm.bias, norm.eps
            contents[name] = rows
        return self.tokens.stack(contents, seen_rows(contents))

    def __call__(
        self,
        block: EncoderBlock,
        x: ArrayLike,
        padding: ArrayLike | None = None,
        **options: Any,
    ) -> Array:
        """The block's output (n, d); options are those of the forward pass."""
        sequence = self.encode(block, x, padding)
        places = np.arange(self.tokens.count, len(sequence))
        return np.asarray(forward(self.model, sequence[None], positions=places, **options)[0])


def native_block_network(shape: BlockShape) -> BlockNetwork:
    """The explicit weights that run every encoder block of a shape.

    >>> from raspire.simulator.target import Shape
    >>> shape = BlockShape(Shape(2, 1, 2, 2, True), 3, "gelu", False, "layer", "post")
    >>> found = native_block_network(shape).cost
    >>> found.attention_depth, found.layers
    (2, 13)
    """
    draft = _Block(shape)
    return BlockNetwork(shape, draft.build(), draft.tokens)


class _Block:
    def __init__(self, shape: BlockShape) -> None:
        self.shape, self.d = shape, shape.attention.d
        attention, hidden = shape.attention, shape.hidden
        matrices = {
            "W": (attention.inputs, attention.columns),
            "WO": (attention.merged + 1, self.d),
            "UP": (self.d + 1, hidden),
            "DOWN": (hidden + 1, self.d),
            "NORM1": (3, self.d),
            "NORM2": (3, self.d),
        }
        if shape.gated:
            matrices["GATE"] = (self.d + 1, hidden)
        self.b = Builder(f"U native, {shape}")
        self.tokens = RowTokens(self.b, matrices, data_columns(attention))
        self.one = read(self.tokens.one)

    def build(self) -> Transformer:
        first = self.b.layer()
        self.copies = {name: self.tokens.copy(first, name) for name in self.tokens.matrices}
        x = self.tokens.x.part(range(self.d))
        build = self._post if self.shape.order == "post" else self._pre
        self.b.numeric(read(build(first, x)))
        self.tokens.embed()
        self.b.notes["construction"] = "native, encoder block"
        return self.b.build()

    def _post(self, layer: LayerBuilder, x: Space) -> Space:
        """``y = norm1(x + T(x)); norm2(y + F(y))``."""
        y = self._attention(layer, x, x)
        y = self._norm("NORM1", None, y)
        return self._norm("NORM2", None, self._feed_forward(y, y))

    def _pre(self, layer: LayerBuilder, x: Space) -> Space:
        """``y = x + T(norm1(x)); y + F(norm2(y))``."""
        normal = self._norm("NORM1", layer, x)
        y = self._attention(self.b.layer(), normal, x)
        return self._feed_forward(self._norm("NORM2", None, y), y)

    def _attention(self, layer: LayerBuilder, source: Space, residual: Space) -> Space:
        """Projections in the layer given; then the target's heads, output map and residual."""
        shape = self.shape.attention
        projected = self.b.space("queries, keys, values", shape.columns)
        self._matrix(layer, "projections", "W", entries(source), projected)
        scored = turned(self.b, shape, projected, self.tokens.x) if shape.rotary else None
        layer = self.b.layer()
        heads = attend(self.b, layer, shape, projected, scored)
        result = self.b.space("y", self.d)
        self._matrix(layer, "output map", "WO", entries(heads), result)
        layer.units("residual", "linear", read(residual), write(result))
        return result

    def _matrix(
        self, layer: LayerBuilder, name: str, matrix: str, row: Sequence[Form], result: Space
    ) -> None:
        """The row times a copied matrix, whose last row is the bias."""
        products(layer, name, [*row, self.one], self.copies[matrix], result)

    def _feed_forward(self, source: Space, residual: Space) -> Space:
        """Up (and gate), activation, down and residual: three layers."""
        b, shape = self.b, self.shape
        layer = b.layer()
        inner = b.space("inner", shape.hidden)
        self._matrix(layer, "up", "UP", entries(source), inner)
        gate = inner
        if shape.gated:
            gate = b.space("gate", shape.hidden)
            self._matrix(layer, "gate", "GATE", entries(source), gate)
        layer = b.layer()
        active = b.space("activated", shape.hidden)
        first = read(inner) if shape.gated else None
        family = f"gated:{shape.activation}"
        layer.units("activation", family, first, write(active), second=read(gate))
        layer = b.layer()
        result = b.space("z", self.d)
        self._matrix(layer, "down", "DOWN", entries(active), result)
        layer.units("residual", "linear", read(residual), write(result))
        return result

    def _norm(self, name: str, layer: LayerBuilder | None, source: Space) -> Space:
        """Centre (in ``layer`` if one is given), mean square, quotient, scale and bias."""
        b, d = self.b, self.d
        weight, bias, eps = self.copies[name]
        if self.shape.norm == "layer":
            layer = layer or b.layer()
            centred = b.space(f"{name} centred", d)
            layer.units("centre", "linear", read(source), write(centred))
            mean = np.full((d, 1), 1 / d)
            layer.units("mean", "linear", read(source, mean), write(centred, -np.ones((1, d))))
            source, layer = centred, None
        square, normal = b.space(f"{name} mean square"), b.space(f"{name} normal", d)
        layer = layer or b.layer()
        total = write(square, np.full((d, 1), 1 / d))
        layer.units("mean square", "bilinear", read(source), total, second=read(source))
        wide = repeated(read(square) + read(eps.part([0])), d)
        layer = b.layer()
        layer.units("quotient", "gated:rsqrt", read(source), write(normal), second=wide)
        result = b.space(f"{name} scaled", d)
        layer = b.layer()
        layer.units("scale", "bilinear", read(normal), write(result), second=read(weight))
        layer.units("bias", "linear", read(bias), write(result))
        return result
