"""The tokens that a compiled program reads: what is taken, and what is refused by name."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from raspire.compile.domain import LISTED, Real
from raspire.errors import BudgetError, RaspTypeError, RaspValueError

LONGEST = 5_000
"""The most positions over listed tokens: selectors and checks grow with its square."""


def symbols_of(alphabet: Any, bos: str, pad: str) -> tuple[Any, ...] | Real:
    """The symbols of an alphabet, each once; an interval of reals as it is.

    Raises RaspTypeError for what is no token, RaspValueError for tokens that Python calls equal
    and that are written differently, for numbers that are not finite, and for an empty interval.

    >>> symbols_of("abba", "bos", "pad")
    ('a', 'b')
    """
    if isinstance(alphabet, Real):
        return _interval(alphabet)
    if not isinstance(alphabet, Iterable):
        raise RaspTypeError(
            "the alphabet is no list", expected="a list of tokens", found=repr(alphabet)
        )
    listed = list(alphabet)
    for symbol in listed:
        _refuse_other_kinds(symbol)
    symbols = _distinct(listed)
    if not symbols:
        raise RaspValueError("the alphabet is empty", expected="at least one symbol")
    if isinstance(alphabet, set | frozenset):
        try:
            symbols = tuple(sorted(symbols))
        except TypeError:
            symbols = tuple(sorted(symbols, key=repr))
    for name, special in (("bos", bos), ("pad", pad)):
        if special in symbols:
            raise RaspValueError(
                f"the alphabet contains {special!r}, which is the {name} symbol",
                hint=f"compile(..., {name}=<another symbol>)",
            )
    return symbols


def refuse_long(length: int, symbols: tuple[Any, ...] | Real) -> None:
    """Refuse a maximal length that would not be compiled in reasonable time and memory."""
    most = LISTED if isinstance(symbols, Real) else LONGEST
    if length > most:
        raise BudgetError(
            "the maximal length is too great to compile",
            expected=f"at most {most:,} positions",
            found=f"{length:,} positions",
            hint="every position has an embedding of its own, and selectors compare them in pairs",
        )


def _interval(reals: Real) -> Real:
    if not reals.low <= reals.high:  # NaN is no bound either
        raise RaspValueError(
            "the tokens' interval is wrong",
            expected="two numbers, the lower first",
            found=f"{reals.low:g}:{reals.high:g}",
        )
    return reals


def _refuse_other_kinds(symbol: Any) -> None:
    if not isinstance(symbol, bool | int | float | Fraction | str):
        raise RaspTypeError(
            f"{symbol!r} is no token",
            expected="strings, numbers and truth values",
            found=type(symbol).__name__,
        )
    if isinstance(symbol, float) and not math.isfinite(symbol):
        raise RaspValueError(
            f"{symbol!r} is no token", expected="finite numbers", found=repr(symbol)
        )


def _distinct(listed: list[Any]) -> tuple[Any, ...]:
    """The symbols in order, without repetitions; equal ones of two types are refused."""
    first: dict[Any, Any] = {}
    for symbol in listed:
        known = first.setdefault(symbol, symbol)
        if type(known) is not type(symbol):
            raise RaspValueError(
                f"{known!r} and {symbol!r} would be one token, because Python calls them equal",
                expected="tokens that are all different",
                hint="leave one of them out, or write it as a string",
            )
    return tuple(first)
