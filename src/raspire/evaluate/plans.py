"""Plans are kept as long as their program lives: a second call only computes."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from raspire.arithmetic import Arithmetic
from raspire.evaluate.demand import Demand, demand
from raspire.evaluate.positions import Positions, Span
from raspire.evaluate.specialise import specialise
from raspire.program.nodes import Node

KEPT = 8
"""Plans that one program keeps."""


@dataclass
class Planned:
    """A program specialised to one length, and what it needs to be read at some positions."""

    program: Node
    demand: Demand


def planned(
    program: Node, length: int, rows: int, positions: Positions, arithmetic: Arithmetic
) -> Planned:
    """The plan of a program for ``rows`` inputs of one length, made or found again."""
    kept = _kept_of(program)
    wanted = positions if isinstance(positions, Span) else positions.tobytes()
    key = (length, rows, wanted, arithmetic.name)
    if key not in kept:
        if len(kept) >= KEPT:
            kept.pop(next(iter(kept)))
        narrow = specialise(program, length, arithmetic)
        kept[key] = Planned(narrow, demand(narrow, positions, length, rows))
    return kept[key]


Kept = dict[int, tuple[weakref.ref[Node], dict[Any, Planned]]]
_kept: Kept = {}


def _kept_of(program: Node) -> dict[Any, Planned]:
    """By identity: s-ops compare elementwise."""
    key = id(program)
    if key not in _kept or _kept[key][0]() is not program:

        def forget(_: object, kept: Kept = _kept) -> None:  # also while the interpreter ends
            kept.pop(key, None)

        _kept[key] = weakref.ref(program, forget), {}
    return _kept[key][1]
