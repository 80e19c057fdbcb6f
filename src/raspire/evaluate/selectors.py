"""Selectors in normal form: disjoint conjunctions of conditions on a key and a query.

A condition allows some outcomes of one test of a key against a query: of an order test the
outcomes *less*, *equal*, *greater*; of any other test *true*, *false*. Then ``and`` intersects
outcomes, ``not`` takes the others, ``or`` adds a disjoint rest, and nothing is ever subtracted.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from raspire.errors import RaspError
from raspire.program.nodes import (
    Combine,
    Comparison,
    Constant,
    Hardmax,
    Indices,
    Select,
    Selector,
    SOp,
)
from raspire.program.walk import selectors_of

LESS, EQUAL, GREATER = 1, 2, 4
ANY_ORDER = 7
TRUE, FALSE = 1, 2
ANY_TRUTH = 3
LIMIT = 64
"""More conjunctions than this run as blocks."""

MASKS = {"<": LESS, "<=": LESS | EQUAL, "==": EQUAL, ">=": GREATER | EQUAL, ">": GREATER,
         "!=": LESS | GREATER}  # fmt: skip
SYMBOLS = {mask: symbol for symbol, mask in MASKS.items()}


@dataclass(frozen=True, eq=False)
class Test:
    """What is asked of a key and a query: their order, an opaque predicate, or a hard maximum."""

    __test__ = False  # it is no test case

    keys: SOp
    queries: SOp
    comparison: Comparison | None = None
    hardmax: Hardmax | None = None

    def _identity(self) -> tuple[int, ...]:
        return id(self.keys), id(self.queries), id(self.comparison), id(self.hardmax)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Test) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    @property
    def ordered(self) -> bool:
        """Whether the outcomes are less, equal, greater."""
        return self.comparison is None and self.hardmax is None


Conjunction: TypeAlias = dict[Test, int]
Normal: TypeAlias = list[Conjunction]


@dataclass(frozen=True, eq=False)
class Clause:
    """One conjunction, sorted by what a kernel does with it."""

    equal: tuple[tuple[SOp, SOp], ...]
    unequal: tuple[tuple[SOp, SOp, int, bool], ...]
    """Keys, queries, outcomes, and whether any order of the values will do (it came of ``!=``)."""
    key_filters: tuple[tuple[SOp, SOp, int], ...]
    query_filters: tuple[tuple[SOp, SOp, int], ...]
    hardmax: Hardmax | None = None

    @property
    def unconditional(self) -> bool:
        """Whether every key is selected."""
        return not self.equal and self.only_equal

    @property
    def only_equal(self) -> bool:
        """Whether equalities are all that it asks."""
        return self.hardmax is None and not (self.unequal or self.key_filters or self.query_filters)

    @property
    def fetch(self) -> SOp | None:
        """The address, where the clause is ``select(indices, address, "==")`` alone."""
        if len(self.equal) != 1 or not self.only_equal:
            return None
        keys, queries = self.equal[0]
        return queries if isinstance(keys, Indices) else None


def clauses(selector: Selector) -> list[Clause] | None:
    """The selector as disjoint clauses; None where only blocks can run it."""
    normal = normalise(selector)
    if normal is None:
        return None
    strict = {
        (id(node.keys), id(node.queries))
        for node in selectors_of(selector)
        if isinstance(node, Select) and node.comparison.symbol not in ("==", "!=", None)
    }
    found: list[Clause] = []
    for conjunction in normal:
        for split in _without_unequal(conjunction):
            clause = _clause(split, strict)
            if clause is None or len(found) >= LIMIT:
                return None
            found.append(clause)
    if any(clause.hardmax is not None for clause in found) and len(found) > 1:
        return None
    return found


def normalise(selector: Selector) -> Normal | None:
    """Disjoint conjunctions whose union is the selector; None if there are too many."""
    known: dict[int, tuple[Normal | None, Normal | None]] = {}
    for node in selectors_of(selector):
        if isinstance(node, Select):
            known[id(node)] = _select(node)
        elif isinstance(node, Hardmax):
            test = Test(node.score, node.score, hardmax=node)
            known[id(node)] = [{test: TRUE}], [{test: FALSE}]
        elif isinstance(node, Combine):
            parts = [known[id(child)] for child in node.args]
            known[id(node)] = _combine(node.op, parts)
    return known[id(selector)][0]


def _select(node: Select) -> tuple[Normal, Normal]:
    comparison = node.comparison
    if comparison.symbol is None:
        test = Test(node.keys, node.queries, comparison)
        return [{test: TRUE}], [{test: FALSE}]
    if isinstance(node.keys, Constant) and isinstance(node.queries, Constant):
        try:
            holds = bool(comparison.scalar(node.keys.value, node.queries.value))
        except RaspError:
            pass  # raised again, with its place, when the selector runs
        else:
            return ([{}], []) if holds else ([], [{}])
    test, mask = Test(node.keys, node.queries), MASKS[comparison.symbol]
    return [{test: mask}], [{test: ANY_ORDER - mask}]


def _combine(
    op: str, parts: list[tuple[Normal | None, Normal | None]]
) -> tuple[Normal | None, Normal | None]:
    yes, no = parts[0]
    if op == "not":
        return no, yes
    other_yes, other_no = parts[1]
    if op == "and":
        return _both(yes, other_yes), _either(no, _both(yes, other_no))
    return _either(yes, _both(no, other_yes)), _both(no, other_no)


def _either(a: Normal | None, b: Normal | None) -> Normal | None:
    if a is None or b is None or len(a) + len(b) > LIMIT:
        return None
    return _joined(a + b)


def _joined(normal: Normal) -> Normal:
    """Conjunctions that differ in the outcomes of one test alone become one."""
    done: Normal = []
    for conjunction in normal:
        for at, other in enumerate(done):
            if conjunction.keys() == other.keys():
                differing = [test for test in other if other[test] != conjunction[test]]
                if len(differing) == 1:
                    (test,) = differing
                    done[at] = _pruned({**other, test: other[test] | conjunction[test]})
                    break
        else:
            done.append(conjunction)
    return done


def _pruned(conjunction: Conjunction) -> Conjunction:
    return {
        test: mask
        for test, mask in conjunction.items()
        if mask != (ANY_ORDER if test.ordered else ANY_TRUTH)
    }


def _both(a: Normal | None, b: Normal | None) -> Normal | None:
    if a == [] or b == []:
        return []
    if a is None or b is None or len(a) * len(b) > LIMIT:
        return None
    found: Normal = []
    for left, right in itertools.product(a, b):
        merged = dict(left)
        for test, mask in right.items():
            merged[test] = merged.get(test, ANY_ORDER if test.ordered else ANY_TRUTH) & mask
        if all(merged.values()):  # a test without outcomes is a contradiction
            found.append(merged)
    return found


def _without_unequal(conjunction: Conjunction) -> list[Conjunction]:
    """``!=`` as ``<`` and ``>``, each a conjunction of its own."""
    tests = [
        test
        for test, mask in conjunction.items()
        if mask == LESS | GREATER
        and test.ordered
        and not isinstance(test.keys, Constant)
        and not isinstance(test.queries, Constant)
    ]
    if len(tests) > 6:
        return [conjunction]
    return [
        {**conjunction, **dict(zip(tests, masks, strict=True))}
        for masks in itertools.product((LESS, GREATER), repeat=len(tests))
    ]


def _clause(conjunction: Conjunction, strict: set[tuple[int, int]]) -> Clause | None:
    equal, unequal, on_keys, on_queries = [], [], [], []
    hardmax: Hardmax | None = None
    for test, mask in conjunction.items():
        if not test.ordered:
            if test.hardmax is None or mask != TRUE or len(conjunction) > 1:
                return None
            hardmax = test.hardmax
            continue
        keys, queries = test.keys, test.queries
        alone = len(conjunction) == 1 and mask == EQUAL and isinstance(keys, Indices)
        if isinstance(queries, Constant) and not alone:
            on_keys.append((keys, queries, mask))
        elif isinstance(keys, Constant):
            on_queries.append((keys, queries, mask))
        elif mask == EQUAL:
            equal.append((keys, queries))
        elif mask == LESS | GREATER:
            return None
        else:
            unequal.append((keys, queries, mask, (id(keys), id(queries)) not in strict))
    if len(unequal) > 2:
        return None
    return Clause(tuple(equal), tuple(unequal), tuple(on_keys), tuple(on_queries), hardmax)


def lexicographic(found: list[Clause]) -> tuple[Clause, Clause] | None:
    """Two clauses that together are one lexicographic order of two tests."""
    for first, second in itertools.permutations(found, 2):
        if len(first.unequal) != 1 or len(second.unequal) != 1 or first.unequal[0][2] & EQUAL:
            continue
        key, query = first.unequal[0][:2]
        more = [pair for pair in second.equal if not among(pair, first.equal)]
        if (
            len(second.equal) == len(first.equal) + 1
            and len(more) == 1
            and more[0][0] is key
            and more[0][1] is query
            and alike(first.key_filters, second.key_filters)
            and alike(first.query_filters, second.query_filters)
        ):
            return first, second
    return None


def ranking_tests(
    found: list[Clause] | None,
) -> tuple[tuple[SOp, SOp, int, bool], tuple[SOp, SOp, int, bool]] | None:
    """The two tests, if the selector counts, for every query, the keys before it in one strict
    order of all positions: by a value, and by position where values are equal."""
    pair = lexicographic(found) if found is not None and len(found) == 2 else None
    if pair is None or pair[0].equal or pair[0].key_filters or pair[0].query_filters:
        return None
    first, second = (clause.unequal[0] for clause in pair)
    by_position = isinstance(second[0], Indices) and isinstance(second[1], Indices)
    if first[0] is not first[1] or not by_position or second[2] & EQUAL:
        return None
    return first, second


def among(pair: tuple[SOp, SOp], pairs: Sequence[tuple[SOp, SOp]]) -> bool:
    """Whether this very pair of s-ops is one of the pairs."""
    return any(pair[0] is k and pair[1] is q for k, q in pairs)


def alike(a: Sequence[tuple[SOp, SOp, int]], b: Sequence[tuple[SOp, SOp, int]]) -> bool:
    """Whether two clauses have the very same filters."""
    return len(a) == len(b) and all(
        any(k is k2 and q is q2 and m == m2 for k2, q2, m2 in b) for k, q, m in a
    )


def plans_of(found: list[Clause]) -> str:
    """How the clauses of a selector run, in a few words."""
    pair = lexicographic(found)
    if pair is None:
        return " + ".join(map(plan_of, found))
    rest = [plan_of(clause) for clause in found if clause is not pair[0] and clause is not pair[1]]
    keys = plan_of(pair[0]).replace("in one order", "in one order of two keys")
    return " + ".join([keys, *rest])


def single_hardmax(found: list[Clause] | None) -> TypeGuard[list[Clause]]:
    """Whether a hard maximum among these clauses needs no matrix."""
    return (
        found is not None
        and len(found) == 1
        and found[0].hardmax is None
        and len(found[0].unequal) < 2
    )


def plan_of(clause: Clause) -> str:
    """How a clause runs, in a few words."""
    equal = len(clause.equal)
    keys = f"group by {equal} key{'s' if equal > 1 else ''}" if equal else ""
    if len(clause.unequal) == 1:
        found = "running sums" + (f" within {keys}" if keys else " in one order")
    elif clause.unequal:
        found = "two-way dominance" + (f" within {keys}" if keys else "")
    else:
        found = keys or "one mean of all keys"
    if clause.key_filters:
        found += ", filtered keys"
    if clause.query_filters:
        found += ", filtered queries"
    return found
