"""What is known of every node before anything is built: what it depends on, and what it can be."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from raspire.compile.domain import (
    UNDEFINED,
    Domain,
    Finite,
    Real,
    combine,
    finite,
    is_number,
    mean_of,
)
from raspire.compile.grid import LIMIT, Columns, grid, lifted, on_grid, size_of
from raspire.compile.lowering import Share, is_source
from raspire.compile.naming import text_of
from raspire.compile.predicate import Clause, clauses
from raspire.errors import UnsupportedError
from raspire.program.embedding import indices
from raspire.program.nodes import (
    Aggregate,
    Apply,
    Constant,
    Hardmax,
    Indices,
    Node,
    Selector,
    SOp,
    Tokens,
)
from raspire.program.walk import topological

KEPT = 4_096
"""The columns of a grid up to this size are kept for longer expressions."""
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
TRUTH = ("and", "or", "not", "to_bool", "indicator", *COMPARISONS)


@dataclass(frozen=True, eq=False)
class Selection:
    """A selector's clauses and what follows from them alone."""

    clauses: list[Clause]
    greatest: Hardmax | None
    copies: bool
    reaches: bool
    empty: bool


@dataclass(eq=False)
class Facts:
    """Domains and dependencies of the nodes of a program over an alphabet and a length."""

    alphabet: tuple[Any, ...] | Real
    length: int
    sources: dict[Node, frozenset[Node]] = field(default_factory=dict)
    domains: dict[Node, Domain] = field(default_factory=dict)
    selections: dict[Node, Selection] = field(default_factory=dict)
    undefined: dict[Node, tuple[Any, ...]] = field(default_factory=dict)
    _positional: Columns = field(default_factory=dict)
    _symbolic: Columns = field(default_factory=dict)
    _variables: dict[Node, list[SOp]] = field(default_factory=dict)
    _grids: dict[tuple[int, ...], tuple[list[Any], Columns]] = field(default_factory=dict)

    # ------------------------------------------------------------ dependencies

    def sources_of(self, node: Node) -> frozenset[Node]:
        """The inputs, means and shares that an elementwise expression is made of."""
        if node not in self.sources:
            known = all(a in self.sources for a in node.args)
            for part in [node] if known else topological(node):
                if part not in self.sources:
                    self.sources[part] = self._sources(part)
        return self.sources[node]

    def _sources(self, node: Node) -> frozenset[Node]:
        if is_source(node):
            return frozenset((node,))
        return frozenset().union(*(self.sources[child] for child in node.args))

    def symbolic(self, node: Node) -> bool:
        """Whether the node is a function of the token alone."""
        return all(isinstance(s, Tokens) for s in self.sources_of(node)) and bool(
            self.sources_of(node)
        )

    def positional(self, node: Node) -> bool:
        """Whether the node is a function of the position alone."""
        return all(isinstance(s, Indices) for s in self.sources_of(node)) and bool(
            self.sources_of(node)
        )

    def fixed(self, node: Node) -> bool:
        """Whether the node is a constant."""
        return not self.sources_of(node)

    def uniform(self, node: Node) -> bool:
        """Whether the node has one value at all positions."""
        return all(
            isinstance(s, Aggregate | Share) and self._uniform_queries(s.selector)
            for s in self.sources_of(node)
        )

    def _uniform_queries(self, selector: Selector) -> bool:
        selection = self.selection(selector)
        return all(self.uniform(clause.queries) for clause in selection.clauses)

    def on_positions(self, node: SOp) -> list[Any]:
        """The values of a positional expression at positions 0, 1, ..."""
        self._positional.setdefault(indices, range(self.length))
        return on_grid(node, self._positional)

    def on_alphabet(self, node: SOp) -> list[Any]:
        """The values of a symbolic expression on the symbols of the alphabet."""
        assert isinstance(self.alphabet, tuple)
        for tokens in self.sources_of(node):
            if tokens not in self._symbolic:
                self._symbolic[tokens] = [lifted(a) for a in self.alphabet]
        return on_grid(node, self._symbolic)

    # ------------------------------------------------------------ selectors

    def selection(self, selector: Selector) -> Selection:
        """The clauses of a selector, and whether it copies, always reaches, or selects nothing."""
        if selector not in self.selections:
            from raspire.compile.score import one_key

            found, greatest = clauses(selector, self)
            copies = any(one_key(clause, self) for clause in found)
            reaches = all(self._reflexive(clause) for clause in found)
            empty = any(not c.table.any() for c in found)
            self.selections[selector] = Selection(found, greatest, copies, reaches, empty)
        return self.selections[selector]

    def _reflexive(self, clause: Clause) -> bool:
        """Whether every position fulfils the condition with itself."""
        if clause.keys is clause.queries:
            return bool(clause.table.diagonal().all())
        sides = (clause.keys, clause.queries)
        if all(map(self.positional, sides)):
            columns = [self.on_positions(side) for side in sides]
        elif all(map(self.symbolic, sides)) and isinstance(self.alphabet, tuple):
            columns = [self.on_alphabet(side) for side in sides]
        else:
            return False
        places = [self.domain(side).place for side in sides]  # type: ignore[union-attr]
        pairs = [
            (places[0].get(key), places[1].get(query)) for key, query in zip(*columns, strict=True)
        ]
        return all(None not in pair and clause.table[pair] for pair in pairs)

    # ------------------------------------------------------------ domains

    def domain(self, node: SOp) -> Domain:
        """What the s-op can be."""
        if node not in self.domains:
            for part in topological(node):
                if isinstance(part, SOp) and part not in self.domains:
                    self.domains[part] = self._domain(part)
        return self.domains[node]

    def finite(self, node: SOp) -> Finite | None:
        """The listed values of an s-op, or None."""
        domain = self.domain(node)
        return domain if isinstance(domain, Finite) else None

    def _domain(self, node: SOp) -> Domain:
        if isinstance(node, Tokens):
            return self.alphabet if isinstance(self.alphabet, Real) else finite(self.alphabet)
        if isinstance(node, Indices):
            return Finite(tuple(range(self.length)))
        if isinstance(node, Constant):
            return finite([lifted(node.value)])
        if isinstance(node, Share):
            return self._share_domain(node)
        if isinstance(node, Aggregate):
            return self._aggregate(node)
        assert isinstance(node, Apply)
        return self._apply(node)

    def _share_domain(self, node: Share) -> Domain:
        selection = self.selection(node.selector)
        most = 0 if selection.empty else 1 if selection.copies else self.length
        least = 1 if selection.reaches and not selection.empty else 0
        return finite(Fraction(1, w + 1) for w in range(least, most + 1))

    def _aggregate(self, node: Aggregate) -> Domain:
        selection = self.selection(node.selector)
        default = lifted(node.default)
        if selection.empty:
            return finite([default])
        value = self.domain(node.value)
        rest = () if selection.reaches else (default,)
        if selection.copies or (isinstance(value, Finite) and not value.numeric):
            self._check_mixed(node, selection, value)
            means: Domain = value
        else:
            means = self._mean_domain(node, value)
        if isinstance(means, Finite):
            return finite([*means.values, *rest])
        if rest and not is_number(default):
            raise UnsupportedError(
                f"{text_of(node)} is {default!r} where nothing is selected, among too many values",
                where=node.place,
                expected="a number as default",
                found=str(means),
            )
        ends = [means.low, means.high, *(float(d) for d in rest)]
        if isinstance(means, Real):
            return Real(min(ends), max(ends))
        return type(means)(min(ends), max(ends), means.denominator)

    def _mean_domain(self, node: Aggregate, value: Domain) -> Domain:
        """Every mean; a value that is not 0 at one position only has few."""
        if self.positional(node.value) and isinstance(value, Finite):
            there = [v for v in self.on_positions(node.value) if v != 0]
            if len(there) == 1:
                shares = [Fraction(there[0]) / m for m in range(1, self.length + 1)]
                everywhere = not self.selection(node.selector).clauses
                return finite(shares if everywhere else [0, *shares])
        return mean_of(value, self.length)

    def _check_mixed(self, node: Aggregate, selection: Selection, value: Domain) -> None:
        mixed = isinstance(value, Finite) and any(is_number(v) for v in value.values)
        if mixed and not selection.copies and not value.numeric:
            raise UnsupportedError(
                f"{text_of(node)} may average numbers together with what is no number",
                where=node.place,
                expected="numbers only, or a selector that selects one position",
                found=str(value),
            )

    # ------------------------------------------------------------ elementwise functions

    def variables(self, node: SOp) -> list[SOp]:
        """What an elementwise expression varies with: means, shares, functions of one input."""
        if node not in self._variables:
            known = all(a in self._variables for a in node.args) and isinstance(node, Apply)
            for part in [node] if known else topological(node):
                if isinstance(part, SOp) and part not in self._variables:
                    self._variables[part] = self._variables_of(part)
        return self._variables[node]

    def _variables_of(self, node: SOp) -> list[SOp]:
        if not isinstance(node, Apply):
            return [node]
        found: dict[SOp, None] = {}
        for part in node.args:
            if self._leaf(part):
                found[part] = None
            elif not self.fixed(part):
                found.update(dict.fromkeys(self._variables[part]))
        return self._joined(list(found))

    def _leaf(self, node: SOp) -> bool:
        return is_source(node) or self.symbolic(node) or self.positional(node)

    def _joined(self, variables: list[SOp]) -> list[SOp]:
        return self._single(self._single(variables, self.symbolic), self.positional)

    def region(self, node: SOp, stop: Any) -> list[SOp]:
        """The variables of an expression, where ``stop`` says what else counts as one."""
        found: dict[SOp, None] = {}
        seen: set[Node] = set()
        stack: list[Node] = list(reversed(node.args)) if isinstance(node, Apply) else [node]
        while stack:
            part = stack.pop()
            if part in seen:
                continue
            seen.add(part)
            assert isinstance(part, SOp)
            if self.fixed(part):
                continue
            if self._leaf(part) or stop(part):
                found[part] = None
            else:
                stack.extend(reversed(part.args))
        return self._joined(list(found))

    def _single(self, variables: list[SOp], kind: Any) -> list[SOp]:
        """Several functions of one input are replaced by that input."""
        alike = [v for v in variables if kind(v)]
        if len(alike) < 2:
            return variables
        (source,) = self.sources_of(alike[0])
        assert isinstance(source, SOp)
        return [*(v for v in variables if not kind(v)), source]

    def listing(self, variables: list[SOp]) -> list[tuple[Any, ...]] | None:
        """The grid of some variables, or None where it is too large or not finite."""
        domains = [self.domain(v) for v in variables]
        listed = [d.values for d in domains if isinstance(d, Finite)]
        if len(listed) < len(domains) or size_of([len(d) for d in listed]) > LIMIT:
            return None
        key = tuple(id(v) for v in variables)
        if key not in self._grids:
            points = grid(listed)
            columns: Columns = {v: [p[i] for p in points] for i, v in enumerate(variables)}
            self._grids[key] = points, columns
        return self._grids[key][0]

    def values_on(self, node: SOp, variables: list[SOp]) -> list[Any]:
        """The values of an expression at the points of the grid of its variables."""
        points, columns = self._grids[tuple(id(v) for v in variables)]
        return on_grid(node, columns if len(points) <= KEPT else dict(columns))

    def _apply(self, node: Apply) -> Domain:
        if self.symbolic(node) and isinstance(self.alphabet, tuple):
            return self._result(node, self.on_alphabet(node))
        if self.positional(node):
            return self._result(node, self.on_positions(node))
        for variables in (self.variables(node), self._arguments(node)):
            points = self.listing(variables)
            if points is not None:
                return self._result(node, self.values_on(node, variables))
        return self._bounded(node)

    def _arguments(self, node: Apply) -> list[SOp]:
        return [a for a in dict.fromkeys(node.args) if not self.fixed(a)]

    def _result(self, node: Apply, values: list[Any]) -> Domain:
        if any(v is UNDEFINED for v in values):
            self.undefined[node] = ()
        if all(v is UNDEFINED for v in values):
            raise UnsupportedError(
                f"{text_of(node)} has a value on no input",
                where=node.place,
                hint="look at the alphabet: the expression fails on every symbol of it",
            )
        return finite(values)

    def _bounded(self, node: Apply) -> Domain:
        """The domain of a function of numbers that are too many to list."""
        name = node.primitive.name
        domains = [self.domain(a) for a in node.args]
        if name in TRUTH:
            return Finite((0, 1) if name == "indicator" else (False, True))
        if not all(d.numeric for d in domains):
            raise self._too_many(node, domains)
        if name in ("add", "sub", "mul"):
            return combine(name, *domains)
        if name in ("pos", "to_float"):
            return domains[0]
        if name == "neg":
            return combine("sub", Finite((0,)), domains[0])
        divisor = node.args[-1]
        if name == "div" and isinstance(divisor, Constant) and divisor.value:
            inverse = finite([1 / Fraction(lifted(divisor.value))])
            return combine("mul", domains[0], inverse)
        if node.primitive.opaque or node.primitive.range is None:
            raise self._too_many(node, domains)
        return Real(*node.primitive.range(*((d.low, d.high) for d in domains)))

    def _too_many(self, node: Apply, domains: list[Domain]) -> UnsupportedError:
        return UnsupportedError(
            f"{text_of(node)} cannot become a feed-forward layer: of {node.primitive.name} only "
            "the values are known, and its arguments are too many to list",
            where=node.place,
            expected=f"at most {LIMIT} combinations of values, or a named function "
            "(+ - * /, exp, log, sqrt, recip, comparisons, where, ...)",
            found="; ".join(f"{text_of(a)}: {d}" for a, d in zip(node.args, domains, strict=True)),
            hint="a smaller maximal length or alphabet, or a named function",
        )
