"""That U computes T(X): for all T and X of a shape over a finite field, and enclosed at given ones.

The target's definition stands in :mod:`raspire.paper.attention`, in an arithmetic that is a
parameter: the same lines run on field elements and on balls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from raspire.arithmetic.ball import Balls
from raspire.arithmetic.field import MERSENNE_61, PrimeField
from raspire.paper.attention import Definition, Matrix, columns, dot, product
from raspire.program.primitives import primitive
from raspire.simulator.construction import Construction
from raspire.simulator.target import AttentionTarget, Shape
from raspire.simulator.universal import UniversalSimulator
from raspire.verify.certificate import Certificate
from raspire.verify.enclosure import enclosed, enclosure
from raspire.verify.identity import FunctionSide, ProgramSide, identity

__all__ = [
    "Definition",
    "Matrix",
    "Padding",
    "columns",
    "described",
    "dot",
    "drawn",
    "positions",
    "product",
    "prove_enclosure",
    "prove_hierarchy",
    "prove_identity",
]


def prove_identity(
    simulator: UniversalSimulator,
    *,
    error: float = 1e-9,
    prime: int | None = MERSENNE_61,
    seed: int = 0,
    seen: Sequence[int] | None = None,
) -> Certificate:
    """U(⟨T, X⟩) = T(X) for all T and X of the shape, over GF(p).

    ``seen`` gives the key padding (1 for a key that is seen) of a simulator with that mask.

    >>> u = UniversalSimulator(n=2, d=1, heads=1, d_k=1, d_v=1, output=False)
    >>> prove_identity(u).holds
    True
    """
    construction = simulator.construction
    definition = Definition(construction)
    right = FunctionSide(lambda tokens, field: definition(tokens, field), *definition.degree())
    left = ProgramSide(construction.program, positions(construction))
    claim = f"{described(simulator)} returns T(X) for every T and X"
    return identity(
        claim, left, right, drawn(construction, seen), error=error, prime=prime, seed=seed
    )


def described(simulator: UniversalSimulator) -> str:
    """A simulator's construction, softmax and shape in one line."""
    construction = simulator.construction
    return (
        f"U ({construction.name}, softmax {construction.softmax}, n={simulator.n}, "
        f"{simulator.shape})"
    )


def drawn(
    construction: Construction, seen: Sequence[int] | None = None
) -> Callable[[PrimeField], list[Any]]:
    """⟨T, X⟩ of random elements, with X's column of ones and the padding's flags."""

    def sequence(field: PrimeField) -> list[Any]:
        tokens: list[Any] = [0] * construction.length
        for name, block in construction.inputs.items():
            for place, position in enumerate(block.positions()):
                if name == "seen":
                    tokens[position] = 1 if seen is None else int(seen[place])
                elif name == "X" and place % block.shape[1] == block.shape[1] - 1:
                    tokens[position] = 1
                else:
                    tokens[position] = field.draw()
        return tokens

    return sequence


def positions(construction: Construction) -> list[int]:
    """Where the result is read."""
    return [int(p) for p in construction.parts["result"].place.positions()]


def prove_enclosure(
    simulator: UniversalSimulator,
    target: AttentionTarget,
    x: Any,
    *,
    within: float = 1e-12,
    precision: int = 128,
    padding: Any = None,
) -> Certificate:
    """At this T and X: rigorous intervals for U and for T overlap, and U's floats lie near both."""
    construction = simulator.construction
    encoded = simulator.encode(target, x, padding)
    floats = [float(value) for value in simulator.run(encoded)]
    tokens = [_whole(value) for value in encoded.tolist()]
    definition = Definition(construction)

    def right(tokens: Sequence[Any], balls: Balls) -> list[Any]:
        return [balls.ball(v) for v in definition([balls.lift(t) for t in tokens], balls)]

    return enclosure(
        f"{described(simulator)} encloses T(X) at one T and X",
        lambda tokens, balls: enclosed(
            construction.program, tokens, balls, positions(construction)
        ),
        right,
        tokens,
        floats,
        within=within,
        precision=precision,
    )


def _whole(value: float) -> int | float:
    """Flags, ones and padding zeros enter as integers: a mask may compare them."""
    return int(value) if value in (0.0, 1.0) else value


# ------------------------------------------------------------------------- Corollary 6.2


def prove_hierarchy(
    large: UniversalSimulator, small: Shape, n: int, *, error: float = 1e-9, seed: int = 0
) -> Certificate:
    """U for a larger shape (with a padding mask) returns T(X) for every smaller target.

    Dimensions and heads are padded with zeros, rows beyond n are hidden by their flags, and W_Q
    carries the ratio of the scales, sqrt(larger d_k / smaller d_k).
    """
    padding = Padding(large.construction, small, n)
    definition = Definition(padding.inner)
    left = ProgramSide(large.program, padding.positions())

    def right(tokens: Sequence[Any], field: PrimeField) -> list[Any]:
        return definition(padding.narrowed(tokens, field), field)

    return identity(
        f"{described(large)} returns T(X) for every T of {small}, n={n}",
        left,
        FunctionSide(right, *definition.degree()),
        padding.drawn,
        error=error,
        seed=seed,
    )


class Padding:
    """How ⟨T, X⟩ of a smaller target is written into the input of a larger U."""

    def __init__(self, outer: Construction, small: Shape, n: int) -> None:
        self.outer, self.small, self.n = outer, small, n
        self.inner = UniversalSimulator(
            n, small.d, small.heads, small.d_k, small.d_v, output=small.output
        ).construction
        self.places = {
            name: self._places(name) for name in self.inner.inputs
        }  # positions in the outer input, in the inner order

    def _places(self, name: str) -> list[int]:
        rows, columns = self.inner.inputs[name].shape
        outer = self.outer.inputs[name]
        wide = outer.shape[1]
        row = {"X": range(self.n), "W": self._features(), "WO": self._merged()}[name]
        column = {"X": self._features(), "W": self._weights(), "WO": range(self.small.d)}[name]
        assert (len(row), len(column)) == (rows, columns)
        return [outer.base + r * wide + c for r in row for c in column]

    def _features(self) -> list[int]:
        return [*range(self.small.d), self.outer.shape.d]  # the column of ones is the last

    def _weights(self) -> list[int]:
        small, shape = self.small, self.outer.shape
        starts = (0, shape.heads * shape.d_k, 2 * shape.heads * shape.d_k)
        widths = ((small.d_k, shape.d_k), (small.d_k, shape.d_k), (small.d_v, shape.d_v))
        return [
            start + t * wide + a
            for start, (narrow, wide) in zip(starts, widths, strict=True)
            for t in range(small.heads)
            for a in range(narrow)
        ]

    def _merged(self) -> list[int]:
        small, shape = self.small, self.outer.shape
        rows = [t * shape.d_v + c for t in range(small.heads) for c in range(small.d_v)]
        return [*rows, shape.merged]  # the row of biases is the last

    def drawn(self, field: PrimeField) -> list[Any]:
        """A random smaller ⟨T, X⟩ in the larger input."""
        inner = drawn(self.inner)(field)
        tokens: list[Any] = [0] * self.outer.length
        for name, block in self.inner.inputs.items():
            for place, position in zip(block.positions(), self.places[name], strict=True):
                tokens[position] = inner[place]
        x, wide = self.outer.inputs["X"], self.outer.shape.inputs
        for i in range(self.outer.n):
            tokens[x.base + i * wide + wide - 1] = 1
        seen = self.outer.inputs["seen"]
        for i, position in enumerate(seen.positions()):
            tokens[position] = 1 if i < self.n else 0
        return tokens

    def narrowed(self, tokens: Sequence[Any], field: PrimeField) -> list[Any]:
        """The smaller ⟨T, X⟩ back, with the ratio of the scales taken out of W_Q."""
        inner: list[Any] = [0] * self.inner.length
        sqrt = field.form(primitive("sqrt"))
        ratio = sqrt(self.small.d_k) / sqrt(self.outer.shape.d_k)
        queries = self.small.heads * self.small.d_k
        for name, block in self.inner.inputs.items():
            for place, position in zip(block.positions(), self.places[name], strict=True):
                query = name == "W" and (place - block.base) % block.shape[1] < queries
                inner[place] = tokens[position] * ratio if query else tokens[position]
        return inner

    def positions(self) -> list[int]:
        """Where the smaller result is read in the larger one."""
        result = self.outer.parts["result"].place
        all_positions = [int(p) for p in result.positions()]
        columns = result.shape[-1]
        return [all_positions[i * columns + g] for i in range(self.n) for g in range(self.small.d)]
