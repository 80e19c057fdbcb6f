"""A compiled network against the evaluator: on every short input, and on random long ones.

The evaluator runs in exact arithmetic where the program has an exact form, else in float64.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from raspire.errors import RaspError, RaspValueError
from raspire.evaluate import batch, evaluate
from raspire.program.nodes import Apply, SOp
from raspire.program.walk import topological

Network = Callable[[list[list[Any]]], list[list[Any]]]
_TOGETHER = 512
_PAIRS = 16_000_000  # of positions in the inputs of one batch


@dataclass(frozen=True)
class Verification:
    """How many inputs and positions were compared, and how many were wrong.

    ``every_up_to`` is the length up to which every input was tried; ``undefined`` counts inputs
    on which the program itself has no value; ``wrong`` holds the first disagreements as (input,
    expected, found).
    """

    inputs: int
    positions: int
    wrong_positions: int
    undefined: int
    every_up_to: int
    wrong: tuple[tuple[list[Any], list[Any], list[Any]], ...]

    @property
    def holds(self) -> bool:
        """Whether the network agreed on every input that was tried."""
        return self.wrong_positions == 0

    def __str__(self) -> str:
        text = (
            f"{self.inputs} inputs ({self.positions} positions), all of them up to length "
            f"{self.every_up_to}: {self.wrong_positions} wrong"
        )
        return text + (f"; the program has no value on {self.undefined}" if self.undefined else "")


def reach_of(symbols: int, most: int, longest: int) -> int:
    """The greatest length such that all inputs up to it number at most ``most``.

    >>> reach_of(2, 100, 10)
    5
    """
    total, length = 0, 0
    while length < longest and total + symbols ** (length + 1) <= most:
        length += 1
        total += symbols**length
    return length


def every_input(alphabet: Sequence[Any], longest: int) -> Iterator[list[Any]]:
    """All inputs of lengths 1 to ``longest``."""
    for length in range(1, longest + 1):
        for symbols in itertools.product(alphabet, repeat=length):
            yield list(symbols)


def long_inputs(alphabet: Sequence[Any], length: int, count: int, seed: int) -> Iterator[list[Any]]:
    """Random inputs of the full length, inputs of one symbol, and one of distinct symbols."""
    draw = random.Random(seed)
    for symbol in alphabet[:32]:
        yield [symbol] * length
    yield list(itertools.islice(itertools.cycle(alphabet), length))
    for _ in range(count):
        yield draw.choices(alphabet, k=length)


def verify(
    program: SOp,
    network: Network,
    alphabet: Sequence[Any],
    max_length: int,
    *,
    most: int = 50_000,
    samples: int = 2_000,
    seed: int = 0,
    inputs: Iterable[Sequence[Any]] = (),
) -> Verification:
    """Compare a network with a program on all short inputs, random long ones, and given ones.

    Raises RaspValueError where the alphabet is no list of symbols.
    """
    if not alphabet:
        raise RaspValueError("a program on reals has no list of inputs", hint="give inputs")
    symbols = list(alphabet)
    reach = reach_of(len(symbols), most, max_length)
    tally = _Tally()
    meaning = Meaning(program)
    # Short and long inputs apart: a batch is padded to its longest.
    for trial, longest in (
        (every_input(symbols, reach), reach),
        (long_inputs(symbols, max_length, samples, seed), max_length),
        ((list(given) for given in inputs), max_length),
    ):
        together = max(1, min(_TOGETHER, _PAIRS // max(1, longest) ** 2))
        while chunk := list(itertools.islice(trial, together)):
            tally.add(chunk, meaning(chunk), network(chunk))
    return tally.result(reach)


class Meaning:
    """The evaluator on many inputs; None stands for an input without a value."""

    def __init__(self, program: SOp) -> None:
        self.program = program
        exact = all(
            node.primitive.exact is not None
            for node in topological(program)
            if isinstance(node, Apply)
        )
        self.arithmetic = "exact" if exact else "float64"

    def __call__(self, inputs: list[list[Any]]) -> list[list[Any] | None]:
        try:
            return list(batch(self.program, inputs, arithmetic=self.arithmetic))
        except RaspError:
            return [self._one(tokens) for tokens in inputs]

    def _one(self, tokens: list[Any]) -> list[Any] | None:
        try:
            return list(evaluate(self.program, tokens, arithmetic=self.arithmetic))
        except RaspError:
            return None


class _Tally:
    def __init__(self) -> None:
        self.inputs = self.positions = self.wrong_positions = self.undefined = 0
        self.wrong: list[tuple[list[Any], list[Any], list[Any]]] = []

    def add(
        self, inputs: list[list[Any]], wanted: list[list[Any] | None], found: list[list[Any]]
    ) -> None:
        for tokens, expected, values in zip(inputs, wanted, found, strict=True):
            if expected is None:
                self.undefined += 1
                continue
            bad = sum(not agree(a, b) for a, b in zip(expected, values, strict=True))
            self.inputs += 1
            self.positions += len(tokens)
            self.wrong_positions += bad
            if bad and len(self.wrong) < 5:
                self.wrong.append((tokens, expected, values))

    def result(self, reach: int) -> Verification:
        return Verification(
            self.inputs, self.positions, self.wrong_positions, self.undefined, reach,
            tuple(self.wrong),
        )  # fmt: skip


def agree(wanted: Any, found: Any, tolerance: float = 1e-9) -> bool:
    """Equality as Python has it, numbers to a relative tolerance; None is like nothing else.

    >>> agree(1, True), agree(Fraction(1, 3), 0.3333333333), agree(None, 0)
    (True, True, False)
    """
    numbers = int, float, Fraction
    if isinstance(wanted, numbers) and isinstance(found, numbers):
        if isinstance(wanted, int) and isinstance(found, int):
            return wanted == found
        return math.isclose(wanted, found, rel_tol=tolerance, abs_tol=tolerance)
    return type(wanted) is type(found) and bool(wanted == found)
