"""U, construction `long`: one position per product, few heads, a fixed number of layers.

Every product of the attention layer has a position of its own; a layer of two look-ups brings its
factors there, the next layer averages the products that belong to one sum. Depth, heads and the
number of weights do not depend on the shape; the sequence does (constructions, section 5).
"""

from __future__ import annotations

from collections.abc import Mapping

from raspire.library.layout import Block, Face, fetch, mean_over
from raspire.program.embedding import (
    aggregate,
    exp,
    hardmax,
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
    stack,
)
from raspire.simulator.target import Shape

# Axes of the blocks of products: i a row of X, j a key, t a head, a and c columns of a head,
# b a column of X, e a column of all heads' results, g a column of the output.


def long(n: int, shape: Shape, softmax: Softmax) -> Construction:
    """Build U for one shape; the result lies at (i, t, c), with an output map at (i, g).

    >>> u = long(2, Shape(d=3, heads=1, d_k=2, d_v=2, output=False), "plain")
    >>> u.length, u.parts["result"].shape
    (96, (1, 2, 2))
    """
    return LongLayers(n, shape, softmax, input_blocks(n, shape)).build()


class LongLayers:
    """The blocks of one shape, and the layers over them; ``base`` is where products begin."""

    def __init__(
        self,
        n: int,
        shape: Shape,
        softmax: Softmax,
        inputs: Mapping[str, Block],
        base: int | None = None,
    ) -> None:
        self.n, self.shape, self.softmax = n, shape, softmax
        self.columns = Columns(shape)
        self.inputs = inputs
        self.first_key, self.keys = self.key_rows()
        sizes = self.sizes()
        start = max(b.end for b in inputs.values()) if base is None else base
        self.products = stack(start, sizes)

    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The blocks of products."""
        n, shape = self.n, self.shape
        sizes: dict[str, tuple[int, ...]] = {
            "projections": (self.inputs["X"].shape[0], shape.inputs, shape.columns),
            "turned": (n, 2, shape.heads, shape.d_k),  # (i, query or key, t, a)
            "scores": (shape.heads, n, self.keys, shape.d_k),  # (t, i, j, a)
            "mixing": (shape.heads, n, self.keys, shape.d_v),  # (t, i, j, c)
        }
        if not shape.rotary:
            del sizes["turned"]
        if shape.output:
            sizes["output"] = (n, shape.merged + 1, shape.d)  # (i, e, g)
        return sizes

    def key_rows(self) -> tuple[int, int]:
        """The first row of X that is a key, and how many are."""
        return 0, self.n

    def row(self, i: SOp, b: SOp) -> SOp:
        """Entry (i, b) of X with its column of ones."""
        return fetch(tokens, self.inputs["X"].address(i, b))

    def build(self) -> Construction:
        projections = self.project()
        unscaled = self.score(projections).named("unscaled_scores")
        scores = {"unscaled": Part(unscaled, Face(self.products["scores"], {3: 0}))}
        return self.finish(projections, self.weigh(unscaled), scores)

    def finish(self, projections: SOp, weights: SOp, scores: Mapping[str, Part]) -> Construction:
        """The layers after the weights, and all parts by name."""
        blocks = self.products
        heads = self.mix(weights, projections).named("heads")
        parts = {
            "projections": Part(projections, Face(blocks["projections"], {1: 0})),
            **scores,
            "heads": Part(heads, Face(blocks["mixing"], {2: 0})),
        }
        parts["result"] = parts["heads"]
        if self.shape.output:
            parts["result"] = Part(self.map_out(heads), Face(blocks["output"], {1: 0}))
        length = max(block.end for block in blocks.values())
        return Construction("long", self.n, self.shape, self.softmax, self.inputs, length, parts)

    def project(self) -> SOp:
        """Layers 1 and 2: queries, keys and values, at (i, ., column)."""
        block = self.products["projections"]
        i, b, column = block.digits()
        x = self.row(i, b).named("x")
        w = fetch(tokens, self.inputs["W"].address(b, column)).named("w")
        return (mean_over(block, (0, 2), x * w) * self.shape.inputs).named("projections")

    def score(self, projections: SOp) -> SOp:
        """Layers 3 and 4: the products of queries and keys, at (t, i, j, .)."""
        block = self.products["scores"]
        t, i, j, a = block.digits()
        if self.shape.rotary:
            turned, source = self.turn(projections), self.products["turned"]
            q = fetch(turned, source.address(i, 0, t, a))
            k = fetch(turned, source.address(j, 1, t, a))
        else:
            source = self.products["projections"]
            q = fetch(projections, source.address(i, 0, self.columns.query(t, a)))
            k = self.key(projections, j, t, a)
        return mean_over(block, (0, 1, 2), q.named("q") * k.named("k")) * self.shape.d_k

    def key(self, projections: SOp, j: SOp, t: SOp, a: SOp) -> SOp:
        """Coordinate a of key j of head t."""
        row: int | SOp = j + self.first_key if self.first_key else j
        address = self.products["projections"].address(row, 0, self.columns.key(t, a))
        return fetch(projections, address)

    def value(self, projections: SOp, j: SOp, t: SOp, c: SOp) -> SOp:
        """Coordinate c of value j of head t."""
        row: int | SOp = j + self.first_key if self.first_key else j
        column = self.columns.value(t * self.shape.d_v + c)
        return fetch(projections, self.products["projections"].address(row, 0, column))

    def turn(self, projections: SOp) -> SOp:
        """Rotary positions: every coordinate with its partner, half a head away, one layer."""
        block, source = self.products["turned"], self.products["projections"]
        i, kind, t, a = block.digits()
        d_k, turns = self.shape.d_k, self.inputs["turns"]
        start = kind * (self.shape.heads * d_k) + t * d_k
        here = fetch(projections, source.address(i, 0, start + a))
        partner = fetch(projections, source.address(i, 0, start + (a + d_k // 2) % d_k))
        cosine, sine = (fetch(tokens, turns.address(i, a, k)) for k in range(2))
        return (here * cosine + partner * sine).named("turned")

    def weigh(self, unscaled: SOp) -> SOp:
        """Layer 4, and 5 if stable: the exponentials of the scores, at (t, i, j, .)."""
        score = unscaled / sqrt(self.shape.d_k)
        if self.shape.relative:
            t, i, j, _ = self.products["scores"].digits()
            score = score + fetch(tokens, self.inputs["relative"].address(t, i - j + (self.n - 1)))
        score = score.named("scores")
        if self.softmax == "plain":
            return exp(score).named("weights")
        block = self.products["scores"]
        key, query = block.groups(0, 1, 3, at={3: 0})
        row = self.seen(select(key, query, "=="), block)
        shifted = score - aggregate(hardmax(score, among=row), score).named("row_maximum")
        # A hidden key may score above the maximum of those seen; its weight is not used, but it
        # must stay finite.
        masked = self.shape.mask != "none" or self.shape.window is not None
        return exp(minimum(shifted, 0) if masked else shifted).named("weights")

    def mix(self, weights: SOp, projections: SOp) -> SOp:
        """The next two layers: means of weights times values, over the mean weight."""
        block = self.products["mixing"]
        t, i, j, c = block.digits()
        weight = fetch(weights, self.products["scores"].address(t, i, j, 0)).named("weight")
        v = self.value(projections, j, t, c).named("v")
        key, query = block.groups(0, 1, 3)
        keys = self.seen(select(key, query, "=="), block)
        return aggregate(keys, weight * v) / aggregate(keys, weight)

    def seen(self, keys: Selector, block: Block) -> Selector:
        """Of these keys, at (t, i, j, .), those that the target's mask lets row i see."""
        _, i, j, _ = block.digits()
        window = self.shape.window
        if window is not None:
            near = select(i - j < window, True, "==")
            keys = keys & (near if self.shape.mask == "causal" else near & _near(j - i, window))
        if self.shape.mask == "causal":
            return keys & select(j <= i, True, "==")
        if self.shape.mask == "padding":
            return keys & select(fetch(tokens, self.inputs["seen"].address(j)), 1, "==")
        return keys

    def map_out(self, heads: SOp) -> SOp:
        """The last two layers: the output map; its row of biases meets the default, 1."""
        block, source = self.products["output"], self.products["mixing"]
        i, e, g = block.digits()
        d_v, merged = self.shape.d_v, self.shape.merged
        address = source.address(e // d_v, i, 0, e % d_v)
        head = fetch(heads, where(e == merged, -1, address), default=1).named("head")
        w = fetch(tokens, self.inputs["WO"].address(e, g)).named("w_o")
        return (mean_over(block, (0, 2), head * w) * (merged + 1)).named("result")


def _near(distance: SOp, window: int) -> Selector:
    return select(distance < window, True, "==")
