"""From values to forms: the compiler proper.

``form(node, table)`` gives the linear form of a function of a node's value, and on the way makes
the embeddings, heads and units that it needs. A function of the token or of the position costs
nothing but embedding slots; sums and multiples cost nothing; a copied value carries any function
of it; everything else on a listed domain is one group of steps, on reals one gated unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from raspire.compile.domain import UNDEFINED, Finite, Real, Vector
from raspire.compile.facts import COMPARISONS, TRUTH
from raspire.compile.gates import NAMED, UNARY, gate_terms
from raspire.compile.grid import lifted
from raspire.compile.hinges import broken
from raspire.compile.linear import Cell, Form, constant, of
from raspire.compile.lowering import Share, apply
from raspire.compile.naming import text_of
from raspire.compile.parts import GatePart
from raspire.compile.steps import STEPS, Steps
from raspire.errors import UnsupportedError
from raspire.program.nodes import Aggregate, Apply, Constant, SOp, Tokens


class Resolver(Steps):
    """The compiler at work on one program."""

    def form(self, node: SOp, table: Vector, exact: bool = False) -> Form:
        """The form of a function of a node's value; ``table`` is aligned with its domain."""
        domain = self.domain(node)
        assert isinstance(domain, Finite)
        if (table == table[0]).all():
            return constant(float(table[0]))
        if domain.numeric:
            slope = _affine(domain.floats, table)
            if slope is not None and not self._rounded(node, exact):
                offset = float(table[0]) - slope * domain.floats[0]
                return self.number(node, exact) * slope + constant(offset)
        return self.function(node, table, exact)

    def _rounded(self, node: SOp, exact: bool) -> bool:
        """Whether the number itself is a rounded mean, while an exact one is asked for."""
        return exact and isinstance(node, Aggregate) and not self.single_valued(node)

    def number(self, node: SOp, exact: bool = False) -> Form:
        """The form of a numeric node's own value."""
        key = (node, exact)
        if key not in self._numbers:
            self._numbers[key] = self._number(node, exact)
        return self._numbers[key]

    def function(self, node: SOp, table: Vector, exact: bool) -> Form:
        """A function of a node's value that is neither constant nor affine."""
        if self.symbolic(node) and isinstance(self.alphabet, tuple):
            return self._embedded(node, table, self.tokens, self.on_alphabet(node), "token")
        if self.positional(node):
            return self._embedded(node, table, self.positions, self.on_positions(node), "position")
        if (
            isinstance(node, Aggregate)
            and self.single_valued(node)
            and not (exact and not self.selection(node.selector).copies)
        ):
            return self.copied(node, table, exact)
        return self.stepped(node, table, exact)

    def _embedded(
        self, node: SOp, table: Vector, cells: dict[bytes, Cell], values: list[Any], kind: Any
    ) -> Form:
        place = self.domain(node).place  # type: ignore[union-attr]
        column = np.array([0.0 if v is UNDEFINED else table[place[v]] for v in values])
        if (column == column[0]).all():
            return constant(float(column[0]))
        key = column.tobytes()
        if key not in cells:
            label = self.feature(node, table)
            cells[key] = Cell(kind, label, node, table, column, bound=float(np.abs(column).max()))
        return of(cells[key])

    # ------------------------------------------------------------ numbers

    def _number(self, node: SOp, exact: bool) -> Form:
        domain = self.domain(node)
        if not domain.numeric:
            raise UnsupportedError(
                f"a number is needed, and {text_of(node)} may be none", where=node.place,
                expected="numbers", found=str(domain),
            )  # fmt: skip
        if isinstance(node, Constant):
            return constant(float(lifted(node.value)))
        if isinstance(node, Tokens) and isinstance(self.alphabet, Real):
            return of(self._input(node, self.alphabet))
        if isinstance(domain, Finite):
            embedded = self.positional(node) or self.symbolic(node)
            if len(domain) == 1:
                return constant(domain.low)
            if embedded and (self.positional(node) or isinstance(self.alphabet, tuple)):
                return self.function(node, domain.floats, exact)
        if isinstance(node, Share):
            return of(self.share(node))
        if isinstance(node, Aggregate):
            return self.mean_form(node, exact)
        assert isinstance(node, Apply)
        linear = self._linear(node, exact)
        return self._computed(node, exact) if linear is None else linear

    def _input(self, node: SOp, reals: Real) -> Cell:
        if self.real is None:
            bound = max(abs(reals.low), abs(reals.high))
            self.real = Cell("value", "tokens", node, bound=bound)
        return self.real

    def _linear(self, node: Apply, exact: bool) -> Form | None:
        """Sums, differences and multiples, walked without recursion; None for anything else."""
        if self.linear_terms(node) is None:
            return None
        result = Form()
        stack: list[tuple[SOp, float]] = [(node, 1.0)]
        while stack:
            part, factor = stack.pop()
            terms = self.linear_terms(part)
            known = (part, exact) in self._numbers
            if terms is None or known:
                result = result + self.number(part, exact) * factor
                continue
            offset, below = terms
            result = result + constant(offset * factor)
            stack.extend((child, factor * value) for child, value in below)
        return result

    def _computed(self, node: Apply, exact: bool) -> Form:
        """The value of a function that is not linear: steps where they are few, else a gate."""
        domain = self.domain(node)
        name = node.primitive.name
        if isinstance(domain, Finite) and self._by_steps(node, exact):
            return self.stepped(node, domain.floats, exact)
        if name not in NAMED:
            raise self._too_many(node, [self.domain(a) for a in node.args])
        if self.pieces is not None and name == "div":
            return self.number(self._quotient(node))
        key = (node, exact)
        if key not in self._gates:
            bound = max(abs(domain.low), abs(domain.high))
            cell = Cell("units", text_of(node), node, bound=bound)
            if isinstance(domain, Finite):
                cell.table = domain.floats
            self._gates[key] = self._gate(node, cell, exact)
            cell.source = self._gates[key]
            self.parts.append(self._gates[key])
        return of(self._gates[key].cell)

    def _gate(self, node: Apply, cell: Cell, exact: bool) -> GatePart:
        if self.pieces is None:
            terms = gate_terms(node, self, exact)
            if self.stock and any(term[0] not in ("relu", "linear") for term in terms):
                raise UnsupportedError(
                    f"{text_of(node)} needs gated units, which not every framework has",
                    where=node.place,
                    expected="relu units",
                    hint="compile without stock=True, or with relu_error=...",
                )
            return GatePart(text_of(node), cell, terms, node=node)
        line = broken(node, self, self.pieces)
        return GatePart(text_of(node), cell, line.terms, line.error, line.slopes, node)

    def _quotient(self, node: Apply) -> SOp:
        """A quotient as a product with a reciprocal, which a broken line can follow."""
        if node not in self._quotients:
            self._quotients[node] = apply("mul", node.args[0], apply("recip", node.args[1]))
        return self._quotients[node]

    def opens_gate(self, condition: Apply) -> bool:
        """Whether a condition is a comparison of numbers that only a gate can decide."""
        return condition.primitive.name in COMPARISONS and not self._by_steps(condition)

    def is_gate(self, node: Apply) -> bool:
        """Whether a function of one real is nothing but a gate."""
        if self.pieces is not None or node.primitive.name not in UNARY:
            return False
        if (node, False) in self._gates:
            return False
        return isinstance(self.domain(node.args[0]), Real) and not (
            self.symbolic(node) and isinstance(self.alphabet, tuple)
        )

    def _by_steps(self, node: Apply, exact: bool = False) -> bool:
        """Whether a listed result comes from steps; truth always does, where it has a margin."""
        if node.primitive.name in TRUTH:
            return not any(isinstance(self.domain(a), Real) for a in node.args)
        condition = node.args[0]
        chosen = node.primitive.name == "where" and isinstance(condition, Apply)
        if chosen and self.opens_gate(condition) and self.pieces is None:  # type: ignore[arg-type]
            return not all(self.domain(a).numeric for a in node.args)
        choices = [self.variables(node), self._arguments(node)]
        sizes = [(len(v), self.listing(v)) for v in choices]
        listed = [len(points) for _, points in sizes if points is not None]
        if not listed:
            return False
        if any(n == 1 and points is not None and len(points) <= STEPS for n, points in sizes):
            return True
        rounds = node.primitive.name in (*UNARY, "div")
        gated = node.primitive.name in NAMED and not (exact and rounds) and not self.stock
        return min(listed) <= (256 if gated else np.inf)


def _affine(x: Vector, y: Vector) -> float | None:
    """The slope where y is an affine function of x, exactly up to rounding; else None."""
    if len(x) < 2:
        return None
    slope = float((y[-1] - y[0]) / (x[-1] - x[0]))
    rounded = float(np.rint(slope))
    slope = rounded if abs(slope - rounded) < 1e-12 else slope
    fitted = y[0] + slope * (x - x[0])
    close = np.abs(fitted - y) <= 1e-13 * (1 + np.abs(y).max())
    return slope if bool(close.all()) else None
