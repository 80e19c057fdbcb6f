"""Boxes of positions: strided grids, how positions are recognised as one, how two become one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from raspire.program.index_expressions import Form, NotProved


@dataclass(frozen=True)
class Box:
    """The positions ``base + sum(stride * digit)``, ``axes`` being (size, stride) pairs."""

    base: int
    axes: tuple[tuple[int, int], ...]

    @property
    def volume(self) -> int:
        """The number of digit combinations."""
        result = 1
        for size, _ in self.axes:
            result *= size
        return result

    def __len__(self) -> int:
        return self.volume

    def positions(self) -> NDArray[np.int64]:
        """All positions, row-major."""
        found = np.array([self.base], dtype=np.int64)
        for size, stride in self.axes:
            found = (found[:, None] + stride * np.arange(size)).reshape(-1)
        return found


def box_of(positions: range | Sequence[int] | NDArray[np.int64] | None, length: int) -> Box | None:
    """The box that lists the positions in their order, or None; None stands for all positions.

    >>> box_of(np.array([3, 5, 13, 15]), 20)
    Box(base=3, axes=((2, 10), (2, 2)))
    """
    if positions is None:
        positions = range(length)
    if isinstance(positions, range):
        if not positions:
            return None
        run = (len(positions), positions.step)
        return Box(positions.start, (run,) if len(positions) > 1 else ())
    array = np.asarray(positions)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        return None
    axes: list[tuple[int, int]] = []
    while array.size > 1:
        stride = int(array[1] - array[0])
        breaks = np.flatnonzero(np.diff(array) != stride)
        size = int(breaks[0]) + 1 if breaks.size else array.size
        if array.size % size:
            return None
        rows = array.reshape(-1, size)
        if (np.diff(rows, axis=1) != stride).any():
            return None
        axes.insert(0, (size, stride))
        array = rows[:, 0]
    return Box(int(array[0]), tuple(axes))


def image(form: Form) -> Box:
    """The set of values of a form as a box with positive strides, neighbours fused."""
    base = form.range[0]
    axes: list[tuple[int, int]] = []
    for axis, coef in sorted(form.terms.items(), key=lambda term: abs(term[1])):
        _fuse(axes, axis.size, abs(coef))
    return Box(base, tuple(axes))


def _fuse(axes: list[tuple[int, int]], size: int, stride: int) -> None:
    """Put an axis of a stride not below the others in front of ``axes`` (largest first)."""
    if size == 1:
        return
    if axes:
        last_size, last_stride = axes[0]
        times = stride // last_stride
        if stride % last_stride == 0 and times <= last_size:
            axes[0] = last_size + times * (size - 1), last_stride
            return
        if stride <= sum((n - 1) * s for n, s in axes):
            raise NotProved
    axes.insert(0, (size, stride))


def hull(first: Box, second: Box) -> Box | None:
    """The least box around both in a common mixed radix, if it has no position to spare."""
    if first == second:
        return first
    low, high = sorted((first, second), key=lambda box: box.base)
    strides = {s for box in (low, high) for _, s in box.axes}
    remainders = [high.base - low.base]
    for stride in sorted(strides, reverse=True):
        remainders.append(remainders[-1] % stride)
    most = first.volume + second.volume
    candidates = (
        [set(), *({r} for r in remainders if r)] if not remainders[-1] else [{remainders[-1]}]
    )
    for extra in candidates:
        union = _hull(low, high, sorted(strides | extra))
        if union is not None and union.volume <= most:
            return union
    return None


def _hull(low: Box, high: Box, radix: list[int]) -> Box | None:
    """The least box around both with these strides, if each divides the next."""
    if any(larger % stride for stride, larger in pairwise(radix)):
        return None
    offset = high.base - low.base
    axes: list[tuple[int, int]] = []
    larger = [*radix[1:], offset + 1]
    for stride, above, own, other in zip(
        radix, larger, _digits(low, radix), _digits(high, radix), strict=True
    ):
        _fuse(axes, max(own, offset % above // stride + other), stride)
    return Box(low.base, tuple(axes))


def _digits(box: Box, radix: list[int]) -> list[int]:
    """The sizes of the box's axes in a radix (least stride first)."""
    sizes = dict.fromkeys(radix, 1) | {stride: size for size, stride in box.axes}
    for stride, above in pairwise(radix):
        times = above // stride
        if sizes[stride] > times and sizes[stride] % times == 0 and sizes[above] == 1:
            sizes[stride], sizes[above] = times, sizes[stride] // times
    return [sizes[stride] for stride in radix]


def merged(boxes: Iterable[Box], most: int = 64) -> list[tuple[Box, set[Box]]]:
    """Few boxes that cover all the given ones, each with those that it covers."""
    found: list[tuple[Box, set[Box]]] = []
    for box in dict.fromkeys(boxes):
        _absorb(found, box, {box})
        if len(found) > most:
            raise NotProved
    while True:
        again: list[tuple[Box, set[Box]]] = []
        for box, members in found:
            _absorb(again, box, members)
        if len(again) == len(found):
            return again
        found = again


def _absorb(found: list[tuple[Box, set[Box]]], box: Box, members: set[Box]) -> None:
    for place in reversed(range(len(found))):
        union = hull(found[place][0], box)
        if union is not None:
            found[place] = union, found[place][1] | members
            return
    found.append((box, members))
