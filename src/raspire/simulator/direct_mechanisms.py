"""Other attention mechanisms computed directly in float64 NumPy, from their definitions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from raspire.simulator.inputs import checked_input, checked_padding
from raspire.simulator.mechanism_layers import FeatureMap
from raspire.simulator.target import AttentionTarget
from raspire.simulator.weights import Array


def cross_attention(
    target: AttentionTarget, x: ArrayLike, memory: ArrayLike, padding: ArrayLike | None = None
) -> Array:
    """Queries from the rows of x, keys and values from the rows of a memory."""
    rows, others = checked_input(x, target.d), checked_input(memory, target.d)
    flags = np.ones(len(others)) if padding is None else checked_padding(padding, len(others))
    hidden = np.where(flags == 1, 0.0, -np.inf)
    merged = []
    for t in range(target.heads):
        q, k, v = _parts(target, t, rows, others)
        weights = _softmax(q @ k.T * _scale(target) + hidden)
        merged.append(weights @ v)
    return _out(target, merged)


def linformer(target: AttentionTarget, x: ArrayLike, keys: Array, values: Array) -> Array:
    """Keys and values reduced along the sequence by maps (heads, reduced, n)."""
    rows = checked_input(x, target.d)
    merged = []
    for t in range(target.heads):
        q, k, v = _parts(target, t, rows, rows)
        merged.append(_softmax(q @ (keys[t] @ k).T * _scale(target)) @ (values[t] @ v))
    return _out(target, merged)


def linear_attention(
    target: AttentionTarget, x: ArrayLike, feature: FeatureMap, padding: ArrayLike | None = None
) -> Array:
    """Attention whose weights are products of features, divided by their sum."""
    rows = checked_input(x, target.d)
    n = len(rows)
    seen = np.tri(n) if target.mask == "causal" else np.ones((n, n))
    if padding is not None:
        seen = seen * checked_padding(padding, n)
    merged = []
    for t in range(target.heads):
        q, k, v = _parts(target, t, rows, rows)
        weights = seen * (featured(feature, q) @ featured(feature, k).T)
        merged.append(weights @ v / weights.sum(axis=1, keepdims=True))
    return _out(target, merged)


def featured(name: FeatureMap, x: Array) -> Array:
    """The feature map of linear attention.

    >>> featured("elu", np.array([0.0, 2.0])).tolist()
    [1.0, 3.0]
    """
    if name == "elu":
        return np.asarray(np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))))
    return np.maximum(x, 0.0) if name == "relu" else np.asarray(np.exp(x))


def _parts(
    target: AttentionTarget, t: int, rows: Array, others: Array
) -> tuple[Array, Array, Array]:
    q = rows @ target.w_q[t] + target.b_q[t]
    k = others @ target.w_k[t] + target.b_k[t]
    return q, k, others @ target.w_v[t] + target.b_v[t]


def _scale(target: AttentionTarget) -> float:
    return target.scale if target.scale is not None else 1 / math.sqrt(target.d_k)


def _softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _out(target: AttentionTarget, heads: list[Array]) -> Array:
    merged = np.concatenate(heads, axis=1)
    if target.w_o is None or target.b_o is None:
        return merged
    return np.asarray(merged @ target.w_o + target.b_o)
