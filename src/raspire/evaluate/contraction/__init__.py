"""Contractions: grouped means of products of look-ups, run as tensor contractions.

Where keys, queries and look-up addresses are digits of the position in a mixed radix, a grouped
mean of a product of look-ups is a contraction: the products are never formed, one BLAS call does
it all. A copy by address is a strided view. Both are proved on the program for a given length,
never guessed from values, and hold for every program of that shape; what is not proved goes to
the general engine. A plan does not depend on the tokens: a second call only computes.

Every mean is within the promised error of the exact one. A mean of products that are all equal is
too, though it may miss their common value by that much, since the products are never looked at.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raspire.evaluate.contraction.boxes import Box, box_of
from raspire.evaluate.contraction.demand import blocks
from raspire.evaluate.contraction.emission import emit
from raspire.evaluate.contraction.kernels import NotFinite
from raspire.evaluate.contraction.steps import TOKENS, Emission, Step
from raspire.program.index_expressions import Border, NotProved
from raspire.program.nodes import SOp

ELEMENT = 8


@dataclass(frozen=True, eq=False)
class Plan:
    """A program on a box of positions as array operations, for float64 tokens of one length."""

    length: int
    steps: tuple[Step, ...]
    constants: dict[int, Any]
    result: int
    shape: tuple[int, ...]
    text: tuple[str, ...]
    drops: tuple[tuple[int, ...], ...]
    peak: int

    def run(self, tokens: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The values at the plan's positions, (P,) float64; None if one is not finite.

        ``tokens`` is a float64 array (N,); only the positions that the program addresses are read.
        """
        registers: dict[int, Any] = {**self.constants, TOKENS: tokens}
        try:
            with np.errstate(all="ignore"):
                for step, drops in zip(self.steps, self.drops, strict=True):
                    registers[step.output] = step.run(*(registers[r] for r in step.inputs))
                    for register in drops:
                        del registers[register]
        except NotFinite:
            return None
        found = np.broadcast_to(registers[self.result], self.shape).reshape(-1)
        if not np.isfinite(np.sum(found)):
            return None
        return np.array(found, dtype=np.float64)

    def lines(self) -> list[str]:
        """One line for each contraction and each view, for ``explain``."""
        return list(self.text)


Positions = range | Sequence[int] | NDArray[np.int64] | None


def plan(program: SOp, length: int, positions: Positions, budget: int = 2 << 30) -> Plan | None:
    """The plan of a program at some positions, or None where it cannot be proved.

    Plans are kept as long as the program lives, one for each length and box of positions.

    >>> from raspire import aggregate, indices, select, tokens
    >>> a, b = (aggregate(select(indices, i, "=="), tokens) for i in (indices % 4, indices // 4))
    >>> row = aggregate(select(indices // 4, indices // 4, "=="), a * b)
    >>> plan(row, 16, range(0, 16, 4)).run(np.arange(16.0))
    array([0. , 1.5, 3. , 4.5])
    """
    box = box_of(positions, length)
    if box is None:
        return None
    kept = _plans(program)
    key = length, box
    if key not in kept:
        kept[key] = _plan(program, length, box)
    found = kept[key]
    return found if found is not None and found.peak <= budget else None


_kept: dict[int, tuple[weakref.ref[SOp], dict[tuple[int, Box], Plan | None]]] = {}


def _plans(program: SOp) -> dict[tuple[int, Box], Plan | None]:
    """The plans of a program; s-ops compare elementwise, so they are kept by identity."""
    key = id(program)
    if key not in _kept or _kept[key][0]() is not program:
        _kept[key] = weakref.ref(program, partial(_forget, _kept, key)), {}
    return _kept[key][1]


def _forget(kept: dict[int, Any], key: int, _: object) -> None:
    kept.pop(key, None)


def _plan(program: SOp, length: int, box: Box) -> Plan | None:
    emission = Emission(length)
    try:
        found = blocks(program, length, box)
        for block in found:
            result = emit(emission, block)
    except (NotProved, Border):
        return None
    if result.kind != "f":
        return None
    root = found[-1]
    shape = tuple(axis.size for axis, _ in root.axes)
    result = emission.spread(result, tuple(axis for axis, _ in root.axes))
    steps = _needed(emission.steps, result.register)
    drops = _drops(steps, result.register)
    peak = _peak(steps, drops) + result.size * ELEMENT
    used = {register for step in steps for register in step.inputs} | {result.register}
    constants = {r: value for r, value in emission.constants.items() if r in used}
    text = tuple(emission.lines)
    return Plan(length, steps, constants, result.register, shape, text, drops, peak)


def _needed(steps: list[Step], result: int) -> tuple[Step, ...]:
    """The steps that the result depends on."""
    needed = {result}
    kept: list[Step] = []
    for step in reversed(steps):
        if step.output in needed:
            needed.update(step.inputs)
            kept.append(step)
    return tuple(reversed(kept))


def _drops(steps: tuple[Step, ...], result: int) -> tuple[tuple[int, ...], ...]:
    """For every step, the registers that nobody reads after it."""
    last = {register: k for k, step in enumerate(steps) for register in step.inputs}
    written = {step.output for step in steps} - {result}
    found: list[list[int]] = [[] for _ in steps]
    for register in written:
        found[last[register]].append(register)
    return tuple(map(tuple, found))


def _peak(steps: tuple[Step, ...], drops: tuple[tuple[int, ...], ...]) -> int:
    """The most bytes that live arrays hold at once (a view holds what it looks into)."""
    size = {step.output: step.size for step in steps}
    live = most = 0
    for step, dropped in zip(steps, drops, strict=True):
        live += step.size
        most = max(most, live)
        live -= sum(size[register] for register in dropped)
    return most * ELEMENT
