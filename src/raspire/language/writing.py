"""RASP source for a program: what ``to_rasp`` writes parses back to the same graph.

Shared nodes become names, so that sharing survives; labels are kept where they are usable names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from raspire.errors import RaspTypeError, UnsupportedError
from raspire.language.interpreter import Interpreter
from raspire.language.lexicon import FORMS, KEYWORDS
from raspire.language.names import RESERVED
from raspire.program.embedding import full, length
from raspire.program.nodes import (
    Aggregate,
    Apply,
    Constant,
    Hardmax,
    Indices,
    Node,
    Select,
    Tokens,
)
from raspire.program.primitives import PRIMITIVES
from raspire.program.printing import CONVERSIONS, PRIMARY, UNARY, Text, node_text, wrap
from raspire.program.walk import consumers, topological

LONGEST = 100  # characters of an expression before a part of it gets a name


def to_rasp(program: Node) -> str:
    """The program as RASP source, one definition a line, the program itself last.

    Sharing, operators, tables and both kinds of mean are kept; equal constants are not told apart.

    >>> from raspire import aggregate, indices, length, select, tokens
    >>> flip = select(indices, length - 1 - indices, "==").named("flip")
    >>> print(to_rasp(aggregate(flip, tokens)), end="")
    flip = select(indices, length - 1 - indices, ==);
    exact_aggregate(flip, tokens_asis);

    Raises UnsupportedError, by name, for what the text language cannot say: Python functions,
    None and fractions, strings with both kinds of quotes, operations on constants alone.
    """
    if not isinstance(program, Node):
        raise RaspTypeError(
            "only a program can be written as text",
            expected="an s-op or a selector",
            found=type(program).__name__,
        )
    return "".join(_lines(program))


def _lines(program: Node) -> Iterator[str]:
    order = topological(program)
    users = consumers(order)
    names = _Names()
    texts: dict[Node, Text] = {}
    for node in order:
        text = _text(node, [texts[child] for child in node.args])
        if node is not program and _gets_name(node, text, users):
            name = names.fresh(node.label)
            yield f"{name} = {text[0]};\n"
            text = name, PRIMARY
        texts[node] = text
    if isinstance(program, Constant):
        raise _refusal("a program that is one constant")
    label = program.label if program.args and _simple(program) is None else None
    yield (f"{names.fresh(label)} = " if label else "") + f"{texts[program][0]};\n"


class _Names:
    """Names not taken so far."""

    def __init__(self) -> None:
        known = Interpreter(checking=False).library.known()
        self._taken = known | RESERVED | set(KEYWORDS) | set(FORMS) | {"out", "load", "draw"}
        self._count = 0

    def fresh(self, label: str | None) -> str:
        """The label if it can be a name, else a numbered one."""
        name = label if label and label.isidentifier() and label.isascii() else None
        while name is None or name in self._taken:
            self._count += 1
            name = f"{label}_{self._count}" if name else f"x{self._count}"
        self._taken.add(name)
        return name


def _gets_name(node: Node, text: Text, users: dict[Node, list[Node]]) -> bool:
    if isinstance(node, Constant) or _simple(node) is not None:
        return False
    usable = bool(node.label) and str(node.label).isidentifier()
    return len(users[node]) > 1 or usable or len(text[0]) > LONGEST


def _simple(node: Node) -> str | None:
    """The name that the language itself has for a node."""
    if isinstance(node, Tokens):
        return "tokens_asis"
    if isinstance(node, Indices):
        return "indices"
    if node is full:
        return "full_s"
    if node is length:
        return "length"
    if isinstance(node, Apply) and isinstance(node.args[0], Tokens):
        return CONVERSIONS.get(node.primitive.name)
    return None


def _text(node: Node, parts: list[Text]) -> Text:
    name = _simple(node)
    if name is not None:
        return name, PRIMARY
    if isinstance(node, Constant):
        return literal(node.value)
    if isinstance(node, Apply):
        return _apply(node, parts)
    if isinstance(node, Aggregate):
        function = "aggregate" if node.rule == "rasp" else "exact_aggregate"
        plain = type(node.default) is int and node.default == 0
        default = "" if plain else f", {literal(node.default)[0]}"
        return f"{function}({parts[0][0]}, {parts[1][0]}{default})", PRIMARY
    if isinstance(node, Select) and node.comparison.symbol is None:
        raise _refusal(f"the comparison {node.comparison.name!r}, a Python function")
    if isinstance(node, Hardmax):
        return f"hardmax({parts[1][0]}, {parts[0][0]})", PRIMARY
    return node_text(node, parts)


def _apply(node: Apply, parts: list[Text]) -> Text:
    record = node.primitive
    if record.name == "lookup":
        if isinstance(node.args[0], Constant):
            raise _refusal("a look-up of a constant")
        return f"{_table(record.data)}[{parts[0][0]}]", PRIMARY
    if PRIMITIVES.get(record.name) is not record:
        raise _refusal(f"the function {record.name!r}, a Python function")
    folded = node.args[:1] if record.name == "where" else node.args
    if all(isinstance(child, Constant) for child in folded):
        raise _refusal(f"{record.symbol or record.name} of constants alone")
    if record.name == "not" and parts[0][1] < UNARY:
        return f"not {wrap(parts[0], UNARY)}", UNARY
    return node_text(node, parts)


def _table(data: Any) -> str:
    if isinstance(data, dict):
        pairs = (f"{literal(key)[0]}: {literal(value)[0]}" for key, value in data.items())
        return "{" + ", ".join(pairs) + "}"
    return "[" + ", ".join(literal(value)[0] for value in data) + "]"


def literal(value: Any) -> Text:
    """An atom as the language writes it, with how tightly it binds.

    >>> literal(-1e-7)[0]
    '-0.0000001'
    """
    if isinstance(value, bool):
        return str(value), PRIMARY
    if isinstance(value, str):
        return _string(value), PRIMARY
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _refusal(f"the number {value}")
        text = format(Decimal(repr(value)), "f")
        text = text if "." in text else text + ".0"
        return text, UNARY if text.startswith("-") else PRIMARY
    if isinstance(value, int):
        return str(value), UNARY if value < 0 else PRIMARY
    raise _refusal(f"the value {value!r}")


def _string(value: str) -> str:
    for quote in "\"'":
        if quote not in value and "\n" not in value:
            return f"{quote}{value}{quote}"
    raise _refusal(f"the string {value!r}")


def _refusal(what: str) -> UnsupportedError:
    return UnsupportedError(f"the text language cannot say {what}", hint="keep it in Python")
