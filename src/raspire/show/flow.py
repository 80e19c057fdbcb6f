"""The flow of a program: which layer and head computes what, with its values on an input.

The schedule is the one the original RASP draws: every s-op at its earliest attention depth,
elementwise work free, selectors told apart by identity, two heads for a selector width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raspire.columns import left, right, width
from raspire.errors import RaspTypeError
from raspire.files import write_whole
from raspire.language.operators import full_average
from raspire.language.trial import Trial, sequence_input
from raspire.language.values import sequence_type
from raspire.program.embedding import full
from raspire.program.facts import depths
from raspire.program.nodes import (
    Aggregate,
    Apply,
    Constant,
    Indices,
    Node,
    Selector,
    SOp,
    Tokens,
    Width,
)
from raspire.program.printing import expression
from raspire.program.walk import consumers, topological

Rows = list[list[bool]]
LONGEST = 40  # tokens of an input whose patterns and values are drawn
LONGEST_NAME = 60


@dataclass
class Column:
    """One s-op with its values on the input (None for an input too long to show)."""

    name: str
    values: list[Any] | None


@dataclass
class Head:
    """One attention head: its selector, its pattern, and the s-ops it makes."""

    selector: str
    pattern: Rows | None
    creates: list[Column] = field(default_factory=list)


@dataclass
class Layer:
    """The heads of one attention depth and the elementwise work after them."""

    depth: int
    heads: list[Head] = field(default_factory=list)
    feed_forward: list[Column] = field(default_factory=list)


@dataclass
class Drawing:
    """A drawn program: its layers, the input, and its values."""

    name: str
    tokens: list[Any]
    layers: list[Layer]
    result: list[Any] | None

    @property
    def file_name(self) -> str:
        """A file name without separators, of bounded length."""
        tokens = "".join(map(str, self.tokens[:20]))
        return re.sub(r"[^\w.-]+", "_", f"{self.name}_{tokens}")[:LONGEST_NAME].strip("_") or "s-op"

    def text(self) -> str:
        """The drawing as text: one block a layer, a small matrix for every head."""
        return "\n".join(_text(self))

    def svg(self) -> str:
        """The drawing as an SVG picture of attention patterns and values."""
        from raspire.show.picture import picture

        return picture(self)

    def _repr_svg_(self) -> str:
        """The picture, as notebooks ask for it."""
        return self.svg()

    def save(self, path: str | Path) -> Path:
        """Write the SVG picture to a file, whole or not at all."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        return write_whole(target, self.svg())


def draw(program: Node, tokens: Any) -> Drawing:
    """Draw an s-op on an input: which layer and head computes what.

    >>> from raspire import aggregate, indices, length, select, tokens
    >>> flip = select(indices, length - 1 - indices, "==").named("flip")
    >>> print(draw(aggregate(flip, tokens).named("reverse"), "abc").text())
    reverse on a b c
    layer 1: 1 head
      head full_s -> (aggregate) = [0.333]*3 (floats)
        (selects everything)
      feed-forward -> length = [3]*3 (ints)
    layer 2: 1 head
      head flip -> reverse = [c, b, a] (strings)
               a b c
           a |     1
           b |   1
           c | 1

    Raises RaspTypeError for a selector; source: the drawings of Weiss et al. 2021.
    """
    if not isinstance(program, SOp):
        raise RaspTypeError("only an s-op can be drawn", expected="an s-op", found="a selector")
    listed = sequence_input(tokens if isinstance(tokens, str) else list(tokens))
    return _Drawer(program, listed).drawing()


class _Drawer:
    def __init__(self, program: SOp, tokens: list[Any]) -> None:
        self.program = program
        self.tokens = tokens
        self.order = topological(program)
        self.trial = Trial(tokens) if len(tokens) <= LONGEST else None

    def drawing(self) -> Drawing:
        depth = depths(self.order)
        layers = {0: Layer(0)}
        heads: dict[tuple[int, Selector], Head] = {}
        users = consumers(self.order)
        for node in self.order:
            layer = layers.setdefault(depth[node], Layer(depth[node])) if _drawn(node) else None
            if layer is None:
                continue
            if isinstance(node, Aggregate):
                key = depth[node], node.selector
                if key not in heads:
                    heads[key] = self._head(node.selector)
                    layer.heads.append(heads[key])
                heads[key].creates.append(self._column(node))
            elif isinstance(node, Width):
                layer.heads += self._width_heads(node)
                layer.feed_forward.append(self._column(node))
            elif node is self.program or node.label or len(users[node]) > 1:
                layer.feed_forward.append(self._column(node))
        shown = [layers[d] for d in sorted(layers) if d or layers[d].feed_forward]
        name = self.program.label or "out"
        return Drawing(name, self.tokens, shown, self._values(self.program))

    def _values(self, node: Node) -> list[Any] | None:
        return self.trial.value(node) if self.trial else None

    def _column(self, node: Node) -> Column:
        return Column(self._name(node), self._values(node))

    def _name(self, node: Node) -> str:
        if node.label:
            return node.label
        if node is self.program:
            return "out"
        if isinstance(node, Aggregate):
            return "(aggregate)"
        text = expression(node, limit=200)
        return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 3] + "..."

    def _head(self, selector: Selector) -> Head:
        known = {full: "full_s", full_average: "full average"}
        name = known.get(selector) or selector.label or expression(selector, limit=200)
        return Head(name, self._values(selector))

    def _width_heads(self, node: Width) -> Iterator[Head]:
        """The two heads of a selector width: with and without the first position."""
        base = self._head(node.selector)
        rows = base.pattern
        for name, made, first in (("and", "at 0", None), ("or", "inverted", True)):
            pattern = rows and [[row[0] if first is None else True, *(
                False if first is None else cell for cell in row[1:])] for row in rows]  # fmt: skip
            head = Head(f"({base.selector}) {name} at 0", pattern)
            head.creates.append(Column(f"({made})", None))
            yield head


def _drawn(node: Node) -> bool:
    if isinstance(node, Selector | Constant):
        return False
    if isinstance(node, Tokens | Indices):
        return False
    return not (isinstance(node, Apply) and all(isinstance(a, Tokens) for a in node.args))


# ---------------------------------------------------------------------------------- as text


def values_text(values: list[Any]) -> str:
    """Values as a session shows them."""

    def one(value: Any) -> str:
        if isinstance(value, bool):
            return "T" if value else "F"
        return str(round(value, 3)) if isinstance(value, float) else str(value)

    kind = sequence_type(values)
    if len(values) > 1 and len({(type(v), v) for v in values}) == 1:
        return f"[{one(values[0])}]*{len(values)} ({kind}s)"
    return f"[{', '.join(map(one, values))}] ({kind}s)"


def _text(drawing: Drawing) -> Iterator[str]:
    tokens = " ".join(map(str, drawing.tokens[:LONGEST]))
    more = " ..." if len(drawing.tokens) > LONGEST else ""
    yield f"{drawing.name} on {tokens}{more}"
    if not drawing.layers and drawing.result is not None:
        yield f"  nothing to compute -> {_column_text(Column(drawing.name, drawing.result))}"
    for layer in drawing.layers:
        if layer.depth:
            count = len(layer.heads)
            yield f"layer {layer.depth}: {count} head{'s' * (count != 1)}"
        else:
            yield "before the first layer"
        for head in layer.heads:
            made = ", ".join(map(_column_text, head.creates))
            yield f"  head {head.selector} -> {made}"
            yield from _pattern(head.pattern, drawing.tokens)
        for column in layer.feed_forward:
            yield f"  feed-forward -> {_column_text(column)}"


def _column_text(column: Column) -> str:
    return column.name if column.values is None else f"{column.name} = {values_text(column.values)}"


def _pattern(rows: Rows | None, tokens: list[Any]) -> Iterator[str]:
    if rows is None:
        return
    if all(all(row) for row in rows):
        yield "    (selects everything)"
        return
    names = [str(token) for token in tokens]
    edge = max(map(width, names))
    yield " " * (8 + edge + 3) + " ".join(names)
    for name, row in zip(names, rows, strict=True):
        cells = (left("1" if c else " ", width(n)) for c, n in zip(row, names, strict=True))
        yield f"{' ' * 7}{right(name, edge + 1)} | {' '.join(cells)}".rstrip()
