"""A construction's input written as one sequence, and its parts read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raspire.errors import RaspValueError
from raspire.evaluate import BUDGET, evaluate
from raspire.simulator.construction import Construction
from raspire.simulator.estimate import refuse_beyond
from raspire.simulator.weights import Array


def written(construction: Construction, contents: Mapping[str, ArrayLike]) -> Array:
    """⟨T, X⟩: every input block of the construction filled with its array, the rest zero.

    Raises RaspValueError for blocks without an array, and for shapes that do not fit.
    """
    if set(contents) != set(construction.inputs):
        raise RaspValueError(
            "the contents do not fit the construction's inputs",
            expected=", ".join(construction.inputs),
            found=", ".join(contents),
        )
    sequence = np.zeros(construction.length)
    for name, block in construction.inputs.items():
        array = np.asarray(contents[name], dtype=np.float64)
        if array.shape != block.shape:
            raise RaspValueError(
                f"the contents of {name} do not fit",
                expected=f"shape {block.shape}",
                found=f"shape {array.shape}",
            )
        sequence[block.base : block.end] = array.ravel()
    return sequence


def computed(
    construction: Construction,
    sequence: Any,
    part: str = "result",
    *,
    budget: int = BUDGET,
    **options: Any,
) -> Array:
    """One part of the construction on a written input, in the part's shape."""
    refuse_beyond(budget, construction)
    piece = construction.parts[part]
    positions = np.asarray(piece.place.positions(), dtype=np.int64)
    values = evaluate(piece.sop, sequence, positions=positions, budget=budget, **options)
    return np.asarray(values, dtype=np.float64).reshape(piece.shape)


def with_ones(rows: Array) -> Array:
    """A matrix with a column of ones, which carries biases."""
    return np.hstack([rows, np.ones((len(rows), 1))])


def with_bias(matrix: Array, bias: Array) -> Array:
    """A matrix with its biases as one more row."""
    return np.vstack([matrix, bias])
