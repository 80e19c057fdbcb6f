"""From the syntax tree to a flat list of instructions for the stack machine (machine.py).

The translation keeps its own stack, so that a sum of thousands of terms or calls nested hundreds
deep never meet Python's recursion limit, here or when they run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from raspire.language.syntax import Definition, Names, Syntax


class Instruction(NamedTuple):
    """What to do, with what, and the offset in the source to blame."""

    does: str
    with_: Any
    at: int


@dataclass(slots=True, eq=False)
class Label:
    """A place in the code that jumps go to."""

    position: int = -1


@dataclass(slots=True, eq=False)
class Template:
    """A function before it meets its scope."""

    name: str
    parameters: Names
    code: Code


Code: TypeAlias = list[Instruction]
Item: TypeAlias = Syntax | Instruction | Label


def translate(*trees: Syntax) -> Code:
    """The instructions of expressions or statements, in order."""
    code: Code = []
    waiting: list[Item] = list(reversed(trees))
    while waiting:
        item = waiting.pop()
        if isinstance(item, Instruction):
            code.append(item)
        elif isinstance(item, Label):
            item.position = len(code)
        else:
            waiting.extend(reversed(_RULES[item.kind](item)))
    return code


def _literal(tree: Syntax) -> list[Item]:
    return [Instruction("push", tree.value, tree.at)]


def _name(tree: Syntax) -> list[Item]:
    return [Instruction("load", tree.value, tree.at)]


def _unary(tree: Syntax) -> list[Item]:
    return [*tree.parts, Instruction("unary", tree.value, tree.at)]


def _binary(tree: Syntax) -> list[Item]:
    return [*tree.parts, Instruction("binary", tree.value, tree.at)]


def _ternary(tree: Syntax) -> list[Item]:
    yes, condition, no = tree.parts
    otherwise, end = Label(), Label()
    return [
        condition,
        Instruction("choose", otherwise, tree.at),
        yes,
        Instruction("keep", end, tree.at),
        otherwise,
        no,
        Instruction("merge", None, tree.at),
        end,
    ]


def _index(tree: Syntax) -> list[Item]:
    return [*tree.parts, Instruction("index", None, tree.at)]


def _call(tree: Syntax) -> list[Item]:
    """An s-op that is applied, or drawn on an input, is not tried on the running example."""
    function, *arguments = tree.parts
    applied = len(arguments) == 1
    items: list[Item] = _untried(function) if applied else [function]
    if function.kind == "name" and function.value == "draw" and len(arguments) == 2:
        items += [*_untried(arguments[0]), arguments[1]]
    else:
        items += arguments
    return [*items, Instruction("call", len(arguments), tree.at)]


def _untried(tree: Syntax) -> list[Item]:
    return [Instruction("hush", 1, tree.at), tree, Instruction("hush", -1, tree.at)]


def _form(tree: Syntax) -> list[Item]:
    return [*tree.parts, Instruction("form", (tree.value, len(tree.parts)), tree.at)]


def _select(tree: Syntax) -> list[Item]:
    return [*tree.parts, Instruction("select", tree.value, tree.at)]


def _aggregate(tree: Syntax) -> list[Item]:
    return [*tree.parts, Instruction("aggregate", len(tree.parts), tree.at)]


def _collect(tree: Syntax) -> list[Item]:
    return [*tree.parts, Instruction(tree.kind, len(tree.parts), tree.at)]


def _comprehension(tree: Syntax) -> list[Item]:
    *elements, iterated = tree.parts
    start, end = Label(), Label()
    return [
        iterated,
        Instruction("iterate", tree.kind, tree.at),
        start,
        Instruction("next", (tree.value, end), tree.at),
        *elements,
        Instruction("gather", start, tree.at),
        end,
        Instruction("finish", tree.kind, tree.at),
    ]


def _evaluate(tree: Syntax) -> list[Item]:
    return [*tree.parts, Instruction("drop", None, tree.at)]


def _assign(tree: Syntax) -> list[Item]:
    items: list[Item] = list(tree.parts)
    if len(tree.parts) > 1:
        items.append(Instruction("list", len(tree.parts), tree.at))
    return [*items, Instruction("store", tree.value, tree.at)]


def _load(tree: Syntax) -> list[Item]:
    return [Instruction("read", tree.value, tree.at)]


def _define(tree: Syntax) -> list[Item]:
    definition: Definition = tree.value
    returned: Sequence[Syntax] = definition.returned
    closing = Syntax("list", tree.at, tuple(returned)) if len(returned) > 1 else returned[0]
    code = [*translate(*tree.parts, closing), Instruction("give", None, tree.at)]
    template = Template(definition.name, definition.parameters, code)
    return [Instruction("define", template, tree.at)]


def _loop(tree: Syntax) -> list[Item]:
    iterated, *body = tree.parts
    start, end = Label(), Label()
    return [
        iterated,
        Instruction("iterate", tree.kind, tree.at),
        start,
        Instruction("next", (tree.value, end), tree.at),
        *body,
        Instruction("jump", start, tree.at),
        end,
        Instruction("finish", tree.kind, tree.at),
    ]


_RULES: dict[str, Callable[[Syntax], list[Item]]] = {
    "literal": _literal,
    "name": _name,
    "unary": _unary,
    "binary": _binary,
    "ternary": _ternary,
    "index": _index,
    "call": _call,
    "form": _form,
    "select": _select,
    "aggregate": _aggregate,
    "list": _collect,
    "dict": _collect,
    "list_for": _comprehension,
    "dict_for": _comprehension,
    "evaluate": _evaluate,
    "assign": _assign,
    "load": _load,
    "define": _define,
    "loop": _loop,
}
