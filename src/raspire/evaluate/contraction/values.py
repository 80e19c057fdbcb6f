"""What a contraction plan computes, as expressions over digits: the plan before it is steps.

A :class:`Value` is a tensor over axes (digits of positions), of kind ``f``, ``i`` or ``b``. A
product of values is not a tensor of its own until somebody needs it as one: a mean of a product
is a contraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from raspire.program.index_expressions import Axis, Form, NotProved, Space
from raspire.program.nodes import (
    Aggregate,
    Apply,
    Combine,
    Constant,
    Indices,
    Node,
    Select,
    Selector,
    Tokens,
)
from raspire.program.primitives import Primitive

TOTAL = frozenset(
    [
        "add",
        "sub",
        "mul",
        "neg",
        "pos",
        "abs",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "and",
        "or",
        "not",
        "where",
        "indicator",
        "maximum",
        "minimum",
        "relu",
        "to_bool",
        "tanh",
        "erf",
        "sigmoid",
    ]
)
"""Primitives that neither raise nor leave the finite numbers on moderate finite numbers."""


@dataclass(frozen=True, eq=False)
class Literal:
    """One number everywhere."""

    value: bool | int | float

    @property
    def kind(self) -> str:
        return {bool: "b", int: "i", float: "f"}[type(self.value)]


@dataclass(frozen=True, eq=False)
class Index:
    """An index expression as a value: the number that a form takes."""

    form: Form
    kind: str = "i"


@dataclass(eq=False)
class Access:
    """Positions at which a node is read; ``block`` is filled in when all readers are known."""

    node: Node
    form: Form
    space: Space
    block: Block | None = None


@dataclass(frozen=True, eq=False)
class Read:
    """The values of a node, or of the tokens, at positions given by a form."""

    access: Access
    kind: str


@dataclass(frozen=True, eq=False)
class Map:
    """A primitive, element by element."""

    record: Primitive
    args: tuple[Value, ...]
    kind: str


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean over the ``free`` axes of the values whose ``weights`` are all true."""

    value: Value
    free: tuple[Axis, ...]
    weights: tuple[Value, ...]
    default: float
    name: str
    kind: str


@dataclass(frozen=True, eq=False)
class Best:
    """Whether the score is the greatest along the ``free`` axes, among those of true weights."""

    score: Value
    free: tuple[Axis, ...]
    weights: tuple[Value, ...]
    kind: str = "b"


@dataclass(frozen=True, eq=False)
class Pieces:
    """A value that has one expression below a border in an axis and another from it on."""

    axis: Axis
    parts: tuple[tuple[Axis, Value], ...]
    kind: str


Value: TypeAlias = Literal | Index | Read | Map | Mean | Best | Pieces


@dataclass(eq=False)
class Block:
    """A node computed on a box of positions: ``base + sum(stride * axis)``, row-major."""

    node: Node
    base: int
    axes: tuple[tuple[Axis, int], ...]
    space: Space
    value: Value | None = None

    @property
    def form(self) -> Form:
        """The positions, as a form of the block's axes."""
        return Form(self.base, dict(self.axes))


def kinds(order: Iterable[Node]) -> dict[int, str]:
    """The kind of every s-op on float tokens: ``f``, ``i``, ``b``, or ``?`` where not known."""
    found: dict[int, str] = {}
    for node in order:
        if isinstance(node, Tokens):
            kind = "f"
        elif isinstance(node, Indices):
            kind = "i"
        elif isinstance(node, Constant):
            kind = {bool: "b", int: "i", float: "f"}.get(type(node.value), "?")
        elif isinstance(node, Apply):
            kind = apply_kind(node.primitive, [found[id(arg)] for arg in node.args])
        elif isinstance(node, Aggregate):
            kind = found[id(node.value)]
        else:
            kind = "?"
        found[id(node)] = kind
    return found


def apply_kind(record: Primitive, args: list[str]) -> str:
    """The kind of a primitive's result, from the kinds of its arguments."""
    if "?" in args or "s" in args or (record.numpy is None) or record.family == "opaque":
        return "?"
    if record.name in ("where", "maximum", "minimum"):
        args = args[-2:]
        if args[0] != args[1]:
            return "f" if "f" in args else "?"
        return args[0]
    kind = record.kind(*args)
    return kind if kind in ("f", "i", "b") else "?"


def total(order: Iterable[Node]) -> set[int]:
    """The ids of the nodes whose computation cannot fail, so that it may be left out."""
    found: set[int] = set()
    for node in order:
        if isinstance(node, Apply) and node.primitive.name not in TOTAL:
            continue
        if all(id(arg) in found for arg in node.args):
            found.add(id(node))
    return found


def conjuncts(selector: Selector) -> list[Selector]:
    """The selectors whose conjunction the selector is."""
    found: list[Selector] = []
    stack: list[Node] = [selector]
    while stack:
        node = stack.pop()
        if isinstance(node, Combine) and node.op == "and":
            stack.extend(reversed(node.args))
        elif isinstance(node, Selector):
            found.append(node)
    return found


def is_equality(selector: Selector, index: set[int], kind: Mapping[int, str]) -> bool:
    """Whether the selector compares two index expressions of integers for equality."""
    return (
        isinstance(selector, Select)
        and selector.comparison.symbol == "=="
        and id(selector.keys) in index
        and id(selector.queries) in index
        and kind[id(selector.keys)] == kind[id(selector.queries)] == "i"
    )


def number(value: object) -> bool | int | float:
    """A constant that a plan can hold; NotProved for strings, fractions and None."""
    if isinstance(value, bool | int | float):
        return value
    raise NotProved
