"""Every shape of a transformer, checked; an error names the layer and the head or units."""

from __future__ import annotations

from typing import Any

import numpy as np

from raspire.errors import RaspValueError
from raspire.transformer.families import gate_of
from raspire.transformer.layer import Head, Units
from raspire.transformer.model import PAD_TYPE, Embedding, Transformer


def check(model: Transformer) -> None:
    """Raise at the first matrix whose shape or entries do not fit; otherwise do nothing."""
    _check_embedding(model.embedding, model.width)
    for i, layer in enumerate(model.layers):
        for j, head in enumerate(layer.heads):
            _check_head(head, f"layer {i + 1} head {j} ({head.name})", model.width)
        for units in layer.units:
            _check_units(units, f"layer {i + 1} units {units.name!r}", model.width)
    unembedding = model.unembedding
    _shape(unembedding.matrix, (model.width, len(unembedding.labels)), "unembedding")
    for space in model.spaces:
        if space.slots and max(space.slots) >= model.width:
            _fail(f"space {space.name!r}", f"slots below {model.width}", str(max(space.slots)))


def _check_embedding(embedding: Embedding, width: int) -> None:
    if embedding.tokens is None and embedding.values is None:
        _fail("embedding", "a token embedding or a value input", "neither")
    if embedding.tokens is not None:
        _shape(embedding.tokens, (len(embedding.vocabulary), width), "token embedding")
    if embedding.values is not None:
        _shape(embedding.values, (embedding.values.shape[0], width), "value input")
    if embedding.positions is not None:
        length = embedding.positions.shape[0]
        _shape(embedding.positions, (length, width), "positional embedding")
        if embedding.types is not None and len(embedding.types) != length:
            _fail("position types", f"{length} types", f"{len(embedding.types)}")
    if embedding.types is not None and PAD_TYPE in embedding.types:
        _fail("position types", "no padding: it is not a place but a token", repr(PAD_TYPE))


def _check_head(head: Head, where: str, width: int) -> None:
    dk, dv = head.query.shape[1], head.value.shape[1]
    shapes = {"Q": (width, dk), "K": (width, dk), "V": (width, dv), "O": (dv, width)}
    for name, matrix in head.matrices.items():
        _shape(matrix, shapes[name], f"{where}: W_{name}")
    if head.kind not in ("average-hard", "softmax"):
        _fail(f"{where}: kind", "average-hard or softmax", repr(head.kind))
    if not (np.isfinite(head.scale) and head.scale > 0):
        _fail(f"{where}: scale", "a positive number", repr(head.scale))
    if head.address and dk != 2:
        _fail(f"{where}: address", "a head dimension of 2", str(dk))


def _check_units(units: Units, where: str, width: int) -> None:
    gate = gate_of(units.family)
    n = units.count
    _shape(units.first, (width, n), f"{where}: first branch")
    _shape(units.output, (n, width), f"{where}: output")
    _vector(units.first_bias, n, f"{where}: first bias")
    if gate is None:
        if units.second is not None:
            _fail(f"{where}: second branch", f"none for family {units.family!r}", "one")
        return
    if units.second is None or units.second_bias is None:
        _fail(f"{where}: second branch", f"one for family {units.family!r}", "none")
    else:
        _shape(units.second, (width, n), f"{where}: second branch")
        _vector(units.second_bias, n, f"{where}: second bias")


def _shape(matrix: Any, expected: tuple[int, int], where: str) -> None:
    if tuple(matrix.shape) != expected:
        _fail(f"{where}: shape", str(expected), str(tuple(matrix.shape)))
    if not np.isfinite(matrix.data).all():
        _fail(f"{where}: entries", "finite numbers", "an infinity or NaN")


def _vector(bias: Any, size: int, where: str) -> None:
    if bias.shape != (size,) or not np.isfinite(bias).all():
        _fail(where, f"{size} finite numbers", f"shape {bias.shape}")


def _fail(what: str, expected: str, found: str) -> None:
    raise RaspValueError(f"{what} does not fit", expected=expected, found=found)
