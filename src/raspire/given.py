"""What users give: whole numbers, choices and sequences; or an error that says what to give."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Set
from typing import Any

from raspire.errors import RaspTypeError, RaspValueError


def whole(name: str, value: object, least: int = 1) -> int:
    """An integer of any integer type (booleans are none) that is at least ``least``.

    >>> whole("heads", 12)
    12
    >>> whole("heads", 2.0)
    Traceback (most recent call last):
    raspire.errors.RaspTypeError: heads must be an integer
      expected: an integer, 1 or more
      found:    2.0
    """
    expected = f"an integer, {least} or more"
    try:
        if isinstance(value, bool):
            raise TypeError
        found = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise RaspTypeError(
            f"{name} must be an integer", expected=expected, found=_shown(value)
        ) from None
    if found < least:
        raise RaspValueError(
            f"{name} must be {least} or more", expected=expected, found=_shown(value)
        )
    return found


def one_of(name: str, value: object, choices: Collection[str]) -> None:
    """Refuse what is none of the choices.

    >>> one_of("softmax", "hard", ("plain", "stable"))
    Traceback (most recent call last):
    raspire.errors.RaspValueError: no such softmax
      expected: one of plain, stable
      found:    'hard'
    """
    if not isinstance(value, str) or value not in choices:
        raise RaspValueError(
            f"no such {name}", expected="one of " + ", ".join(choices), found=_shown(value)
        )


def elements(name: str, value: object) -> list[Any]:
    """The elements of text, a list, an array or any other iterable that has an order.

    >>> elements("an input", "abc")
    ['a', 'b', 'c']
    >>> elements("an input", {"a", "b"})
    Traceback (most recent call last):
    raspire.errors.RaspTypeError: an input is a sequence
      expected: text, a list or an array
      found:    set, which has no order
    """
    kind = type(value).__name__
    if isinstance(value, Set | Mapping):
        found = f"{kind}, which has no order"
    elif isinstance(value, Iterable):
        try:
            return list(value)
        except TypeError:  # an array without dimensions
            found = _shown(value)
    else:
        found = f"{kind}: {_shown(value)}"
    raise RaspTypeError(f"{name} is a sequence", expected="text, a list or an array", found=found)


def _shown(value: object, most: int = 60) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= most else text[: most - 3] + "..."
