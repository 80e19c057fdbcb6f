"""Random well-typed programs over symbols: for tests, and as many known circuits as one wants."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from raspire.program.embedding import (
    aggregate,
    full,
    hardmax,
    indicator,
    indices,
    length,
    maximum,
    minimum,
    select,
    selector_width,
    tokens,
    where,
)
from raspire.program.nodes import Selector, SOp


def sample(seed: int, size: int = 8, alphabet: str = "abc") -> SOp:
    """A random program of about ``size`` constructs over an alphabet of letters.

    The same seed gives the same program. Every program has a value on every input, and every
    result is whole, a truth value, a symbol or a mean.

    >>> sample(3)("abca") == sample(3)("abca")
    True
    """
    return _Sampler(random.Random(f"{seed} {size} {alphabet}"), alphabet).program(size)


@dataclass
class _Sampler:
    """Pools of sub-programs by the kind of their values."""

    random: random.Random
    alphabet: str
    symbols: list[SOp] = field(default_factory=lambda: [tokens])
    whole: list[SOp] = field(default_factory=lambda: [indices, length])
    truths: list[SOp] = field(default_factory=list)
    means: list[SOp] = field(default_factory=list)
    selectors: list[Selector] = field(default_factory=list)

    def program(self, size: int) -> SOp:
        self.truths.append(tokens == self._letter())
        self.selectors.append(select(tokens, tokens, "=="))
        made: SOp = tokens
        makers: list[Callable[[], SOp]] = [
            self._width, self._width, self._copy, self._mean, self._sum, self._compare,
            self._threshold, self._choose, self._connect, self._remainder, self._greatest,
        ]  # fmt: skip
        for _ in range(size):
            if self.random.random() < 0.5:
                self.selectors.append(self._selector())
            made = self.random.choice(makers)()
        return made

    def _letter(self) -> str:
        return self.random.choice(self.alphabet)

    def _pick(self, pool: list[SOp]) -> SOp:
        """A recent sub-program more often than an old one, so that programs grow deep."""
        place = max(self.random.randrange(len(pool)), self.random.randrange(len(pool)))
        return pool[place]

    def _selector(self) -> Selector:
        roll = self.random.randrange(7)
        comparison = self.random.choice(["==", "<=", "<", ">", ">=", "!="])
        if roll == 0:
            return select(tokens, self._pick(self.symbols), "==")
        if roll == 1:
            return select(indices, self._pick(self.whole), comparison)
        if roll == 2:
            return select(indices, indices, comparison)
        if roll == 3:
            return select(self._pick(self.truths), True, "==")
        if roll == 6 and self.means:
            return select(self._pick(self.means), self._pick(self.whole), comparison)
        if roll == 4:
            return select(self._pick(self.whole), self._pick(self.whole), comparison)
        return self._combined()

    def _combined(self) -> Selector:
        a, b = (self.random.choice(self.selectors) for _ in "ab")
        return self.random.choice([a & b, a | b, ~a, a & select(indices, indices, "<=")])

    def _width(self) -> SOp:
        self.whole.append(selector_width(self.random.choice(self.selectors)))
        return self.whole[-1]

    def _copy(self) -> SOp:
        place = select(indices, self._pick(self.whole), "==")
        if self.random.random() < 0.5:
            self.symbols.append(aggregate(place, self._pick(self.symbols), self._letter()))
            return self.symbols[-1]
        self.whole.append(aggregate(place, self._pick(self.whole)))
        return self.whole[-1]

    def _mean(self) -> SOp:
        values = [self._pick(self.whole), indicator(self._pick(self.truths)), *self.means[-1:]]
        value = self.random.choice(values)
        self.means.append(aggregate(self.random.choice(self.selectors), value))
        return self.means[-1]

    def _sum(self) -> SOp:
        a, b = self._pick(self.whole), self._pick(self.whole)
        self.whole.append(self.random.choice([a + b, a - b, a + 1, 2 * a, maximum(a, b),
                                              minimum(a, b)]))  # fmt: skip
        return self.whole[-1]

    def _compare(self) -> SOp:
        a, b = self._pick(self.whole), self._pick(self.whole)
        choices = [a == b, a < b, a >= b, a == 1, self._pick(self.symbols) == self._letter()]
        self.truths.append(self.random.choice(choices))
        return self.truths[-1]

    def _threshold(self) -> SOp:
        if not self.means:
            return self._mean()
        mean = self._pick(self.means)
        self.truths.append(self.random.choice([mean > 0.5, mean == 0, mean < 1, mean >= 2]))
        return self.truths[-1]

    def _choose(self) -> SOp:
        condition = self._pick(self.truths)
        if self.random.random() < 0.5:
            pair = self._pick(self.symbols), self._pick(self.symbols)
            self.symbols.append(where(condition, *pair))
            return self.symbols[-1]
        self.whole.append(where(condition, self._pick(self.whole), self._pick(self.whole)))
        return self.whole[-1]

    def _connect(self) -> SOp:
        a, b = self._pick(self.truths), self._pick(self.truths)
        self.truths.append(self.random.choice([a & b, a | b, ~a]))
        return self.truths[-1]

    def _remainder(self) -> SOp:
        self.whole.append(self._pick(self.whole) % self.random.choice([2, 3]))
        return self.whole[-1]

    def _greatest(self) -> SOp:
        among = self.random.choice([*self.selectors, full])
        chosen = hardmax(self._pick(self.whole), among=among)
        self.means.append(aggregate(chosen, self._pick(self.whole)))
        return self.means[-1]
