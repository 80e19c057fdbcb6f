"""The matrices of a transformer as the forward pass wants them: cast, transposed, compact.

They follow from the weights alone, so they are made once for each model and precision and kept as
long as the model lives.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from raspire.transformer.model import Transformer

Array = NDArray[Any]

_KEPT: WeakKeyDictionary[Transformer, dict[np.dtype[Any], Prepared]] = WeakKeyDictionary()


class Prepared:
    """Readers and writers by the identity of the weights' own matrices."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self._readers: dict[int, Any] = {}
        self._writers: dict[int, tuple[Array, Any]] = {}
        self._biases: dict[int, Array] = {}

    @classmethod
    def of(cls, model: Transformer, dtype: np.dtype[Any]) -> Prepared:
        """The prepared matrices of a model in a precision."""
        return _KEPT.setdefault(model, {}).setdefault(dtype, cls(dtype))

    def reader(self, matrix: Any) -> Any:
        """The transpose of a (width, k) matrix: it takes a stream (width, ·) to (k, ·)."""
        found = self._readers.get(id(matrix))
        if found is None:
            found = self._readers[id(matrix)] = matrix.T.astype(self.dtype).tocsr()
        return found

    def writer(self, matrix: Any) -> tuple[Array, Any]:
        """The slots that a (k, width) matrix writes, and the matrix (slots, k) to them."""
        found = self._writers.get(id(matrix))
        if found is None:
            rows = sparse.csr_array(matrix)
            slots, places = np.unique(rows.indices, return_inverse=True)
            parts = (rows.data.astype(self.dtype), places, rows.indptr)
            compact = sparse.csr_array(parts, shape=(rows.shape[0], len(slots)))
            found = self._writers[id(matrix)] = (slots, compact.T.tocsr())
        return found

    def bias(self, bias: Array) -> Array:
        """A bias as a column."""
        found = self._biases.get(id(bias))
        if found is None:
            found = self._biases[id(bias)] = bias.astype(self.dtype)[:, None]
        return found
