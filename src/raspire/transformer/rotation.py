"""The same transformer in another orthonormal basis of its residual stream.

A rotated basis is what a learned network has: no slot means anything by itself. Attention kinds
that compare for exact ties do not survive rounding, so rotate a saturated transformer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from raspire.errors import RaspValueError
from raspire.transformer.layer import Head, Layer, Units
from raspire.transformer.model import Transformer

Matrix = NDArray[np.float64]
Change = Callable[[Any], Any]


def rotated(model: Transformer, seed: int = 0) -> tuple[Transformer, Matrix]:
    """The transformer with stream ``h R`` in place of ``h``, and the orthogonal map R.

    R is drawn uniformly from ``seed``; a space with slots s is found by ``stream @ R.T[:, s]``.
    """
    hard = [head.name for _, _, head in model.heads() if head.kind == "average-hard"]
    if hard:
        raise RaspValueError(
            f"head {hard[0]!r} is average-hard: its ties do not survive the rounding of a rotation",
            hint="rotate the saturated transformer",
        )
    if seed < 0:
        raise RaspValueError("a seed is not negative", expected="0 or more", found=str(seed))
    normal = np.random.default_rng(seed).standard_normal((model.width, model.width))
    q, r = np.linalg.qr(normal)
    rotation: Matrix = q * np.sign(np.diag(r))

    def reads(matrix: Any) -> sparse.csc_array:
        return sparse.csc_array(rotation.T @ matrix.toarray())

    def writes(matrix: Any) -> sparse.csr_array:
        return sparse.csr_array(matrix.toarray() @ rotation)

    embedding = model.embedding
    tables = {name: getattr(embedding, name) for name in ("tokens", "positions", "values")}
    changed = {name: writes(t) for name, t in tables.items() if t is not None}
    layers = tuple(_layer(layer, reads, writes) for layer in model.layers)
    unembedding = replace(model.unembedding, matrix=reads(model.unembedding.matrix))
    new = replace(
        model,
        embedding=replace(embedding, **changed),
        layers=layers,
        unembedding=unembedding,
        spaces=(),
        notes={**model.notes, "rotation": seed, "spaces": model.spaces},
    )
    return new, rotation


def _layer(layer: Layer, reads: Change, writes: Change) -> Layer:
    heads = tuple(_head(head, reads, writes) for head in layer.heads)
    return Layer(heads, tuple(_units(units, reads, writes) for units in layer.units))


def _head(head: Head, reads: Change, writes: Change) -> Head:
    return replace(
        head,
        query=reads(head.query),
        key=reads(head.key),
        value=reads(head.value),
        output=writes(head.output),
        address=False,
    )


def _units(units: Units, reads: Change, writes: Change) -> Units:
    second = None if units.second is None else reads(units.second)
    return replace(units, first=reads(units.first), second=second, output=writes(units.output))
