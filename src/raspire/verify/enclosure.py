"""Enclosure: rigorous intervals around the real values, and the distance of floats to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from raspire.arithmetic.ball import Balls
from raspire.program.nodes import SOp
from raspire.verify.certificate import Certificate
from raspire.verify.interpretation import Interpretation

Balled = Callable[[Sequence[Any], Balls], list[Any]]


def enclosed(program: SOp, tokens: Sequence[Any], balls: Balls, positions: Any = None) -> list[Any]:
    """The program's values as balls, at some positions (all, if none are given).

    >>> from raspire import exp, tokens
    >>> [value] = enclosed(exp(tokens), [1.0], Balls())
    >>> 2.718281828459 < float(value.mid()) < 2.71828182846
    True
    """
    with balls.working():
        values = Interpretation(tokens, balls).values(program)
        chosen = values if positions is None else [values[i] for i in positions]
        return [balls.ball(value) for value in chosen]


def enclosure(
    claim: str,
    left: Balled,
    right: Balled,
    tokens: Sequence[Any],
    floats: Sequence[float],
    *,
    within: float,
    precision: int = 128,
) -> Certificate:
    """Whether two sides' balls overlap, and floats lie within a distance of both, on one input.

    ``left`` and ``right`` map tokens to balls (see :func:`enclosed`); ``floats`` are the values of
    a run in floating point. The distance reported is an upper bound: it includes the radius.
    """
    balls = Balls(precision)
    with balls.working():
        one, two = left(tokens, balls), right(tokens, balls)
        overlap = len(one) == len(two) and all(a.overlaps(b) for a, b in zip(one, two, strict=True))
        distance = max(
            (
                _distance(x, ball)
                for side in (one, two)
                for x, ball in zip(floats, side, strict=True)
            ),
            default=0.0,
        )
        radius = max((float(ball.rad()) for ball in (*one, *two)), default=0.0)
    details = {
        "results": len(one),
        "precision in bits": precision,
        "largest radius": radius,
        "both sides overlap": overlap,
        "distance of the floats, at most": distance,
        "distance asked for": within,
    }
    return Certificate(claim, "enclosure", overlap and distance <= within, 0.0, details)


def _distance(value: float, ball: Any) -> float:
    """An upper bound on the distance of a float to any point of the ball."""
    bound = float(abs(ball - value).upper())
    return bound * (1 + 2.0**-50)
