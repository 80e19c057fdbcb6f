"""The built-in forms: select, aggregate, indexing, round, indicator, range, zip, len."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from raspire.errors import BudgetError, RaspTypeError, RaspValueError
from raspire.language.operators import MOST_ELEMENTS, python
from raspire.language.values import describe, is_atom
from raspire.program.embedding import indices, length
from raspire.program.nodes import (
    COMPARISONS,
    Aggregate,
    Apply,
    Constant,
    Select,
    Selector,
    SOp,
)
from raspire.program.primitives import lookup_primitive, primitive


def _sop(value: Any, role: str) -> SOp:
    if isinstance(value, SOp):
        return value
    if is_atom(value):
        return Constant(value)
    raise RaspTypeError(
        f"{role} cannot be this", expected="an s-op or an atom", found=describe(value)
    )


def select(keys: Any, queries: Any, comparison: str) -> Selector:
    """The selector that is true where ``keys[j] comparison queries[i]``."""
    return Select(
        _sop(keys, "the keys of select"),
        _sop(queries, "the queries of select"),
        COMPARISONS[comparison],
    )


def aggregate(selector: Any, value: Any, default: Any = 0) -> Aggregate:
    """The mean over the selected positions, by the rules of the text language."""
    if not isinstance(selector, Selector):
        raise RaspTypeError(
            "aggregate needs a selector first", expected="a selector", found=describe(selector)
        )
    if not is_atom(default):
        raise RaspTypeError(
            "the default of aggregate is one atom", expected="an atom", found=describe(default)
        )
    return Aggregate(selector, _sop(value, "the payload of aggregate"), default, "rasp")


def index(value: Any, key: Any) -> Any:
    """``value[key]`` for lists, strings, dictionaries and s-ops."""
    if isinstance(value, SOp):
        return _position(value, key)
    if isinstance(value, Selector) or not isinstance(value, str | list | dict):
        raise RaspTypeError(
            "this cannot be indexed",
            expected="a list, a string, a dictionary or an s-op",
            found=describe(value),
        )
    if isinstance(key, SOp):
        return Apply(lookup_primitive(_table(value)), key)
    if not is_atom(key):
        raise RaspTypeError("this is no index", expected="an atom", found=describe(key))
    if isinstance(value, dict):
        if key not in value:
            raise RaspValueError(
                f"{describe(key)} is not a key of the dictionary", expected=_keys(value)
            )
        return value[key]
    if not isinstance(key, int):
        raise RaspTypeError("a list is indexed by integers", expected="an int", found=describe(key))
    if not -len(value) <= key < len(value):
        raise RaspValueError(
            f"index {key} is out of range for a length of {len(value)}",
            expected=f"{-len(value)} to {len(value) - 1}" if value else "a list that is not empty",
            found=describe(key),
        )
    return value[key]


def _keys(table: dict[Any, Any]) -> str:
    shown = [repr(key) for key in list(table)[:8]]
    return "one of " + ", ".join(shown) + (", ..." if len(table) > 8 else "") if shown else ""


def _table(value: str | list[Any] | dict[Any, Any]) -> Any:
    table = value if isinstance(value, dict) else list(value)
    for element in table.values() if isinstance(table, dict) else table:
        if not is_atom(element):
            raise RaspTypeError(
                "a table indexed by an s-op holds atoms",
                expected="strings, bools, ints or floats",
                found=describe(element),
            )
    return table


def _position(value: SOp, key: Any) -> SOp:
    """The s-op that holds everywhere what ``value`` holds at one position."""
    if not isinstance(key, int):
        raise RaspValueError(
            "an s-op is indexed by one integer",
            expected="an int",
            found=describe(key),
            hint="load_from_location(seq, loc) reads at a position that an s-op computes",
        )
    query: SOp = Constant(key) if key >= 0 else Apply(primitive("add"), length, Constant(key))
    selector = Select(indices, query, COMPARISONS["=="]).named(f"load from {key}")
    return Aggregate(selector, value, 0, "rasp")


def rounded(value: Any) -> Any:
    """``round``: to an int, halves to even."""
    if isinstance(value, SOp):
        return Apply(primitive("round"), value)
    if isinstance(value, Selector | str):
        raise RaspTypeError("round needs a number", expected="a number", found=describe(value))
    return python("round", round, value)


def indicator(value: Any) -> SOp:
    """``indicator``: 1 where the s-op is true, else 0."""
    if not isinstance(value, SOp):
        raise RaspTypeError("indicator needs an s-op", expected="an s-op", found=describe(value))
    return Apply(primitive("indicator"), value)


def ranged(*bounds: Any) -> list[int]:
    """``range``: a list of ints."""
    if len(bounds) > 3 or not all(isinstance(bound, int) for bound in bounds):
        raise RaspTypeError(
            "range takes one to three ints", found=", ".join(map(describe, bounds[:4]))
        )
    if len(bounds) == 3 and bounds[2] == 0:
        raise RaspValueError("the step of range is not zero", found="0")
    numbers = range(*bounds)
    try:
        size = len(numbers)
    except OverflowError:
        size = MOST_ELEMENTS + 1
    if size > MOST_ELEMENTS:
        raise BudgetError("the range is too long", expected=f"at most {MOST_ELEMENTS} numbers")
    return [int(number) for number in numbers]


def zipped(*lists: Any) -> list[Any]:
    """``zip``: lists of one length become a list of lists."""
    for each in lists:
        if not isinstance(each, list):
            raise RaspTypeError("zip takes lists", expected="a list", found=describe(each))
    lengths = sorted({len(each) for each in lists})
    if len(lengths) > 1:
        raise RaspTypeError(
            "zip takes lists of one length", found="lengths " + ", ".join(map(str, lengths))
        )
    return [list(row) for row in zip(*lists, strict=True)]


def counted(value: Any) -> int:
    """``len`` of a list."""
    if not isinstance(value, list):
        raise RaspTypeError("len takes a list", expected="a list", found=describe(value))
    return len(value)


FORMS: dict[str, Callable[..., Any]] = {
    "round": rounded,
    "indicator": indicator,
    "range": ranged,
    "zip": zipped,
    "len": counted,
}
