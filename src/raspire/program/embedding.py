"""The Python embedding: programs written in Python read like RASP.

>>> from raspire import aggregate, indices, length, select, tokens
>>> flip = select(indices, length - 1 - indices, "==")
>>> reverse = aggregate(flip, tokens)
>>> reverse("hello")
['o', 'l', 'l', 'e', 'h']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raspire.errors import RaspTypeError, RaspValueError
from raspire.program.nodes import (
    COMPARISONS,
    Aggregate,
    Apply,
    Atom,
    Comparison,
    Constant,
    Hardmax,
    Indices,
    Select,
    Selector,
    SOp,
    Tokens,
    Width,
    as_selector,
    lift,
)
from raspire.program.primitives import Primitive, lookup_primitive, opaque, primitive

tokens: SOp = Tokens().named("tokens")
indices: SOp = Indices().named("indices")


def select(keys: object, queries: object, comparison: str | Callable[[Any, Any], Any]) -> Selector:
    """The selector with ``M[i][j] = keys[j] comparison queries[i]`` (RASP's argument order).

    ``comparison`` is one of ``== != < <= > >=``, or a function of a key and a query (which only
    programs over finite alphabets can compile). Plain values are broadcast.

    >>> select(indices, indices, "<=")("ab")
    [[True, False], [True, True]]
    """
    if callable(comparison):
        name = getattr(comparison, "__name__", "predicate")
        return Select(lift(keys), lift(queries), Comparison(name, comparison))
    if comparison not in COMPARISONS:
        raise RaspValueError(
            "select does not know this comparison",
            expected="one of " + " ".join(COMPARISONS) + ", or a function of key and query",
            found=repr(comparison),
        )
    return Select(lift(keys), lift(queries), COMPARISONS[comparison])


def aggregate(selector: object, value: object, default: Atom = 0) -> SOp:
    """The mean of ``value`` over the selected keys; ``default`` where nothing is selected.

    Integer and rational means are exact; equal values of any type stay that value.

    >>> aggregate(select(indices, indices, "<="), indices)("abcd")
    [0, 0.5, 1, 1.5]
    """
    return Aggregate(as_selector(selector), lift(value), default)


def selector_width(selector: object) -> SOp:
    """How many keys each query selects.

    >>> selector_width(select(tokens, tokens, "=="))("hello")
    [1, 1, 2, 2, 1]
    """
    return Width(as_selector(selector))


def hardmax(score: object, among: Selector | None = None) -> Selector:
    """Of the keys that ``among`` selects (all, if not given), those of greatest ``score``.

    This is average-hard attention's own choice: one head (see ``constructions``, row maximum).
    A NaN is never the greatest.

    >>> aggregate(hardmax(tokens), indices)([3, 9, 4])
    [1, 1, 1]
    """
    return Hardmax(full if among is None else as_selector(among), lift(score))


def where(condition: object, yes: object, no: object) -> SOp:
    """``yes`` where the condition is true, else ``no``; both are computed everywhere."""
    return Apply(primitive("where"), lift(condition), lift(yes), lift(no))


def lookup(table: Mapping[Any, Any] | Sequence[Any]) -> Callable[[object], SOp]:
    """A function of an s-op that looks its values up in a dictionary or a list.

    >>> lookup({"a": 1, "b": 2})(tokens)("abba")
    [1, 2, 2, 1]
    """
    record = lookup_primitive(table)
    return lambda sop: Apply(record, lift(sop))


def elementwise(function: Callable[..., Any], *sops: object, name: str = "") -> SOp:
    """Any Python function, position by position. It is opaque: no cost, no proof on real values.

    >>> elementwise(str.upper, tokens)("abc")
    ['A', 'B', 'C']
    """
    return Apply(opaque(function, len(sops), name), *map(lift, sops))


def apply(record: str | Primitive, *sops: object) -> SOp:
    """The primitive of that name, position by position."""
    known = record if isinstance(record, Primitive) else primitive(record)
    return Apply(known, *map(lift, sops))


def _function(name: str, meaning: str) -> Callable[..., SOp]:
    record = primitive(name)

    def call(*sops: object) -> SOp:
        if any(isinstance(sop, Selector) for sop in sops):
            raise RaspTypeError(f"{name} works on s-ops", expected="an s-op", found="a selector")
        return Apply(record, *map(lift, sops))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{meaning}, position by position."
    return call


exp = _function("exp", "The exponential")
log = _function("log", "The natural logarithm")
sqrt = _function("sqrt", "The square root")
recip = _function("recip", "The reciprocal")
rsqrt = _function("rsqrt", "The reciprocal of the square root")
sin = _function("sin", "The sine")
cos = _function("cos", "The cosine")
tanh = _function("tanh", "The hyperbolic tangent")
erf = _function("erf", "The error function")
relu = _function("relu", "The positive part")
sigmoid = _function("sigmoid", "The logistic function")
silu = _function("silu", "x times its logistic function")
gelu = _function("gelu", "x times the normal distribution function of x")
floor = _function("floor", "The greatest integer not above")
ceil = _function("ceil", "The least integer not below")
indicator = _function("indicator", "1 where true, else 0")
maximum = _function("maximum", "The greater of two values")
minimum = _function("minimum", "The lesser of two values")

full: Selector = Select(Constant(1), Constant(1), COMPARISONS["=="]).named("full")
length: SOp = Apply(primitive("round"), 1 / Aggregate(full, indicator(indices == 0))).named(
    "length"
)
