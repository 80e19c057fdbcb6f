"""U, construction `wide`: no padding while the results fit, one look-up per factor.

A position holds one entry of the result; it copies every factor of its sum at once, so heads grow
with the shape and depth does not. This is the shape of the reference paper's own simulator
(constructions, section 5). Every layer starts at position 0.
"""

from __future__ import annotations

from raspire.errors import UnsupportedError
from raspire.library.layout import Block, fetch, total
from raspire.program.embedding import (
    aggregate,
    exp,
    hardmax,
    indicator,
    minimum,
    select,
    sqrt,
    tokens,
    where,
)
from raspire.program.nodes import Selector, SOp
from raspire.simulator.construction import (
    Columns,
    Construction,
    Part,
    Softmax,
    input_blocks,
)
from raspire.simulator.target import Shape


def wide(n: int, shape: Shape, softmax: Softmax) -> Construction:
    """Build U for one shape; the result lies at (i, e), with an output map at (i, g).

    >>> u = wide(2, Shape(d=3, heads=1, d_k=2, d_v=2, output=False), "plain")
    >>> u.length, u.parts["result"].shape
    (32, (2, 2))
    """
    return _Wide(n, shape, softmax).build()


def wide_length(n: int, shape: Shape) -> int:
    """N of the construction for a shape, without its program."""
    return _Wide(n, shape, "plain").length


class _Wide:
    """The blocks of one shape, and the layers over them."""

    def __init__(self, n: int, shape: Shape, softmax: Softmax) -> None:
        if shape.positional:
            raise UnsupportedError(
                f"the construction wide has no {shape.positional}",
                expected="an attention layer in which positions enter by the mask alone",
                hint="the construction long has them",
            )
        self.n, self.shape, self.softmax = n, shape, softmax
        self.columns = Columns(shape)
        self.inputs = input_blocks(n, shape)
        self.projected = Block(0, (n, shape.columns))  # (i, column)
        self.scored = Block(0, (shape.heads, n, n))  # (t, i, j)
        self.mixed = Block(0, (n, shape.heads, shape.d_v))  # (i, t, c)
        self.mapped = Block(0, (n, shape.d))  # (i, g)

    def build(self) -> Construction:
        projections = self.project().named("projections")
        unscaled = self.score(projections).named("unscaled_scores")
        heads = self.mix(self.shift(unscaled), projections).named("heads")
        parts = {
            "projections": Part(projections, self.projected),
            "unscaled": Part(unscaled, self.scored),
            "heads": Part(heads, Block(0, (self.n, self.shape.merged))),
        }
        parts["result"] = parts["heads"]
        if self.shape.output:
            parts["result"] = Part(self.map_out(heads).named("result"), self.mapped)
        return Construction(
            "wide", self.n, self.shape, self.softmax, self.inputs, self.length, parts
        )

    @property
    def length(self) -> int:
        """N: the longest of the input and of every layer's results."""
        ends = [b.end for b in (*self.inputs.values(), self.projected, self.scored, self.mixed)]
        return max(*ends, self.mapped.end if self.shape.output else 0)

    def project(self) -> SOp:
        """Layer 1: queries, keys and values; two look-ups for each column of X."""
        i, column = self.projected.digits()
        x, w = self.inputs["X"], self.inputs["W"]
        return total(
            [
                fetch(tokens, x.address(i, b)).named(f"x{b}")
                * fetch(tokens, w.address(b, column)).named(f"w{b}")
                for b in range(self.shape.inputs)
            ]
        )

    def score(self, projections: SOp) -> SOp:
        """Layer 2: the products of queries and keys."""
        t, i, j = self.scored.digits()
        at = self.projected.address
        return total(
            [
                fetch(projections, at(i, self.columns.query(t, a))).named(f"q{a}")
                * fetch(projections, at(j, self.columns.key(t, a))).named(f"k{a}")
                for a in range(self.shape.d_k)
            ]
        )

    def shift(self, unscaled: SOp) -> SOp:
        """The scores; if stable, less the greatest of their row (one more layer)."""
        score = (unscaled / sqrt(self.shape.d_k)).named("scores")
        if self.softmax == "plain":
            return score
        key, query = self.scored.groups(0, 1)
        row = self.seen(select(key, query, "=="))
        shifted = score - aggregate(hardmax(score, among=row), score).named("row_maximum")
        # A hidden key may score above the maximum of those seen; its weight is not used, but it
        # must stay finite.
        return minimum(shifted, 0) if self.shape.mask != "none" else shifted

    def seen(self, row: Selector) -> Selector:
        """Of the keys of a row, at (t, i, j), those that the target's mask lets row i see."""
        _, i, j = self.scored.digits()
        if self.shape.mask == "causal":
            return row & select(j <= i, True, "==")
        if self.shape.mask == "padding":
            return row & select(fetch(tokens, self.inputs["seen"].address(j)), 1, "==")
        return row

    def mix(self, score: SOp, projections: SOp) -> SOp:
        """Layers 3 and 4: all scores and values of a row, weights times values, the quotient."""
        i, t, c = self.mixed.digits()
        column = self.columns.value(t * self.shape.d_v + c)
        weights, products = [], []
        for j in range(self.n):
            weight = exp(fetch(score, self.scored.address(t, i, j)).named(f"score{j}"))
            address = self.projected.address(j, column)
            if self.shape.mask == "causal":
                # A hidden value is nowhere, so it is 0; its weight is not counted.
                value = fetch(projections, where(j <= i, address, -1)).named(f"v{j}")
                products.append(weight * value)
                weights.append(indicator(j <= i) * weight)
                continue
            value = fetch(projections, address).named(f"v{j}")
            if self.shape.mask == "padding":
                seen = fetch(tokens, self.inputs["seen"].address(j)).named(f"seen{j}")
                value, weights = seen * value, [*weights, seen * weight]
            else:
                weights.append(weight)
            products.append(weight * value)
        return total(products) / total(weights)

    def map_out(self, heads: SOp) -> SOp:
        """The last layer: the output map and its biases."""
        i, g = self.mapped.digits()
        merged, w = self.shape.merged, self.inputs["WO"]
        source = Block(0, (self.n, merged))
        products = [
            fetch(heads, source.address(i, e)).named(f"head{e}")
            * fetch(tokens, w.address(e, g)).named(f"w_o{e}")
            for e in range(merged)
        ]
        return total([*products, fetch(tokens, w.address(merged, g)).named("b_o")])
