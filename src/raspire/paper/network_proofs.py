"""That U's explicit weights compute T(X), for all T and X of a shape, over a finite field.

The forward pass runs on field elements through the same matrices that run in floating point. The
one irrational number among the weights, made of sqrt(d_k), is a variable c there: the identity
says that the network returns attention with the scale that c gives, whatever c is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from raspire.arithmetic import Arithmetic
from raspire.arithmetic.field import MERSENNE_61, PrimeField, Residue
from raspire.errors import UnsupportedError
from raspire.paper.attention import Definition, Scale
from raspire.paper.block_proofs import BlockDefinition, drawn_block
from raspire.paper.proofs import drawn
from raspire.simulator.block import BlockShape, EncoderBlock, FeedForward, Norm
from raspire.simulator.block_simulator import BlockSimulator
from raspire.simulator.networks import (
    Network,
    long_network,
    native_network,
    pair_network,
    wide_network,
)
from raspire.simulator.networks.native_block import BlockNetwork
from raspire.simulator.positions import Rotary
from raspire.simulator.target import AttentionTarget, Shape
from raspire.simulator.universal import UniversalSimulator
from raspire.transformer.layer import Head, Units
from raspire.transformer.model import Transformer
from raspire.verify.certificate import Certificate
from raspire.verify.degrees import Degree
from raspire.verify.identity import FunctionSide, identity
from raspire.verify.network import Forward

Decode = Callable[[Any], Any]


class ArrangedSide:
    """A network on the same input as a program of U, rearranged for it.

    ``own`` and ``ours`` are one input with labels for numbers, as the network and as the program
    receive it: where a label stands is where its number goes.
    """

    def __init__(
        self, model: Transformer, own: Any, ours: Any, positions: Any, decode: Decode | None = None
    ) -> None:
        self.model, self.decode = model, decode
        table = np.asarray(own)
        self.own = table if table.ndim == 2 else table[:, None]
        self.ours = np.asarray(ours)
        self.positions = [int(p) for p in positions]
        self._last: Forward | None = None

    def run(self, tokens: Sequence[Any], field: PrimeField) -> list[Any]:
        """The network's results, row after row."""
        value = {label: tokens[p] for p, label in enumerate(self.ours.tolist()) if label > 1}
        value |= {0.0: 0, 1.0: 1}
        inputs = [[value[label] for label in row] for row in self.own.tolist()]
        self._last = Forward(self.model, inputs, field)
        rows = self._last.result(self.positions)
        cells = np.empty((len(rows), len(rows[0])), dtype=object)
        for place, row in enumerate(rows):
            cells[place, :] = row
        return list((cells if self.decode is None else self.decode(cells)).ravel())

    def degree(self) -> tuple[Degree, Degree]:
        """By the sparse matrices, after a run."""
        assert self._last is not None
        return self._last.degree(), self._last.arguments


def fresh_labels() -> Callable[..., Any]:
    """A maker of arrays of different integers from 2 on."""
    counter = iter(range(2, 1 << 30))

    def fresh(*sizes: int) -> Any:
        return np.array([next(counter) for _ in range(int(np.prod(sizes)))], float).reshape(sizes)

    return fresh


def labelled(shape: Shape, n: int, fresh: Callable[..., Any]) -> tuple[AttentionTarget, Any]:
    """A target and an input whose entries are labels."""
    h, d = shape.heads, shape.d
    return (
        AttentionTarget.from_arrays(
            fresh(h, d, shape.d_k),
            fresh(h, d, shape.d_k),
            fresh(h, d, shape.d_v),
            fresh(shape.merged, d) if shape.output else None,
            b_q=fresh(h, shape.d_k),
            b_k=fresh(h, shape.d_k),
            b_v=fresh(h, shape.d_v),
            b_o=fresh(d) if shape.output else None,
            mask=shape.mask,
            rotary=LabelledTurns(fresh(n, shape.d_k, 2)) if shape.rotary else None,
        ),
        fresh(n, d),
    )


class LabelledTurns(Rotary):
    """Rotary positions whose cosines and sines are labels, for coordinates in U's own order."""

    def __init__(self, numbers: Any) -> None:
        super().__init__(np.zeros(numbers.shape[1] // 2))
        object.__setattr__(self, "numbers", numbers)

    def table(self, n: int, d_k: int) -> Any:
        return self.__dict__["numbers"]


def labelled_block(shape: BlockShape, n: int) -> tuple[EncoderBlock, Any]:
    """An encoder block and an input whose entries are labels."""
    fresh = fresh_labels()
    target, x = labelled(shape.attention, n, fresh)
    d, hidden = shape.attention.d, shape.hidden
    part = FeedForward(
        fresh(d, hidden),
        fresh(hidden),
        fresh(hidden, d),
        fresh(d),
        shape.activation,
        fresh(d, hidden) if shape.gated else None,
        fresh(hidden) if shape.gated else None,
    )
    one, two = (Norm(fresh(d), fresh(d), float(fresh(1)[0]), shape.norm) for _ in range(2))
    return EncoderBlock(target, part, one, two, shape.order), x


def named_network(
    name: str, n: int, shape: Shape, softmax: Literal["plain", "stable"] = "plain"
) -> Network:
    """The network of a construction: native, pair, wide or long.

    Raises UnsupportedError where that construction has no such form as weights.
    """
    if name == "native":
        return native_network(shape)
    if name == "long":
        return long_network(n, shape, softmax)
    if softmax == "stable":
        raise UnsupportedError(
            f"the weights of {name} have no stable form",
            expected="softmax plain, or the network native, which is always stable",
            found="stable",
        )
    return wide_network(n, shape) if name == "wide" else pair_network(n, shape)


def prove_network(
    network: Network,
    n: int,
    *,
    error: float = 1e-9,
    prime: int | None = MERSENNE_61,
    seed: int = 0,
) -> Certificate:
    """The network returns T(X) for all T and X of its shape with n rows, over GF(p).

    Raises UnsupportedError for a padding mask, RaspTypeError for heads that compare real values.

    >>> from raspire.simulator.networks import native_network
    >>> prove_network(native_network(Shape(1, 1, 1, 1, False)), 2).holds
    True
    """
    if network.shape.mask == "padding":
        raise _no_padding()
    shape = network.shape
    target, x = labelled(shape, n, fresh_labels())
    program = UniversalSimulator.for_target(target, n, "long" if shape.rotary else "wide", "plain")
    left = ArrangedSide(
        network.model,
        network.encode(target, x, None),
        program.encode(target, x),
        network.sorted_positions(n),
        lambda cells: network.decode(cells, n),
    )
    definition = Definition(program.construction, _scale(network.model, shape.d_k))
    definition.by_head = False
    right = FunctionSide(lambda tokens, field: definition(tokens, field), *definition.degree())
    return identity(
        f"the weights of {network.name} ({shape}) return T(X) for every T and X, n={n}",
        left,
        right,
        drawn(program.construction),
        error=error,
        prime=prime,
        seed=seed,
    )


def prove_block_network(
    network: BlockNetwork,
    n: int,
    *,
    error: float = 1e-9,
    prime: int | None = MERSENNE_61,
    seed: int = 0,
) -> Certificate:
    """The network returns the output of every encoder block of its shape, over GF(p)."""
    shape = network.shape
    if shape.attention.mask == "padding":
        raise _no_padding()
    program = BlockSimulator(n, shape, "plain")
    block, x = labelled_block(shape, n)
    encoded = network.encode(block, x)
    places = range(network.tokens.count, len(encoded))
    left = ArrangedSide(network.model, encoded, program.encode(block, x), places)
    definition = BlockDefinition(program, named=True)
    definition.scale = _scale(network.model, shape.attention.d_k)
    right = FunctionSide(lambda tokens, field: definition(tokens, field), *definition.degree())
    return identity(
        f"the weights of the network for blocks ({shape}) return every block's output, n={n}",
        left,
        right,
        drawn_block(program),
        error=error,
        prime=prime,
        seed=seed,
    )


def _no_padding() -> UnsupportedError:
    return UnsupportedError(
        "networks with a padding mask are proved as programs",
        expected="a mask none or causal",
        found="padding",
    )


def _scale(model: Transformer, d_k: int) -> Scale:
    """The target's scale in terms of the irrational number that stands among the weights."""
    root = float(np.sqrt(d_k))
    found = irrational_weights(model)
    strange = found - {root, 1 / root}
    if strange or len(found) > 1:
        raise UnsupportedError(
            "the weights hold irrational numbers that this proof cannot name",
            expected=f"one of {root} and {1 / root}",
            found=", ".join(map(str, sorted(found))),
        )
    inverse = found == {1 / root} or not found

    def scaled(score: Any, arithmetic: Arithmetic) -> Any:
        constant = getattr(arithmetic, "constant", arithmetic.lift)
        return score * constant(1 / root) if inverse else score * constant(root) / d_k

    return scaled


def irrational_weights(model: Transformer) -> set[float]:
    """The weights (and scales of softmax heads) that are no simple fractions."""
    field = PrimeField()
    numbers: set[float] = set()
    for layer in model.layers:
        parts: list[Head | Units] = [*layer.heads, *layer.units]
        for matrix in (matrix for part in parts for matrix in part.matrices.values()):
            numbers.update(matrix.data.tolist())
        numbers.update(head.scale for head in layer.heads if head.kind == "softmax")
    return {number for number in numbers if isinstance(field.constant(number), Residue)}
