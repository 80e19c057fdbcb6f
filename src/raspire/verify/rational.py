"""Equality over the rationals: programs without named functions, run exactly on given inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from raspire.verify.certificate import Certificate

Function = Callable[[Any], Any]


def rational(
    claim: str, left: Function, right: Function, inputs: Iterable[Sequence[Any]]
) -> Certificate:
    """Whether two functions give equal rationals on every one of the inputs.

    A function takes one input and returns its results; a program is wrapped as
    ``lambda x: program(x, arithmetic="exact")``. The verdict is about these inputs.

    >>> from raspire import tokens
    >>> doubled = lambda x: (tokens + tokens)(x, arithmetic="exact")
    >>> rational("2x", doubled, lambda x: [2 * v for v in x], [[1, 2], [3, 4]]).holds
    True
    """
    count = 0
    for count, given in enumerate(inputs, start=1):
        one, two = left(given), right(given)
        if one != two:
            details = {"inputs": count, "input": repr(given), "left": repr(one), "right": repr(two)}
            return Certificate(claim, "exact over the rationals", False, 0.0, details)
    return Certificate(claim, "exact over the rationals", count > 0, 0.0, {"inputs": count})
