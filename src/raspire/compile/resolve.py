"""From values to forms: the compiler proper.

``form(node, table)`` gives the linear form of a function of a node's value, and on the way makes
the embeddings, heads and units that it needs. A function of the token or of the position costs
nothing but embedding slots; sums and multiples cost nothing; a copied value carries any function
of it; everything else on a listed domain is one group of steps, on reals one gated unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from raspire.compile.domain import UNDEFINED, Domain, Finite, Ratio, Real, Vector, is_number
from raspire.compile.facts import COMPARISONS, TRUTH, Facts, Selection
from raspire.compile.gates import NAMED, UNARY, gate_terms
from raspire.compile.grid import lifted
from raspire.compile.linear import BOS, Cell, Form, constant, of
from raspire.compile.lowering import Share, apply
from raspire.compile.naming import text_of
from raspire.compile.parts import GatePart, HeadPart, Pair, Part, StepPart
from raspire.compile.score import is_causal, score_of
from raspire.errors import UnsupportedError
from raspire.program.nodes import Aggregate, Apply, Constant, Selector, SOp, Tokens

SMALL = 1_024
"""A grid up to this size is worth one group of steps, whatever else could be done."""
STEPS = 4_000
"""The most steps of one group."""
SIGNS = (*COMPARISONS, "indicator", "to_bool", "not")
"""Functions of the sign of one number."""


class Resolver(Facts):
    """Facts about a program, and the parts that its forms have needed so far."""

    def __init__(self, alphabet: tuple[Any, ...] | Real, length: int, epsilon: float) -> None:
        super().__init__(alphabet, length)
        self.epsilon = epsilon
        self.parts: list[Part] = []
        self.tokens: dict[bytes, Cell] = {}
        self.positions: dict[bytes, Cell] = {}
        self.real: Cell | None = None
        self._heads: dict[tuple[SOp | Selector, str], HeadPart] = {}
        self._steps: dict[tuple[Any, ...], StepPart] = {}
        self._gates: dict[tuple[SOp, bool], GatePart] = {}
        self._cells: dict[tuple[Any, ...], Cell] = {}
        self._numbers: dict[tuple[SOp, bool], Form] = {}
        self._differences: dict[SOp, SOp] = {}

    # ------------------------------------------------------------ functions of values

    def form(self, node: SOp, table: Vector, exact: bool = False) -> Form:
        """The form of a function of a node's value; ``table`` is aligned with its domain."""
        domain = self.domain(node)
        assert isinstance(domain, Finite) and len(table) == len(domain)
        if (table == table[0]).all():
            return constant(float(table[0]))
        if domain.numeric:
            slope = _affine(domain.floats, table)
            if slope is not None and not self._rounded(node, exact):
                offset = float(table[0]) - slope * domain.floats[0]
                return self.number(node, exact) * slope + constant(offset)
        return self._function(node, table, exact)

    def _rounded(self, node: SOp, exact: bool) -> bool:
        """Whether the number itself is a rounded mean, while an exact one is asked for."""
        return exact and isinstance(node, Aggregate) and not self._single_valued(node)

    def number(self, node: SOp, exact: bool = False) -> Form:
        """The form of a numeric node's own value."""
        key = (node, exact)
        if key not in self._numbers:
            self._numbers[key] = self._number(node, exact)
        return self._numbers[key]

    def _function(self, node: SOp, table: Vector, exact: bool) -> Form:
        if self.symbolic(node) and isinstance(self.alphabet, tuple):
            return self._embedded(node, table, self.tokens, self.on_alphabet(node), "token")
        if self.positional(node):
            return self._embedded(node, table, self.positions, self.on_positions(node), "position")
        if (
            isinstance(node, Aggregate)
            and self._single_valued(node)
            and not (exact and not self.selection(node.selector).copies)
        ):
            return self._copied(node, table, exact)
        return self._stepped(node, table, exact)

    def _embedded(
        self, node: SOp, table: Vector, cells: dict[bytes, Cell], values: list[Any], kind: Any
    ) -> Form:
        place = self.domain(node).place  # type: ignore[union-attr]
        column = np.array([0.0 if v is UNDEFINED else table[place[v]] for v in values])
        if (column == column[0]).all():
            return constant(float(column[0]))
        key = column.tobytes()
        if key not in cells:
            label = _feature(node, self.domain(node), table)
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
                return self._function(node, domain.floats, exact)
        if isinstance(node, Share):
            return of(self._share(node))
        if isinstance(node, Aggregate):
            return self._mean_form(node, exact)
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
        return self._truth_terms(name, args)

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

    # ------------------------------------------------------------ attention

    def _head(self, owner: SOp | Selector, selector: Selector, sink: str) -> HeadPart:
        key = (selector, sink)
        if key not in self._heads:
            selection = self.selection(selector)
            part = self._scored(selection, text_of(selector), sink)
            part.node = owner if isinstance(owner, SOp) else None
            self._heads[key] = part
            self.parts.append(part)
        return self._heads[key]

    def _scored(self, selection: Selection, label: str, sink: str) -> HeadPart:
        causal = any(is_causal(c) for c in selection.clauses)
        pairs: list[Pair] = []
        top = 0.0
        for clause in selection.clauses:
            if not is_causal(clause):
                score = score_of(clause, self, exact=sink == "share" or not selection.copies)
                pairs += score.pairs
                top += score.top
        if selection.greatest is not None:
            pairs, top = self._greatest(selection, pairs, top)
            if sink == "share":
                raise UnsupportedError(
                    f"the width of {label} is no share of one head",
                    where=selection.greatest.place,
                    hint="aggregate over a hardmax instead of counting it",
                )
        level = top if sink == "share" else top - 1
        pairs.append((constant(level) + of(BOS, 2.0), of(BOS)))
        head = HeadPart(label, pairs, causal, selection.copies, sink)
        if selection.greatest is not None and not self.finite(selection.greatest.score):
            head.gap = None
        return head

    def _greatest(
        self, selection: Selection, pairs: list[Pair], top: float
    ) -> tuple[list[Pair], float]:
        """Conditions first, then the score itself: one more unit of it never outweighs them."""
        assert selection.greatest is not None
        score = selection.greatest.score
        domain = self.domain(score)
        if isinstance(domain, Finite) and domain.numeric:
            rank = np.arange(len(domain), dtype=float)
            ranked, reach = self.form(score, rank * 2 + 2, True), 2.0 * len(domain)
        elif domain.numeric and np.isfinite([domain.low, domain.high]).all():
            ranked = self.number(score) + constant(2 - domain.low)
            reach = domain.high - domain.low + 2
        else:
            raise UnsupportedError(
                f"hardmax of {text_of(score)} needs to know how far its scores may lie apart",
                where=selection.greatest.place,
                expected="numbers within bounds",
                found=str(domain),
                hint="compile with alphabet=Real(low, high)",
            )
        factor = float(2 ** np.ceil(np.log2(reach + 2)))
        raised = [(query * factor, key) for query, key in pairs]
        return [*raised, (constant(1), ranked)], top * factor + 2

    def _share(self, node: Share) -> Cell:
        head = self._head(node, node.selector, "share")
        if not head.values:
            cell = Cell("head", text_of(node), node, source=head, at_bos=1.0)
            head.values[cell] = of(BOS)
        return next(iter(head.values))

    def _single_valued(self, node: Aggregate) -> bool:
        """Whether a mean is one of the values (one key is selected, or they are no numbers)."""
        if self.selection(node.selector).copies:
            return True
        return not self.domain(node.value).numeric

    def _mean_form(self, node: Aggregate, exact: bool) -> Form:
        domain = self.domain(node)
        if isinstance(domain, Finite) and self._single_valued(node):
            return self._function(node, domain.floats, exact)
        if exact and isinstance(domain, Finite):
            return self._stepped(node, domain.floats, exact)
        default = 0.0 if self.selection(node.selector).reaches else float(lifted(node.default))
        return of(self._mean(node, default)) + constant(default)

    def _mean(self, node: Aggregate, default: float) -> Cell:
        """The cell of a mean less its default."""
        key = ("mean", node)
        if key not in self._cells:
            head = self._head(node, node.selector, "rest")
            value = self.number(node.value) - constant(default)
            domain = self.domain(node)
            ends = [value.bound] if not isinstance(domain, Finite) else [
                abs(float(v) - default) for v in domain.values if v is not None
            ]  # fmt: skip
            cell = Cell("head", text_of(node), node, source=head, bound=max(ends))
            if isinstance(domain, Finite) and domain.numeric:
                cell.table = domain.floats - default
            head.values[cell] = value
            self._cells[key] = cell
        return self._cells[key]

    def _present(self, node: Aggregate) -> Cell:
        """The cell that is 1 where anything is selected."""
        key = ("present", node.selector)
        if key not in self._cells:
            head = self._head(node, node.selector, "rest")
            cell = Cell("head", f"anything selected for {text_of(node)}", node, source=head)
            head.values[cell] = constant(1)
            self._cells[key] = cell
        return self._cells[key]

    def _copied(self, node: Aggregate, table: Vector, exact: bool) -> Form:
        """A function of a copied value: that function of the value, copied."""
        domain = self.domain(node)
        assert isinstance(domain, Finite)
        value = self.domain(node.value)
        assert isinstance(value, Finite)
        default = lifted(node.default)
        base = 0.0
        if not self.selection(node.selector).reaches and default in domain.place:
            base = float(table[domain.place[default]])
        wanted = np.array([table[domain.place[v]] for v in value.values])
        key = ("copy", node.selector, node.value, wanted.tobytes(), base, exact)
        if key not in self._cells:
            head = self._head(node, node.selector, "rest")
            source = self.form(node.value, wanted, exact) - constant(base)
            label = _feature(node, domain, table)
            bound = float(np.abs(table - base).max())
            cell = Cell("head", label, node, table - base, source=head, bound=bound)
            head.values[cell] = source
            self._cells[key] = cell
        return of(self._cells[key]) + constant(base)

    # ------------------------------------------------------------ elementwise, on listed domains

    def code(self, node: SOp, exact: bool = False) -> tuple[Form, Vector]:
        """A form that tells a node's values apart, and what it is for each of them."""
        domain = self.domain(node)
        assert isinstance(domain, Finite)
        if domain.numeric:
            return self.number(node, exact), domain.floats
        if isinstance(node, Aggregate) and not self._single_valued(node):
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
        if isinstance(node, Aggregate) and not self._single_valued(node):
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
        return place.get(lifted(node.default))  # type: ignore[no-any-return]

    def _stepped(self, node: SOp, table: Vector, exact: bool) -> Form:
        part, places = self._step_part(node)
        column = _filled(table, places)
        key = ("step", id(part), column.tobytes())
        base = float(column[0])
        if key not in self._cells:
            label = _feature(node, self.domain(node), table)
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
        difference = self._difference(node)
        if difference is not None:
            return self._grid_part(node, [difference])
        own = [node] if self.linear_terms(node) is not None else None
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
        column = _filled(np.arange(len(self.domain(node).values), dtype=float), places)  # type: ignore[union-attr]
        at = np.flatnonzero(np.diff(column))
        if len(at) == 0:
            return True
        gap = float((part.points[at + 1] - part.points[at]).min())
        reach = float(np.abs(part.points).max()) + 1
        return len(at) <= STEPS and gap > 1_000 * self.epsilon * reach

    def _difference(self, node: Apply) -> SOp | None:
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
            return self.values_on(test, variables, listed)
        return self.values_on(node, variables, listed)

    def _sign_part(self, node: SOp, difference: SOp) -> tuple[StepPart, list[int]]:
        """A comparison by the sign of a rational whose denominator is bounded."""
        domain = self.domain(difference)
        assert isinstance(domain, Ratio) and isinstance(node, Apply)
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

    # ------------------------------------------------------------ elementwise, on numbers

    def _computed(self, node: Apply, exact: bool) -> Form:
        """The value of a function that is not linear: steps where they are few, else a gate."""
        domain = self.domain(node)
        name = node.primitive.name
        if isinstance(domain, Finite) and self._by_steps(node, exact):
            return self._stepped(node, domain.floats, exact)
        if name not in NAMED:
            raise self._too_many(node, [self.domain(a) for a in node.args])
        key = (node, exact)
        if key not in self._gates:
            bound = max(abs(domain.low), abs(domain.high))
            cell = Cell("units", text_of(node), node, bound=bound)
            if isinstance(domain, Finite):
                cell.table = domain.floats
            terms = gate_terms(node, self, exact)
            self._gates[key] = GatePart(text_of(node), cell, terms, node)
            cell.source = self._gates[key]
            self.parts.append(self._gates[key])
        return of(self._gates[key].cell)

    def opens_gate(self, condition: Apply) -> bool:
        """Whether a condition is a comparison of numbers that only a gate can decide."""
        return condition.primitive.name in COMPARISONS and not self._by_steps(condition)

    def is_gate(self, node: Apply) -> bool:
        """Whether a function of one real is nothing but a gate."""
        if node.primitive.name not in UNARY or (node, False) in self._gates:
            return False
        return isinstance(self.domain(node.args[0]), Real) and not (
            self.symbolic(node) and isinstance(self.alphabet, tuple)
        )

    def _by_steps(self, node: Apply, exact: bool = False) -> bool:
        """Whether a listed result comes from steps; truth always does, where it has a margin."""
        if node.primitive.name in TRUTH:
            return not any(isinstance(self.domain(a), Real) for a in node.args)
        sizes = [self.listing(v) for v in (self.variables(node), self._arguments(node))]
        listed = [len(s) for s in sizes if s is not None]
        if not listed:
            return False
        rounds = node.primitive.name in (*UNARY, "div")
        gated = node.primitive.name in NAMED and not (exact and rounds)
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


def _feature(node: SOp, domain: Domain, table: Vector) -> str:
    """The label of a cell: the expression, and which function of it."""
    text = text_of(node)
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
