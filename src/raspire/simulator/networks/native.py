"""U, constructions `native` and `pair`: rows as tokens, softmax heads that are the target's own.

`native` (two layers, one network for every n): a weight token holds a row of [W_Q | W_K | W_V];
look-up heads let every data token copy all of them, bilinear units form queries, keys and values,
and h softmax heads attend between data tokens. `pair` (three layers, narrow): the weight tokens
hold the columns, and a data row is repeated in one token for every column.

Positions past the table repeat its last row, so nothing depends on n in `native`; a row of NaN is
padding, and a causal target makes U's own softmax heads causal.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from raspire.errors import UnsupportedError
from raspire.simulator.networks.network import Network
from raspire.simulator.target import AttentionTarget, Shape
from raspire.simulator.universal import UniversalSimulator
from raspire.simulator.weights import Array
from raspire.transformer import Builder, Form, LayerBuilder, Space, beside, read, repeated, write

DATA, WEIGHT, OUT = "data", "weight", "out"


def native_network(shape: Shape) -> Network:
    """The explicit weights of `native`, for every n.

    The input is (N, c) with ``c = d + 1 + m (+ d)``: first the d + 1 weight tokens, then the rows
    of the output map, then X with its column of ones, one row a token.

    >>> native_network(Shape(d=3, heads=2, d_k=2, d_v=2, output=True)).cost.heads
    (9, 2)
    """
    model = _Native(shape).build()
    rows = shape.inputs + _out_rows(shape)

    def encode(target: AttentionTarget, x: ArrayLike, padding: ArrayLike | None) -> Array:
        return native_input(target, x, padding)

    return Network("native", shape, model, encode, lambda n: np.arange(rows, rows + n))


def native_input(target: AttentionTarget, x: ArrayLike, padding: ArrayLike | None = None) -> Array:
    """⟨T, X⟩ as rows: weight tokens, tokens of the output map, data tokens."""
    shape, contents = target.shape, parts(target, x, padding)
    sizes = [shape.inputs, shape.columns] + ([shape.d] if shape.output else [])
    starts = np.cumsum([0, *sizes])
    blocks = [("W", 1)] + ([("WO", 2)] if shape.output else []) + [("X", 0)]
    rows = []
    for name, place in blocks:
        block = np.zeros((len(contents[name]), starts[-1]))
        block[:, starts[place] : starts[place + 1]] = contents[name]
        rows.append(block)
    if "seen" in contents:
        rows[-1][contents["seen"] == 0] = np.nan
    return np.vstack(rows)


def parts(target: AttentionTarget, x: ArrayLike, padding: ArrayLike | None) -> dict[str, Array]:
    """X with its ones, [W_Q | W_K | W_V] with biases, W_O with biases, seen, as matrices."""
    program = UniversalSimulator.for_target(target, len(np.asarray(x)), "wide")
    sequence = program.encode(target, x, padding)
    return {
        name: sequence[block.base : block.end].reshape(block.shape)
        for name, block in program.construction.inputs.items()
    }


def _out_rows(shape: Shape) -> int:
    return shape.merged + 1 if shape.output else 0


class _Rows:
    """What `native` and `pair` share: the token kinds, the target's heads, the output map."""

    def __init__(self, name: str, shape: Shape) -> None:
        self.shape = shape
        self.b = Builder(f"U {name}, {shape}")
        self.one, self.here, self.square = (self.b.space(s) for s in ("one", "here", "here²"))
        self.x = self.b.space("row of X", shape.inputs)
        self.w = self.b.space("row of W", shape.columns if name == "native" else shape.inputs)
        self.wo = self.b.space("row of W_O", shape.d) if shape.output else None
        parts = [self.x, self.w] + ([self.wo] if self.wo else [])
        self.b.values(beside(*(write(part) for part in parts)))
        self.key = beside(read(self.here), read(self.square))

    def fetch(self, layer: LayerBuilder, name: str, at: int, source: Form, target: Space) -> None:
        """A head by which every position copies the token at a fixed place."""
        query = beside(2.0 * at * read(self.one), -read(self.one))
        layer.head(
            name,
            query=query,
            key=self.key,
            value=source,
            output=write(target),
            keys=[WEIGHT, OUT],
            gap=1.0,
            bound=2.0 * self.tokens**2,
            address=True,
        )

    @property
    def tokens(self) -> int:
        """The tokens before the data."""
        return self.shape.inputs + _out_rows(self.shape)

    def attend(self, layer: LayerBuilder, projected: Space) -> Space:
        """The target's own heads: softmax over the data tokens, at the target's scale."""
        shape = self.shape
        result = self.b.space("heads", shape.merged)
        for t in range(shape.heads):
            q, k = (t * shape.d_k + np.arange(shape.d_k) for _ in range(2))
            k = k + shape.heads * shape.d_k
            v = 2 * shape.heads * shape.d_k + t * shape.d_v + np.arange(shape.d_v)
            layer.head(
                f"target head {t}",
                query=read(projected.part(q.tolist())),
                key=read(projected.part(k.tolist())),
                value=read(projected.part(v.tolist())),
                output=write(result.part(range(t * shape.d_v, (t + 1) * shape.d_v))),
                kind="softmax",
                scale=1 / sqrt(shape.d_k),
                causal=shape.mask == "causal",
                keys=[DATA],
            )
        return result

    def copy_out(self, layer: LayerBuilder, first: int) -> list[Space]:
        """Heads that copy every row of the output map."""
        assert self.wo is not None
        source, rows = read(self.wo), []
        for e in range(self.shape.merged + 1):
            rows.append(self.b.space(f"copy of W_O[{e}]", self.shape.d))
            self.fetch(layer, f"copy W_O[{e}]", first + e, source, rows[-1])
        return rows

    def map_out(self, layer: LayerBuilder, heads: Space, rows: list[Space]) -> Space:
        """Bilinear units: the heads times the copied output map, with its row of biases."""
        result = self.b.space("result", self.shape.d)
        factors = [read(heads.part([e])) for e in range(self.shape.merged)] + [read(self.one)]
        products(layer, "output map", factors, rows, result)
        return result


def products(
    layer: LayerBuilder, name: str, factors: list[Form], rows: list[Space], result: Space
) -> None:
    """``result[c] += sum_b factor_b · rows_b[c]``: one bilinear unit for each b and c."""
    size = result.size
    spread = [repeated(factor, size) for factor in factors]
    first, second = beside(*spread), beside(*(read(row) for row in rows))
    eye = sparse.eye_array(size)
    target = write(result, sparse.vstack([eye] * len(rows)))
    layer.units(name, "bilinear", first, target, second=second)


class _Native(_Rows):
    def __init__(self, shape: Shape) -> None:
        super().__init__("native", shape)

    def build(self) -> Any:
        shape = self.shape
        layer = self.b.layer()
        source, rows = read(self.w), []
        for c in range(shape.inputs):
            rows.append(self.b.space(f"copy of W[{c}]", shape.columns))
            self.fetch(layer, f"copy W[{c}]", c, source, rows[-1])
        out = self.copy_out(layer, shape.inputs) if shape.output else []
        projected = self.b.space("queries, keys, values", shape.columns)
        factors = [read(self.x.part([c])) for c in range(shape.inputs)]
        products(layer, "projections", factors, rows, projected)
        layer = self.b.layer()
        result = self.attend(layer, projected)
        if shape.output:
            result = self.map_out(layer, result, out)
        self.b.numeric(read(result))
        self._embed()
        self.b.notes["construction"] = "native"
        return self.b.build()

    def _embed(self) -> None:
        """The tokens before the data know their place; a data token knows only that it is one."""
        places = [{self.one: 1.0, self.here: p, self.square: p * p} for p in range(self.tokens + 1)]
        types = [WEIGHT] * self.shape.inputs + [OUT] * _out_rows(self.shape) + [DATA]
        self.b.positions(places, types, extend=True)


def pair_network(n: int, shape: Shape) -> Network:
    """The explicit weights of `pair` for n rows: three layers, four with an output map.

    Tokens: the m columns of [W_Q | W_K | W_V], the rows of the output map, then one token for each
    row i and column c, in row-major order; the row of X stands in token (i, 0).

    >>> pair_network(2, Shape(d=3, heads=2, d_k=2, d_v=2, output=False)).cost.heads
    (2, 12, 2)
    """
    if shape.mask == "padding":
        raise UnsupportedError(
            "the network `pair` has no padding mask", hint="the network `native` has one"
        )
    model = _Pair(n, shape).build()
    start = shape.columns + _out_rows(shape)

    def encode(target: AttentionTarget, x: ArrayLike, padding: ArrayLike | None) -> Array:
        return _pair_input(target, x)

    def positions(rows: int) -> Any:
        return start + np.arange(rows) * shape.columns

    return Network("pair", shape, model, encode, positions)


def _pair_input(target: AttentionTarget, x: ArrayLike) -> Array:
    shape, contents = target.shape, parts(target, x, None)
    n, m, d = len(contents["X"]), shape.columns, shape.inputs
    sequence = np.zeros((m + _out_rows(shape) + n * m, 2 * d + (shape.d if shape.output else 0)))
    sequence[:m, d : 2 * d] = contents["W"].T
    if shape.output:
        sequence[m : m + shape.merged + 1, 2 * d :] = contents["WO"]
    sequence[m + _out_rows(shape) :: m, :d] = contents["X"]
    return sequence


class _Pair(_Rows):
    """Layer 1: token (i, c) copies row i and column c; layer 2: token (i, 0) collects."""

    def __init__(self, n: int, shape: Shape) -> None:
        super().__init__("pair", shape)
        self.n, self.m = n, shape.columns
        names = ("row token", "column token")
        self.at = {name: self.b.space(name) for name in names}

    @property
    def tokens(self) -> int:
        return self.m + _out_rows(self.shape) + self.n * self.m

    def build(self) -> Any:
        shape, b = self.shape, self.b
        layer = b.layer()
        row, column = b.space("copy of X[i]", shape.inputs), b.space("copy of W[c]", shape.inputs)
        self._copy(layer, "copy X[i]", self.at["row token"], 0, read(self.x), write(row))
        self._copy(layer, "copy W[c]", self.at["column token"], 0, read(self.w), write(column))
        entry = b.space("projection")
        target = write(entry, np.ones((shape.inputs, 1)))
        layer.units("projection", "bilinear", read(row), target, second=read(column))
        layer = b.layer()
        projected = b.space("queries, keys, values", self.m)
        source = read(entry)
        for c in range(self.m):
            place = write(projected.part([c]))
            self._copy(layer, f"copy (i, {c})", self.at["row token"], c, source, place)
        layer = b.layer()
        result = self.attend(layer, projected)
        if shape.output:
            layer = b.layer()
            rows = self.copy_out(layer, self.m)
            result = self.map_out(layer, result, rows)
        b.numeric(read(result))
        self._embed()
        b.notes["construction"] = "pair"
        return b.build()

    def _copy(
        self, layer: LayerBuilder, name: str, at: Space, shift: int, source: Form, target: Form
    ) -> None:
        asked = read(at) + shift * read(self.one) if shift else read(at)
        layer.head(
            name,
            query=beside(2 * asked, -read(self.one)),
            key=self.key,
            value=source,
            output=target,
            gap=1.0,
            bound=2.0 * (self.tokens + self.m) ** 2,
            address=True,
        )

    def _embed(self) -> None:
        """Tokens that are idle ask for themselves."""
        start = self.m + _out_rows(self.shape)
        places, types = [], [WEIGHT] * self.m + [OUT] * _out_rows(self.shape)
        for p in range(self.tokens):
            i, c = divmod(p - start, self.m)
            data = p >= start
            row, column = (start + i * self.m, c) if data else (p, p)
            if data:
                types.append(DATA if c == 0 else "entry")
            known = {self.one: 1.0, self.here: p, self.square: p * p}
            places.append({**known, self.at["row token"]: row, self.at["column token"]: column})
        self.b.positions(places, types)
