"""The operators: Python's own meaning on plain values, nodes of the graph with an s-op.

Selectors take only ``and``, ``or`` and ``not``. Python's errors become raspire's, and results that
would fill the memory (a huge power, a string repeated a billion times) are refused beforehand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from raspire.errors import (
    BudgetError,
    RaspError,
    RaspOverflowError,
    RaspTypeError,
    RaspValueError,
    RaspZeroDivisionError,
)
from raspire.language.values import describe, has_nodes, is_atom
from raspire.program.nodes import (
    COMPARISONS,
    Aggregate,
    Apply,
    Combine,
    Constant,
    Node,
    Select,
    Selector,
    SOp,
)
from raspire.program.primitives import primitive

MOST_BITS = 10_000_000  # of an integer
MOST_ELEMENTS = 20_000_000  # of a list or string

PRIMITIVE_OF = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "%": "mod", "^": "pow",
    "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "and": "and", "or": "or",
}  # fmt: skip

# The selector behind `atom in s-op`; it is not the library's full_s, so it is a head of its own.
full_average: Selector = Select(Constant(1), Constant(1), COMPARISONS["=="]).named("full average")


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() * b > MOST_BITS:
        raise RaspOverflowError("this power has too many digits", hint="use a float: 2.0 ^ n")
    return a**b


def _times(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        if a.bit_length() + b.bit_length() > MOST_BITS:
            raise RaspOverflowError("this product has too many digits")
    elif isinstance(a, str | list) and isinstance(b, int):
        _room(len(a) * b)
    elif isinstance(b, str | list) and isinstance(a, int):
        _room(len(b) * a)
    return a * b


def _plus(a: Any, b: Any) -> Any:
    if isinstance(a, str | list) and isinstance(b, str | list):
        _room(len(a) + len(b))
    return a + b


def _room(size: int) -> None:
    if size > MOST_ELEMENTS:
        raise BudgetError(
            "the result is too long", expected=f"at most {MOST_ELEMENTS} elements", found=str(size)
        )


def same(a: Any, b: Any) -> bool:
    """Equality of plain values; s-ops, selectors and functions are equal only to themselves."""
    if not (has_nodes(a) or has_nodes(b)):
        return bool(a == b)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a is b


def _both(a: Any, b: Any) -> Any:
    return b if a else a


def _either(a: Any, b: Any) -> Any:
    return a if a else b


PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "+": _plus,
    "-": operator.sub,
    "*": _times,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "^": _power,
    "==": same,
    "!=": lambda a, b: not same(a, b),
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": _both,
    "or": _either,
}


def python(symbol: str, function: Callable[..., Any], *values: Any) -> Any:
    """Python's own operation, its errors turned into raspire's."""
    try:
        result = function(*values)
    except RaspError:
        raise
    except ZeroDivisionError:
        raise RaspZeroDivisionError(f"{symbol} divides by zero") from None
    except OverflowError:
        raise RaspOverflowError(f"the result of {symbol} is too large for a float") from None
    except MemoryError:
        raise BudgetError(f"the result of {symbol} does not fit into memory") from None
    except (TypeError, AttributeError):
        found = " and ".join(map(describe, values))
        raise RaspTypeError(f"{symbol} cannot be applied to these", found=found) from None
    except (ValueError, KeyError, LookupError) as problem:
        raise RaspValueError(f"{symbol} fails: {problem}") from None
    if isinstance(result, complex):
        raise RaspTypeError(f"{symbol} has no real value there", found="a complex number")
    return result


def binary(symbol: str, a: Any, b: Any) -> Any:
    """``a symbol b`` for any two values.

    >>> binary("%", -7, 3), binary("and", 0, "x")
    (2, 0)
    """
    if symbol == "in":
        return contained(a, b)
    if not isinstance(a, Node) and not isinstance(b, Node):
        return python(symbol, PYTHON[symbol], a, b)
    if isinstance(a, Selector) or isinstance(b, Selector):
        return _selectors(symbol, a, b)
    if isinstance(a, SOp) and isinstance(b, SOp):
        return Apply(primitive(PRIMITIVE_OF[symbol]), a, b)
    if symbol in ("==", "!=") and not (_plain(a) and _plain(b)):
        return Constant(symbol == "!=")  # no position of an s-op holds a list
    return Apply(primitive(PRIMITIVE_OF[symbol]), _operand(symbol, a), _operand(symbol, b))


def _plain(value: Any) -> bool:
    return isinstance(value, SOp) or is_atom(value)


def _operand(symbol: str, value: Any) -> SOp:
    if isinstance(value, SOp):
        return value
    if is_atom(value):
        return Constant(value)
    raise RaspTypeError(
        f"{symbol} cannot be applied to an s-op and this",
        expected="an atom or an s-op",
        found=describe(value),
    )


def _selectors(symbol: str, a: Any, b: Any) -> Selector:
    if symbol not in ("and", "or"):
        raise RaspTypeError(
            f"{symbol} cannot be applied to selectors",
            expected="and, or, not",
            found=symbol,
            hint="aggregate or selector_width make an s-op of a selector",
        )
    if not (isinstance(a, Selector) and isinstance(b, Selector)):
        raise RaspTypeError(
            f"{symbol} cannot join a selector and something else",
            expected="two selectors or two s-ops",
            found=f"{describe(a)} and {describe(b)}",
        )
    return Combine("and" if symbol == "and" else "or", a, b)


def unary(symbol: str, value: Any) -> Any:
    """``not``, ``-`` or ``+`` of any value."""
    if isinstance(value, Selector):
        if symbol != "not":
            raise RaspTypeError(f"{symbol} cannot be applied to a selector", found=describe(value))
        return Combine("not", value)
    if isinstance(value, SOp):
        return Apply(primitive({"not": "not", "-": "neg", "+": "pos"}[symbol]), value)
    if symbol == "not":
        return not value
    return python(symbol, operator.neg if symbol == "-" else operator.pos, value)


def choose(condition: SOp, yes: Any, no: Any) -> SOp:
    """The elementwise ternary, its branches atoms or s-ops."""
    branches = [_operand("if", branch) for branch in (yes, no)]
    return Apply(primitive("where"), condition, *branches)


def contained(item: Any, container: Any) -> Any:
    """``item in container``: a list holds atoms, an s-op is asked at all its positions."""
    if isinstance(item, list | dict | Selector) or not _plain(item):
        raise RaspTypeError(
            "only an atom or an s-op can be sought", expected="an atom", found=describe(item)
        )
    if isinstance(container, list):
        return _in_list(item, container)
    if isinstance(container, SOp) and not isinstance(item, SOp):
        found = Apply(primitive("eq"), container, Constant(item))
        mean = Aggregate(full_average, Apply(primitive("indicator"), found), 0, "rasp")
        return Apply(primitive("gt"), mean, Constant(0))
    raise RaspTypeError(
        "nothing can be sought there",
        expected="a list" if isinstance(item, SOp) else "a list or an s-op",
        found=describe(container),
        hint=""
        if isinstance(container, str | dict)
        else "precedence: 'in' binds loosest; write (x in l) and (y in l)",
    )


def _in_list(item: Any, container: list[Any]) -> Any:
    if not isinstance(item, SOp):
        return any(is_atom(element) and element == item for element in container)
    for element in container:
        if not is_atom(element):
            raise RaspTypeError(
                "an s-op is sought among atoms", expected="a list of atoms", found=describe(element)
            )
    if not container:
        return Constant(False)
    tests: list[SOp] = [Apply(primitive("eq"), item, Constant(element)) for element in container]
    return reduce(lambda a, b: Apply(primitive("or"), a, b), tests)
