"""That U computes a whole encoder block, for all weights and inputs of a shape, over GF(p).

The block is written here from its definition: attention, residuals, norms, the feed-forward part.
Its activation and the reciprocal root of a norm are named functions, so random ones in the field;
the number of ``eps`` and the constants of an activation are variables too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt
from typing import Any

from raspire.arithmetic import Arithmetic
from raspire.arithmetic.field import MERSENNE_61, PrimeField
from raspire.paper.attention import Definition, Matrix, product
from raspire.paper.proofs import drawn, positions
from raspire.program.primitives import primitive
from raspire.simulator.block import BlockShape
from raspire.simulator.block_simulator import BlockSimulator
from raspire.verify.certificate import Certificate
from raspire.verify.degrees import CONSTANT, VARIABLE, Degree
from raspire.verify.identity import FunctionSide, ProgramSide, identity


class BlockDefinition(Definition):
    """An encoder block by the textbook, in any arithmetic.

    ``named`` takes the tanh form of gelu as one named function, as a network's units do.
    """

    def __init__(self, simulator: BlockSimulator, *, named: bool = False) -> None:
        super().__init__(simulator.construction)
        self.named = named
        self.block: BlockShape = simulator.shape
        self.rows: Matrix | None = None  # what attention reads instead of X

    def matrix(self, name: str, tokens: Sequence[Any]) -> Matrix:
        if name == "X" and self.rows is not None:
            return [[*row, 1] for row in self.rows]
        return super().matrix(name, tokens)

    def __call__(self, tokens: Sequence[Any], arithmetic: Arithmetic) -> list[Any]:
        """The block's result, row after row."""
        self.rows = None
        x = [row[:-1] for row in self.matrix("X", tokens)]
        if self.block.order == "post":
            middle = self.norm(
                "norm1", added(x, self.attended(tokens, arithmetic)), tokens, arithmetic
            )
            final = added(middle, self.fed(middle, tokens, arithmetic))
            result = self.norm("norm2", final, tokens, arithmetic)
        else:
            self.rows = self.norm("norm1", x, tokens, arithmetic)
            middle = added(x, self.attended(tokens, arithmetic))
            inner = self.norm("norm2", middle, tokens, arithmetic)
            result = added(middle, self.fed(inner, tokens, arithmetic))
        return [value for row in result for value in row]

    def attended(self, tokens: Sequence[Any], arithmetic: Arithmetic) -> Matrix:
        """The attention layer's result."""
        values = super().__call__(tokens, arithmetic)
        d = self.shape.d
        return [values[d * i : d * (i + 1)] for i in range(self.n)]

    def norm(
        self, name: str, rows: Matrix, tokens: Sequence[Any], arithmetic: Arithmetic
    ) -> Matrix:
        """A layer norm or an RMS norm of every row."""
        rsqrt = arithmetic.form(primitive("rsqrt"))
        weight, bias, eps = self.matrix(name, tokens)
        result = []
        for row in rows:
            if self.block.norm == "layer":
                mean = arithmetic.mean(row)
                row = [value - mean for value in row]
            scale = rsqrt(arithmetic.mean([value * value for value in row]) + eps[0])
            columns = zip(row, weight, bias, strict=True)
            result.append([value * scale * w + b for value, w, b in columns])
        return result

    def fed(self, rows: Matrix, tokens: Sequence[Any], arithmetic: Arithmetic) -> Matrix:
        """The feed-forward part of every row."""
        extended = [[*row, 1] for row in rows]
        hidden = product(extended, self.matrix("up", tokens))
        act = activation(self.block.activation, arithmetic, named=self.named)
        if self.block.gated:
            gate = product(extended, self.matrix("gate", tokens))
            pairs = zip(gate, hidden, strict=True)
            hidden = [[act(g) * h for g, h in zip(a, b, strict=True)] for a, b in pairs]
        else:
            hidden = [[act(value) for value in row] for row in hidden]
        return product([[*row, 1] for row in hidden], self.matrix("down", tokens))

    # -------------------------------------------------------------------------- degrees

    def degree(self) -> tuple[Degree, Degree]:
        """The degree of a result and of the largest argument of a named function."""
        count = Counted(self)
        x = VARIABLE
        if self.block.order == "post":
            middle = count.norm(x + count.attention(x))
            result = count.norm(middle + count.fed(middle))
        else:
            middle = x + count.attention(count.norm(x))
            result = middle + count.fed(count.norm(middle))
        return result, count.argument


class Counted:
    """Degrees along the definition, and the largest argument on the way."""

    def __init__(self, definition: BlockDefinition) -> None:
        self.shape, self.block, self.n = definition.shape, definition.block, definition.n
        self.argument = CONSTANT

    def named(self, argument: Degree) -> Degree:
        """A fresh variable for a named function."""
        self.argument = self.argument.joined(argument)
        return VARIABLE

    def norm(self, rows: Degree) -> Degree:
        """A norm of rows."""
        if self.block.norm == "layer":
            rows = rows + rows.summed(self.shape.d)
        scale = self.named((rows * rows).summed(self.shape.d) + VARIABLE)
        return rows * scale * VARIABLE + VARIABLE

    def attention(self, rows: Degree) -> Degree:
        """The attention layer with its output map."""
        entry = (rows * VARIABLE).summed(self.shape.d) + VARIABLE
        score = (entry * entry).summed(self.shape.d_k).over(VARIABLE)
        weight = self.named(score)
        head = (weight * entry).summed(self.n).over(weight.summed(self.n))
        return (head * VARIABLE).summed(self.shape.merged) + VARIABLE

    def fed(self, rows: Degree) -> Degree:
        """The feed-forward part."""
        hidden = (rows * VARIABLE).summed(self.shape.d) + VARIABLE
        inner = hidden * (hidden * hidden * VARIABLE + VARIABLE)
        act = hidden * (self.named(inner.joined(hidden)) + VARIABLE)  # the largest of them
        if self.block.gated:
            act = act * hidden
        return (act * VARIABLE).summed(self.block.hidden) + VARIABLE


def activation(name: str, arithmetic: Arithmetic, *, named: bool = False) -> Callable[[Any], Any]:
    """An activation in an arithmetic."""
    if named and name == "gelu_tanh":
        return lambda x: arithmetic.function(name, x)  # type: ignore[attr-defined]
    if name != "gelu_tanh":
        return arithmetic.form(primitive(name))
    tanh = arithmetic.form(primitive("tanh"))
    constant = getattr(arithmetic, "constant", arithmetic.lift)
    cubic, linear = constant(0.044715 * sqrt(2 / pi)), constant(sqrt(2 / pi))
    return lambda x: x / 2 * (tanh(x * (x * x * cubic + linear)) + 1)


def added(left: Matrix, right: Matrix) -> Matrix:
    """The sum of two matrices."""
    return [[a + b for a, b in zip(r, s, strict=True)] for r, s in zip(left, right, strict=True)]


def drawn_block(
    simulator: BlockSimulator, seen: Sequence[int] | None = None
) -> Callable[[PrimeField], list[Any]]:
    """⟨block, X⟩ of random elements, with one eps for all columns of a norm."""
    construction = simulator.construction
    inputs = drawn(construction, seen)

    def sequence(field: PrimeField) -> list[Any]:
        tokens = inputs(field)
        for name in ("norm1", "norm2"):
            block, d = construction.inputs[name], simulator.shape.attention.d
            tokens[block.base + 2 * d : block.end] = [field.draw()] * d
        return tokens

    return sequence


def prove_block(
    simulator: BlockSimulator,
    *,
    error: float = 1e-9,
    prime: int | None = MERSENNE_61,
    seed: int = 0,
    seen: Sequence[int] | None = None,
) -> Certificate:
    """U(⟨block, X⟩) is the block's output for all blocks and X of the shape, over GF(p)."""
    construction = simulator.construction
    definition = BlockDefinition(simulator)
    return identity(
        f"U for blocks (n={simulator.n}, {simulator.shape}) returns every block's output",
        ProgramSide(construction.program, positions(construction)),
        FunctionSide(lambda tokens, field: definition(tokens, field), *definition.degree()),
        drawn_block(simulator, seen),
        error=error,
        prime=prime,
        seed=seed,
    )
