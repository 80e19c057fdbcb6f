"""What the compiler keeps while it works: facts, and the parts and cells made so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from raspire.compile.domain import Finite, Real, Vector
from raspire.compile.facts import Facts
from raspire.compile.linear import Cell, Form
from raspire.compile.naming import text_of
from raspire.compile.parts import GatePart, HeadPart, Part, StepPart
from raspire.program.nodes import Aggregate, Apply, Selector, SOp


class Workshop(Facts, ABC):
    """Facts about a program, and the parts that its forms have needed so far."""

    def __init__(
        self,
        alphabet: tuple[Any, ...] | Real,
        length: int,
        epsilon: float,
        pieces: int | None = None,
        stock: bool = False,
        one_mask: str | None = None,
    ) -> None:
        super().__init__(alphabet, length)
        self.epsilon = epsilon
        self.pieces = pieces
        self.stock = stock
        self.one_mask = one_mask
        self.names: dict[SOp, str] = {}
        self._quotients: dict[SOp, SOp] = {}
        self.parts: list[Part] = []
        self.tokens: dict[bytes, Cell] = {}
        self.positions: dict[bytes, Cell] = {}
        self.real: Cell | None = None
        self._heads: dict[tuple[SOp | Selector, str], HeadPart] = {}
        self._scores: dict[tuple[object, ...], HeadPart] = {}
        self._steps: dict[tuple[Any, ...], StepPart] = {}
        self._gates: dict[tuple[SOp, bool], GatePart] = {}
        self._cells: dict[tuple[Any, ...], Cell] = {}
        self._numbers: dict[tuple[SOp, bool], Form] = {}
        self._differences: dict[SOp, SOp] = {}

    @abstractmethod
    def form(self, node: SOp, table: Vector, exact: bool = False) -> Form:
        """The form of a function of a node's value; ``table`` is aligned with its domain.

        With ``exact`` its numbers are to be free of rounding, so that equal ones are equal bits.
        """

    @abstractmethod
    def number(self, node: SOp, exact: bool = False) -> Form:
        """The form of a numeric node's own value."""

    @abstractmethod
    def function(self, node: SOp, table: Vector, exact: bool) -> Form:
        """A function of a node's value that is neither constant nor affine."""

    @abstractmethod
    def stepped(self, node: SOp, table: Vector, exact: bool) -> Form:
        """A function of a node's value as steps."""

    def single_valued(self, node: Aggregate) -> bool:
        """Whether a mean is one of the values (one key is selected, or they are no numbers)."""
        if self.selection(node.selector).copies:
            return True
        return not self.domain(node.value).numeric

    def linear_terms(self, node: SOp) -> tuple[float, list[tuple[SOp, float]]] | None:
        """An affine function of numeric arguments as offset and coefficients, else None."""
        if not isinstance(node, Apply) or not all(self.domain(a).numeric for a in node.args):
            return None
        if (self.symbolic(node) and isinstance(self.alphabet, tuple)) or self.positional(node):
            return None
        name, args = node.primitive.name, node.args
        if name in ("add", "sub"):
            return 0.0, [(args[0], 1.0), (args[1], 1.0 if name == "add" else -1.0)]
        if name in ("neg", "pos", "to_float"):
            return 0.0, [(args[0], -1.0 if name == "neg" else 1.0)]
        if name == "mul" and any(self.fixed(a) for a in args):
            k, x = args if self.fixed(args[0]) else reversed(args)
            return 0.0, [(x, self._constant(k))]
        if name == "div" and self.fixed(args[1]) and self._constant(args[1]) != 0:
            return 0.0, [(args[0], 1 / self._constant(args[1]))]
        found = self._truth_terms(name, args)
        if found is not None and node.label is not None:
            self.names.setdefault(args[0], node.label)  # one value, and this is what it is called
        return found

    def _truth_terms(
        self, name: str, args: tuple[SOp, ...]
    ) -> tuple[float, list[tuple[SOp, float]]] | None:
        if len(args) != 1:
            return None
        domain = self.domain(args[0])
        if not isinstance(domain, Finite):
            return None
        if name in ("round", "floor", "ceil", "to_int") and domain.whole:
            return 0.0, [(args[0], 1.0)]
        if set(domain.values) <= {0, 1} and name in ("indicator", "to_bool", "not"):
            return (1.0, [(args[0], -1.0)]) if name == "not" else (0.0, [(args[0], 1.0)])
        return None

    def _constant(self, node: SOp) -> float:
        return float(self.domain(node).low)

    def feature(self, node: SOp, table: Vector) -> str:
        """The label of a cell: the expression, and which function of it."""
        text, domain = self.names.get(node) or text_of(node), self.domain(node)
        if not isinstance(domain, Finite):
            return text
        if domain.numeric and np.array_equal(table, domain.floats):
            return text
        ones = np.flatnonzero(table)
        if len(ones) == 1 and table[ones[0]] == 1:
            return f"{text} == {domain.values[ones[0]]!r}"
        if domain.numeric and np.array_equal(table, np.square(domain.floats)):
            return f"({text})^2"
        if set(np.unique(table)) == {0.0, 1.0}:
            return f"{text} in {{{', '.join(repr(domain.values[i]) for i in ones[:4])}, ...}}"
        return f"code of {text}"
