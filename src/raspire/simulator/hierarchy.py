"""Smaller targets inside a larger U (Corollary 6.2): zeros for what is missing, a mask for rows.

Weights and heads are padded with zeros, the target keeps its own scale, and rows of padding are
hidden: by a key padding, or by a causal mask, under which no row of the target sees them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from raspire.simulator.inputs import checked_padding
from raspire.simulator.positions import Relative
from raspire.simulator.target import AttentionTarget, Shape
from raspire.simulator.weights import Array


def misfit(small: Shape, n: int, large: Shape, rows: int) -> str:
    """Why U of shape `large` for `rows` rows does not take a target, or nothing if it does."""
    for name in ("d", "heads", "d_k", "d_v"):
        have, room = getattr(small, name), getattr(large, name)
        if have > room:
            return f"{name} of {have}, and U has room for {room}"
    if n > rows:
        return f"n of {n}, and U has room for {rows}"
    if small.output != large.output:
        return "an output map" if small.output else "no output map"
    if small.mask not in ("none", large.mask) or (large.mask == "causal" != small.mask):
        return f"mask {small.mask}, and U has mask {large.mask}"
    if (small.rotary, small.relative, small.window) != (large.rotary, large.relative, large.window):
        return f"{small.positional or 'no positions'}, and U has {large.positional or 'none'}"
    if small.rotary and small.d_k != large.d_k:
        return f"d_k of {small.d_k} with rotary positions, and U has d_k of {large.d_k}"
    if n < rows and large.window is not None and large.mask == "padding":
        return f"n of {n}, and the rows of padding of U would see nothing in their windows"
    if n < rows and large.mask == "none":
        return f"n of {n}, and U without a mask takes n of {rows} only"
    return ""


def enlarged(target: AttentionTarget, large: Shape) -> AttentionTarget:
    """The same target in the dimensions of a larger shape; the numbers added are all zero.

    >>> t = AttentionTarget.from_arrays(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)))
    >>> enlarged(t, Shape(2, 1, 4, 1, output=False)).ratio
    2.0
    """
    if target.shape == large:
        return target
    h, d, d_k, d_v = large.heads, large.d, large.d_k, large.d_v
    own = target.scale if target.scale is not None else target.d_k**-0.5
    return replace(
        target,
        w_q=_grown(target.w_q, (h, d, d_k)),
        w_k=_grown(target.w_k, (h, d, d_k)),
        w_v=_grown(target.w_v, (h, d, d_v)),
        b_q=_grown(target.b_q, (h, d_k)),
        b_k=_grown(target.b_k, (h, d_k)),
        b_v=_grown(target.b_v, (h, d_v)),
        w_o=_grown_output(target, large),
        b_o=None if target.b_o is None else _grown(target.b_o, (d,)),
        scale=target.scale if target.d_k == d_k else own,
        mask=large.mask,
        relative=_grown_relative(target.relative, h),
    )


def enlarged_rows(x: Array, rows: int, d: int) -> Array:
    """X with rows and columns of zeros."""
    return _grown(x, (rows, d))


def enlarged_padding(padding: ArrayLike | None, n: int, rows: int) -> Array:
    """The key padding of n rows, followed by zeros for the rows added."""
    return _grown(checked_padding(np.ones(n) if padding is None else padding, n), (rows,))


def cropped(result: Array, n: int, small: Shape, large: Shape) -> Array:
    """The rows and columns of U's result that belong to the smaller target."""
    if large.output:
        return np.ascontiguousarray(result[:n, : small.d])
    by_head = result.reshape(len(result), large.heads, large.d_v)
    return np.ascontiguousarray(by_head[:n, : small.heads, : small.d_v].reshape(n, -1))


def _grown(array: Array, shape: tuple[int, ...]) -> Array:
    if array.shape == shape:
        return array
    grown = np.zeros(shape)
    grown[tuple(slice(size) for size in array.shape)] = array
    return grown


def _grown_relative(relative: Relative | None, heads: int) -> Relative | None:
    if relative is None or relative.heads == heads:
        return relative
    own = relative

    def biases(distance: np.ndarray) -> Array:
        return _grown(own.biases(distance), (heads, *distance.shape))

    return Relative(heads, biases, own.words)


def _grown_output(target: AttentionTarget, large: Shape) -> Array | None:
    if target.w_o is None:
        return None
    by_head = target.w_o.reshape(target.heads, target.d_v, target.d)
    return _grown(by_head, (large.heads, large.d_v, large.d)).reshape(large.merged, large.d)
