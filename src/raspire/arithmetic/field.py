"""GF(p): the arithmetic of identity tests.

An integer of the program (a position, an address, a count) stays an integer; a value of the
input is a :class:`Residue`. No comparison may touch a residue, because the order and the equality
of reals say nothing about residues. A named function (``exp``, ``gelu``, ...) is a random
function, memoised: two programs that agree for a random one agree for every one, up to the
probability that :mod:`raspire.verify.identity` states. A constant that is no simple fraction is a
random element, the same one at every use.

Of the absolute value it is used that it is even: ``relu(x)`` is ``(x + |x|)/2``, so that
``relu(x) - relu(-x) = x`` holds; maxima and minima of two likewise.

The shift of a stable softmax is declared: for the maximum M of a set, ``exp(a - M)`` is
``exp(a) / exp(M)`` and ``min(a - M, 0)`` is ``a - M``. The second holds for the members of the
set. Of others the result must not depend, and a result that does shows: its exp(a) is a variable
that the other side does not have.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from raspire.arithmetic.interface import Arithmetic, Record
from raspire.errors import RaspTypeError, RaspZeroDivisionError, UnsupportedError

MERSENNE_61 = 2**61 - 1
SMALL = 4096  # denominators up to this are told from irrational numbers

RING: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "pos": lambda a: a,
    "recip": lambda a: 1 / a,
    "to_float": lambda a: a,
}
BY_ABSOLUTE = ("abs", "relu", "maximum", "minimum")
# Continuous functions of reals: a random function stands for each of them.
NAMED = frozenset(
    [
        *("exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid"),
        *("silu", "gelu", "gelu_tanh"),
    ]
)


class Residue:
    """An element of GF(p); ints and fractions join it, comparisons are refused."""

    __slots__ = ("greatest", "parts", "prime", "value")

    def __init__(self, value: int, prime: int) -> None:
        self.value = value % prime
        self.prime = prime
        self.greatest = False  # a maximum of a set
        self.parts: tuple[Residue, Residue] | None = None  # of a declared difference a - M

    def _other(self, other: Any) -> int:
        if isinstance(other, Residue):
            return other.value
        if isinstance(other, int):
            return other % self.prime
        if isinstance(other, Fraction):
            return other.numerator * pow(other.denominator, -1, self.prime) % self.prime
        if isinstance(other, float) and other.is_integer():
            return int(other) % self.prime
        raise RaspTypeError(
            "a field element meets a value of another arithmetic",
            expected="an int, a fraction or a field element",
            found=repr(other),
        )

    def __add__(self, other: Any) -> Residue:
        return Residue(self.value + self._other(other), self.prime)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Residue:
        result = Residue(self.value - self._other(other), self.prime)
        if isinstance(other, Residue) and other.greatest:
            result.parts = self, other
        return result

    def __rsub__(self, other: Any) -> Residue:
        return Residue(self._other(other) - self.value, self.prime)

    def __mul__(self, other: Any) -> Residue:
        return Residue(self.value * self._other(other), self.prime)

    __rmul__ = __mul__

    def __neg__(self) -> Residue:
        return Residue(-self.value, self.prime)

    def __truediv__(self, other: Any) -> Residue:
        return Residue(self.value * _inverse(self._other(other), self.prime), self.prime)

    def __rtruediv__(self, other: Any) -> Residue:
        return Residue(self._other(other) * _inverse(self.value, self.prime), self.prime)

    def _refuse(self, other: Any) -> Any:
        raise RaspTypeError(
            "a comparison touches a field element",
            expected="integers, which addresses and counts are",
            found=repr(self),
            hint="the order of real values says nothing about their residues",
        )

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self._refuse(None))

    def __repr__(self) -> str:
        return f"{self.value} mod {self.prime}"


def _inverse(value: int, prime: int) -> int:
    if value == 0:
        raise RaspZeroDivisionError(
            "a division by zero in the field", found="0", hint="draw other random elements"
        )
    return pow(value, -1, prime)


class PrimeField(Arithmetic):
    """GF(p) with its random functions and its random constants; one run, one instance.

    >>> field = PrimeField(101, seed=1)
    >>> field.element(99) + 3
    1 mod 101
    """

    name = "field"

    def __init__(self, prime: int = MERSENNE_61, seed: int | None = None) -> None:
        self.prime = prime
        self.random = random.Random(seed)
        self.atoms: dict[tuple[Any, ...], int] = {}

    def element(self, value: int) -> Residue:
        """The residue of an integer."""
        return Residue(value, self.prime)

    def draw(self) -> Residue:
        """A random element."""
        return Residue(self.random.randrange(self.prime), self.prime)

    def function(self, name: str, *values: Any) -> Residue:
        """The random function of that name, the same value for the same arguments."""
        key = (name, *map(self._residue, values))
        if key not in self.atoms:
            self.atoms[key] = self.random.randrange(1, self.prime)
        return Residue(self.atoms[key], self.prime)

    def _residue(self, value: Any) -> Any:
        if isinstance(value, Residue):
            return value.value
        if isinstance(value, int | Fraction):
            return (self.element(0) + value).value
        return repr(value)

    def absolute(self, value: Any) -> Residue:
        """A random even function: all that is used of the absolute value."""
        number = self._residue(value)
        return self.function("abs", self.element(min(number, -number % self.prime)))

    def _by_absolute(self, name: str, values: tuple[Any, ...]) -> Any:
        """Positive parts and extremes, by the absolute value."""
        if name == "abs":
            return self.absolute(values[0])
        if name == "relu":
            return (self.absolute(values[0]) + values[0]) / 2
        apart = self.absolute(values[0] - values[1])
        return (values[0] + values[1] + (apart if name == "maximum" else -apart)) / 2

    def greatest(self, values: Sequence[Any]) -> Residue:
        """The maximum, as a random function that does not see the order of its arguments."""
        elements = map(self.element, sorted(map(self._residue, values)))
        result = self.function("greatest", *elements)
        result.greatest = True
        return result

    def lift(self, value: Any) -> Any:
        return int(value) if isinstance(value, float) and value.is_integer() else value

    def constant(self, value: Any) -> Any:
        """A constant of a program or a weight: a fraction, or a random element.

        The float nearest to a fraction of small denominator stands for the fraction; any other,
        such as the one nearest to sqrt(2), stands for a real number of which nothing is used.
        """
        if not isinstance(value, float) or value.is_integer():
            return self.lift(value)
        dyadic = Fraction(value)
        near = dyadic if dyadic.denominator <= 2**20 else dyadic.limit_denominator(SMALL)
        return near if float(near) == value else self.function("constant", dyadic)

    def form(self, record: Record) -> Callable[..., Any]:
        if record.field is not None:
            return record.field
        if record.name == "where":
            return record.scalar
        return lambda *values: self._apply(record, values)

    def _apply(self, record: Record, values: tuple[Any, ...]) -> Any:
        name = record.name
        if not any(isinstance(v, Residue) for v in values) and record.exact is not None:
            return record.exact(*values)
        if name in RING:
            return RING[name](*values)
        declared = self._declared(name, values)
        if declared is not None:
            return declared
        if name in BY_ABSOLUTE:
            return self._by_absolute(name, values)
        if name in NAMED:
            return self.function(name, *values)
        raise UnsupportedError(
            f"{name} has no meaning on field elements",
            expected="sums, products, quotients and named functions",
            found=f"{name} of {', '.join(map(repr, values))}",
        )

    def _declared(self, name: str, values: tuple[Any, ...]) -> Residue | None:
        """What is declared of a difference d = a - M: ``exp(d)`` and ``minimum(d, 0)``."""
        difference = values[0]
        if not isinstance(difference, Residue) or difference.parts is None:
            return None
        if name == "exp":
            a, greatest = difference.parts
            return self.function("exp", a) / self.function("exp", greatest)
        if name == "minimum" and not isinstance(values[1], Residue) and values[1] == 0:
            return difference
        return None

    def mean(self, values: Sequence[Any]) -> Any:
        return self.quotient(sum(values[1:], values[0]), len(values))

    def quotient(self, total: Any, count: int) -> Any:
        if isinstance(total, Residue):
            return total / count
        mean = Fraction(total) / count
        return mean.numerator if mean.denominator == 1 else mean

    def number(self, value: Any) -> bool:
        return isinstance(value, int | Fraction | Residue)
