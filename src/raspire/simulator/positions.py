"""How positions enter an attention layer beyond its input: rotary turns, biases by distance.

Each is data of the target: U receives it as numbers beside the weights, written for n rows, and
its own program depends only on whether there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raspire.errors import RaspValueError
from raspire.simulator.weights import Array, check_finite

Index = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, eq=False)
class Rotary:
    """Position p turns the pair of coordinates number k of queries and keys by p·frequencies[k].

    The turned coordinates come first in a head; `interleaved` pairs are (0, 1), (2, 3), ..., as
    in GPT-J, others are (k, k + pairs), as in LLaMA. `factor` multiplies what was turned.
    """

    frequencies: Array
    interleaved: bool = False
    factor: float = 1.0

    def __post_init__(self) -> None:
        if self.frequencies.ndim != 1:
            raise RaspValueError(
                "rotary frequencies are one number for each pair of coordinates",
                expected="shape (pairs,)",
                found=f"shape {self.frequencies.shape}",
            )
        check_finite(self.frequencies, "the rotary frequencies")

    @classmethod
    def of_base(cls, pairs: int, base: float = 10000.0, *, interleaved: bool = False) -> Rotary:
        """The usual frequencies, base^(-k/pairs).

        >>> Rotary.of_base(2).frequencies.tolist()
        [1.0, 0.01]
        """
        return cls(base ** -(np.arange(pairs) / pairs), interleaved)

    @property
    def pairs(self) -> int:
        """How many pairs of coordinates turn."""
        return len(self.frequencies)

    def check(self, d_k: int) -> None:
        """Refuse a head whose width is odd, or too small for the pairs."""
        if d_k % 2 or not 1 <= self.pairs <= d_k // 2:
            raise RaspValueError(
                "rotary positions do not fit the head",
                expected=f"an even d_k of {max(2, 2 * self.pairs)} or more, at least one pair",
                found=f"d_k = {d_k}, {self.pairs} pairs",
            )

    def members(self) -> tuple[Index, Index]:
        """The first and the second coordinate of every pair."""
        pairs = np.arange(self.pairs)
        if self.interleaved:
            return 2 * pairs, 2 * pairs + 1
        return pairs, pairs + self.pairs

    def order(self, d_k: int) -> Index:
        """The coordinates of a head so that each pair is (k, k + d_k/2).

        The scores do not change when queries and keys are reordered alike.
        """
        first, second = self.members()
        rest = np.arange(2 * self.pairs, d_k)
        half = len(rest) // 2
        return np.concatenate([first, rest[:half], second, rest[half:]])

    def table(self, n: int, d_k: int) -> Array:
        """For every position and coordinate in that order: what multiplies it, and its partner.

        Shape (n, d_k, 2): a cosine and a signed sine; 1 and 0 where nothing turns.
        """
        angles = np.outer(np.arange(n), self.frequencies)
        turns = np.zeros((n, 2, d_k // 2, 2))
        turns[..., 0] = 1.0
        turns[:, :, : self.pairs, 0] = self.factor * np.cos(angles)[:, None]
        turns[:, 0, : self.pairs, 1] = -self.factor * np.sin(angles)
        turns[:, 1, : self.pairs, 1] = self.factor * np.sin(angles)
        return turns.reshape(n, d_k, 2)


@dataclass(frozen=True, eq=False)
class Relative:
    """A bias of the score that depends on the head and on query position minus key position.

    `biases(distances)` gives shape (heads, *distances.shape).
    """

    heads: int
    biases: Callable[[np.ndarray], Array]
    words: str = "biases by distance"

    @classmethod
    def alibi(cls, heads: int) -> Relative:
        """Attention with linear biases: -slope·|distance|, slopes 2^(-8/heads), its square, ...

        For a number of heads that is no power of two, every other slope of twice as many follows.

        >>> Relative.alibi(2).table(2).tolist()
        [[-0.0625, -0.0, -0.0625], [-0.00390625, -0.0, -0.00390625]]
        """
        return cls.linear(alibi_slopes(heads))

    @classmethod
    def linear(cls, slopes: ArrayLike) -> Relative:
        """-slope·|distance|, one slope for each head."""
        column = np.asarray(slopes, dtype=np.float64)
        return cls(
            len(column),
            lambda distance: -np.multiply.outer(column, np.abs(distance)),
            "linear biases (ALiBi)",
        )

    @classmethod
    def of_table(cls, values: ArrayLike) -> Relative:
        """Explicit values (heads, 2·m - 1), for the distances -(m - 1) to m - 1."""
        table = np.asarray(values, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] % 2 == 0:
            raise RaspValueError(
                "a table of relative biases does not fit",
                expected="shape (heads, 2·m - 1)",
                found=f"shape {table.shape}",
            )
        check_finite(table, "the table of relative biases")
        reach = table.shape[1] // 2

        def biases(distance: np.ndarray) -> Array:
            if np.abs(distance).max() > reach:
                raise RaspValueError(
                    "the table of relative biases is too short",
                    expected=f"at most {reach + 1} rows",
                    found=f"{int(np.abs(distance).max()) + 1}",
                )
            return np.asarray(table[:, distance + reach])

        return cls(len(table), biases, "biases by distance, from a table")

    @classmethod
    def buckets(
        cls, weights: ArrayLike, *, bidirectional: bool = True, farthest: int = 128
    ) -> Relative:
        """T5's buckets: `weights` (buckets, heads); near distances apart, far ones by logarithm."""
        table = np.asarray(weights, dtype=np.float64)
        check_finite(table, "the relative biases")

        def biases(distance: np.ndarray) -> Array:
            chosen = _bucket(distance, len(table), bidirectional, farthest)
            return np.asarray(np.moveaxis(table[chosen], -1, 0))

        return cls(table.shape[1], biases, "relative biases in buckets")

    def table(self, n: int) -> Array:
        """The biases for the distances -(n - 1) to n - 1, shape (heads, 2n - 1)."""
        return self.biases(np.arange(-(n - 1), n))


def alibi_slopes(heads: int) -> Array:
    """The slopes of attention with linear biases.

    >>> alibi_slopes(3).tolist()
    [0.0625, 0.00390625, 0.25]
    """
    power = 1 << (heads.bit_length() - 1)
    slopes = 2.0 ** (-8.0 / power * np.arange(1, power + 1))
    further = 2.0 ** (-4.0 / power * np.arange(1, 2 * (heads - power), 2))
    return np.concatenate([slopes, further])


def _bucket(distance: np.ndarray, buckets: int, bidirectional: bool, farthest: int) -> np.ndarray:
    behind = distance  # query minus key: positive where the key lies before the query
    base = np.zeros_like(behind)
    if bidirectional:
        buckets //= 2
        base = np.where(behind < 0, buckets, 0)
        behind = np.abs(behind)
    else:
        behind = np.maximum(behind, 0)
    exact = buckets // 2
    scale = (buckets - exact) / math.log(farthest / exact)
    far = exact + (np.log(np.maximum(behind, 1) / exact) * scale).astype(np.int64)
    return np.asarray(base + np.where(behind < exact, behind, np.minimum(far, buckets - 1)))
