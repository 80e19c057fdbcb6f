"""The program graph: s-ops and selectors as inert, immutable nodes.

A program is an expression graph (Weiss et al. 2021): an *s-op* maps a sequence to a sequence of
the same length, a *selector* maps it to a boolean matrix (query x key). Nodes carry no behaviour;
evaluation, cost, printing, compilation and proof are interpretations of this one graph. Identity
is object identity: a node that is used twice is one node, two equal nodes stay two until
:func:`raspire.program.walk.merge` is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NoReturn, TypeAlias

from raspire.errors import Place, RaspTypeError, UnsupportedError
from raspire.program import hook
from raspire.program.primitives import Primitive, primitive

Atom: TypeAlias = bool | int | float | str | Fraction | None
Rule: TypeAlias = Literal["exact", "rasp"]


class Node:
    """A node of the graph; ``args`` are its children, in order, for every kind of node."""

    __slots__ = ("__weakref__", "args", "label", "place")

    args: tuple[Node, ...]
    label: str | None
    place: Place | None

    def _fix(self, args: tuple[Node, ...], **fields: object) -> None:
        for name, value in (("args", args), ("label", None), ("place", None), *fields.items()):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a program is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a program is immutable: {name!r} cannot be deleted")

    def __bool__(self) -> bool:
        raise RaspTypeError(
            f"{_article(self)} has no truth value before it is given an input",
            expected="a value",
            found=repr(self),
            hint="use & | ~ and where(...) instead of and, or, not, if",
        )

    def __repr__(self) -> str:
        from raspire.program.printing import expression

        return expression(self, limit=2000)

    def __copy__(self) -> Node:
        """The node itself: it is immutable, and its identity is what it means."""
        return self

    def __deepcopy__(self, memo: object) -> Node:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise UnsupportedError(
            "a program cannot be pickled: its primitives are functions",
            found=repr(self)[:80],
            hint="make it where it is needed, or write it as RASP (raspire.language.to_rasp)",
        )

    def static(self) -> tuple[object, ...]:
        """What tells two nodes of one class and the same children apart (used by ``merge``)."""
        return ()

    def with_args(self, args: tuple[Node, ...]) -> Node:
        """The same node over other children; label and place go along."""
        raise TypeError(type(self).__name__)

    def __call__(self, tokens: Any, **options: Any) -> Any:
        """Evaluate on an input: text or a list gives a list, an array gives an array."""
        return hook.evaluator()(self, tokens, **options)

    def batch(self, tokens: Any, **options: Any) -> Any:
        """Evaluate on many inputs at once: an array (B, N), or a list of sequences."""
        return hook.batch_evaluator()(self, tokens, **options)


def _article(node: Node) -> str:
    return "a selector" if isinstance(node, Selector) else "an s-op"


def _binary(name: str) -> tuple[Callable[..., SOp], Callable[..., SOp]]:
    record = primitive(name)

    def forward(self: SOp, other: object) -> SOp:
        return Apply(record, self, lift(other))

    def backward(self: SOp, other: object) -> SOp:
        return Apply(record, lift(other), self)

    return forward, backward


def _unary(name: str) -> Callable[[SOp], SOp]:
    record = primitive(name)
    return lambda self: Apply(record, self)


class SOp(Node):
    """A function from a sequence to a sequence of the same length, written with operators."""

    __slots__ = ()
    __hash__ = object.__hash__
    __array_ufunc__ = None  # NumPy must not broadcast over an s-op
    __iter__ = None

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("div")
    __floordiv__, __rfloordiv__ = _binary("floordiv")
    __mod__, __rmod__ = _binary("mod")
    __pow__, __rpow__ = _binary("pow")
    __and__, __rand__ = _binary("and")
    __or__, __ror__ = _binary("or")
    __lt__, _ = _binary("lt")
    __le__, _ = _binary("le")
    __gt__, _ = _binary("gt")
    __ge__, _ = _binary("ge")
    __eq__, _ = _binary("eq")  # type: ignore[assignment]
    __ne__, _ = _binary("ne")  # type: ignore[assignment]
    __neg__ = _unary("neg")
    __pos__ = _unary("pos")
    __abs__ = _unary("abs")
    __invert__ = _unary("not")
    __round__ = _unary("round")

    def named(self, label: str) -> SOp:
        """Give the node its label, once; a node that has one keeps it. Returns the node."""
        if self.label is None:
            object.__setattr__(self, "label", label)
        return self

    def at(self, place: Place | None) -> SOp:
        """Record where in a source the node was written, once. Returns the node."""
        if self.place is None:
            object.__setattr__(self, "place", place)
        return self


class Selector(Node):
    """A function from a sequence to a boolean matrix, query x key: a predicate, never a matrix."""

    __slots__ = ()

    def __and__(self, other: object) -> Selector:
        return Combine("and", self, as_selector(other))

    def __or__(self, other: object) -> Selector:
        return Combine("or", self, as_selector(other))

    def __invert__(self) -> Selector:
        return Combine("not", self)

    def named(self, label: str) -> Selector:
        """Give the node its label, once; a node that has one keeps it. Returns the node."""
        if self.label is None:
            object.__setattr__(self, "label", label)
        return self

    def at(self, place: Place | None) -> Selector:
        """Record where in a source the node was written, once. Returns the node."""
        if self.place is None:
            object.__setattr__(self, "place", place)
        return self


class Tokens(SOp):
    """The input itself, unchanged."""

    __slots__ = ()

    def __init__(self) -> None:
        self._fix(())

    def with_args(self, args: tuple[Node, ...]) -> Node:
        return self


class Indices(SOp):
    """The positions 0, 1, ..., N-1."""

    __slots__ = ()

    def __init__(self) -> None:
        self._fix(())

    def with_args(self, args: tuple[Node, ...]) -> Node:
        return self


class Constant(SOp):
    """The same value at every position."""

    __slots__ = ("value",)
    value: Any

    def __init__(self, value: Any) -> None:
        self._fix((), value=value)

    def static(self) -> tuple[object, ...]:
        return (type(self.value), repr(self.value))

    def with_args(self, args: tuple[Node, ...]) -> Node:
        return self


class Apply(SOp):
    """An elementwise primitive applied to s-ops, position by position."""

    __slots__ = ("primitive",)
    primitive: Primitive
    args: tuple[SOp, ...]

    def __init__(self, primitive: Primitive, *args: SOp) -> None:
        if len(args) != primitive.arity:
            raise RaspTypeError(
                f"{primitive.name} was given the wrong number of arguments",
                expected=str(primitive.arity),
                found=str(len(args)),
            )
        self._fix(args, primitive=primitive)

    def static(self) -> tuple[object, ...]:
        return (self.primitive.key,)

    def with_args(self, args: tuple[Node, ...]) -> Node:
        return _labelled(Apply(self.primitive, *args), self)  # type: ignore[arg-type]


class Aggregate(SOp):
    """The mean of the values at the selected keys, or ``default`` where nothing is selected.

    ``rule="exact"`` (the Python embedding): equal values stay that value, integer and rational
    means are exact. ``rule="rasp"`` (the text language): one selected value stays itself, several
    give a float, several non-numbers are an error.
    """

    __slots__ = ("default", "rule")
    default: Atom
    rule: Rule

    def __init__(
        self, selector: Selector, value: SOp, default: Atom = 0, rule: Rule = "exact"
    ) -> None:
        self._fix((selector, value), default=default, rule=rule)

    @property
    def selector(self) -> Selector:
        return self.args[0]  # type: ignore[return-value]

    @property
    def value(self) -> SOp:
        return self.args[1]  # type: ignore[return-value]

    def static(self) -> tuple[object, ...]:
        return (type(self.default), self.default, self.rule)

    def with_args(self, args: tuple[Node, ...]) -> Node:
        return _labelled(Aggregate(args[0], args[1], self.default, self.rule), self)  # type: ignore[arg-type]


class Width(SOp):
    """How many keys each query selects, an int."""

    __slots__ = ()

    def __init__(self, selector: Selector) -> None:
        self._fix((selector,))

    @property
    def selector(self) -> Selector:
        return self.args[0]  # type: ignore[return-value]

    def with_args(self, args: tuple[Node, ...]) -> Node:
        return _labelled(Width(args[0]), self)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Comparison:
    """A predicate on a key and a query, in this order; ``symbol`` is None for an opaque one."""

    name: str
    scalar: Callable[[Any, Any], Any]
    symbol: str | None = None


COMPARISONS = {
    symbol: Comparison(name, primitive(name).scalar, symbol)
    for symbol, name in {
        "==": "eq",
        "!=": "ne",
        "<": "lt",
        "<=": "le",
        ">": "gt",
        ">=": "ge",
    }.items()
}


class Select(Selector):
    """``M[i][j]`` is true where ``keys[j] comparison queries[i]`` holds."""

    __slots__ = ("comparison",)
    comparison: Comparison

    def __init__(self, keys: SOp, queries: SOp, comparison: Comparison) -> None:
        self._fix((keys, queries), comparison=comparison)

    @property
    def keys(self) -> SOp:
        return self.args[0]  # type: ignore[return-value]

    @property
    def queries(self) -> SOp:
        return self.args[1]  # type: ignore[return-value]

    def static(self) -> tuple[object, ...]:
        return (self.comparison,)

    def with_args(self, args: tuple[Node, ...]) -> Node:
        return _labelled(Select(args[0], args[1], self.comparison), self)  # type: ignore[arg-type]


class Combine(Selector):
    """``and``, ``or`` (two selectors) or ``not`` (one), pointwise on the matrices."""

    __slots__ = ("op",)
    op: Literal["and", "or", "not"]

    def __init__(self, op: Literal["and", "or", "not"], *selectors: Selector) -> None:
        self._fix(selectors, op=op)

    def static(self) -> tuple[object, ...]:
        return (self.op,)

    def with_args(self, args: tuple[Node, ...]) -> Node:
        return _labelled(Combine(self.op, *args), self)  # type: ignore[arg-type]


class Hardmax(Selector):
    """Average-hard attention's own choice: of the keys in ``among``, those of greatest score.

    ``score`` is an s-op read at the key; ties are all selected; an empty row stays empty.
    """

    __slots__ = ()

    def __init__(self, among: Selector, score: SOp) -> None:
        self._fix((among, score))

    @property
    def among(self) -> Selector:
        return self.args[0]  # type: ignore[return-value]

    @property
    def score(self) -> SOp:
        return self.args[1]  # type: ignore[return-value]

    def with_args(self, args: tuple[Node, ...]) -> Node:
        return _labelled(Hardmax(args[0], args[1]), self)  # type: ignore[arg-type]


def _labelled(new: Node, old: Node) -> Node:
    object.__setattr__(new, "label", old.label)
    object.__setattr__(new, "place", old.place)
    return new


def lift(value: object) -> SOp:
    """An s-op stays itself, a plain value becomes a constant.

    Raises RaspTypeError for a selector or anything that is no value of a sequence.
    """
    if isinstance(value, SOp):
        return value
    if value is None or isinstance(value, bool | int | float | str | Fraction | tuple):
        return Constant(value)
    item = getattr(value, "item", None)  # a NumPy scalar
    if item is not None and getattr(value, "ndim", 1) == 0:
        return Constant(item())
    raise RaspTypeError(
        "this cannot stand where an s-op is needed",
        expected="an s-op or a value (bool, int, float, str, Fraction)",
        found="a selector" if isinstance(value, Selector) else type(value).__name__,
    )


def as_selector(value: object) -> Selector:
    """A selector stays itself; anything else is a RaspTypeError."""
    if isinstance(value, Selector):
        return value
    raise RaspTypeError(
        "a selector is needed here",
        expected="a selector",
        found="an s-op" if isinstance(value, SOp) else type(value).__name__,
        hint="make one with select(keys, queries, comparison)",
    )
