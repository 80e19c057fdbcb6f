"""The plan of a program, as a database would show it: how every selector runs and what it costs,
and at how many of the N positions every s-op is computed."""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any

from raspire.arithmetic import FLOAT64
from raspire.columns import left, right, width
from raspire.errors import RaspTypeError, RaspValueError
from raspire.evaluate import contraction
from raspire.evaluate.demand import Demand
from raspire.evaluate.inputs import positions_of
from raspire.evaluate.plans import planned
from raspire.evaluate.positions import Positions, Span, compact, once_each
from raspire.evaluate.selectors import Clause, plans_of, ranking_tests, single_hardmax
from raspire.evaluate.selectors import clauses as clauses_of
from raspire.given import elements, whole
from raspire.program.nodes import Aggregate, Apply, Indices, Node, Selector, SOp, Tokens, Width
from raspire.program.printing import expressions

WIDTH = 56
"""Characters of an expression that are shown."""
LONGEST = 10**9
"""The greatest length that is planned for: index expressions are planned at every position."""


@dataclass(frozen=True)
class Step:
    """One s-op with a selector: how it runs, over how many keys, for how many queries."""

    text: str
    plan: str
    keys: int
    queries: int
    cost: int


@dataclass(frozen=True)
class Explanation:
    """The plan of a program on inputs of one length; ``str`` gives it as a table."""

    length: int
    steps: tuple[Step, ...]
    computed: tuple[tuple[str, int], ...]
    elementwise: int
    contractions: tuple[str, ...]

    @property
    def cost(self) -> int:
        """Elementary steps of all selectors together, as the general engine runs them."""
        return sum(step.cost for step in self.steps)

    @property
    def positions(self) -> int:
        """The positions computed of all s-ops together."""
        return sum(count for _, count in self.computed)

    def __str__(self) -> str:
        head = [f"plan for N = {self.length:,}"]
        if self.contractions:
            head += ["as tensor contractions, for float64 arrays:"]
            head += [f"  {line}" for line in self.contractions]
            head += ["otherwise:"]
        rows = [("selector under", "plan", "keys", "queries", "cost")]
        rows += [
            (s.text, s.plan, f"{s.keys:,}", f"{s.queries:,}", f"{s.cost:,}") for s in self.steps
        ]
        counts = [("s-op", "computed at", "of N")]
        counts += [
            (text, f"{count:,}", f"{count / max(1, self.length):.2%}")
            for text, count in self.computed
        ]
        tail = f"{self.elementwise} elementwise s-ops, {self.positions:,} positions in all"
        return "\n".join([*head, *_table(rows), "", *_table(counts), tail])

    def __repr__(self) -> str:
        return str(self)


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(width(row[i]) for row in rows) for i in range(len(rows[0]))]
    words = 2 if len(rows[0]) == 5 else 1
    return [
        "  ".join(
            left(cell, size) if i < words else right(cell, size)
            for i, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def explain(program: Node, tokens: Any, *, positions: Any = None) -> Explanation:
    """The plan of a program for a length N, or for the length of some tokens.

    ``positions`` is where the reader wants it (everywhere, if not given). The cost counts
    elementary steps: keys plus queries for a grouping, times log2(N) for running sums, times
    log2(N)^2 for two-way dominance, keys times queries for blocks.

    >>> from raspire import select, selector_width, tokens
    >>> print(explain(selector_width(select(tokens, tokens, "==")), 1000))
    plan for N = 1,000
    selector under                              plan             keys  queries   cost
    selector_width(select(tokens, tokens, ==))  group by 1 key  1,000    1,000  2,000
    <BLANKLINE>
    s-op                                        computed at     of N
    tokens                                            1,000  100.00%
    selector_width(select(tokens, tokens, ==))        1,000  100.00%
    0 elementwise s-ops, 2,000 positions in all
    """
    if not isinstance(program, SOp | Selector):
        raise RaspTypeError(
            "this is no program",
            expected="an s-op or a selector",
            found=type(program).__name__,
        )
    length = _length(tokens)
    wanted: Positions = Span(0, length)
    if positions is not None:
        wanted = compact(once_each(positions_of(positions, length)))
    plan = planned(program, length, 1, wanted, FLOAT64)
    found = plan.demand
    shown = [node for node in found.order if isinstance(node, SOp) and node in found.wanted]
    selecting = [node for node in shown if isinstance(node, Aggregate | Width)]
    texts = _texts(found.order)
    counts = [
        (texts[node], len(found.wanted[node]))
        for node in shown
        if (node.args and (node.label is not None or isinstance(node, Aggregate | Width)))
        or (isinstance(node, Tokens | Indices) and len(found.wanted[node]))
    ]  # fmt: skip
    contractions: list[str] = []
    if isinstance(program, SOp) and length:
        contracted = contraction.plan(program, length, positions)
        contractions = [] if contracted is None else contracted.lines()
    return Explanation(
        length,
        tuple(_step(node, texts[node], found) for node in selecting),
        tuple(counts),
        sum(isinstance(node, Apply) for node in shown),
        tuple(contractions),
    )


def _length(tokens: Any) -> int:
    if isinstance(tokens, int | float) or tokens is None:
        length = whole("a length", tokens, 0)
    else:
        length = len(tokens) if isinstance(tokens, Sized) else len(elements("an input", tokens))
    if not 0 <= length <= LONGEST:
        raise RaspValueError(
            "no plan is made for this length", expected=f"0 to {LONGEST:,}", found=f"{length:,}"
        )
    return length


def _texts(order: Sequence[Node]) -> dict[Node, str]:
    """What every node is called, all of them in one pass."""
    return {
        node: text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."
        for node, text in expressions(order, limit=400).items()
    }


def _at_ranks(node: Node, clauses: list[Clause] | None, found: Demand) -> bool:
    """Whether values are read at 0, 1, ... of a ranking of all of them."""
    if (
        not isinstance(node, Aggregate)
        or clauses is None
        or len(clauses) != 1
        or len(clauses[0].equal) != 1
    ):
        return False
    rank, query = clauses[0].equal[0]
    if not (clauses[0].only_equal and isinstance(rank, Width) and isinstance(query, Indices)):
        return False
    return ranking_tests(found.clauses.get(rank.selector)) is not None


def _step(node: Aggregate | Width, text: str, found: Demand) -> Step:
    queries = len(found.wanted[node])
    clauses = found.clauses[node.selector]
    if clauses is not None and len(clauses) == 1 and clauses[0].fetch is not None:
        return Step(text, "look-up by address", queries, queries, queries)
    keys = len(found.keys.get(node, Span(0, 0)))
    if keys == queries == found.length and _at_ranks(node, clauses, found):
        return Step(text, "look-up by rank", keys, queries, queries)
    if clauses is None:
        return Step(text, "blocks", keys, queries, keys * queries)
    inner = clauses
    words = ""
    if len(clauses) == 1 and clauses[0].hardmax is not None:
        among = clauses_of(clauses[0].hardmax.among)
        if not single_hardmax(among):
            return Step(text, "blocks", keys, queries, keys * queries)
        inner = among
        words = "running maximum, " if among[0].unequal else "maximum of each group, "
    log = max(1, math.ceil(math.log2(keys + queries + 2)))
    cost = sum((keys + queries) * log ** len(clause.unequal) for clause in inner)
    plan = words + (plans_of(inner) or "nothing is selected")
    if node in found.streams and node in found.keys:
        plan = "streamed, " + plan
    return Step(text, plan, keys, queries, cost)
