"""The steps of a contraction plan: array operations on registers, common ones shared.

What does not depend on the tokens is computed once, when the step is added; the rest becomes a
list of steps that a run only executes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raspire.evaluate.contraction import kernels
from raspire.evaluate.contraction.kernels import Array
from raspire.program.index_expressions import Axis, NotProved
from raspire.program.primitives import REALS, Interval

TOKENS = 0
MOST_CONSTANT = 1 << 22
MOST_ELEMENTS = 4
"""No array of a plan is longer than so many times the sequence (or than a few kilobytes)."""


@dataclass(frozen=True)
class Ref:
    """A register, the axes of its array in order, the kind and the range of its numbers.

    Not ``exact`` is what a sum was rounded in: nothing discontinuous may be made of it, because
    another order of summation could fall on the other side.
    """

    register: int
    axes: tuple[Axis, ...]
    kind: str
    range: Interval = REALS
    exact: bool = True

    @property
    def size(self) -> int:
        return math.prod(axis.size for axis in self.axes)


@dataclass(frozen=True)
class Step:
    """One array operation; ``size`` is the number of new elements it holds in memory."""

    run: Callable[..., Any]
    inputs: tuple[int, ...]
    output: int
    size: int


@dataclass
class Emission:
    """The steps of a plan, its constants, and its lines for ``explain``."""

    length: int
    steps: list[Step] = field(default_factory=list)
    constants: dict[int, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    registers: int = TOKENS + 1
    shared: dict[object, Ref] = field(default_factory=dict)
    blocks: dict[int, Ref] = field(default_factory=dict)
    letters: dict[Axis, str] = field(default_factory=dict)

    def letter(self, axis: Axis) -> str:
        """The name of an axis in the lines: a, b, ..., z, a1, b1, ..."""
        count = len(self.letters)
        name = chr(ord("a") + count % 26) + (str(count // 26) if count >= 26 else "")
        return self.letters.setdefault(axis, name)

    def add(
        self,
        key: object,
        run: Callable[..., Any],
        inputs: Iterable[Ref],
        axes: tuple[Axis, ...],
        kind: str = "f",
        range: Interval = REALS,
        fresh: bool = True,
        rounds: bool = False,
    ) -> Ref:
        """A step (or, of constants alone, its result), unless the same one is there already."""
        refs = tuple(inputs)
        numbers = tuple(ref.register for ref in refs)
        if (key, numbers) in self.shared:
            return self.shared[key, numbers]
        exact = not rounds and all(ref.exact for ref in refs)
        result = Ref(self.registers, axes, kind, range, exact)
        if fresh and result.size > MOST_ELEMENTS * max(self.length, 4096):
            raise NotProved
        self.registers += 1
        if all(number in self.constants for number in numbers):
            if result.size > MOST_CONSTANT:
                raise NotProved
            with np.errstate(all="ignore"):
                value = run(*(self.constants[number] for number in numbers))
            self.constants[result.register] = np.asarray(value)
        else:
            self.steps.append(Step(run, numbers, result.register, result.size if fresh else 0))
        self.shared[key, numbers] = result
        return result

    def constant(self, value: Any, axes: tuple[Axis, ...], kind: str, range: Interval) -> Ref:
        """A register that holds an array known now."""
        result = Ref(self.registers, axes, kind, range)
        self.registers += 1
        self.constants[result.register] = np.asarray(value)
        return result

    def spread(self, ref: Ref, axes: tuple[Axis, ...]) -> Ref:
        """The same values with exactly these axes in this order."""
        if ref.axes == axes:
            return ref
        order, fill = alignment(ref.axes, axes)
        shape = tuple(axis.size for axis in axes)

        def run(array: Array) -> Array:
            return np.broadcast_to(kernels.aligned(array, order, fill), shape)

        return self.add(("spread", axes), run, [ref], axes, ref.kind, ref.range, fresh=False)


def alignment(
    own: tuple[Axis, ...], axes: tuple[Axis, ...]
) -> tuple[tuple[int, ...], tuple[slice | None, ...]]:
    order = tuple(own.index(axis) for axis in axes if axis in own)
    return order, tuple(slice(None) if axis in own else None for axis in axes)


def union(refs: Iterable[Ref]) -> tuple[Axis, ...]:
    """All axes, those of the largest array first and in its order."""
    axes: dict[Axis, None] = {}
    for ref in sorted(refs, key=lambda ref: -len(ref.axes)):
        axes.update(dict.fromkeys(ref.axes))
    return tuple(axes)
