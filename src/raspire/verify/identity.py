"""Identity over a finite field: all real inputs of a shape at once, up to a stated probability.

Two sides are run on random elements of GF(p), named functions being random and memoised. If they
are different functions, one trial lets them pass with probability at most

    (deg + pairs of atoms · degree of the difference of their arguments) / p

(Schwartz and Zippel), and trials are repeated down to the error that was asked for. The test is
sound and incomplete: identities that need a law of a named function, such as exp(a+b) =
exp(a) exp(b), are rejected. The identity is over GF(p); with p drawn at random it is one over the
rationals, except for the few primes that divide every coefficient of a difference.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from raspire.arithmetic.field import MERSENNE_61, PrimeField, Residue
from raspire.errors import RaspError, RaspValueError, RaspZeroDivisionError
from raspire.program.nodes import SOp
from raspire.program.walk import merge
from raspire.verify.certificate import Certificate
from raspire.verify.degrees import CONSTANT, Degree, degrees
from raspire.verify.interpretation import Interpretation

DRAWS = 50  # how often an input with a zero denominator is drawn anew


class Side(Protocol):
    """One of the two functions that are compared."""

    def run(self, tokens: Sequence[Any], field: PrimeField) -> list[Any]:
        """The results on one input."""

    def degree(self) -> tuple[Degree, Degree]:
        """The degree of a result and of the largest argument of a named function, after a run."""


class ProgramSide:
    """A program, read at some positions (all, if none are given)."""

    def __init__(self, program: SOp, positions: Sequence[int] | None = None) -> None:
        self.program = merge(program)
        self.positions = positions
        self._last: Interpretation | None = None

    def run(self, tokens: Sequence[Any], field: PrimeField) -> list[Any]:
        """The program's values on one input."""
        self._last = Interpretation(tokens, field)
        values = self._last.values(self.program)
        return values if self.positions is None else [values[i] for i in self.positions]

    def degree(self) -> tuple[Degree, Degree]:
        """By the rules of the graph, with the row sizes of the last run."""
        assert self._last is not None
        widest = {node: max(map(len, rows), default=0) for node, rows in self._last.rows.items()}
        return degrees(self.program, widest)


@dataclass(frozen=True)
class FunctionSide:
    """A direct definition in Python, with degrees that its author states."""

    function: Callable[[Sequence[Any], PrimeField], list[Any]]
    result: Degree
    argument: Degree = CONSTANT

    def run(self, tokens: Sequence[Any], field: PrimeField) -> list[Any]:
        """The function's values on one input."""
        return self.function(tokens, field)

    def degree(self) -> tuple[Degree, Degree]:
        """As stated."""
        return self.result, self.argument


def identity(
    claim: str,
    left: Side,
    right: Side,
    sequence: Callable[[PrimeField], Sequence[Any]] | int,
    *,
    error: float = 1e-9,
    prime: int | None = MERSENNE_61,
    seed: int = 0,
) -> Certificate:
    """Whether two sides agree on random field elements, repeated down to an error probability.

    ``sequence`` draws an input from the field, or is a number of random tokens. ``prime=None``
    draws a prime of 61 bits for every trial. Raises RaspValueError when nearly every input has a
    zero denominator, or a trial says too little for its prime.

    >>> from raspire import tokens
    >>> left, right = (tokens + 1) * (tokens - 1), tokens * tokens - 1
    >>> bool(identity("x", ProgramSide(left), ProgramSide(right), 3).holds)
    True
    """
    rng = random.Random(seed)
    chance, trials = 1.0, 0
    primes: list[int] = []
    trial = None
    while chance > error:
        primes.append(random_prime(61, rng) if prime is None else prime)
        trial = _trial(left, right, sequence, primes[-1], rng)
        trials += 1
        if trial.difference:
            break
        chance *= _informative(trial.chance)
    assert trial is not None
    details = {
        "primes": [str(p) for p in primes],
        "trials": trials,
        "results compared": trial.compared,
        "atoms": trial.atoms,
        "degree": trial.degree,
        "degree of a difference of arguments": trial.argument_degree,
        "error probability of one trial": trial.chance,
        "rests on": "named functions as random functions; identities of theirs are not used",
    }
    if trial.difference:
        details["difference"] = trial.difference
    holds = not trial.difference
    return Certificate(
        claim, "identity over a finite field", holds, chance if holds else 0.0, details
    )


@dataclass(frozen=True)
class _Trial:
    difference: str
    compared: int
    atoms: int
    degree: int
    argument_degree: int
    chance: float


def _trial(left: Side, right: Side, sequence: Any, prime: int, rng: random.Random) -> _Trial:
    for _ in range(DRAWS):
        field = PrimeField(prime, rng.getrandbits(64))
        tokens = _drawn(sequence, field)
        try:
            results = left.run(tokens, field), right.run(tokens, field)
        except RaspZeroDivisionError:
            continue
        return _compared(left, right, results, field)
    raise RaspValueError(
        "nearly every input has a zero denominator",
        expected="a function that is defined on almost all inputs",
        found=f"{DRAWS} draws that divide by zero",
    )


def _drawn(sequence: Any, field: PrimeField) -> Sequence[Any]:
    if isinstance(sequence, int):
        return [field.draw() for _ in range(sequence)]
    drawn: Sequence[Any] = sequence(field)
    return drawn


def _compared(
    left: Side, right: Side, results: tuple[list[Any], list[Any]], field: PrimeField
) -> _Trial:
    if len(results[0]) != len(results[1]):
        raise RaspError(
            "the two sides return different numbers of results",
            expected=str(len(results[0])),
            found=str(len(results[1])),
        )
    (one, one_inner), (two, two_inner) = left.degree(), right.degree()
    degree = max(one.top + two.bottom, two.top + one.bottom)
    inner = one_inner.joined(two_inner)
    atoms = sum(1 for name, *_ in field.atoms if name != "constant")
    apart = inner.top + inner.bottom
    chance = (degree + math.comb(atoms, 2) * apart) / field.prime
    return _Trial(_difference(*results), len(results[0]), atoms, degree, apart, chance)


def _difference(left: list[Any], right: list[Any]) -> str:
    for number, (a, b) in enumerate(zip(left, right, strict=True)):
        if _plain(a - b):
            return f"result {number}: {a!r} and {b!r}"
    return ""


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Residue) else value


def _informative(chance: float) -> float:
    if chance >= 0.5:
        raise RaspValueError(
            "the field is too small for this program",
            expected="an error probability of one trial below 1/2",
            found=f"{chance:.3g}",
            hint="take a larger prime",
        )
    return chance


# -------------------------------------------------------------------------------- primes

WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)  # enough below 3.3e24


def is_prime(number: int) -> bool:
    """Whether a number below 3.3e24 is prime (Miller and Rabin, deterministic there).

    >>> is_prime(2**61 - 1), is_prime(2**61 + 1)
    (True, False)
    """
    if number < 2 or any(number % p == 0 for p in WITNESSES):
        return number in WITNESSES
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(number, odd, twos, witness) for witness in WITNESSES)


def _passes(number: int, odd: int, twos: int, witness: int) -> bool:
    power = pow(witness, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False


def random_prime(bits: int, rng: random.Random) -> int:
    """A random prime of so many bits."""
    while True:
        number = rng.getrandbits(bits) | 1 << (bits - 1) | 1
        if is_prime(number):
            return number
