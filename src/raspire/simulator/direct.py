"""Attention computed directly: the oracle of every error that is printed.

It shares no code with the constructions of U: it is the textbook formula in float64 NumPy.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from raspire.simulator.inputs import checked_input, checked_padding, refuse_blind_rows
from raspire.simulator.target import AttentionTarget
from raspire.simulator.weights import Array


def attention(target: AttentionTarget, x: ArrayLike, padding: ArrayLike | None = None) -> Array:
    """T(X) in float64, shape (n, d), or (n, heads * d_v) for a target without output map.

    >>> t = AttentionTarget.from_arrays(np.zeros((1, 1)), np.zeros((1, 1)), np.eye(1), heads=1)
    >>> attention(t, np.array([[1.0], [3.0]])).ravel().tolist()
    [2.0, 2.0]
    """
    rows = checked_input(x, target.d)
    n = len(rows)
    scale = target.scale if target.scale is not None else 1 / math.sqrt(target.d_k)
    seen = _seen(target, n, padding)
    biases = _biases(target, n)
    merged = []
    for t in range(target.heads):
        q = _turned(target, rows @ target.w_q[t] + target.b_q[t])
        k = _turned(target, rows @ target.w_k[t] + target.b_k[t])
        v = rows @ target.w_v[t] + target.b_v[t]
        scores = np.where(seen, q @ k.T * scale + biases[t], -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        merged.append(weights / weights.sum(axis=1, keepdims=True) @ v)
    heads = np.concatenate(merged, axis=1)
    if target.w_o is None or target.b_o is None:
        return heads
    return np.asarray(heads @ target.w_o + target.b_o)


def _seen(target: AttentionTarget, n: int, padding: ArrayLike | None) -> np.ndarray:
    """Which keys each query sees, (n, n) booleans."""
    seen = np.ones((n, n), dtype=bool)
    if target.mask == "causal":
        seen = np.tril(seen)
    if target.mask == "padding" and padding is not None:
        flags = checked_padding(padding, n)
        refuse_blind_rows(flags, target.window)
        seen = np.tile(flags == 1, (n, 1))
    if target.window is not None:
        seen &= np.abs(np.subtract.outer(np.arange(n), np.arange(n))) < target.window
    return seen


def _turned(target: AttentionTarget, rows: Array) -> Array:
    """Rotary positions: each pair of coordinates as a complex number, turned by its angle."""
    if target.rotary is None:
        return rows
    first, second = target.rotary.members()
    pairs = rows[:, first] + 1j * rows[:, second]
    angles = np.outer(np.arange(len(rows)), target.rotary.frequencies)
    pairs = pairs * target.rotary.factor * np.exp(1j * angles)
    turned = rows.copy()
    turned[:, first], turned[:, second] = pairs.real, pairs.imag
    return turned


def _biases(target: AttentionTarget, n: int) -> Array:
    if target.relative is None:
        return np.zeros((target.heads, n, n))
    return target.relative.biases(np.subtract.outer(np.arange(n), np.arange(n)))
