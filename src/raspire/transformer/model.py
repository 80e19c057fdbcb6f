"""A transformer as data: embedding, layers, unembedding, and the names of its spaces."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from raspire.errors import RaspValueError
from raspire.given import elements
from raspire.transformer.layer import Head, Layer
from raspire.transformer.space import Space

BOS_TYPE, PAD_TYPE, TOKEN_TYPE = "bos", "pad", "token"


@dataclass(frozen=True, eq=False)
class Embedding:
    """How an input becomes a residual stream.

    A row of the stream is ``tokens[id] + positions[p] + value · values``. ``vocabulary[id]`` is
    the token of an id; ``bos`` and ``pad`` are ids. ``types[p]`` is the type of position p (what
    key masks speak of); padding has type "pad", the beginning of sequence "bos", all others
    "token" where no types are given. With ``extend`` positions past the last row of the table
    read its last row, otherwise they are an error.
    """

    tokens: sparse.csr_array | None = None
    vocabulary: tuple[Hashable, ...] = ()
    bos: int | None = None
    pad: int | None = None
    positions: sparse.csr_array | None = None
    types: tuple[str, ...] | None = None
    extend: bool = False
    values: sparse.csr_array | None = None

    @property
    def max_length(self) -> int | None:
        """The largest input length, the beginning of sequence counted, or None for any."""
        if self.positions is None or self.extend:
            return None
        return int(self.positions.shape[0])

    def encode(self, symbols: Sequence[Hashable]) -> list[int]:
        """Token ids of a sequence, the beginning of sequence first if the model has one."""
        specials = (self.bos, self.pad)
        ids = {_key(s): i for i, s in enumerate(self.vocabulary) if i not in specials}
        unknown = [s for s in symbols if _key(s) not in ids]
        if unknown:
            raise RaspValueError(
                f"the token {unknown[0]!r} is not in the model's alphabet",
                expected=", ".join(repr(symbol) for _, symbol in list(ids)[:20]),
            )
        start = [] if self.bos is None else [self.bos]
        return start + [ids[_key(s)] for s in symbols]


def _key(symbol: Hashable) -> tuple[bool, Hashable]:
    """Truth values apart from the numbers that Python calls equal to them."""
    return isinstance(symbol, bool), symbol


@dataclass(frozen=True, eq=False)
class Unembedding:
    """How a stream becomes an output: ``logits = h · matrix`` at every position.

    ``categorical``: the output is ``labels[argmax(logits)]`` (the first of equals). ``numeric``:
    the output is the logits themselves, one number when there is one column; a column labelled
    None is a flag, and where it is over one half the output is None.
    """

    matrix: sparse.csc_array
    kind: Literal["categorical", "numeric"]
    labels: tuple[Hashable, ...]

    def decode(self, logits: NDArray[Any]) -> list[Any]:
        """The outputs of logits (length, labels), as Python values."""
        if self.kind == "categorical":
            return [self.labels[i] for i in np.argmax(logits, axis=-1)]
        if None in self.labels:
            flag = self.labels.index(None)
            rest = np.delete(logits, flag, axis=-1)
            found = [None if f > 0.5 else r for f, r in zip(logits[:, flag], rest, strict=True)]
        else:
            found = list(logits)
        return [r if r is None else (float(r[0]) if len(r) == 1 else r.tolist()) for r in found]


@dataclass(frozen=True, eq=False)
class Transformer:
    """A whole transformer; ``spaces`` name the slots of its residual stream (slots may be reused).

    ``notes`` carries what travels with the weights and is not one: the record of what was
    certified, the source, the map from spaces to expressions.
    """

    name: str
    width: int
    embedding: Embedding
    layers: tuple[Layer, ...]
    unembedding: Unembedding
    spaces: tuple[Space, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)

    def heads(self) -> list[tuple[int, int, Head]]:
        """Every head with its layer and its place in the layer."""
        return [(i, j, head) for i, la in enumerate(self.layers) for j, head in enumerate(la.heads)]

    def logits(self, inputs: ArrayLike, **options: Any) -> NDArray[Any]:
        """Logits (batch, length, labels) of token ids or values; see :func:`forward.forward`."""
        from raspire.transformer.forward import forward

        return forward(self, inputs, **options)

    def run(self, symbols: Sequence[Any], **options: Any) -> list[Any]:
        """The outputs of one sequence (without beginning of sequence), as Python values."""
        return self.batch([symbols], **options)[0]

    def batch(self, sequences: Sequence[Sequence[Any]], **options: Any) -> list[list[Any]]:
        """The outputs of several sequences of possibly unequal lengths, padded and masked."""
        sequences = [elements("an input", s) for s in elements("a batch", sequences)]
        if not sequences:
            return []
        inputs = self.inputs(sequences)
        logits = self.logits(inputs, **options)
        start = self.start
        return [
            self.unembedding.decode(rows[start : start + len(sequence)])
            for rows, sequence in zip(logits, sequences, strict=True)
        ]

    @property
    def start(self) -> int:
        """The position of the first symbol: 1 after a beginning of sequence, else 0."""
        types = self.embedding.types
        begins = self.embedding.bos is not None or (types is not None and types[0] == BOS_TYPE)
        return int(begins)

    def inputs(self, sequences: Sequence[Sequence[Any]]) -> NDArray[Any]:
        """Several sequences as one array: token ids (int64), or values (float64, NaN pads)."""
        embedding = self.embedding
        if embedding.tokens is not None:
            rows: list[Any] = [embedding.encode(s) for s in sequences]
            filler: Any = embedding.pad
        else:
            size = 1 if embedding.values is None else int(embedding.values.shape[0])
            zero, filler = (0.0, np.nan) if size == 1 else ([0.0] * size, [np.nan] * size)
            rows = [[zero] * self.start + list(s) for s in sequences]
        longest = max((len(r) for r in rows), default=0)
        if filler is None and any(len(r) != longest for r in rows):
            raise RaspValueError(
                "sequences of unequal lengths need padding, and this model has no padding token"
            )
        kind = np.int64 if embedding.tokens is not None else np.float64
        found = np.asarray([list(r) + [filler] * (longest - len(r)) for r in rows], dtype=kind)
        if embedding.tokens is None and any(
            np.isnan(values[: len(row)]).any() for values, row in zip(found, rows, strict=True)
        ):
            raise RaspValueError(
                "NaN is no input: among values it marks padding",
                expected="numbers",
                found="NaN",
            )
        return found
