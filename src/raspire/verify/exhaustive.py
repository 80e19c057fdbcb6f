"""Equality on every input over a finite alphabet, up to a length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from typing import Any, TypeAlias

from raspire.errors import BudgetError, RaspError
from raspire.program.nodes import Node
from raspire.verify.certificate import Certificate

BUDGET = 1_000_000
CHUNK = 4096

Side: TypeAlias = Node | Callable[[list[Any]], Any]


def words(alphabet: Sequence[Any], longest: int, shortest: int = 0) -> Iterator[list[Any]]:
    """Every word over the alphabet, shortest first.

    >>> [*words("ab", 1)]
    [[], ['a'], ['b']]
    """
    for length in range(shortest, longest + 1):
        for word in product(alphabet, repeat=length):
            yield list(word)


def exhaustive(
    claim: str,
    left: Side,
    right: Side,
    alphabet: Sequence[Any],
    longest: int,
    *,
    shortest: int = 0,
    budget: int = BUDGET,
) -> Certificate:
    """Whether two programs, networks or functions agree on every word up to a length.

    Each side takes a list of tokens and returns a list, one entry a position; an error on one
    side must be an error on the other. Raises BudgetError for more than ``budget`` words.

    >>> from raspire import indices, length, tokens
    >>> exhaustive("bound", indices < length, tokens == tokens, "ab", 3).details["inputs"]
    15
    """
    count = sum(len(alphabet) ** length for length in range(shortest, longest + 1))
    if count > budget:
        raise BudgetError(
            "there are more inputs than the budget",
            expected=f"at most {budget}",
            found=f"{count} words of length {shortest} to {longest} over {len(alphabet)} tokens",
            hint="lower the length or raise the budget",
        )
    scope = {"alphabet": [repr(a) for a in alphabet], "lengths": [shortest, longest]}
    for chunk in _chunks(alphabet, longest, shortest):
        for word, one, two in zip(
            chunk, _outcomes(left, chunk), _outcomes(right, chunk), strict=True
        ):
            if one != two:
                found = {"input": repr(word), "left": repr(one), "right": repr(two)}
                return Certificate(claim, "exhaustive", False, 0.0, {**scope, **found})
    return Certificate(claim, "exhaustive", True, 0.0, {**scope, "inputs": count})


def _chunks(alphabet: Sequence[Any], longest: int, shortest: int) -> Iterator[list[list[Any]]]:
    """Words of one length, a manageable number at a time."""
    for length in range(shortest, longest + 1):
        some = words(alphabet, length, length)
        while chunk := list(islice(some, CHUNK)):
            yield chunk


def _outcomes(side: Side, chunk: list[list[Any]]) -> list[Any]:
    """A program or network runs on the whole chunk; if a word fails, each word by itself."""
    batch = getattr(side, "batch", None)
    if batch is not None:
        try:
            return [list(values) for values in batch(chunk)]
        except RaspError:
            pass
    return [_outcome(side, word) for word in chunk]


def _outcome(side: Callable[[list[Any]], Any], word: list[Any]) -> Any:
    try:
        return list(side(word))
    except RaspError as error:
        return type(error).__name__
