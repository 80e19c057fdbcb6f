"""Random programs and inputs for the comparison of the engine with the reference."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from raspire.program.embedding import (
    elementwise,
    hardmax,
    indices,
    length,
    lookup,
    select,
    tokens,
    where,
)
from raspire.program.nodes import (
    COMPARISONS,
    Aggregate,
    Apply,
    Combine,
    Constant,
    Node,
    Selector,
    SOp,
    Width,
)
from raspire.program.primitives import primitive
from raspire.program.walk import topological

# A dyadic fraction has an exact sum, so that no comparison hangs on the last bit of a mean.
FLOATS = (0.5, -1.25, 3.0, 0.75, 2.0)
NUMBERS = (0, 1, 2, 3, -1, -7, 10)
LARGE = (2**53 + 1, -(2**62), 2**63, 10**20, -(10**30), 2**31)
EDGES = (127, -127, 126, 128, -128, 255, 32767, -32768, 2**31 - 1, -(2**31), 1, 0, -1)
INPUTS = ("letters", "ints", "edges", "floats", "bools", "mixed", "large", "anything")


def random_input(rng: random.Random, most: int = 9) -> list[Any]:
    """A sequence of 0 to ``most`` tokens of one family."""
    size = rng.choice((0, 1, 2, 3, 5, most, rng.randint(0, most)))
    family = rng.choice(INPUTS)
    pool: dict[str, tuple[Any, ...]] = {
        "letters": ("a", "b", "c", "()", ""),
        "ints": NUMBERS,
        "edges": EDGES,
        "floats": FLOATS,
        "bools": (True, False),
        "mixed": (*NUMBERS, *FLOATS, True, False),
        "large": (*LARGE, 1, 0),
        "anything": ("a", "b", 1, 0, 2.0, True, None, (1, "x")),
    }
    return [rng.choice(pool[family]) for _ in range(size)]


@dataclass
class Generator:
    """Random programs, larger with more ``fuel``; nodes are used again and again."""

    rng: random.Random
    exact: bool = False
    made: list[SOp] = field(default_factory=list)

    def sop(self, fuel: int) -> SOp:
        node = self._sop(fuel)
        self.made.append(node)
        return node

    def _sop(self, fuel: int) -> SOp:
        roll = self.rng.random()
        if self.made and roll < 0.15:
            return self.rng.choice(self.made)
        if fuel <= 0 or roll < 0.25:
            return self.leaf()
        if roll < 0.62:
            return self.mean(fuel - 1)
        if roll < 0.7:
            return Width(self.selector(fuel - 1))
        return self.apply(fuel - 1)

    def leaf(self) -> SOp:
        return self.rng.choice(
            (tokens, tokens, indices, indices, length, Constant(self.rng.choice(NUMBERS)),
             Constant(self.rng.choice(("a", 0.5, True, 2, Fraction(1, 2)))), indices - 1,
             length - 1 - indices, indices // 2, indices % 3)
        )  # fmt: skip

    def mean(self, fuel: int) -> SOp:
        default = self.rng.choice((0, 0, 0, None, -1, "x", 0.5, True))
        rule = self.rng.choice(("exact", "exact", "rasp"))
        return Aggregate(self.selector(fuel), self.sop(fuel - 1), default, rule)  # type: ignore[arg-type]

    def selector(self, fuel: int) -> Selector:
        roll = self.rng.random()
        if fuel <= 0 or roll < 0.55:
            symbol = self.rng.choice(("==", "==", "==", "!=", "<", "<=", ">", ">="))
            return select(self.sop(fuel - 2), self.sop(fuel - 2), symbol)
        if roll < 0.6:
            return select(self.sop(fuel - 2), self.sop(fuel - 2), same_kind)
        if roll < 0.68:
            among = self.selector(fuel - 2) if self.rng.random() < 0.7 else None
            return hardmax(self.sop(fuel - 2), among)
        if roll < 0.76:
            return ~self.selector(fuel - 1)
        op = self.rng.choice(("and", "or"))
        return Combine(op, self.selector(fuel - 1), self.selector(fuel - 1))  # type: ignore[arg-type]

    def apply(self, fuel: int) -> SOp:
        a = self.sop(fuel)
        roll = self.rng.random()
        if roll < 0.15:
            return where(self.sop(fuel), a, self.sop(fuel))
        if roll < 0.2:
            return lookup({0: "zero", 1: 1, 2: 2.5, "a": "A", "b": 0})(a % 3)
        if roll < 0.25:
            return elementwise(str, self.leaf(), name="text")
        names = ["neg", "abs", "round", "floor", "indicator", "to_bool", "relu", "not"]
        if roll < 0.45:
            return Apply(primitive(self.rng.choice(names)), a)
        names = ["add", "sub", "mul", "floordiv", "mod", "eq", "ne", "lt", "le", "and", "or",
                 "maximum", "minimum"]  # fmt: skip
        if self.exact:
            names.append("div")
        return Apply(primitive(self.rng.choice(names)), a, self.sop(fuel))


def same_kind(key: Any, query: Any) -> bool:
    """An opaque predicate."""
    return type(key) is type(query) and key == query


def depth(program: Node) -> int:
    """The attention depth."""
    known: dict[Node, int] = {}
    for node in topological(program):
        below = max((known[child] for child in node.args), default=0)
        known[node] = below + isinstance(node, Aggregate | Width)
    return known[program]


def agree(found: Any, expected: Any, scale: float, eps: float = 2.0**-52) -> bool:
    """Equal in type and value; floats within a small multiple of eps of the values' size."""
    if type(found) is not type(expected):
        return False
    if isinstance(found, list):
        return len(found) == len(expected) and all(
            agree(f, e, scale, eps) for f, e in zip(found, expected, strict=True)
        )
    if isinstance(found, float):
        if math.isnan(expected) or math.isinf(expected):
            return str(found) == str(expected)
        return abs(found - expected) <= 64 * eps * max(scale, abs(expected))
    return bool(found == expected)


def comparisons() -> list[str]:
    """The comparison symbols."""
    return list(COMPARISONS)
