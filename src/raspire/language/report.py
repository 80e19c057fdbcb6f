"""What a value or an error is, as plain data: the JSON of ``raspire run`` and of test cases."""

from __future__ import annotations

import math
from typing import Any

from raspire.errors import BudgetError, RaspError, RaspOverflowError
from raspire.language.interpreter import Interpreter
from raspire.language.values import Builtin, Function, Matrix, Sequence, atom_type, is_atom
from raspire.program.nodes import Node, Selector

MOST_CELLS = 4_000_000  # of a matrix that is reported
DEEPEST = 200  # lists inside each other that are reported
MOST_BITS = 14_000  # of an integer that is reported: Python writes 4300 digits


def fact(value: Any, interpreter: Interpreter, depth: int = 0) -> dict[str, Any]:
    """The value as data: its kind, its contents on the running example, its type.

    >>> fact([1, 2.5], Interpreter("ab"))
    {'kind': 'list', 'value': [1, 2.5]}
    """
    if isinstance(value, Selector) and len(interpreter.selector_example) ** 2 > MOST_CELLS:
        raise BudgetError(
            "the matrix is too large to show", found=f"{len(interpreter.selector_example)} rows"
        )
    if isinstance(value, Node):
        return _result(interpreter.result(value))
    if isinstance(value, Sequence | Matrix):
        return _result(value)
    if is_atom(value):
        return {"kind": "atom", "value": [_atom(value)], "type": atom_type(value)}
    if isinstance(value, list | dict) and depth > DEEPEST:
        raise BudgetError("the lists lie too deep in each other", expected=f"{DEEPEST} deep")
    if isinstance(value, list):
        return {"kind": "list", "value": [_entry(item, interpreter, depth) for item in value]}
    if isinstance(value, dict):
        pairs = [[_atom(key), _entry(item, interpreter, depth)] for key, item in value.items()]
        return {"kind": "dict", "value": pairs}
    if isinstance(value, Function | Builtin):
        return {"kind": "function", "value": [str(value)]}
    return {"kind": "nothing", "value": []}


def _entry(value: Any, interpreter: Interpreter, depth: int) -> Any:
    return _atom(value) if is_atom(value) else fact(value, interpreter, depth + 1)


def _atom(value: Any) -> Any:
    """An atom that JSON can hold; infinities and not-a-number are written as text."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise RaspOverflowError("an integer has too many digits to be shown")
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _result(result: Sequence | Matrix) -> dict[str, Any]:
    if isinstance(result, Matrix):
        return {"kind": "selector", "value": [[bool(cell) for cell in row] for row in result]}
    return {"kind": "sop", "value": [_atom(value) for value in result], "type": result.type}


def fault(error: RaspError) -> dict[str, Any]:
    """The error as data: category, message, line and column."""
    return {
        "kind": "error",
        "category": error.category,
        "message": error.what,
        "line": error.where.line if error.where else None,
        "column": error.where.column if error.where else None,
        "expected": error.expected,
        "found": error.found,
        "hint": error.hint,
    }
