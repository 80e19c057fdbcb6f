"""Elementwise functions on listed domains: one code for all variables, and steps between points."""

from __future__ import annotations

from typing import Any

import numpy as np

from raspire.compile.attention import Attention
from raspire.compile.domain import UNDEFINED, Finite, Ratio, Real, Vector, is_number
from raspire.compile.facts import COMPARISONS
from raspire.compile.grid import lifted
from raspire.compile.linear import Cell, Form, constant, of
from raspire.compile.lowering import Share, apply
from raspire.compile.naming import text_of
from raspire.compile.parts import StepPart
from raspire.program.nodes import Aggregate, Apply, Constant, SOp

SMALL = 1_024
"""A grid up to this size is worth one group of steps, whatever else could be done."""
STEPS = 4_000
"""The most steps of one group."""
SIGNS = (*COMPARISONS, "indicator", "to_bool", "not")
"""Functions of the sign of one number."""


class Steps(Attention):
    """The part of the compiler that makes groups of steps."""

    def code(self, node: SOp, exact: bool = False) -> tuple[Form, Vector]:
        """A form that tells a node's values apart, and what it is for each of them."""
        domain = self.domain(node)
        assert isinstance(domain, Finite)
        if domain.numeric:
            return self.number(node, exact), domain.floats
        if isinstance(node, Aggregate) and not self.single_valued(node):
            return self._code_of_mean(node, domain)
        order = np.arange(len(domain), dtype=float)
        return self.form(node, order, exact), order

    def _code_of_mean(self, node: Aggregate, domain: Finite) -> tuple[Form, Vector]:
        """A mean raised above 0, and 0 where nothing is selected."""
        numbers = [float(v) for v in domain.values if is_number(v)]
        lift = 1.0 - min(0.0, np.floor(min(numbers)))
        points = np.array([float(v) + lift if is_number(v) else 0.0 for v in domain.values])
        return of(self._mean(node, 0.0)) + of(self._present(node), lift), points

    def optional(self, node: SOp) -> tuple[Form, Form]:
        """The number that a node is, 0 where it is None, and the flag of being None."""
        domain = self.domain(node)
        assert isinstance(domain, Finite)
        if isinstance(node, Aggregate) and not self.single_valued(node):
            return of(self._mean(node, 0.0)), constant(1) - of(self._present(node))
        numbers = np.array([0.0 if v is None else float(v) for v in domain.values])
        flags = np.array([float(v is None) for v in domain.values])
        return self.form(node, numbers), self.form(node, flags)

    def carries_symbols(self, node: SOp) -> bool:
        """Whether the value is a token's, passed on by selectors of one key."""
        while isinstance(node, Aggregate) and self.selection(node.selector).copies:
            node = node.value
        return self.symbolic(node)

    def spare_value(self, node: SOp) -> int | None:
        """The place of the default of a copy, whose one-hot flag is what the others leave."""
        if not isinstance(node, Aggregate) or self.selection(node.selector).reaches:
            return None
        place = self.domain(node).place  # type: ignore[union-attr]
        return place.get(lifted(node.default))

    def stepped(self, node: SOp, table: Vector, exact: bool) -> Form:
        part, places = self._step_part(node)
        column = _filled(table, places)
        key = ("step", id(part), column.tobytes())
        base = float(column[0])
        if key not in self._cells:
            label = self.feature(node, table)
            bound = float(np.abs(table - base).max())
            cell = Cell("units", label, node, table - base, source=part, bound=bound)
            self._cells[key] = cell
            part.outputs[cell] = column - base
        part.exact |= exact
        return of(self._cells[key]) + constant(base)

    def _step_part(self, node: SOp) -> tuple[StepPart, list[int]]:
        """The steps that compute functions of a node, and the node's value at each point.

        Tried in this order: one number that the whole expression is a function of, a small grid
        of its variables, a grid where sums are variables, a grid of its arguments.
        """
        if isinstance(node, Share | Aggregate):
            return self._grid_part(node, [node])
        assert isinstance(node, Apply)
        difference = self.difference(node)
        if difference is not None:
            return self._grid_part(node, [difference])
        own: list[SOp] | None = [node] if self.linear_terms(node) is not None else None
        choices = [
            self.variables(node),
            own or self.region(node, lambda p: self.linear_terms(p) is not None),
            self._arguments(node),
        ]
        for i, variables in enumerate(choices):
            points = self.listing(variables)
            limit = SMALL if i == 0 else np.inf
            if points is not None and len(points) <= limit:
                found = self._grid_part(node, variables)
                if self._fits(found[0], node, found[1]) or variables is choices[-1]:
                    return found
        return self._grid_part(node, choices[0])

    def _fits(self, part: StepPart, node: SOp, places: list[int]) -> bool:
        column = _filled(np.arange(max(places) + 1, dtype=np.float64), places)
        at = np.flatnonzero(np.diff(column))
        if len(at) == 0:
            return True
        gap = float((part.points[at + 1] - part.points[at]).min())
        reach = float(np.abs(part.points).max()) + 1
        return len(at) <= STEPS and gap > 1_000 * self.epsilon * reach

    def difference(self, node: Apply) -> SOp | None:
        """The number of whose sign a truth function is a function, where that is the way to go."""
        if node.primitive.name not in SIGNS:
            return None
        domains = [self.domain(a) for a in node.args]
        if not all(d.numeric and not isinstance(d, Real) for d in domains):
            return None
        if node not in self._differences:
            compared = len(node.args) == 2
            self._differences[node] = apply("sub", *node.args) if compared else node.args[0]
        difference = self._differences[node]
        if isinstance(self.domain(difference), Ratio):
            return difference
        if len(node.args) == 1 or any(self.fixed(a) for a in node.args):
            return None
        points = self.listing(self.variables(node))
        return None if points is not None and len(points) <= SMALL else difference

    def _grid_part(self, node: SOp, variables: list[SOp]) -> tuple[StepPart, list[int]]:
        if len(variables) == 1 and isinstance(self.domain(variables[0]), Ratio):
            return self._sign_part(node, variables[0])
        code, points = self._joint_code(variables)
        listed = self.listing(variables)
        assert listed is not None
        values = self._values(node, variables, listed)
        order = np.argsort(points, kind="stable")
        key = (tuple(id(v) for v in variables), code.key)
        if key not in self._steps:
            part = StepPart(text_of(node), code, points[order], node=node)
            self._steps[key] = part
            self.parts.append(part)
        place = self.domain(node).place  # type: ignore[union-attr]
        # A value outside the domain stands at a point of the grid that no input reaches.
        return self._steps[key], [
            -1 if values[i] is UNDEFINED else place.get(values[i], -1) for i in order
        ]

    def _values(self, node: SOp, variables: list[SOp], listed: list[Any]) -> list[Any]:
        if len(variables) == 1 and variables[0] is node:
            return [point[0] for point in listed]
        difference = self._differences.get(node)
        if difference is not None and len(variables) == 1 and variables[0] is difference:
            test = apply(node.primitive.name, difference, Constant(0))  # type: ignore[attr-defined]
            return self.values_on(test, variables)
        return self.values_on(node, variables)

    def _sign_part(self, node: SOp, difference: SOp) -> tuple[StepPart, list[int]]:
        """A comparison by the sign of a rational whose denominator is bounded."""
        domain = self.domain(difference)
        assert isinstance(domain, Ratio)
        assert isinstance(node, Apply)
        unit = 1.0 / domain.denominator
        code = self.number(difference)
        key = ("sign", id(difference))
        if key not in self._steps:
            part = StepPart(text_of(node), code, np.array([-unit, 0.0, unit]), node=node)
            self._steps[key] = part
            self.parts.append(part)
        test = node.primitive.scalar
        rest = [0] * (len(node.args) - 1)
        place = self.domain(node).place  # type: ignore[union-attr]
        return self._steps[key], [place[test(sign, *rest)] for sign in (-1, 0, 1)]

    def _joint_code(self, variables: list[SOp]) -> tuple[Form, Vector]:
        """One number for all variables: digits of unequal weights, points in grid order."""
        form, points = Form(), np.zeros(1)
        for variable in reversed(variables):
            code, values = self.code(variable)
            if len(points) == 1:
                form, points = code, values
                continue
            values_gap = float(np.diff(np.sort(values)).min()) if len(values) > 1 else 1.0
            step = float(np.diff(np.sort(points)).min())
            reach = float(points.max() - points.min()) + step
            weight = _whole_if_possible(reach / values_gap)
            form = code * weight + form
            points = (values[:, None] * weight + points[None, :]).reshape(-1)
        return form, points


def _filled(table: Vector, places: list[int]) -> Vector:
    """The table at every point; an undefined point takes its neighbour's value."""
    column = np.empty(len(places))
    known = [i for i, p in enumerate(places) if p >= 0]
    last = table[places[known[0]]]
    for i, place in enumerate(places):
        last = table[place] if place >= 0 else last
        column[i] = last
    return column


def _whole_if_possible(weight: float) -> float:
    rounded = float(np.rint(weight))
    return rounded if abs(weight - rounded) < 1e-9 else float(np.ceil(weight))
