"""U, constructions `native` and `pair`: rows as tokens, softmax heads that are the target's own.

`native` (two layers, one network for every n): a weight token holds a row of [W_Q | W_K | W_V];
look-up heads let every data token copy all of them, bilinear units form queries, keys and values,
and h softmax heads attend between data tokens. `pair` (three layers, narrow): the weight tokens
hold the columns, and a data row is repeated in one token for every column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raspire.errors import UnsupportedError
from raspire.simulator.networks.network import Network
from raspire.simulator.networks.rows import (
    DATA,
    WEIGHT,
    RowTokens,
    attend,
    data_columns,
    entries,
    products,
    turned,
)
from raspire.simulator.target import AttentionTarget, Shape
from raspire.simulator.universal import ConstructionName, UniversalSimulator
from raspire.simulator.weights import Array
from raspire.transformer import Builder, Form, LayerBuilder, Space, beside, read, write


def native_network(shape: Shape) -> Network:
    """The explicit weights of `native`, for every n.

    The input is (N, c) with ``c = d + 1 + m (+ d)``: the d + 1 rows of [W_Q | W_K | W_V], the
    rows of the output map, then X with its column of ones, one row a token.

    >>> native_network(Shape(d=3, heads=2, d_k=2, d_v=2, output=True)).cost.heads
    (9, 2)
    """
    b = Builder(f"U native, {shape}")
    matrices = {"W": (shape.inputs, shape.columns)}
    if shape.output:
        matrices["WO"] = (shape.merged + 1, shape.d)
    tokens = RowTokens(b, matrices, data_columns(shape))
    layer = b.layer()
    rows = tokens.copy(layer, "W")
    out = tokens.copy(layer, "WO") if shape.output else []
    projected = b.space("queries, keys, values", shape.columns)
    row = tokens.x.part(range(shape.inputs))
    products(layer, "projections", entries(row), rows, projected)
    scored = turned(b, shape, projected, tokens.x) if shape.rotary else None
    layer = b.layer()
    result = attend(b, layer, shape, projected, scored)
    if shape.output:
        result = _map_out(b, layer, tokens, result, out)
    b.numeric(read(result))
    tokens.embed()
    b.notes["construction"] = "native"

    def encode(target: AttentionTarget, x: ArrayLike, padding: ArrayLike | None) -> Array:
        contents = parts(target, x, padding)
        return tokens.stack(contents, seen_rows(contents))

    return Network("native", shape, b.build(), encode, lambda n: tokens.count + np.arange(n))


def parts(target: AttentionTarget, x: ArrayLike, padding: ArrayLike | None) -> dict[str, Array]:
    """X with its ones, [W_Q | W_K | W_V] with biases, W_O with biases, seen, as matrices.

    With rotary positions also the numbers by which each row is turned.
    """
    construction: ConstructionName = "long" if target.rotary is not None else "wide"
    program = UniversalSimulator.for_target(target, len(np.asarray(x)), construction)
    sequence = program.encode(target, x, padding)
    return {
        name: sequence[block.base : block.end].reshape(block.shape)
        for name, block in program.construction.inputs.items()
    }


def seen_rows(contents: dict[str, Array]) -> Array:
    """The rows of X, and what turns them; those that the padding hides are NaN."""
    rows = contents["X"].copy()
    if "turns" in contents:
        rows = np.hstack([rows, contents["turns"].reshape(len(rows), -1)])
    if "seen" in contents:
        rows[contents["seen"] == 0] = np.nan
    return rows


def _map_out(
    b: Builder, layer: LayerBuilder, tokens: RowTokens, heads: Space, rows: list[Space]
) -> Space:
    """Bilinear units: the heads times the copied output map, with its row of biases."""
    result = b.space("result", rows[0].size)
    products(layer, "output map", [*entries(heads), read(tokens.one)], rows, result)
    return result


def pair_network(n: int, shape: Shape) -> Network:
    """The explicit weights of `pair` for n rows: three layers, four with an output map.

    Tokens: the m columns of [W_Q | W_K | W_V], the rows of the output map, then one token for each
    row i and column c, in row-major order; the row of X stands in token (i, 0).

    >>> pair_network(2, Shape(d=3, heads=2, d_k=2, d_v=2, output=False)).cost.heads
    (2, 12, 2)
    """
    if shape.positional:
        raise UnsupportedError(
            f"the network `pair` has no {shape.positional}",
            hint="the network `native` has rotary positions, the program `long` all of them",
        )
    if shape.mask == "padding":
        raise UnsupportedError(
            "the network `pair` has no padding mask", hint="the network `native` has one"
        )
    return _Pair(n, shape).network()


class _Pair:
    """Layer 1: token (i, c) copies row i and column c; layer 2: token (i, 0) collects."""

    def __init__(self, n: int, shape: Shape) -> None:
        self.n, self.m, self.shape = n, shape.columns, shape
        self.b = Builder(f"U pair, n={n}, {shape}")
        matrices = {"W": (self.m, shape.inputs)}
        if shape.output:
            matrices["WO"] = (shape.merged + 1, shape.d)
        self.tokens = RowTokens(self.b, matrices, shape.inputs, after=(n + 1) * self.m)
        self.row, self.column = self.b.space("row token"), self.b.space("column token")

    def network(self) -> Network:
        """The layers; then how the input is laid out and read."""
        model, start, m = self._build(), self.tokens.count, self.m

        def encode(target: AttentionTarget, x: ArrayLike, padding: ArrayLike | None) -> Array:
            contents = parts(target, x, padding)
            entries_of_rows = np.zeros((self.n * m, self.shape.inputs))
            entries_of_rows[::m] = contents["X"]
            return self.tokens.stack({**contents, "W": contents["W"].T}, entries_of_rows)

        return Network("pair", self.shape, model, encode, lambda n: start + m * np.arange(n))

    def _build(self) -> Any:
        b, shape, tokens = self.b, self.shape, self.tokens
        layer = b.layer()
        row, column = b.space("copy of X[i]", shape.inputs), b.space("copy of W[c]", shape.inputs)
        self._copy(layer, "copy X[i]", self.row, 0, read(tokens.x), write(row))
        self._copy(layer, "copy W[c]", self.column, 0, read(tokens.kinds["W"]), write(column))
        entry = b.space("projection")
        target = write(entry, np.ones((shape.inputs, 1)))
        layer.units("projection", "bilinear", read(row), target, second=read(column))
        layer = b.layer()
        projected, source = b.space("queries, keys, values", self.m), read(entry)
        for c, label in enumerate(projected.labels):
            place = write(projected.part([label]))
            self._copy(layer, f"copy (i, {c})", self.row, c, source, place)
        result = attend(b, b.layer(), shape, projected)
        if shape.output:
            layer = b.layer()
            result = _map_out(b, layer, tokens, result, tokens.copy(layer, "WO"))
        b.numeric(read(result))
        self._embed()
        b.notes["construction"] = "pair"
        return b.build()

    def _copy(
        self, layer: LayerBuilder, name: str, at: Space, shift: int, source: Form, target: Form
    ) -> None:
        one = read(self.tokens.one)
        asked = read(at) + shift * one if shift else read(at)
        layer.head(
            name,
            query=beside(2 * asked, -one),
            key=self.tokens.key,
            value=source,
            output=target,
            gap=1.0,
            bound=self.tokens.bound,
            address=True,
        )

    def _embed(self) -> None:
        """Tokens that are idle ask for themselves."""
        start = self.tokens.count
        places, types = [], [WEIGHT] * start
        for p in range(start + self.n * self.m):
            i, c = divmod(p - start, self.m)
            data = p >= start
            row, column = (start + i * self.m, c) if data else (p, p)
            if data:
                types.append(DATA if c == 0 else "entry")
            places.append({**self.tokens.known(p), self.row: row, self.column: column})
        self.b.positions(places, types)
