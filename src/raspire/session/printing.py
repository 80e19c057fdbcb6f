"""How a session shows values: the original's forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from raspire.columns import left, right, width
from raspire.errors import RaspError
from raspire.language.interpreter import Interpreter
from raspire.language.values import Builtin, Function, Matrix, Sequence, is_atom
from raspire.program.nodes import Node, Selector

WIDEST = 60  # tokens of a matrix that is shown
DEEPEST = 12  # collections inside each other that are shown
LONGEST = 400  # values of a sequence that are shown


def lines(name: str, value: Any, interpreter: Interpreter, depth: int = 0) -> Iterator[str]:
    """The lines that show a value under a name; collections inside each other up to a depth."""
    if isinstance(value, Node):
        yield from _node(name, value, interpreter)
    elif isinstance(value, Matrix):
        yield "\t ="
        yield from matrix_lines(value, value.tokens)
    elif isinstance(value, Sequence):
        yield f"\t =  {sequence_text(value)}"
    elif is_atom(value):
        yield f"    value: {name} =  {atom_text(value)}"
    elif isinstance(value, list | dict):
        yield from _collection(name, value, interpreter, depth)
    elif isinstance(value, Function | Builtin):
        yield f"     {value}"


def atom_text(value: Any) -> str:
    """An atom in full precision, a string in double quotes."""
    if isinstance(value, str):
        return f'"{value}"'
    try:
        return str(value)
    except ValueError:
        return f"an integer of about {int(value.bit_length() * 0.30103)} digits"


def item_text(value: Any) -> str:
    """An atom inside a sequence: strings bare, floats to three digits, bools as T and F."""
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, float):
        return str(round(value, 3))
    return value if isinstance(value, str) else atom_text(value)


def sequence_text(values: Sequence) -> str:
    """A sequence with its type; one value throughout is written once.

    >>> sequence_text(Sequence([5, 5, 5])), sequence_text(Sequence([0, 0.5]))
    ('[5]*3 (ints)', '[0, 0.5] (floats)')
    """
    if len(values) > 1 and _identical(values):
        return f"[{item_text(values[0])}]*{len(values)} ({values.type}s)"
    shown = ", ".join(map(item_text, values[:LONGEST]))
    more = f", ... {len(values) - LONGEST} more" if len(values) > LONGEST else ""
    return f"[{shown}{more}] ({values.type}s)"


def _identical(values: list[Any]) -> bool:
    first = values[0]
    return all(type(value) is type(first) and value == first for value in values)


def matrix_lines(rows: list[list[bool]], tokens: list[Any]) -> Iterator[str]:
    """A selector's matrix: a header of the tokens, a row for every output position."""
    if len(tokens) > WIDEST:
        yield f"\t\t\t(a matrix of {len(tokens)} by {len(tokens)})"
        return
    names = [item_text(token) for token in tokens]
    edge = max(map(width, names))
    yield "\t\t\t" + " " * (edge + 3) + " ".join(names)
    for name, row in zip(names, rows, strict=True):
        cells = (left("1" if cell else " ", width(n)) for cell, n in zip(row, names, strict=True))
        yield f"\t\t\t{right(name, edge)} | {' '.join(cells)}".rstrip()


def example_text(example: Any) -> str:
    """An example: a string in quotes, anything else as Python writes it; a long one in part.

    >>> example_text("ab"), example_text([1, "a"])
    ('"ab"', "[1, 'a']")
    """
    if len(example) <= LONGEST:
        return f'"{example}"' if isinstance(example, str) else repr(example)
    start = example[:LONGEST] if isinstance(example, str | list) else list(example)[:LONGEST]
    return f"{example_text(start)[:-1]} ... {len(example) - LONGEST} more{example_text(start)[-1]}"


def _node(name: str, node: Node, interpreter: Interpreter) -> Iterator[str]:
    selector = isinstance(node, Selector)
    settings = interpreter.settings
    yield f"     {'selector' if selector else 's-op'}: {name}"
    if not (settings.selector_examples if selector else settings.sop_examples):
        return
    tokens = interpreter.selector_example if selector else interpreter.example
    if selector and len(tokens) > WIDEST:
        yield f" \t Example: a matrix of {len(tokens)} by {len(tokens)}"
        return
    try:
        result = interpreter.result(node)
    except RaspError as error:
        yield f" \t Example: fails: {error.what}"
        return
    if isinstance(result, Matrix):
        yield " \t Example:"
        yield from matrix_lines(result, interpreter.selector_example)
        return
    shown = example_text(interpreter.shown_example)
    if settings.full_display and not (len(result) > 1 and _identical(result)):
        yield f" \t Example: {name}"
        yield from _full(result, interpreter.example)
        return
    skipped = " [skipped full display: identical values]" if settings.full_display else ""
    yield f" \t Example: {name}({shown}) = {sequence_text(result)}{skipped}"


def _full(result: Sequence, tokens: list[Any]) -> Iterator[str]:
    """Input and output below each other; of bools only the rarer value is marked."""
    outputs = [str(value) if isinstance(value, float) else item_text(value) for value in result]
    if result.type == "bool":
        count = Counter(result)
        rarer = {value for value in count if count[value] == min(count.values())}
        outputs = [
            text if value in rarer else "" for text, value in zip(outputs, result, strict=True)
        ]
    inputs = [item_text(token) for token in tokens]
    widths = [max(width(a), width(b)) for a, b in zip(inputs, outputs, strict=True)]
    for title, row, kind in (("input: ", inputs, Sequence(tokens_for(tokens)).type),
                             ("output:", outputs, result.type)):  # fmt: skip
        cells = " ".join(map(left, row, widths))
        yield f"\t\t\t{title} {cells} ({kind}s)"


def tokens_for(tokens: list[Any]) -> list[Any]:
    """The tokens as one sequence: a mix of kinds is shown as strings."""
    mixed = len({isinstance(token, str) for token in tokens}) > 1
    return [str(token) for token in tokens] if mixed else tokens


def _collection(name: str, value: Any, interpreter: Interpreter, depth: int) -> Iterator[str]:
    kind = "dict" if isinstance(value, dict) else "list"
    entries = list(value.values()) if isinstance(value, dict) else value
    if all(map(is_atom, entries)):
        yield f"     {kind}: {name} = {_flat(value)}"
        return
    yield f"     {kind}: {name} =" + (" ..." if depth >= DEEPEST else "")
    if depth >= DEEPEST:
        return
    keys = [atom_text(key) for key in value] if isinstance(value, dict) else range(len(value))
    for key, entry in zip(keys, entries, strict=True):
        if is_atom(entry):
            yield f"\t [{key}] = {atom_text(entry)}"
            continue
        for line in lines(f"{name}[{key}]", entry, interpreter, depth + 1):
            yield "\t" + line


def _flat(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "(too long to show)"
    return text if len(text) <= 20_000 else text[:20_000] + " ..."
