"""From a program to the few constructs a transformer has.

A width is read from the share of attention that the beginning of sequence takes, ``1 / (w + 1)``;
a width of a disjunction is a sum of widths of disjoint conjunctions; a width "before here" is a
width "up to here" less one; sums of means over one selector are one mean.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from raspire.program.embedding import indices
from raspire.program.nodes import (
    COMPARISONS,
    Aggregate,
    Apply,
    Combine,
    Constant,
    Hardmax,
    Indices,
    Node,
    Select,
    Selector,
    SOp,
    Tokens,
    Width,
)
from raspire.program.primitives import Primitive, primitive
from raspire.program.walk import merge, rewrite


class Share(SOp):
    """``1 / (w + 1)`` where w keys are selected: the attention left to the sink."""

    __slots__ = ()

    def __init__(self, selector: Selector) -> None:
        self._fix((selector,))

    @property
    def selector(self) -> Selector:
        return self.args[0]  # type: ignore[return-value]

    def with_args(self, args: tuple[Node, ...]) -> Node:
        return Share(args[0])  # type: ignore[arg-type]


def _width(share: Any) -> Any:
    return round(1 / Fraction(share)) - 1


WIDTH = Primitive("width_of_share", 1, _width, exact=_width, kind=lambda *_: "i", family="table")
UP_TO_HERE = Select(indices, indices, COMPARISONS["<="])


def lower(program: SOp, *, causal: bool = False) -> SOp:
    """The program with widths as shares, equal parts shared, and means of one selector joined."""
    if causal:
        program = restricted(program)
    program = merge(rewrite(merge(program), _canonical))
    program = rewrite(program, _join)
    return merge(rewrite(merge(program), _shares))


def restricted(program: SOp) -> SOp:
    """The program with every selector cut to keys at or before the query, as a causal mask does."""
    return rewrite(program, _causal)


def _canonical(node: Node) -> Node:
    """One tokens and one indices node, whoever built them."""
    if isinstance(node, Indices):
        return indices
    return node


def _causal(node: Node) -> Node:
    if isinstance(node, Hardmax):
        return node.with_args((Combine("and", node.among, UP_TO_HERE), node.score))
    if isinstance(node, Aggregate | Width) and not isinstance(node.selector, Hardmax):
        return node.with_args((Combine("and", node.selector, UP_TO_HERE), *node.args[1:]))
    return node


# ---------------------------------------------------------------- sums of means


def _join(node: Node) -> Node:
    """``aggregate(s, a) + aggregate(s, b)`` is ``aggregate(s, a + b)``; likewise differences."""
    if not isinstance(node, Apply) or node.primitive.name not in ("add", "sub", "mul"):
        return node
    a, b = node.args
    if node.primitive.name == "mul":
        return _scaled(node, a, b)
    if not (_mean(a) and _mean(b) and a.args[0] is b.args[0]):
        return node
    assert isinstance(a, Aggregate)
    assert isinstance(b, Aggregate)
    default = node.primitive.scalar(a.default, b.default)
    value = Apply(node.primitive, a.value, b.value)
    return _keep(Aggregate(a.selector, value, default), node)


def _scaled(node: Apply, a: SOp, b: SOp) -> Node:
    if isinstance(a, Constant):
        a, b = b, a
    if not (isinstance(b, Constant) and _mean(a) and _number(b.value)):
        return node
    assert isinstance(a, Aggregate)
    default: Any = a.default
    return _keep(Aggregate(a.selector, a.value * b, default * b.value), node)


def _mean(node: SOp) -> bool:
    return isinstance(node, Aggregate) and _number(node.default)


def _number(value: Any) -> bool:
    return isinstance(value, int | float | Fraction)


def _keep(new: SOp, old: Node) -> SOp:
    if old.label is not None:
        new.named(old.label)
    return new.at(old.place)


# ---------------------------------------------------------------- widths


def _shares(node: Node) -> Node:
    if not isinstance(node, Width):
        return node
    if isinstance(node.selector, Hardmax):
        return _keep(Apply(WIDTH, Share(node.selector)), node)
    terms = [_inclusive(term) for term in disjoint(node.selector)]
    widths: list[tuple[int, SOp]] = [
        (sign, Apply(WIDTH, Share(selector))) for term in terms for sign, selector in term[0]
    ]
    less = sum(term[1] for term in terms)
    if not widths:
        return Constant(0)
    (_, result), *rest = sorted(widths, key=lambda pair: -pair[0])
    for sign, width in rest:
        result = result + width if sign > 0 else result - width
    return _keep(result - less if less else result, node)


Term = list[Selector]


def disjoint(selector: Selector) -> list[Term]:
    """Conjunctions of which at most one holds anywhere, and whose disjunction is the selector."""
    if pair_of(selector) is not None or isinstance(selector, Hardmax):
        return [[selector]]
    assert isinstance(selector, Combine)
    if selector.op == "not":
        return disjoint(negated(selector.args[0]))  # type: ignore[arg-type]
    a, b = selector.args
    if selector.op == "and":
        return [x + y for x in disjoint(a) for y in disjoint(b)]  # type: ignore[arg-type]
    rest = Combine("and", negated(a), b)  # type: ignore[arg-type]
    return disjoint(a) + disjoint(rest)  # type: ignore[arg-type]


def negated(selector: Selector) -> Selector:
    """The negation, with ``not`` pushed down to conditions on one key and one query."""
    if pair_of(selector) is not None or not isinstance(selector, Combine):
        return Combine("not", selector)
    if selector.op == "not":
        return selector.args[0]  # type: ignore[return-value]
    other = "or" if selector.op == "and" else "and"
    return Combine(other, *(negated(a) for a in selector.args))  # type: ignore[arg-type]


def pair_of(selector: Selector) -> tuple[SOp, SOp] | None:
    """The key and the query, where the whole selector is a condition on one of each."""
    pairs: set[tuple[int, int]] = set()
    found: tuple[SOp, SOp] | None = None
    stack: list[Node] = [selector]
    while stack:
        node = stack.pop()
        if isinstance(node, Select):
            found = (node.keys, node.queries)
            pairs.add((id(node.keys), id(node.queries)))
        elif isinstance(node, Combine):
            stack.extend(node.args)
        else:
            return None
    return found if len(pairs) == 1 else None


def _inclusive(term: Term) -> tuple[list[tuple[int, Selector]], int]:
    """A width "before here" as one "up to here", and "from here on" as all less those before.

    Only where every other condition holds between a position and itself; gives signed selectors
    and what to subtract.
    """
    order = [s for s in term if _ordered(s) is not None]
    rest = [s for s in term if s not in order]
    if len(order) != 1 or not all(_reflexive(s) for s in rest):
        return [(1, _all(term))], 0
    symbol = _ordered(order[0])
    here = _all([*rest, UP_TO_HERE])
    if symbol == "<":
        return [(1, here)], 1
    if symbol == "<=":
        return [(1, here)], 0
    everything = _all(rest) if rest else Select(Constant(1), Constant(1), COMPARISONS["=="])
    return [(1, everything), (-1, here)], 0 if symbol == ">" else -1


def _ordered(selector: Selector) -> str | None:
    if not isinstance(selector, Select):
        return None
    both = isinstance(selector.keys, Indices) and isinstance(selector.queries, Indices)
    symbol = selector.comparison.symbol
    return symbol if both and symbol in ("<", "<=", ">", ">=") else None


def _reflexive(selector: Selector) -> bool:
    """Whether every position selects itself."""
    return _on_diagonal(selector) is True


def _on_diagonal(selector: Node) -> bool | None:
    """Whether a position selects itself: always, never, or None where that depends."""
    if isinstance(selector, Select):
        symbol = selector.comparison.symbol
        keys, queries = selector.args
        if isinstance(keys, Constant) and isinstance(queries, Constant):
            return bool(selector.comparison.scalar(keys.value, queries.value))
        return symbol in ("==", "<=", ">=") if keys is queries and symbol else None
    if not isinstance(selector, Combine):
        return None
    parts = [_on_diagonal(a) for a in selector.args]
    if selector.op == "not":
        return None if parts[0] is None else not parts[0]
    decisive = selector.op == "or"
    if decisive in parts:
        return decisive
    return None if None in parts else not decisive


def _all(term: Term) -> Selector:
    result = term[0]
    for selector in term[1:]:
        result = Combine("and", result, selector)
    return result


def is_source(node: Node) -> bool:
    """Whether the node is no elementwise function: an input, a mean or a share."""
    return isinstance(node, Tokens | Indices | Aggregate | Share)


def width_of(node: Node) -> bool:
    """Whether the node is the width that a share stands for."""
    return isinstance(node, Apply) and node.primitive is WIDTH


def apply(name: str, *args: SOp) -> Apply:
    """The primitive of that name over some s-ops."""
    return Apply(primitive(name), *args)
