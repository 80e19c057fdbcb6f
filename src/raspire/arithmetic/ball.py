"""Ball arithmetic: a midpoint and a radius that provably contain the real value (extra ``proof``).

A value of the input is taken exactly. A float constant of a program that is no simple fraction,
such as the float nearest to sqrt(d_k), stands for a real number within half a unit in its last
place. Integers stay integers, so addresses are exact; an order between balls that overlap is
undecided and refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from raspire.arithmetic.interface import Arithmetic, Record
from raspire.errors import (
    MissingExtraError,
    RaspTypeError,
    RaspValueError,
    RaspZeroDivisionError,
    UnsupportedError,
)

RING: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "pos": lambda a: a,
    "abs": abs,
    "to_float": lambda a: a,
}
METHODS = ("exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf")
ORDERED: dict[str, Callable[..., Any]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


def flint() -> Any:
    """The package python-flint; MissingExtraError names the extra if it is not there."""
    try:
        import flint as package
    except ImportError:
        raise MissingExtraError("python-flint", "proof") from None
    return package


class Balls(Arithmetic):
    """Balls of a working precision in bits.

    >>> balls = Balls()
    >>> third = balls.divided(1, balls.ball(3))
    >>> balls.contains(third, Fraction(1, 3))
    True
    """

    name = "ball"

    def __init__(self, precision: int = 128) -> None:
        self.flint = flint()
        self.kind = self.flint.arb
        self.precision = precision

    def working(self) -> Any:
        """A context in which results are computed to this precision (it is sound outside too)."""
        return self.flint.ctx.workprec(self.precision)

    def ball(self, value: Any) -> Any:
        """A number as a ball, exactly where binary digits can hold it."""
        if isinstance(value, self.kind):
            return value
        if isinstance(value, Fraction):
            return self.kind(self.flint.fmpq(value.numerator, value.denominator))
        if isinstance(value, float) and not math.isfinite(value):
            raise RaspValueError("a ball has a finite midpoint", found=repr(value))
        if isinstance(value, int | float):
            return self.kind(value)
        raise RaspTypeError("no number stands for this value", found=repr(value))

    def lift(self, value: Any) -> Any:
        return self.ball(value) if isinstance(value, float) else value

    def constant(self, value: Any) -> Any:
        """A constant of a program; what is no simple fraction may be off by half a last place."""
        if isinstance(value, float) and Fraction(value).denominator > 2**20:
            return self.kind(value, math.ulp(value) / 2)
        return self.lift(value)

    def contains(self, ball: Any, value: Any) -> bool:
        """Whether the ball contains a rational or a float."""
        return bool(self.ball(ball).overlaps(self.ball(value)))

    def greatest(self, values: Sequence[Any]) -> Any:
        """The maximum."""
        result = self.ball(values[0])
        for value in values[1:]:
            result = result.max(self.ball(value))
        return result

    def divided(self, a: Any, b: Any) -> Any:
        """A quotient; a divisor that may be zero is an error."""
        divisor = self.ball(b)
        if divisor.contains(0):
            raise RaspZeroDivisionError("a division by a ball that contains zero", found=str(b))
        return self.ball(a) / divisor

    def form(self, record: Record) -> Callable[..., Any]:
        if record.ball is not None:
            return record.ball
        if record.name == "where":
            return record.scalar
        return lambda *values: self._apply(record, values)

    def _apply(self, record: Record, values: tuple[Any, ...]) -> Any:
        name = record.name
        if not any(isinstance(v, self.kind) for v in values) and record.exact is not None:
            return record.exact(*values)
        if name in RING:
            return RING[name](*map(self.ball, values))
        if name in ORDERED:
            return self._decided(name, *map(self.ball, values))
        rule = self._rules().get(name)
        if rule is None:
            raise UnsupportedError(
                f"{name} has no form in ball arithmetic",
                expected="sums, products, quotients, comparisons and named functions",
                found=name,
            )
        return self._sound(name, rule(*map(self.ball, values)))

    def _rules(self) -> dict[str, Callable[..., Any]]:
        root = self.kind(2).sqrt()
        methods = {name: lambda x, name=name: getattr(x, name)() for name in METHODS}
        return {
            **methods,
            "div": self.divided,
            "recip": lambda x: self.divided(1, x),
            "sigmoid": lambda x: 1 / (1 + (-x).exp()),
            "silu": lambda x: x / (1 + (-x).exp()),
            "gelu": lambda x: x * (1 + (x / root).erf()) / 2,
            "relu": lambda x: x.max(self.kind(0)),
            "maximum": lambda x, y: x.max(y),
            "minimum": lambda x, y: x.min(y),
        }

    def _decided(self, name: str, a: Any, b: Any) -> bool:
        if ORDERED[name](a, b):
            return True
        if ORDERED[OPPOSITE[name]](a, b):
            return False
        raise RaspValueError(
            "an order between balls that overlap is undecided",
            expected="balls that lie apart",
            found=f"{a} and {b}",
            hint="raise the precision",
        )

    def _sound(self, name: str, result: Any) -> Any:
        if not result.is_finite():
            raise RaspValueError(
                f"{name} is not finite on this ball", found=str(result), hint="raise the precision"
            )
        return result

    def mean(self, values: Sequence[Any]) -> Any:
        return self.quotient(sum(values[1:], values[0]), len(values))

    def quotient(self, total: Any, count: int) -> Any:
        if isinstance(total, self.kind):
            return total / count
        mean = Fraction(total) / count
        return mean.numerator if mean.denominator == 1 else mean

    def number(self, value: Any) -> bool:
        return isinstance(value, int | Fraction | self.kind)
