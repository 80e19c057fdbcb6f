"""Cells and linear forms: what a residual slot holds, and how a value is read from the slots.

A *cell* is one number at every position, held by one residual slot once it has a place. Every
cell is 0 at the beginning of sequence, but for shares (1 there). A *form* is a linear combination
of cells; sums, differences and multiples of values are forms and cost nothing. Two constants are
cells too: ``TOK`` is 1 at every token and 0 at the beginning of sequence, ``BOS`` the reverse.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from raspire.compile.domain import Vector
from raspire.program.nodes import SOp

Kind = Literal["constant", "token", "position", "value", "head", "units"]
_numbers = itertools.count()


@dataclass(eq=False)
class Cell:
    """One number per position: where it comes from, and what is known of it.

    ``table`` holds its values over the domain of ``node`` where that is finite, ``column`` those
    over symbols or positions where it is embedded, ``source`` the part that writes it; ``noise``
    bounds the distance of the computed number from the exact one, ``bound`` its size.
    """

    kind: Kind
    label: str
    node: SOp | None = None
    table: Vector | None = None
    column: Vector | None = None
    source: Any = None
    bound: float = 1.0
    noise: float = 0.0
    at_bos: float = 0.0
    number: int = field(default_factory=lambda: next(_numbers))


TOK = Cell("constant", "token")
BOS = Cell("constant", "beginning of sequence", at_bos=1.0)


class Form:
    """A linear combination of cells, with the algebra of a vector space."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Cell, float] | None = None) -> None:
        self.terms: dict[Cell, float] = {c: float(v) for c, v in (terms or {}).items() if v != 0}

    def __add__(self, other: Form) -> Form:
        terms = dict(self.terms)
        for cell, value in other.terms.items():
            terms[cell] = terms.get(cell, 0.0) + value
        return Form(terms)

    def __sub__(self, other: Form) -> Form:
        return self + other * -1.0

    def __mul__(self, factor: float) -> Form:
        return Form({cell: value * factor for cell, value in self.terms.items()})

    __rmul__ = __mul__

    def __neg__(self) -> Form:
        return self * -1.0

    @property
    def cells(self) -> list[Cell]:
        return list(self.terms)

    @property
    def bound(self) -> float:
        return sum(abs(v) * c.bound for c, v in self.terms.items())

    @property
    def noise(self) -> float:
        return sum(abs(v) * c.noise for c, v in self.terms.items())

    @property
    def at_bos(self) -> float:
        return sum(v * c.at_bos for c, v in self.terms.items())

    @property
    def key(self) -> tuple[tuple[int, float], ...]:
        return tuple(sorted((c.number, v) for c, v in self.terms.items()))

    def __repr__(self) -> str:
        return " + ".join(f"{v:g}·[{c.label}]" for c, v in self.terms.items()) or "0"


def constant(value: float) -> Form:
    """The form of a number that is the same at every token."""
    return Form({TOK: value})


def of(cell: Cell, value: float = 1.0) -> Form:
    """The form of one cell."""
    return Form({cell: value})


def total(forms: Iterable[Form]) -> Form:
    """The sum of some forms."""
    result = Form()
    for form in forms:
        result = result + form
    return result
