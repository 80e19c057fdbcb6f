"""The one forward pass: any weights, any input, both kinds of attention.

The stream is held as (width, batch · length), so that a sparse projection is one product with
contiguous rows. Nothing is rounded or repaired between layers, and no weight depends on an input.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from raspire.errors import RaspValueError
from raspire.transformer.attention import dense, gather, is_parabola, scores, weights
from raspire.transformer.families import activate
from raspire.transformer.layer import Head, Layer, Units
from raspire.transformer.model import BOS_TYPE, PAD_TYPE, TOKEN_TYPE, Embedding, Transformer

Array = NDArray[Any]
Engine = Literal["auto", "dense", "gather"]

_GATHER_FROM = 128  # positions from which a look-up is cheaper as a gather
_BLOCK = 1 << 24  # scores held at once


def forward(
    model: Transformer,
    inputs: ArrayLike,
    *,
    dtype: DTypeLike = np.float64,
    engine: Engine = "auto",
    ablate: Collection[tuple[int, int]] = (),
    record: dict[str, Array] | None = None,
) -> Array:
    """Logits (batch, length, labels) of token ids (batch, length) or values (batch, length[, c]).

    ``engine`` says how look-up heads run; ``ablate`` names heads (layer, head) left out;
    ``record`` is filled with the stream after every sublayer and the pattern of every head, under
    the hook names of TransformerLens (``blocks.0.attn.hook_pattern``, ...).
    """
    array = np.asarray(inputs)
    if array.ndim < 2:
        raise RaspValueError(
            "a batch of inputs is needed",
            expected="an array (batch, length) or (batch, length, values)",
            found=f"an array of {array.ndim} dimensions",
        )
    count, length = array.shape[:2]
    parts = _split(count, length, model, record is not None)
    if len(parts) == 1:
        return _Pass(model, array, np.dtype(dtype), engine, frozenset(ablate), record).run()
    logits = [
        _Pass(model, array[part], np.dtype(dtype), engine, frozenset(ablate), None).run()
        for part in parts
    ]
    return np.concatenate(logits)


def _split(count: int, length: int, model: Transformer, whole: bool) -> list[slice]:
    size = max(1, length * max(length, model.width))
    step = max(1, count) if whole else max(1, _BLOCK // size)
    return [slice(i, i + step) for i in range(0, max(count, 1), step)]


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
    """The state of one forward pass: the stream, the position types, what is recorded."""

    def __init__(
        self,
        model: Transformer,
        inputs: Array,
        dtype: np.dtype[Any],
        engine: Engine,
        ablate: frozenset[tuple[int, int]],
        record: dict[str, Array] | None,
    ) -> None:
        self.model, self.dtype, self.engine = model, dtype, engine
        self.ablate, self.record = ablate, record
        self.count, self.length = inputs.shape[:2]
        _check_inputs(model.embedding, inputs)
        self.names, self.types = position_types(model.embedding, inputs)
        self.stream = self._embed(inputs)

    def run(self) -> Array:
        self._note("hook_embed", self.stream)
        for i, layer in enumerate(self.model.layers):
            self._layer(i, layer)
        matrix = self.model.unembedding.matrix
        return self._rows(self._project(matrix))

    def _embed(self, inputs: Array) -> Array:
        embedding = self.model.embedding
        stream = np.zeros((self.model.width, self.count, self.length), dtype=self.dtype)
        if embedding.tokens is not None:
            table = embedding.tokens[inputs.ravel()].T.toarray()
            stream += table.reshape(stream.shape)
        if embedding.positions is not None:
            places = np.minimum(np.arange(self.length), embedding.positions.shape[0] - 1)
            stream += embedding.positions[places].T.toarray()[:, None, :]
        if embedding.values is not None:
            values = np.where(np.isnan(inputs), 0, inputs).reshape(self.count * self.length, -1)
            stream += (embedding.values.T.tocsr() @ values.T).reshape(stream.shape)
        columns: Array = stream.reshape(self.model.width, self.count * self.length)
        return columns

    def _layer(self, i: int, layer: Layer) -> None:
        before = self.stream
        for j, head in enumerate(layer.heads):
            if (i, j) not in self.ablate:
                if self.stream is before:
                    self.stream = before.copy()
                self._add(head.output, self._head(f"blocks.{i}.attn", j, head, before))
        self._note(f"blocks.{i}.hook_resid_mid", self.stream)
        before = self.stream
        if layer.units:
            self.stream = before.copy()
        for units in layer.units:
            hidden = self._hidden(units, before)
            self.stream += units.output.T.tocsr().astype(self.dtype) @ hidden
        self._note(f"blocks.{i}.hook_resid_post", self.stream)

    def _hidden(self, units: Units, stream: Array) -> Array:
        first = self._branch(units.first, units.first_bias, stream)
        if units.second is None:
            return activate(units.family, first, None)
        second = self._branch(units.second, units.second_bias, stream)
        return activate(units.family, first, second)

    def _branch(self, matrix: Any, bias: Any, stream: Array) -> Array:
        branch: Array = self._project(matrix, stream) + bias.astype(self.dtype)[:, None]
        return branch

    def _head(self, hook: str, j: int, head: Head, stream: Array) -> Array:
        query, key, value = (
            self._rows(self._project(m, stream)) for m in (head.query, head.key, head.value)
        )
        allowed = self._allowed(head)
        value = np.where(allowed[:, :, None], value, 0)
        if self.record is not None:
            self._pattern(f"{hook}.hook_pattern.{j}", head, query, key, allowed)
        if self._gathers(head) and is_parabola(query, key):
            return self._gather(query, key, value, allowed)
        return self._dense(head, query, key, value, allowed)

    def _gathers(self, head: Head) -> bool:
        saturated = head.kind == "average-hard" or (
            head.gap is not None and head.scale * head.gap >= saturation(self.dtype)
        )
        wanted = self.engine == "gather" or (self.engine == "auto" and self.length >= _GATHER_FROM)
        return wanted and head.address and saturated and not head.mask.causal

    def _gather(self, query: Array, key: Array, value: Array, allowed: Array) -> Array:
        out = np.empty((self.count, self.length, value.shape[2]), dtype=self.dtype)
        for b in range(self.count):
            seen = allowed[b]
            out[b] = gather(query[b], key[b][seen], value[b][seen])
        return out

    def _dense(self, head: Head, query: Array, key: Array, value: Array, allowed: Array) -> Array:
        hard = head.kind == "average-hard"
        step = max(1, _BLOCK // max(1, self.count * self.length))
        blocks = []
        for start in range(0, self.length, step):
            rows = slice(start, start + step)
            mask = self._mask(head, allowed, rows)
            blocks.append(dense(query[:, rows], key, value, mask, hard, head.scale))
        if not blocks:
            return np.zeros((self.count, 0, value.shape[2]), dtype=self.dtype)
        return np.concatenate(blocks, axis=1)

    def _mask(self, head: Head, allowed: Array, rows: slice) -> Array:
        mask = allowed[:, None, :]
        if not head.mask.causal:
            return mask
        positions = np.arange(self.length)
        return mask & (positions[None, :] <= positions[rows, None])

    def _allowed(self, head: Head) -> Array:
        names = self.names if head.mask.keys is None else head.mask.keys
        ids = [i for i, name in enumerate(self.names) if name in names and name != PAD_TYPE]
        return np.isin(self.types, ids)

    def _pattern(self, name: str, head: Head, query: Array, key: Array, allowed: Array) -> None:
        assert self.record is not None
        mask = self._mask(head, allowed, slice(None))
        hard = head.kind == "average-hard"
        weight, total = weights(scores(query, key), mask, hard, head.scale)
        self.record[name] = weight / total

    def _note(self, name: str, stream: Array) -> None:
        if self.record is not None:
            self.record[name] = self._rows(stream).copy()

    def _add(self, matrix: Any, rows: Array) -> None:
        columns = rows.transpose(2, 0, 1).reshape(rows.shape[2], self.count * self.length)
        self.stream += matrix.T.tocsr().astype(self.dtype) @ columns

    def _project(self, matrix: Any, stream: Array | None = None) -> Array:
        source = self.stream if stream is None else stream
        product: Array = matrix.T.tocsr().astype(self.dtype) @ source
        return product

    def _rows(self, columns: Array) -> Array:
        """Columns (k, batch · length) as rows (batch, length, k)."""
        cube = columns.reshape(len(columns), self.count, self.length)
        return np.ascontiguousarray(cube.transpose(1, 2, 0))


def saturation(dtype: DTypeLike) -> float:
    """The scaled gap from which every smaller exponential is exactly 0 in this precision."""
    return 746.0 if np.dtype(dtype) == np.float64 else 104.1


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
