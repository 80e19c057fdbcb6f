"""An encoder block computed directly in float64 NumPy: the oracle of the block programs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, expit

from raspire.simulator.block import Activation, EncoderBlock, FeedForward, Norm
from raspire.simulator.direct import attention
from raspire.simulator.inputs import checked_input
from raspire.simulator.weights import Array


def normalised(norm: Norm, rows: Array) -> Array:
    """A layer norm or an RMS norm of every row."""
    if norm.kind == "layer":
        rows = rows - rows.mean(axis=1, keepdims=True)
    spread = np.sqrt((rows * rows).mean(axis=1, keepdims=True) + norm.eps)
    return np.asarray(rows / spread * norm.weight + norm.bias)


def activated(name: Activation, x: Array) -> Array:
    """The activation of a feed-forward part.

    >>> activated("relu", np.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    if name == "relu":
        return np.maximum(x, 0.0)
    if name == "silu":
        return np.asarray(x * expit(x))
    if name == "gelu":
        return np.asarray(x * 0.5 * (1 + erf(x / np.sqrt(2.0))))
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return np.asarray(0.5 * x * (1 + np.tanh(inner)))


def fed_forward(part: FeedForward, rows: Array) -> Array:
    """The feed-forward part of every row."""
    hidden = rows @ part.up + part.b_up
    if part.gate is None or part.b_gate is None:
        hidden = activated(part.activation, hidden)
    else:
        hidden = activated(part.activation, rows @ part.gate + part.b_gate) * hidden
    return np.asarray(hidden @ part.down + part.b_down)


def block_result(block: EncoderBlock, x: ArrayLike, padding: ArrayLike | None = None) -> Array:
    """The block's output, shape (n, d)."""
    rows = checked_input(x, block.attention.d)
    if block.order == "post":
        rows = normalised(block.norm1, rows + attention(block.attention, rows, padding))
        return normalised(block.norm2, rows + fed_forward(block.feed_forward, rows))
    rows = rows + attention(block.attention, normalised(block.norm1, rows), padding)
    return np.asarray(rows + fed_forward(block.feed_forward, normalised(block.norm2, rows)))
