"""Positional embeddings of networks whose positions hold one number each, laid out in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from raspire.library.layout import Block
from raspire.transformer import Builder, Form, LayerBuilder, Space, beside, read

Index = NDArray[np.int64]


def digits(block: Block) -> tuple[Index, ...]:
    """The coordinates of the positions of a block, in row-major order."""
    return tuple(np.unravel_index(np.arange(block.size), block.shape))


def address(block: Block, *coordinates: Any) -> Index:
    """The positions with these coordinates, which wrap like the digits of a program."""
    total: Index = np.asarray(block.base, dtype=np.int64)
    for coordinate, step, size in zip(coordinates, block.strides, block.shape, strict=True):
        total = total + (np.asarray(coordinate) % size) * step
    return total


def wrapped(block: Block, length: int) -> tuple[Index, ...]:
    """The coordinates of positions 0 to length - 1, as if the block repeated for ever."""
    places = np.arange(length) - block.base
    steps = zip(block.shape, block.strides, strict=True)
    return tuple(places // step % size for size, step in steps)


def table(columns: Mapping[Space, Any], length: int) -> sparse.csr_array:
    """The positional embedding that writes one column of numbers into each of the spaces."""
    width = max(space.slots[0] for space in columns) + 1
    values = np.zeros((length, len(columns)))
    order = sorted(columns, key=lambda space: space.slots[0])
    for k, space in enumerate(order):
        values[:, k] = columns[space]
    slots = np.array([space.slots[0] for space in order])
    places = np.tile(slots, length)
    starts = np.arange(length + 1) * len(order)
    matrix = sparse.csr_array((values.ravel(), places, starts), shape=(length, width))
    matrix.eliminate_zeros()
    return matrix


class Addressing:
    """Heads that copy from an address, or average over a group, with shared keys.

    The score is ``2 a j - j²``: its only maximum over integers j is at j = a, its gap is 1.
    """

    def __init__(self, builder: Builder, length: int) -> None:
        self.length = length
        self.one, self.here = builder.space("one"), builder.space("here")
        self.square = builder.space("here²")
        self.key = beside(read(self.here), read(self.square))
        self.minus = -read(self.one)

    def columns(self) -> dict[Space, Any]:
        """What every position knows of itself."""
        places = np.arange(self.length, dtype=np.float64)
        return {self.one: 1.0, self.here: places, self.square: places * places}

    def copy(self, layer: LayerBuilder, name: str, at: Space, source: Form, target: Form) -> None:
        """A head that copies ``source`` at the position whose number is in ``at``."""
        query = beside(2 * read(at), self.minus)
        self._head(layer, name, query, self.key, source, target, self.length)

    def average(
        self,
        layer: LayerBuilder,
        name: str,
        group: tuple[Space, Space],
        source: Form,
        target: Form,
    ) -> None:
        """A head that averages ``source`` over the positions with the same group number."""
        query = beside(2 * read(group[0]), self.minus)
        key = beside(read(group[0]), read(group[1]))
        self._head(layer, name, query, key, source, target, self.length)

    @staticmethod
    def _head(
        layer: LayerBuilder, name: str, query: Form, key: Form, value: Form, output: Form, top: int
    ) -> None:
        layer.head(
            name,
            query=query,
            key=key,
            value=value,
            output=output,
            gap=1.0,
            bound=2.0 * top * top,
            address=True,
        )


def groups(*coordinates: tuple[Index, int]) -> Index:
    """A number for every combination of coordinates, given with their sizes; from 0."""
    total: Index = np.zeros_like(coordinates[0][0])
    for coordinate, size in coordinates:
        total = total * size + coordinate
    return total
