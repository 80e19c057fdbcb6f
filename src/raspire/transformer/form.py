"""Sparse linear maps between the residual stream and something small.

``read(space)`` takes a space out of the stream (stream to k columns), ``write(space)`` puts k
columns into it. Both are a :class:`Form`; forms add, scale and stand side by side, so that a
weight matrix is an expression over spaces and never a table of integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from raspire.errors import RaspValueError
from raspire.transformer.space import Space


@dataclass(frozen=True, eq=False)
class Form:
    """Entries ``(slot, column, value)`` of a sparse map between the stream and ``size`` columns."""

    slots: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    size: int
    _frozen: dict[tuple[str, int], Any] = field(default_factory=dict, repr=False)

    def __add__(self, other: Form) -> Form:
        if other.size != self.size:
            raise RaspValueError(
                "two forms of different sizes do not add",
                expected=f"{self.size} columns",
                found=f"{other.size} columns",
            )
        return Form(
            np.concatenate([self.slots, other.slots]),
            np.concatenate([self.columns, other.columns]),
            np.concatenate([self.values, other.values]),
            self.size,
        )

    def __mul__(self, factor: float) -> Form:
        return Form(self.slots, self.columns, self.values * factor, self.size)

    __rmul__ = __mul__

    def __neg__(self) -> Form:
        return self * -1.0

    def __sub__(self, other: Form) -> Form:
        return self + -other

    def reader(self, width: int) -> sparse.csc_array:
        """The matrix ``(width, size)`` that takes a residual row to the columns.

        One form gives one matrix, however many heads share it.
        """
        if ("reader", width) not in self._frozen:
            self._check(width)
            places = (self.slots, self.columns)
            matrix = sparse.csc_array((self.values, places), shape=(width, self.size))
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
            self._frozen["reader", width] = matrix
        return self._frozen["reader", width]

    def writer(self, width: int) -> sparse.csr_array:
        """The matrix ``(size, width)`` that adds the columns to a residual row."""
        if ("writer", width) not in self._frozen:
            self._frozen["writer", width] = self.reader(width).T
        return self._frozen["writer", width]

    def _check(self, width: int) -> None:
        if len(self.slots) and int(self.slots.max()) >= width:
            raise RaspValueError(
                "a form names a slot beyond the residual stream",
                expected=f"a slot below {width}",
                found=f"slot {int(self.slots.max())}",
            )


def read(space: Space, matrix: ArrayLike | sparse.sparray | None = None) -> Form:
    """Take ``space`` out of the stream, through ``matrix`` of shape (space.size, k) if given.

    >>> read(Space("x", "ab", (2, 4)), [[1.0], [-1.0]]).reader(5).toarray().ravel()
    array([ 0.,  0.,  1.,  0., -1.])
    """
    places = np.asarray(space.slots, dtype=np.int64)
    if matrix is None:
        return Form(places, np.arange(space.size), np.ones(space.size), space.size)
    entries = sparse.coo_array(matrix)
    if entries.shape[0] != space.size:
        raise RaspValueError(
            f"the matrix does not fit space {space.name!r}",
            expected=f"{space.size} entries on the side of the space",
            found=f"{entries.shape[0]}",
        )
    return Form(
        places[entries.coords[0]],
        entries.coords[1].astype(np.int64),
        entries.data.astype(np.float64),
        entries.shape[1],
    )


def write(space: Space, matrix: ArrayLike | sparse.sparray | None = None) -> Form:
    """Put k columns into ``space``, through ``matrix`` of shape (k, space.size) if given."""
    if matrix is None:
        return read(space)
    return read(space, sparse.coo_array(matrix).T)


def nothing(size: int) -> Form:
    """The form of ``size`` columns that are always zero (a branch that is only its bias)."""
    empty = np.zeros(0, dtype=np.int64)
    return Form(empty, empty, np.zeros(0), size)


def beside(*forms: Form) -> Form:
    """Forms standing side by side: the columns of the first, then those of the second, ..."""
    starts = np.cumsum([0, *(form.size for form in forms)])
    return Form(
        np.concatenate([form.slots for form in forms]),
        np.concatenate([f.columns + s for f, s in zip(forms, starts[:-1], strict=True)]),
        np.concatenate([form.values for form in forms]),
        int(starts[-1]),
    )


def repeated(form: Form, times: int) -> Form:
    """A form of one column, standing beside itself.

    >>> repeated(read(Space("x", "a", (1,))), 3).reader(2).toarray()[1]
    array([1., 1., 1.])
    """
    if form.size != 1:
        raise RaspValueError("only a form of one column is repeated", found=f"{form.size} columns")
    slots, values = np.tile(form.slots, times), np.tile(form.values, times)
    return Form(slots, np.repeat(np.arange(times), len(form.slots)), values, times)
