"""Readable RASP for a program: ``repr`` and the text of error messages, drawings and plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from raspire.program.nodes import (
    Aggregate,
    Apply,
    Combine,
    Constant,
    Hardmax,
    Node,
    Select,
    Tokens,
    Width,
)
from raspire.program.walk import reached

# How tightly a construct binds in RASP's own grammar; a larger number binds tighter.
TERNARY, LOGIC, COMPARE, SUM, MODULO, PRODUCT, POWER, UNARY, PRIMARY = range(1, 10)
LEVELS = {
    "and": LOGIC, "or": LOGIC, "eq": COMPARE, "ne": COMPARE, "lt": COMPARE, "le": COMPARE,
    "gt": COMPARE, "ge": COMPARE, "add": SUM, "sub": SUM, "mod": MODULO, "mul": PRODUCT,
    "div": PRODUCT, "floordiv": PRODUCT, "pow": POWER,
}  # fmt: skip
CONVERSIONS = {"to_str": "tokens_str", "to_int": "tokens_int", "to_float": "tokens_float",
               "to_bool": "tokens_bool"}  # fmt: skip

Text = tuple[str, int]


def atom(value: Any) -> Text:
    """A constant as RASP writes it, with how tightly it binds."""
    if isinstance(value, str):
        return f'"{value}"', PRIMARY
    if isinstance(value, tuple | list):
        return "[" + ", ".join(atom(v)[0] for v in value) + "]", PRIMARY
    if isinstance(value, dict):
        return "{" + ", ".join(
            f"{atom(k)[0]}: {atom(v)[0]}" for k, v in value.items()
        ) + "}", PRIMARY
    if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        return str(value), UNARY
    return str(value), PRIMARY


def wrap(text: Text, level: int) -> str:
    """The text, in parentheses where it binds less tightly than ``level``."""
    return text[0] if text[1] >= level else f"({text[0]})"


def _apply(node: Apply, parts: list[Text]) -> Text:
    record = node.primitive
    name = record.name
    if name in LEVELS and record.arity == 2:
        level = LEVELS[name]
        return f"{wrap(parts[0], level)} {record.symbol} {wrap(parts[1], level + 1)}", level
    if name == "not":
        return f"not {wrap(parts[0], UNARY)}", UNARY
    if name in ("neg", "pos"):
        return f"{record.symbol}{wrap(parts[0], UNARY)}", UNARY
    if name == "where":
        condition, yes, no = parts
        return f"{wrap(yes, LOGIC)} if {condition[0]} else {wrap(no, LOGIC)}", TERNARY
    if name == "lookup":
        table = list(record.data) if isinstance(record.data, tuple) else record.data
        return f"{atom(table)[0]}[{parts[0][0]}]", PRIMARY
    if name in CONVERSIONS and isinstance(node.args[0], Tokens):
        return CONVERSIONS[name], PRIMARY
    return f"{name}({', '.join(part[0] for part in parts)})", PRIMARY


def _combine(node: Combine, parts: list[Text]) -> Text:
    if node.op == "not":
        return f"not {wrap(parts[0], UNARY)}", UNARY
    return f"{wrap(parts[0], LOGIC)} {node.op} {wrap(parts[1], LOGIC + 1)}", LOGIC


def _aggregate(node: Aggregate, parts: list[Text]) -> Text:
    plain = type(node.default) is int and node.default == 0
    default = "" if plain else f", {atom(node.default)[0]}"
    return f"aggregate({parts[0][0]}, {parts[1][0]}{default})", PRIMARY


def node_text(node: Node, parts: list[Text]) -> Text:
    """One node over the texts of its children, with how tightly the result binds."""
    if isinstance(node, Constant):
        return atom(node.value)
    if isinstance(node, Apply):
        return _apply(node, parts)
    if isinstance(node, Aggregate):
        return _aggregate(node, parts)
    if isinstance(node, Select):
        keys, queries = parts[0][0], parts[1][0]
        return (
            f"select({keys}, {queries}, {node.comparison.symbol or node.comparison.name})",
            PRIMARY,
        )
    if isinstance(node, Combine):
        return _combine(node, parts)
    if isinstance(node, Hardmax):
        return f"hardmax({parts[1][0]}, {parts[0][0]})", PRIMARY
    if isinstance(node, Width):
        return f"selector_width({parts[0][0]})", PRIMARY
    return node.label or type(node).__name__.lower(), PRIMARY


def expression(
    root: Node,
    *,
    limit: int | None = None,
    names: Mapping[Node, str] | None = None,
    text_of: Callable[[Node, list[Text]], Text] = node_text,
) -> str:
    """The program as one RASP expression; labelled nodes below the root print as their label.

    ``names`` gives further names to nodes; ``limit`` cuts sub-expressions that grow longer than
    that many characters to ``...`` (a graph with much sharing is exponentially long as text).
    """

    def children(node: Node) -> tuple[Node, ...]:
        return node.args if node is root or _label(node, names) is None else ()

    return expressions(reached(root, children), root, limit, names, text_of)[root]


def expressions(
    order: Iterable[Node],
    root: Node | None = None,
    limit: int | None = None,
    names: Mapping[Node, str] | None = None,
    text_of: Callable[[Node, list[Text]], Text] = node_text,
) -> dict[Node, str]:
    """The texts of many nodes in one pass, children before their readers; all but ``root`` are
    their labels where they have one.

    >>> from raspire import indices
    >>> twice = indices * 2
    >>> list(expressions([indices, twice.args[1], twice]).values())
    ['indices', '2', 'indices * 2']
    """
    texts: dict[Node, Text] = {}
    for node in order:
        label = _label(node, names)
        if label is not None and (node is not root or not node.args):
            texts[node] = label, PRIMARY
            continue
        text, level = text_of(node, [texts[child] for child in node.args])
        if limit is not None and len(text) > limit:
            text, level = "...", PRIMARY
        texts[node] = text, level
    return {node: text for node, (text, _) in texts.items()}


def _label(node: Node, names: Mapping[Node, str] | None) -> str | None:
    """The name to print for a node: one given for it, else its label unless names are given."""
    given = (names or {}).get(node)
    return given or (node.label if names is None else None)
