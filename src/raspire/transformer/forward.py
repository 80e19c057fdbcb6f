"""The one forward pass: any weights, any input, both kinds of attention.

The stream is held as (width, batch · positions), so that a sparse projection is one product with
contiguous rows, and only at positions that a later layer, or the reader, looks at. Nothing is
rounded or repaired between layers, and no weight depends on an input.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from raspire.errors import RaspValueError
from raspire.transformer.attention import dense, gather, is_parabola, scores, weights
from raspire.transformer.families import activate
from raspire.transformer.layer import Head, Layer, Units
from raspire.transformer.model import BOS_TYPE, PAD_TYPE, TOKEN_TYPE, Embedding, Transformer
from raspire.transformer.precision import PRECISIONS, check_exact
from raspire.transformer.prepared import Prepared

Array = NDArray[Any]
Engine = Literal["auto", "dense", "gather"]

_GATHER_FROM = 128  # positions from which a look-up is cheaper as a gather
_BLOCK = 1 << 22  # numbers held at once in the stream, or in the units of a group
_SPARSE_FROM = 1 << 26  # from this size a stream starts as a sparse matrix
_CACHED = 1 << 17  # scores held at once


def forward(
    model: Transformer,
    inputs: ArrayLike,
    *,
    dtype: DTypeLike = np.float64,
    engine: Engine = "auto",
    positions: ArrayLike | None = None,
    ablate: Collection[tuple[int, int]] = (),
    record: dict[str, Array] | None = None,
) -> Array:
    """Logits (batch, length, labels) of token ids (batch, length) or values (batch, length[, c]).

    ``engine`` says how look-up heads run; with ``positions`` only the logits at these are
    computed; ``ablate`` names heads (layer, head) left out; ``record`` is filled with the stream
    after every sublayer and the pattern of every head, under the hook names of TransformerLens
    (``blocks.0.attn.hook_pattern.0``, ...).
    """
    array = np.asarray(inputs)
    if array.ndim < 2:
        raise RaspValueError(
            "a batch of inputs is needed",
            expected="an array (batch, length) or (batch, length, values)",
            found=f"an array of {array.ndim} dimensions",
        )
    if np.dtype(dtype).name not in PRECISIONS:
        raise RaspValueError(
            f"unknown precision {np.dtype(dtype).name!r}", expected=", ".join(PRECISIONS)
        )
    _check_inputs(model.embedding, array)
    wanted = np.arange(array.shape[1]) if positions is None else np.asarray(positions, np.int64)
    setting = (np.dtype(dtype), engine, wanted, frozenset(ablate))
    if record is not None:
        return _Pass(model, array, *setting, record).run()
    units = [group.count for layer in model.layers for group in layer.units]
    size = max(1, array.shape[1] * max(array.shape[1], model.width, *units, 1))
    step = max(1, _BLOCK // size)
    starts = range(0, max(len(array), 1), step)
    parts = [_Pass(model, array[i : i + step], *setting, None).run() for i in starts]
    return np.concatenate(parts)


def position_types(embedding: Embedding, inputs: Array) -> tuple[tuple[str, ...], Array]:
    """The names of the types, and the type (batch, length) of every position of an input."""
    count, length = inputs.shape[:2]
    names = [PAD_TYPE, BOS_TYPE, TOKEN_TYPE]
    if embedding.types is None:
        types = np.full((count, length), names.index(TOKEN_TYPE))
    else:
        names += sorted(set(embedding.types) - set(names))
        ids = np.array([names.index(t) for t in embedding.types])
        types = np.tile(ids[np.minimum(np.arange(length), len(ids) - 1)], (count, 1))
    if embedding.tokens is not None:
        for special, name in ((embedding.bos, BOS_TYPE), (embedding.pad, PAD_TYPE)):
            if special is not None:
                types[inputs == special] = names.index(name)
    else:
        missing = np.isnan(inputs)
        types[missing if missing.ndim == 2 else missing.any(axis=2)] = names.index(PAD_TYPE)
    return tuple(names), types


class _Pass:
    """The state of one forward pass: the stream, where it is held, what is recorded."""

    def __init__(
        self,
        model: Transformer,
        inputs: Array,
        dtype: np.dtype[Any],
        engine: Engine,
        wanted: Array,
        ablate: frozenset[tuple[int, int]],
        record: dict[str, Array] | None,
    ) -> None:
        self.model, self.dtype, self.engine = model, dtype, engine
        self.wanted, self.ablate, self.record = wanted, ablate, record
        self.prepared = Prepared.of(model, dtype)
        self.count, self.length = inputs.shape[:2]
        self.names, self.types = position_types(model.embedding, inputs)
        self.seen: dict[frozenset[str] | None, Array] = {}
        self.needs = self._needs()
        self.places = self.needs[0]
        self.stream = self._embed(inputs)
        self.projected: dict[tuple[int, frozenset[str] | None], Array] = {}

    def run(self) -> Array:
        self._note("hook_embed")
        for i, layer in enumerate(self.model.layers):
            self._attend(i, layer)
            self._note(f"blocks.{i}.hook_resid_mid")
            self._feed(layer)
            self._note(f"blocks.{i}.hook_resid_post")
        logits = self._project(self.model.unembedding.matrix)
        order = np.searchsorted(self.places, self.wanted)
        return logits[:, order] if len(order) != len(self.places) else logits

    def _needs(self) -> list[Array]:
        """The positions at which the stream is needed before each layer, and after the last."""
        everywhere = np.arange(self.length)
        if self.record is not None:
            return [everywhere] * (len(self.model.layers) + 1)
        need = np.zeros(self.length, dtype=bool)
        need[self.wanted] = True
        needs = [np.flatnonzero(need)]
        for layer in reversed(self.model.layers):
            for keys in {head.mask.keys for head in layer.heads}:
                need |= self._allowed(keys).any(axis=0)
            needs.append(np.flatnonzero(need))
        return needs[::-1]

    def _embed(self, inputs: Array) -> Any:
        """The stream at the start, sparse: most slots are written by later layers."""
        embedding, places = self.model.embedding, self.places
        shape = (self.model.width, self.count * len(places))
        stream = sparse.csr_array(shape, dtype=self.dtype)
        inputs = inputs[:, places]
        if embedding.tokens is not None:
            stream += embedding.tokens[inputs.ravel()].T
        if embedding.positions is not None:
            rows = np.minimum(places, embedding.positions.shape[0] - 1)
            table = embedding.positions[np.tile(rows, self.count)]
            stream += table.T
        if embedding.values is not None:
            values = np.where(np.isnan(inputs), 0, inputs)
            rows = sparse.csr_array(values.reshape(len(places) * self.count, -1).T)
            stream += embedding.values.T.tocsr() @ rows
        stream = stream.astype(self.dtype).tocsr()
        return stream if self._large(shape) else stream.toarray()

    @staticmethod
    def _large(shape: tuple[int, int]) -> bool:
        return shape[0] * shape[1] > _SPARSE_FROM

    def _attend(self, i: int, layer: Layer) -> None:
        before, here = self.stream, self.places
        after = self.needs[i + 1]
        queries = np.searchsorted(here, after)
        everywhere = len(after) == len(here)
        self.projected = {}
        added = [
            (head.output, _columns(self._head(f"blocks.{i}.attn.hook_pattern.{j}", head, queries)))
            for j, head in enumerate(layer.heads)
            if (i, j) not in self.ablate
        ]
        if not everywhere:
            columns = (np.arange(self.count)[:, None] * len(here) + queries).ravel()
            before = before[:, columns]
        self.stream = before.toarray() if sparse.issparse(before) else before
        for matrix, rows in added:
            self._add(self.stream, matrix, rows)
        self.places, self.projected = after, {}

    def _feed(self, layer: Layer) -> None:
        hidden = [(units.output, self._hidden(units, self.stream)) for units in layer.units]
        for matrix, columns in hidden:
            self._add(self.stream, matrix, columns)

    def _hidden(self, units: Units, stream: Array) -> Array:
        first = self._branch(units.first, units.first_bias, stream)
        if units.second is None:
            return activate(units.family, first, None)
        return activate(units.family, first, self._branch(units.second, units.second_bias, stream))

    def _branch(self, matrix: Any, bias: Any, stream: Array) -> Array:
        branch: Array = self.prepared.reader(matrix) @ stream
        branch += self.prepared.bias(bias)
        return branch

    def _add(self, stream: Array, matrix: Any, columns: Array) -> None:
        """Add ``columns`` through an output matrix, touching only the slots that it writes."""
        slots, compact = self.prepared.writer(matrix)
        stream[slots] += compact @ columns

    def _head(self, hook: str, head: Head, queries: Array) -> Array:
        query, key = self._project(head.query), self._project(head.key)
        query = query if len(queries) == query.shape[1] else query[:, queries]
        seen = self._allowed(head.mask.keys)[:, self.places]
        value = self._value(head, seen)
        if self.record is not None:
            mask = self._mask(head, seen, queries)
            hard = head.kind == "average-hard"
            weight, total = weights(scores(query, key), mask, hard, head.scale)
            self.record[hook] = weight / total
        if self._gathers(head) and is_parabola(query, key):
            return self._gather(query, key, value, seen)
        return self._dense(head, query, key, value, seen, queries)

    def _gathers(self, head: Head) -> bool:
        saturated = head.kind == "average-hard" or (
            head.gap is not None and head.scale * head.gap >= saturation(self.dtype)
        )
        wanted = self.engine == "gather" or (self.engine == "auto" and self.length >= _GATHER_FROM)
        return wanted and head.address and saturated and not head.mask.causal

    def _gather(self, query: Array, key: Array, value: Array, seen: Array) -> Array:
        out = np.empty((self.count, query.shape[1], value.shape[2]), dtype=self.dtype)
        for b in range(self.count):
            out[b] = gather(query[b], key[b], value[b], seen[b])
        return out

    def _dense(
        self, head: Head, query: Array, key: Array, value: Array, seen: Array, queries: Array
    ) -> Array:
        """The head in blocks of sequences and of queries, each small enough for a cache."""
        hard = head.kind == "average-hard"
        check_exact(head, f"head {head.name!r}", self.dtype.name)
        out = np.empty((self.count, len(queries), value.shape[2]), dtype=self.dtype)
        step = max(1, _CACHED // max(1, key.shape[1]))
        count = max(1, step // max(1, len(queries)))
        for b in range(0, self.count, count):
            batch = slice(b, b + count)
            for start in range(0, len(queries), step):
                rows = slice(start, start + step)
                mask = self._mask(head, seen[batch], queries[rows])
                parts = query[batch, rows], key[batch], value[batch]
                out[batch, rows] = dense(*parts, mask, hard, head.scale)
        return out

    def _mask(self, head: Head, seen: Array, queries: Array) -> Array:
        mask = seen[:, None, :]
        if not head.mask.causal:
            return mask
        return mask & (self.places[None, :] <= self.places[queries][:, None])

    def _allowed(self, keys: frozenset[str] | None) -> Array:
        """Which positions (batch, length) a head with this set of key types may see."""
        if keys not in self.seen:
            names = self.names if keys is None else keys
            table = np.array([name in names and name != PAD_TYPE for name in self.names])
            self.seen[keys] = table[self.types]
        return self.seen[keys]

    def _note(self, name: str) -> None:
        if self.record is not None:
            stream = self.stream.toarray() if sparse.issparse(self.stream) else self.stream
            self.record[name] = np.array(self._rows(stream))

    def _project(self, matrix: Any) -> Array:
        """``matrix`` on the stream as rows, once a layer for all heads that share it."""
        key = (id(matrix), None)
        if key not in self.projected:
            product = self.prepared.reader(matrix) @ self.stream
            full = product.toarray() if sparse.issparse(product) else product
            self.projected[key] = self._rows(full)
        return self.projected[key]

    def _value(self, head: Head, seen: Array) -> Array:
        """The values of a head, 0 where it does not look: what it may not see may be infinite."""
        value = self._project(head.value)
        if seen.all():
            return value
        key = (id(head.value), head.mask.keys or frozenset({""}))
        if key not in self.projected:
            self.projected[key] = np.where(seen[:, :, None], value, 0)
        return self.projected[key]

    def _rows(self, columns: Array) -> Array:
        """Columns (k, batch · positions) as rows (batch, positions, k)."""
        cube = columns.reshape(len(columns), self.count, len(self.places))
        return np.ascontiguousarray(cube.transpose(1, 2, 0))


def saturation(dtype: DTypeLike) -> float:
    """The scaled gap from which every smaller exponential is exactly 0 in this precision."""
    return 746.0 if np.dtype(dtype) == np.float64 else 104.1


def _columns(rows: Array) -> Array:
    """Rows (batch, positions, k) as columns (k, batch · positions)."""
    count, length, size = rows.shape
    return rows.transpose(2, 0, 1).reshape(size, count * length)


def _check_inputs(embedding: Embedding, inputs: Array) -> None:
    length = inputs.shape[1]
    limit = embedding.max_length
    if limit is not None and length > limit:
        raise RaspValueError(
            "the input is longer than the model",
            expected=f"at most {limit} positions, the beginning of sequence counted",
            found=f"{length}",
        )
    if embedding.tokens is not None:
        size = len(embedding.vocabulary)
        if inputs.dtype.kind not in "iu" or (inputs.size and inputs.min() < 0):
            raise RaspValueError("token ids are integers from 0")
        if inputs.size and inputs.max() >= size:
            raise RaspValueError(
                "a token id is too large", expected=f"below {size}", found=str(inputs.max())
            )
