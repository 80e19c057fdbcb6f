"""The parts a compiled network is made of, before they have a layer and slots.

A :class:`HeadPart` is an attention head, a :class:`StepPart` an elementwise function on a listed
domain, a :class:`GatePart` one gated unit on numbers. Each lists the cells that it writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from raspire.compile.domain import Vector
from raspire.compile.linear import Cell, Form
from raspire.program.nodes import SOp

Pair: TypeAlias = tuple[Form, Form]


@dataclass(eq=False)
class HeadPart:
    """One head: its score is the sum of query form times key form over ``pairs``.

    ``gap`` is the least distance of the greatest score of a row from any smaller one. ``copies``
    says that at most one key is ever selected, so that values pass unrounded. ``sink`` says
    whether the beginning of sequence takes an empty row ("rest"), ties with the selected keys
    ("share") or is not looked at ("none"). ``outright`` says that nothing but the score itself is
    read, so that a key within rounding of the greatest score is as good.
    """

    label: str
    pairs: list[Pair]
    causal: bool
    copies: bool
    sink: str
    gap: float | None = 1.0
    address: bool = False
    values: dict[Cell, Form] = field(default_factory=dict)
    node: SOp | None = None
    layer: int = 0
    outright: bool = False

    @property
    def writes(self) -> list[Cell]:
        return list(self.values)

    @property
    def reads(self) -> list[Form]:
        return [form for pair in self.pairs for form in pair] + list(self.values.values())

    @property
    def signature(self) -> tuple[object, ...]:
        """What two heads with equal scores share."""
        pairs = tuple((q.key, k.key) for q, k in self.pairs)
        return pairs, self.causal, self.copies, self.sink

    @property
    def ties(self) -> bool:
        """Whether several greatest scores have to be equal bit for bit."""
        return not self.outright and (not self.copies or self.sink == "share")

    @property
    def bound(self) -> float:
        """The largest absolute value that a score, or a part of its sum, can have."""
        return sum(q.bound * k.bound for q, k in self.pairs)


@dataclass(eq=False)
class StepPart:
    """Functions of one number ``code`` that takes the listed ``points`` only, in ascending order.

    Between two points where an output changes stands a step; on either side of it lies a plateau,
    so that noise below ``margin`` leaves the output as it is.
    """

    label: str
    code: Form
    points: Vector
    outputs: dict[Cell, Vector] = field(default_factory=dict)
    exact: bool = False
    hard: bool = False
    node: SOp | None = None
    layer: int = 0

    @property
    def writes(self) -> list[Cell]:
        return list(self.outputs)

    @property
    def reads(self) -> list[Form]:
        return [self.code]

    def changes(self) -> NDArray[np.int64]:
        """The places k where some output differs between point k and point k + 1."""
        differ = np.zeros(len(self.points) - 1, dtype=bool)
        for values in self.outputs.values():
            differ |= np.diff(values) != 0
        return np.flatnonzero(differ)

    @property
    def gap(self) -> float:
        """The least distance between two points whose outputs differ."""
        at = self.changes()
        return float((self.points[at + 1] - self.points[at]).min()) if len(at) else np.inf

    @property
    def margin(self) -> float:
        """How far a computed code may be from its point without changing an output."""
        return self.gap / (2 if self.hard else 4)


@dataclass(eq=False)
class GatePart:
    """A sum of gated units ``first * gate(second)``, or of plain ``relu(first)``; one cell.

    A broken line carries its distance from the function (``error``) and the greatest slope for
    each of its arguments; units that are exact carry neither.
    """

    label: str
    cell: Cell
    terms: list[tuple[str, Form, Form, float]]
    error: float = 0.0
    slopes: list[tuple[Form, float]] | None = None
    node: SOp | None = None
    layer: int = 0

    @property
    def writes(self) -> list[Cell]:
        return [self.cell]

    @property
    def reads(self) -> list[Form]:
        return [form for _, first, second, _ in self.terms for form in (first, second)]


Part: TypeAlias = HeadPart | StepPart | GatePart
