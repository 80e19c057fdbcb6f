"""Heads, feed-forward units and layers: nothing but data.

A layer adds its heads to the residual stream, then its units. Matrices are sparse, compressed
on the side that is not the stream; a head is as wide as it needs to be and no wider. There are no
biases in attention (a slot that holds 1 serves), feed-forward branches have them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Kind = Literal["average-hard", "softmax"]


@dataclass(frozen=True)
class Mask:
    """What a head may see: positions up to its own if ``causal``, and only types in ``keys``.

    ``keys`` is a set of position types (None: every type). Padding is never seen.
    """

    causal: bool = False
    keys: frozenset[str] | None = None

    def __str__(self) -> str:
        parts = ["causal"] if self.causal else []
        parts += ["keys " + "+".join(sorted(self.keys))] if self.keys is not None else []
        return ", ".join(parts) or "none"


@dataclass(frozen=True, eq=False)
class Head:
    """One attention head: scores ``(h_i Q)·(h_j K)``, output ``sum_j w_ij h_j V O``.

    ``query`` and ``key`` are (width, dk), ``value`` (width, dv), ``output`` (dv, width).
    ``gap`` is the certified least distance of the largest score of a row from any smaller one,
    ``bound`` the certified largest absolute score; both None when nothing is known.
    ``scale`` multiplies the scores of a softmax head. ``address`` says that the scores are
    ``c(2 a j - j²)``, so that the head is a look-up and may run as a gather.
    """

    name: str
    query: sparse.csc_array
    key: sparse.csc_array
    value: sparse.csc_array
    output: sparse.csr_array
    kind: Kind = "average-hard"
    scale: float = 1.0
    mask: Mask = field(default_factory=Mask)
    gap: float | None = None
    bound: float | None = None
    address: bool = False

    @property
    def matrices(self) -> dict[str, sparse.sparray]:
        return {"Q": self.query, "K": self.key, "V": self.value, "O": self.output}


@dataclass(frozen=True, eq=False)
class Units:
    """A group of feed-forward units of one family.

    Plain families (linear, relu, relu2): ``f(h first + first_bias) output``. Gated families:
    ``((h first + first_bias) * f(h second + second_bias)) output``. ``first`` and ``second`` are
    (width, units), ``output`` is (units, width).
    """

    name: str
    family: str
    first: sparse.csc_array
    first_bias: NDArray[np.float64]
    output: sparse.csr_array
    second: sparse.csc_array | None = None
    second_bias: NDArray[np.float64] | None = None

    @property
    def count(self) -> int:
        """How many units the group has."""
        return int(self.first.shape[1])

    @property
    def matrices(self) -> dict[str, sparse.sparray]:
        second = {} if self.second is None else {"second": self.second}
        return {"first": self.first, **second, "output": self.output}


@dataclass(frozen=True, eq=False)
class Layer:
    """An attention sublayer, then a feed-forward sublayer, each added to the stream."""

    heads: tuple[Head, ...] = ()
    units: tuple[Units, ...] = ()
