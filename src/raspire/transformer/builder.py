"""Write a transformer down: spaces, an embedding, heads and units by name, an unembedding."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from raspire.errors import RaspValueError
from raspire.transformer.check import check
from raspire.transformer.families import gate_of
from raspire.transformer.form import Form, nothing, read, write
from raspire.transformer.layer import Head, Kind, Layer, Mask, Units
from raspire.transformer.model import Embedding, Transformer, Unembedding
from raspire.transformer.space import Space, Stream

Bias = ArrayLike | float | None
Row = Mapping[Space, ArrayLike | float]


@dataclass
class _Head:
    name: str
    query: Form
    key: Form
    value: Form
    output: Form
    options: dict[str, Any]

    def freeze(self, width: int) -> Head:
        q, k, v = (form.reader(width) for form in (self.query, self.key, self.value))
        return Head(self.name, q, k, v, self.output.writer(width), **self.options)


@dataclass
class _Units:
    name: str
    family: str
    first: Form
    first_bias: Bias
    second: Form | None
    second_bias: Bias
    output: Form

    def freeze(self, width: int) -> Units:
        return Units(
            self.name,
            self.family,
            self.first.reader(width),
            _bias(self.first_bias, self.first.size),
            self.output.writer(width),
            None if self.second is None else self.second.reader(width),
            None if self.second is None else _bias(self.second_bias, self.second.size),
        )


@dataclass
class LayerBuilder:
    """One layer being written; its heads all run before its units."""

    _heads: list[_Head] = field(default_factory=list)
    _units: list[_Units] = field(default_factory=list)

    def head(
        self,
        name: str,
        *,
        query: Form,
        key: Form,
        value: Form,
        output: Form,
        kind: Kind = "average-hard",
        scale: float = 1.0,
        causal: bool = False,
        keys: Iterable[str] | None = None,
        gap: float | None = None,
        bound: float | None = None,
        address: bool = False,
    ) -> None:
        """Add a head; query and key have one size, value and output have one size."""
        mask = Mask(causal, None if keys is None else frozenset(keys))
        options = {
            "kind": kind,
            "scale": scale,
            "mask": mask,
            "gap": gap,
            "bound": bound,
            "address": address,
        }
        self._heads.append(_Head(name, query, key, value, output, options))

    def units(
        self,
        name: str,
        family: str,
        first: Form | None,
        output: Form,
        *,
        bias: Bias = None,
        second: Form | None = None,
        second_bias: Bias = None,
    ) -> None:
        """Add units of one family.

        A gated family with ``first=None`` has the constant first branch ``bias`` (1 if there is
        none): it computes ``f(second)`` alone.
        """
        if first is None:
            first, bias = nothing(output.size), 1.0 if bias is None else bias
        if gate_of(family) is not None and second is None:
            second = nothing(output.size)
        self._units.append(_Units(name, family, first, bias, second, second_bias, output))

    def erase(self, space: Space, name: str | None = None) -> None:
        """Add linear units that empty a space: what the same layer writes there is fresh."""
        self.units(name or f"erase {space.name}", "linear", read(space), -write(space))

    def freeze(self, width: int) -> Layer:
        """The finished layer."""
        return Layer(
            tuple(head.freeze(width) for head in self._heads),
            tuple(units.freeze(width) for units in self._units),
        )


class Builder:
    """Collects a transformer and freezes it, checked, with :meth:`build`.

    >>> from raspire.transformer import beside, read, write
    >>> b = Builder("next letter")
    >>> one, here, letter, found = (b.space(n) for n in ("one", "here", "letter", "found"))
    >>> square = b.space("square")
    >>> b.tokens({"a": {letter: 1.0, one: 1.0}, "b": {letter: 2.0, one: 1.0}})
    >>> b.positions([{here: i, square: i * i} for i in range(8)])
    >>> layer = b.layer()
    >>> at_next = beside(2 * (read(here) + read(one)), -read(one))
    >>> layer.head("next", query=at_next, key=beside(read(here), read(square)),
    ...            value=read(letter), output=write(found), gap=1.0, address=True)
    >>> b.numeric(read(found))
    >>> b.build().run("abba")
    [2.0, 2.0, 1.0, 1.0]
    """

    def __init__(self, name: str = "transformer", stream: Stream | None = None) -> None:
        self.name = name
        self.stream = Stream() if stream is None else stream
        self.notes: dict[str, Any] = {}
        self._layers: list[LayerBuilder] = []
        self._tokens: list[tuple[Hashable, Row]] | None = None
        self._special: dict[str, int | None] = {"bos": None, "pad": None}
        self._positions: sparse.sparray | Sequence[Row] | None = None
        self._types: tuple[str, ...] | None = None
        self._extend = False
        self._values: Form | None = None
        self._unembedding: tuple[Form, Any, tuple[Hashable, ...]] | None = None

    def space(self, name: str, labels: Iterable[Hashable] | int = 1) -> Space:
        """A new residual space (the lowest free slots)."""
        return self.stream.space(name, labels)

    def tokens(
        self,
        rows: Mapping[Any, Row] | Sequence[tuple[Any, Row]],
        *,
        bos: Hashable | None = None,
        pad: Hashable | None = None,
    ) -> None:
        """The token embedding: what every token writes; ``bos`` and ``pad`` are among the rows."""
        self._tokens = list(rows.items() if isinstance(rows, Mapping) else rows)
        vocabulary = [token for token, _ in self._tokens]
        self._special = {
            "bos": None if bos is None else vocabulary.index(bos),
            "pad": None if pad is None else vocabulary.index(pad),
        }

    def positions(
        self,
        rows: Sequence[Row] | sparse.sparray,
        types: Sequence[str] | None = None,
        *,
        extend: bool = False,
    ) -> None:
        """The positional embedding: rows, or a sparse (length, width) matrix; position types."""
        self._positions = rows
        self._types = None if types is None else tuple(types)
        self._extend = extend

    def values(self, target: Form) -> None:
        """Real-valued input of ``target.size`` numbers a position, written by ``target``."""
        self._values = target

    def layer(self) -> LayerBuilder:
        """A new layer after those there are."""
        self._layers.append(LayerBuilder())
        return self._layers[-1]

    def categorical(self, logits: Form, labels: Iterable[Hashable]) -> None:
        """The output is the label of the largest logit (the first of equals)."""
        self._unembedding = (logits, "categorical", tuple(labels))

    def numeric(self, value: Form, labels: Iterable[Hashable] | None = None) -> None:
        """The output is a number (or a row of them); a column labelled None flags a missing one."""
        names = tuple(range(value.size)) if labels is None else tuple(labels)
        self._unembedding = (value, "numeric", names)

    def build(self) -> Transformer:
        """The transformer, with every shape checked; an error names the layer and the head."""
        width = self.stream.width
        if self._unembedding is None:
            raise RaspValueError(f"transformer {self.name!r} has no unembedding")
        logits, kind, labels = self._unembedding
        model = Transformer(
            self.name,
            width,
            self._embedding(width),
            tuple(layer.freeze(width) for layer in self._layers),
            Unembedding(logits.reader(width), kind, labels),
            tuple(self.stream.spaces),
            dict(self.notes),
        )
        check(model)
        return model

    def _embedding(self, width: int) -> Embedding:
        positions = self._positions
        if positions is not None and not sparse.issparse(positions):
            positions = _rows(positions, width)
        elif positions is not None:
            positions = sparse.csr_array(positions)
            positions.resize((positions.shape[0], width))
        return Embedding(
            None if self._tokens is None else _rows([row for _, row in self._tokens], width),
            () if self._tokens is None else tuple(token for token, _ in self._tokens),
            self._special["bos"],
            self._special["pad"],
            positions,
            self._types,
            self._extend,
            None if self._values is None else self._values.writer(width),
        )


def _bias(bias: Bias, size: int) -> NDArray[np.float64]:
    value = np.zeros(size) if bias is None else np.asarray(bias, dtype=np.float64)
    return np.broadcast_to(value, (size,)).copy()


def _rows(rows: Iterable[Row], width: int) -> sparse.csr_array:
    where: list[int] = []
    slots: list[int] = []
    entries: list[float] = []
    count = 0
    for count, row in enumerate(rows, 1):
        for space, value in row.items():
            numbers = np.broadcast_to(np.asarray(value, dtype=np.float64), (space.size,))
            where += [count - 1] * space.size
            slots += space.slots
            entries += numbers.tolist()
    matrix = sparse.csr_array((entries, (where, slots)), shape=(count, width))
    matrix.eliminate_zeros()
    return matrix
