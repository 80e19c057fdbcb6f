"""The building blocks of looped transformers (Giannou et al. 2023, arXiv 2301.13196), as networks.

Built from the paper's equations in the same form as everything here: softmax heads at a
temperature, one head a layer, a ReLU feed-forward part, positions coded by ±1 bits. Tokens are
the columns of matrices. Nothing is granted to a block that its paper does not have, except that
our networks use the fewest layers that we found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil, exp, log2
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raspire.transformer import (
    Builder,
    Form,
    LayerBuilder,
    Space,
    Transformer,
    beside,
    read,
    repeated,
    write,
)

Array = NDArray[np.float64]

GUARD = 2.0**12
"""Values of a block stay below this; a mask subtracts it before the ReLU."""


def bits_for(count: int) -> int:
    """How many ±1 bits tell ``count`` things apart."""
    return max(1, ceil(log2(count)))


def code(number: int, bits: int) -> list[float]:
    """A number in ±1 bits, with a constant 1 in front: equal codes score 2 above all others.

    >>> code(2, 2)
    [1.0, 1.0, -1.0]
    """
    return [1.0] + [1.0 if number >> b & 1 else -1.0 for b in reversed(range(bits))]


@dataclass
class Draft:
    """A network being written: rows of the positional embedding by token, and masks."""

    name: str
    temperature: float
    b: Builder = field(init=False)
    rows: list[dict[Space, Any]] = field(default_factory=list)
    defaults: dict[Space, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.b = Builder(self.name)
        self.one = self.b.space("one")

    def tokens(self, count: int) -> range:
        """``count`` more tokens; returns their positions."""
        start = len(self.rows)
        self.rows += [{self.one: 1.0} for _ in range(count)]
        return range(start, start + count)

    def set(self, place: int, space: Space, value: Any) -> None:
        """What the token at ``place`` knows in ``space``."""
        self.rows[place][space] = value

    def outside(self, name: str, places: range) -> Space:
        """A flag that is 0 at these tokens and 1 elsewhere: the complement, so masks are exact."""
        flag = self.b.space(name)
        self.defaults[flag] = 1.0
        for place in places:
            self.rows[place][flag] = 0.0
        return flag

    def head(
        self, layer: LayerBuilder, name: str, query: Form, key: Form, value: Form, output: Form
    ) -> None:
        """A softmax head at the temperature."""
        layer.head(
            name,
            query=query,
            key=key,
            value=value,
            output=output,
            kind="softmax",
            scale=self.temperature,
        )

    def finish(self, result: Form) -> Transformer:
        """The transformer, its positions in place."""
        self.b.positions([self.defaults | row for row in self.rows])
        self.b.numeric(result)
        return self.b.build()


def move(layer: LayerBuilder, name: str, source: Form, target: Form, guard: Form | None) -> None:
    """Add ``source`` to the target where ``guard`` is 0, and nothing where it is 1.

    ``relu(x - G guard) - relu(-x - G guard)``, exact for |x| below G.
    """
    off = guard if guard is None or guard.size == source.size else repeated(guard, source.size)
    plus, minus = source, -source
    if off is not None:
        plus, minus = source - GUARD * off, minus - GUARD * off
    layer.units(f"{name} +", "relu", plus, target)
    layer.units(f"{name} -", "relu", minus, -target)


def erase(layer: LayerBuilder, space: Space, guard: Form | None = None) -> None:
    """Empty a space by ReLU units, where ``guard`` is 0."""
    move(layer, f"erase {space.name}", read(space), -write(space), guard)


@dataclass(frozen=True)
class Linearised:
    """The constants of the product block: ``exp(s x) ≈ 1 + s x``, diluted by a token of score C.

    The error is about ``s x² / 2`` (Taylor) plus ``ulp(C) / s`` (cancellation): it has a floor.
    """

    scale: float = 2.0**-24
    constant: float = 20.0

    def head(
        self,
        layer: LayerBuilder,
        name: str,
        query: Form,
        key: Form,
        labels: Form,
        one: Form,
        diluter: Form,
        output: Form,
    ) -> None:
        """A head that puts ``key_i · query_j`` into column ``labels_i`` of the output at j.

        ``labels`` is the one-hot column of a key's token, ``diluter`` is 1 at one token only.
        """
        size = labels.size
        lifted = labels * (exp(self.constant) / self.scale)
        value = lifted - repeated(diluter, size) * (1 / self.scale)
        layer.head(
            name,
            query=beside(self.scale * query, one),
            key=beside(key, self.constant * diluter),
            value=value,
            output=output,
            kind="softmax",
        )


class Transposition:
    """Three layers that transpose the d columns held by source tokens into target tokens.

    A workspace token (i, j) copies column j and keeps entry i; swaps with (j, i); then target
    token j averages the tokens (., j), each with its number in slot i, times d.
    """

    def __init__(self, draft: Draft, d: int, sources: range, targets: range) -> None:
        self.draft, self.d = draft, d
        b, bits = draft.b, bits_for(d)
        self.work = draft.tokens(d * d)
        one = {"column query": bits, "column key": bits, "join query": bits, "join key": bits}
        two = {"swap query": 2 * bits, "swap key": 2 * bits}
        self.codes = {name: b.space(name, 1 + size) for name, size in (one | two).items()}
        self.off = b.space("not e_i", d)
        self.entry, self.buffer = b.space("entry"), b.space("buffer", d)
        self.spread = b.space("spread", d)
        self._know(sources, targets, bits)
        self.not_target = draft.outside("not a target", targets)

    def _know(self, sources: range, targets: range, bits: int) -> None:
        put, codes = self.draft.set, self.codes
        self.draft.defaults[self.off] = 1.0
        for j in range(self.d):
            put(sources[j], codes["column key"], code(j, bits))
            put(targets[j], codes["join query"], code(j, bits))
            for i in range(self.d):
                place = self.work[i * self.d + j]
                put(place, codes["column query"], code(j, bits))
                put(place, codes["join key"], code(j, bits))
                put(place, codes["swap key"], code(i << bits | j, 2 * bits))
                put(place, codes["swap query"], code(j << bits | i, 2 * bits))
                put(place, self.off, 1.0 - np.eye(self.d)[i])

    def write(self, source: Space, deliver: Form, guard: Form | None = None) -> LayerBuilder:
        """Add the layers; the result goes to ``deliver``, at targets and where ``guard`` is 0.

        Returns the last layer, to which more units may be added.
        """
        draft, codes = self.draft, {name: read(space) for name, space in self.codes.items()}
        layer = draft.b.layer()
        column, target = read(source), write(self.buffer)
        keys = codes["column query"], codes["column key"]
        draft.head(layer, "copy column j", *keys, column, target)
        ones = write(self.entry, np.ones((self.d, 1)))
        move(layer, "keep entry i", read(self.buffer), ones, read(self.off))
        erase(layer, self.buffer)
        layer = draft.b.layer()
        place = write(self.buffer.part([0]))
        draft.head(
            layer, "swap i, j", codes["swap query"], codes["swap key"], read(self.entry), place
        )
        moved = repeated(read(self.buffer.part([0])), self.d)
        move(layer, "put into slot i", moved, write(self.spread), read(self.off))
        erase(layer, self.buffer)
        erase(layer, self.entry)
        layer = draft.b.layer()
        total = read(self.spread) * float(self.d)
        keys = codes["join query"], codes["join key"]
        draft.head(layer, "join row", *keys, total, write(self.buffer))
        off = read(self.not_target) if guard is None else read(self.not_target) + guard
        move(layer, "deliver", read(self.buffer), deliver, off)
        erase(layer, self.buffer)
        erase(layer, self.spread)
        return layer


@dataclass(frozen=True, eq=False)
class LoopedNetwork:
    """A network of one block (or of a body, repeated), how its input is laid out and read."""

    name: str
    model: Transformer
    body: int
    loops: int

    @property
    def applications(self) -> int:
        """How many layers are applied: the body's, times the loops."""
        return len(self.model.layers)

    @property
    def length(self) -> int:
        """The number of tokens."""
        length = self.model.embedding.max_length
        assert length is not None
        return length

    def run(self, inputs: Mapping[int, ArrayLike], dtype: Any = np.float64) -> Array:
        """Outputs (length, size) for input vectors by token; other tokens receive zeros."""
        matrix = self.model.embedding.values
        assert matrix is not None
        values = np.zeros((self.length, matrix.shape[0]))
        for place, vector in inputs.items():
            values[place] = vector
        return np.asarray(self.model.logits(values[None], dtype=dtype)[0])


def repeat(model: Transformer, loops: int) -> Transformer:
    """The same layers, one loop after another: what a looped transformer applies."""
    return replace(model, layers=model.layers * loops)


@dataclass(frozen=True, eq=False)
class TransposeBlock:
    """A ↦ Aᵀ for d × d matrices with entries below GUARD: 3 layers, d + d² tokens."""

    d: int
    network: LoopedNetwork

    @classmethod
    def build(cls, d: int, temperature: float = 20.0) -> TransposeBlock:
        """The block at a temperature; its error is about ``2 N exp(-2 temperature)``."""
        draft = Draft(f"transposition {d}×{d}", temperature)
        columns = draft.tokens(d)
        x, result = draft.b.space("column", d), draft.b.space("result", d)
        draft.b.values(write(x))
        block = Transposition(draft, d, columns, columns)
        block.write(x, write(result))
        model = draft.finish(read(result))
        return cls(d, LoopedNetwork("transposition", model, 3, 1))

    def __call__(self, a: ArrayLike, dtype: Any = np.float64) -> Array:
        """Aᵀ."""
        inputs = dict(enumerate(np.asarray(a, dtype=np.float64).T))
        return self.network.run(inputs, dtype)[: self.d].T


@dataclass(frozen=True, eq=False)
class ProductBlock:
    """(A, B) ↦ AᵀB for A d × m and B d × n: one layer, m + n + 1 tokens, linearised softmax."""

    m: int
    n: int
    network: LoopedNetwork

    @classmethod
    def build(cls, d: int, m: int, n: int, constants: Linearised | None = None) -> ProductBlock:
        """The block; its error has a floor of about 6e-8 in binary64 for entries near 1."""
        draft = Draft(f"product {m}×{d}×{n}", 1.0)
        draft.tokens(m + n + 1)
        a, b = draft.b.space("column of A", d), draft.b.space("column of B", d)
        label, result = draft.b.space("label", m), draft.b.space("result", m)
        diluter = draft.b.space("diluter")
        for i in range(m):
            draft.set(i, label, np.eye(m)[i])
        draft.set(m + n, diluter, 1.0)
        draft.b.values(beside(write(a), write(b)))
        layer, one = draft.b.layer(), read(draft.one)
        (constants or Linearised()).head(
            layer, "AᵀB", read(b), read(a), read(label), one, read(diluter), write(result)
        )
        return cls(m, n, LoopedNetwork("product", draft.finish(read(result)), 1, 1))

    def __call__(self, a: ArrayLike, b: ArrayLike, dtype: Any = np.float64) -> Array:
        """AᵀB."""
        left, right = np.asarray(a, dtype=np.float64).T, np.asarray(b, dtype=np.float64).T
        zeros = np.zeros(left.shape[1])
        inputs: dict[int, Any] = {i: np.concatenate([c, zeros]) for i, c in enumerate(left)}
        inputs |= {self.m + j: np.concatenate([zeros, c]) for j, c in enumerate(right)}
        return self.network.run(inputs, dtype)[self.m : self.m + self.n].T
