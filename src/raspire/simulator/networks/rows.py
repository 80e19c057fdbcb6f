"""Networks whose tokens are rows: matrices one row a token, then the data.

A token's input is the concatenation of all kinds of rows, zero but for its own kind. The weight
tokens know their place; a data token knows only that it is one, and positions past the table
repeat its last row, so that one network serves every number of data tokens. A row of NaN is
padding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np
from scipy import sparse

from raspire.errors import UnsupportedError
from raspire.simulator.target import Shape
from raspire.simulator.weights import Array
from raspire.transformer import Builder, Form, LayerBuilder, Space, beside, read, repeated, write

DATA, WEIGHT = "data", "weight"


class RowTokens:
    """The spaces and the embedding of row tokens; heads that copy whole matrices, row by row.

    ``matrices`` gives rows and columns of each, in the order of the tokens; ``data`` is the
    number of columns of a data token.
    """

    def __init__(
        self, b: Builder, matrices: Mapping[str, tuple[int, int]], data: int, after: int = 1
    ) -> None:
        self.b, self.matrices = b, dict(matrices)
        self.one, self.here, self.square = (b.space(s) for s in ("one", "here", "here²"))
        self.x = b.space("row of X", data)
        self.kinds = {name: b.space(f"row of {name}", c) for name, (_, c) in matrices.items()}
        b.values(beside(write(self.x), *(write(kind) for kind in self.kinds.values())))
        counts = [rows for rows, _ in matrices.values()]
        self.starts = dict(zip(matrices, np.cumsum([0, *counts]).tolist(), strict=False))
        self.count = sum(counts)
        self.bound = 2.0 * (self.count + after) ** 2
        self.key = beside(read(self.here), read(self.square))

    def copy(self, layer: LayerBuilder, name: str) -> list[Space]:
        """Heads by which every token copies all rows of a matrix; the copies, row by row."""
        rows, columns = self.matrices[name]
        source = read(self.kinds[name])
        copies = []
        for r in range(rows):
            copies.append(self.b.space(f"copy of {name}[{r}]", columns))
            self.fetch(layer, f"copy {name}[{r}]", self.starts[name] + r, source, copies[-1])
        return copies

    def fetch(self, layer: LayerBuilder, name: str, at: int, source: Form, target: Space) -> None:
        """A head by which every token copies from the weight token at a fixed place."""
        layer.head(
            name,
            query=beside(2.0 * at * read(self.one), -read(self.one)),
            key=self.key,
            value=source,
            output=write(target),
            keys=[WEIGHT],
            gap=1.0,
            bound=self.bound,
            address=True,
        )

    def known(self, place: int) -> dict[Space, Any]:
        """What a token at this place knows of it."""
        return {self.one: 1.0, self.here: place, self.square: place * place}

    def embed(self) -> None:
        """The positional embedding: the weight tokens, then the data, however many."""
        rows = [self.known(place) for place in range(self.count + 1)]
        self.b.positions(rows, [WEIGHT] * self.count + [DATA], extend=True)

    def stack(self, contents: Mapping[str, Array], x: Array) -> Array:
        """The input (N, c): every matrix's rows in the columns of its kind, then the data."""
        sizes = [self.x.size, *(columns for _, columns in self.matrices.values())]
        starts = np.cumsum([0, *sizes])
        blocks = [(contents[name], k) for k, name in enumerate(self.matrices, 1)]
        rows = []
        for values, k in [*blocks, (x, 0)]:
            block = np.zeros((len(values), starts[-1]))
            block[:, starts[k] : starts[k + 1]] = values
            rows.append(block)
        return np.vstack(rows)


def products(
    layer: LayerBuilder, name: str, factors: Sequence[Form], rows: Sequence[Space], result: Space
) -> None:
    """``result[c] += sum_b factor_b · rows_b[c]``: one bilinear unit for each b and c."""
    size = result.size
    spread = [repeated(factor, size) for factor in factors]
    first, second = beside(*spread), beside(*(read(row) for row in rows))
    target = write(result, sparse.vstack([sparse.eye_array(size)] * len(rows)))
    layer.units(name, "bilinear", first, target, second=second)


def entries(space: Space) -> list[Form]:
    """The columns of a space, each a form of its own."""
    return [read(space.part([label])) for label in space.labels]


def data_columns(shape: Shape) -> int:
    """The columns of a data token: a row of X with its one, and two numbers a coordinate to turn.

    Raises UnsupportedError for what a softmax head of its own cannot see or score.
    """
    if shape.relative or shape.window is not None:
        raise UnsupportedError(
            f"networks of row tokens have no {shape.positional}",
            expected="an attention layer with rotary positions at most",
            hint="the program `long` has windows and biases by distance",
        )
    return shape.inputs + (2 * shape.d_k if shape.rotary else 0)


def turned(b: Builder, shape: Shape, projected: Space, data: Space) -> Space:
    """Rotary positions, a layer of bilinear units: each coordinate and its partner, turned.

    A data token holds a cosine and a signed sine for every coordinate of a head.
    """
    width, count = shape.d_k, 2 * shape.heads  # heads of queries, then of keys
    result, layer = b.space("turned queries, keys", count * width), b.layer()
    here = np.arange(width)
    for kind, order in enumerate((here, (here + width // 2) % width)):
        numbers = read(data.part((shape.inputs + 2 * here + kind).tolist()))
        factors = [read(projected.part((t * width + order).tolist())) for t in range(count)]
        second = beside(*[numbers] * count)
        layer.units(("cosine", "sine")[kind], "bilinear", beside(*factors), write(result),
                    second=second)  # fmt: skip
    return result


def attend(
    b: Builder,
    layer: LayerBuilder,
    shape: Shape,
    projected: Space,
    scored: Space | None = None,
) -> Space:
    """The target's own heads: softmax over the data tokens, at the target's scale.

    Queries and keys are read from ``scored`` where they were turned.
    """
    result, scored = b.space("heads", shape.merged), scored or projected
    for t in range(shape.heads):
        q = range(t * shape.d_k, (t + 1) * shape.d_k)
        k = (shape.heads * shape.d_k + c for c in q)
        v = range(t * shape.d_v, (t + 1) * shape.d_v)
        layer.head(
            f"target head {t}",
            query=read(scored.part(q)),
            key=read(scored.part(k)),
            value=read(projected.part(2 * shape.heads * shape.d_k + c for c in v)),
            output=write(result.part(v)),
            kind="softmax",
            scale=1 / sqrt(shape.d_k),
            causal=shape.mask == "causal",
            keys=[DATA],
        )
    return result
