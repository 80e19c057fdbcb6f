"""Is a network a genuine transformer? The questions a sceptic asks, answered by running it.

One forward function must serve any weights; no weight may depend on an input; nothing may be
rounded or repaired between the layers; attention kind, scale and precision must be stated. The
check runs the network beside a second forward pass, written here from the definition alone: plain
dense matrices, no sparse products, no look-ups by address.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raspire.transformer import Head, Layer, Transformer, Units
from raspire.transformer.families import activate
from raspire.transformer.forward import position_types
from raspire.transformer.model import PAD_TYPE

Array = NDArray[Any]
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Finding:
    """One question, whether the answer is as it should be, and what was seen."""

    question: str
    holds: bool
    seen: str

    def __str__(self) -> str:
        return f"{'yes' if self.holds else 'NO '}  {self.question}: {self.seen}"


def genuine(model: Transformer, seed: int = 0, inputs: int = 8) -> list[Finding]:
    """The findings on a network: all of them hold if it is a genuine transformer."""
    draw = np.random.default_rng(seed)
    batch = _inputs(model, draw, inputs)
    before = fingerprint(model)
    record: dict[str, Array] = {}
    logits = model.logits(batch, record=record)
    after = fingerprint(model)
    return [
        Finding("the weights are the same before and after it runs", before == after, before[:12]),
        _agreement("its own weights", model, batch, logits),
        _randomised(model, batch, draw),
        _streams(model, record),
        _alone(model, batch, logits),
        _stated(model),
    ]


def fingerprint(model: Transformer) -> str:
    """A digest of every weight and bias."""
    digest = hashlib.sha256()
    for array in _weights(model):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _weights(model: Transformer) -> Iterator[Array]:
    embedding = model.embedding
    for table in (embedding.tokens, embedding.positions, embedding.values):
        if table is not None:
            yield table.toarray()
    for layer in model.layers:
        parts: list[Head | Units] = [*layer.heads, *layer.units]
        for part in parts:
            for matrix in part.matrices.values():
                yield matrix.toarray()
        for units in layer.units:
            yield units.first_bias
            if units.second_bias is not None:
                yield units.second_bias
    yield model.unembedding.matrix.toarray()


def _inputs(model: Transformer, draw: np.random.Generator, count: int) -> Array:
    embedding = model.embedding
    length = embedding.max_length or 16
    if embedding.tokens is None:
        values: Array = draw.normal(size=(count, length))
        values[:, : model.start] = 0
        return values
    special = {embedding.bos, embedding.pad}
    usual = [i for i in range(len(embedding.vocabulary)) if i not in special]
    ids: Array = draw.choice(usual, size=(count, length))
    if embedding.bos is not None:
        ids[:, 0] = embedding.bos
    return ids


def _agreement(what: str, model: Transformer, batch: Array, logits: Array) -> Finding:
    error = _distance(by_definition(model, batch), logits)
    return Finding(
        f"a second forward pass, written from the definition, agrees on {what}",
        error <= _TOLERANCE,
        f"largest difference {error:.2g}",
    )


def _distance(a: Array, b: Array) -> float:
    return float(np.max(np.abs(a - b) / (1 + np.abs(b)), initial=0.0))


def _randomised(model: Transformer, batch: Array, draw: np.random.Generator) -> Finding:
    """The same function with every weight drawn at random: nothing knows the program."""
    other = _with_random_weights(model, draw)
    logits = other.logits(batch)
    error = _distance(by_definition(other, batch), logits)
    return Finding(
        "one forward function serves any weights (here: random ones)",
        bool(np.isfinite(logits).all()) and error <= 1e-6,
        f"largest difference {error:.2g}",
    )


def _with_random_weights(model: Transformer, draw: np.random.Generator) -> Transformer:
    def scatter(matrix: Any) -> Any:
        changed = matrix.copy()
        changed.data = draw.normal(size=changed.data.shape)
        return changed

    def head(old: Head) -> Head:
        return replace(
            old, query=scatter(old.query), key=scatter(old.key), value=scatter(old.value),
            output=scatter(old.output), kind="softmax", scale=1.0, address=False, gap=None,
        )  # fmt: skip

    def units(old: Units) -> Units:
        return replace(
            old, family="relu", first=scatter(old.first), output=scatter(old.output) * 0.1,
            second=None, second_bias=None,
        )  # fmt: skip

    layers = tuple(
        Layer(tuple(map(head, layer.heads)), tuple(map(units, layer.units)))
        for layer in model.layers
    )
    return replace(model, layers=layers)


def _streams(model: Transformer, record: dict[str, Array]) -> Finding:
    """Every sublayer's change of the stream is what its weights give on the stream before it."""
    worst = 0.0
    for i, layer in enumerate(model.layers):
        middle = record[f"blocks.{i}.hook_resid_mid"]
        end = record[f"blocks.{i}.hook_resid_post"]
        worst = max(worst, _distance(middle + _feed_forward(layer, middle), end))
    return Finding(
        "nothing is rounded or repaired between the layers",
        worst <= _TOLERANCE,
        f"stream after each layer against its weights: {worst:.2g}",
    )


def _alone(model: Transformer, batch: Array, logits: Array) -> Finding:
    """A sequence in a batch gives what it gives by itself."""
    alone = np.concatenate([model.logits(batch[i : i + 1]) for i in range(len(batch))])
    error = _distance(alone, logits)
    return Finding("a batch gives what each input gives alone", error <= _TOLERANCE, f"{error:.2g}")


def _stated(model: Transformer) -> Finding:
    kinds = sorted({f"{h.kind} ×{h.scale:g}" if h.kind == "softmax" else h.kind
                    for _, _, h in model.heads()})  # fmt: skip
    precision = str(model.notes.get("precision", "float64"))
    families = sorted({u.family for layer in model.layers for u in layer.units})
    seen = f"{', '.join(kinds) or 'no attention'}; {', '.join(families) or 'no units'}; {precision}"
    return Finding("attention kind, scale, unit families and precision are stated", True, seen)


# ---------------------------------------------------------------- from the definition


def by_definition(model: Transformer, inputs: Array) -> Array:
    """The logits of a batch by dense matrices, one input and one head after the other."""
    return np.stack([_one(model, row[None]) for row in inputs])


def _one(model: Transformer, row: Array) -> Array:
    embedding = model.embedding
    length = row.shape[1]
    stream = np.zeros((length, model.width))
    if embedding.tokens is not None:
        stream += embedding.tokens.toarray()[row[0]]
    if embedding.positions is not None:
        table = embedding.positions.toarray()
        stream += table[np.minimum(np.arange(length), len(table) - 1)]
    if embedding.values is not None:
        stream += row[0][:, None] @ embedding.values.toarray()
    names, types = position_types(embedding, row)
    kinds = [names[t] for t in types[0]]
    for layer in model.layers:
        added = [_attend(head, stream, kinds) for head in layer.heads]
        stream = stream + sum(added, np.zeros_like(stream))
        stream = stream + _feed_forward(layer, stream)
    logits: Array = stream @ model.unembedding.matrix.toarray()
    return logits


def _attend(head: Head, stream: Array, kinds: list[str]) -> Array:
    scores = (stream @ head.query.toarray()) @ (stream @ head.key.toarray()).T
    allowed = np.array(
        [k != PAD_TYPE and (head.mask.keys is None or k in head.mask.keys) for k in kinds]
    )
    mask = np.broadcast_to(allowed, scores.shape)
    if head.mask.causal:
        mask = mask & np.tril(np.ones(scores.shape, dtype=bool))
    scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=1, keepdims=True)
    if head.kind == "average-hard":
        weights = (scores == top).astype(float)
    else:
        weights = np.exp((scores - top) * head.scale)
    weights = weights / weights.sum(axis=1, keepdims=True)
    result: Array = weights @ (stream @ head.value.toarray()) @ head.output.toarray()
    return result


def _feed_forward(layer: Layer, stream: Array) -> Array:
    total = np.zeros_like(stream)
    for units in layer.units:
        first = stream @ units.first.toarray() + units.first_bias
        second = None
        if units.second is not None:
            second = stream @ units.second.toarray() + units.second_bias
        total += activate(units.family, first, second) @ units.output.toarray()
    return total
