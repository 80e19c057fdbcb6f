"""That U's explicit weights compute T(X), for all T and X of a shape, over a finite field.

The forward pass runs on field elements through the same matrices that run in floating point. The
one irrational number among the weights, made of sqrt(d_k), is a variable c there: the identity
says that the network returns attention with the scale that c gives, whatever c is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from raspire.arithmetic import Arithmetic
from raspire.arithmetic.field import MERSENNE_61, PrimeField, Residue
from raspire.errors import UnsupportedError
from raspire.paper.attention import Definition, Scale
from raspire.paper.proofs import drawn
from raspire.simulator.networks import (
    Network,
    long_network,
    native_network,
    pair_network,
    wide_network,
)
from raspire.simulator.target import AttentionTarget, Shape
from raspire.simulator.universal import UniversalSimulator
from raspire.transformer.layer import Head, Units
from raspire.verify.certificate import Certificate
from raspire.verify.degrees import Degree
from raspire.verify.identity import FunctionSide, identity
from raspire.verify.network import Forward


class SimulatorSide:
    """A network on the same ⟨T, X⟩ as the program `wide`, rearranged for it."""

    def __init__(self, network: Network, n: int, seen: Sequence[int] | None = None) -> None:
        self.network, self.n, self.seen = network, n, seen
        shape = network.shape
        self.program = UniversalSimulator(
            n, shape.d, shape.heads, shape.d_k, shape.d_v, "wide", "plain", shape.mask, shape.output
        )
        target, x = labelled(shape, n)
        padding = None if shape.mask != "padding" else np.ones(n) if seen is None else seen
        self.own = np.asarray(network.encode(target, x, padding))
        self.ours = np.asarray(self.program.encode(target, x, padding))
        self._last: Forward | None = None

    def run(self, tokens: Sequence[Any], field: PrimeField) -> list[Any]:
        """The network's results, row after row."""
        value = {label: tokens[p] for p, label in enumerate(self.ours.tolist()) if label > 1}
        value |= {0.0: 0, 1.0: 1}
        table = self.own if self.own.ndim == 2 else self.own[:, None]
        inputs = [[value[label] for label in row] for row in table.tolist()]
        self._last = Forward(self.network.model, inputs, field)
        rows = self._last.result([int(p) for p in self.network.sorted_positions(self.n)])
        cells = np.empty((len(rows), len(rows[0])), dtype=object)
        for place, row in enumerate(rows):
            cells[place, :] = row
        return list(self.network.decode(cells, self.n).ravel())

    def degree(self) -> tuple[Degree, Degree]:
        """By the sparse matrices, after a run."""
        assert self._last is not None
        return self._last.degree(), self._last.arguments


def labelled(shape: Shape, n: int) -> tuple[AttentionTarget, Any]:
    """A target and an input whose entries are different integers from 2 on: where does each go?"""
    counter = iter(range(2, 1 << 30))

    def fresh(*sizes: int) -> Any:
        return np.array([next(counter) for _ in range(int(np.prod(sizes)))], float).reshape(sizes)

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
        ),
        fresh(n, d),
    )


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
        raise UnsupportedError(
            "networks with a padding mask are proved as programs",
            expected="a mask none or causal",
            found="padding",
        )
    left = SimulatorSide(network, n)
    construction = left.program.construction
    definition = Definition(construction, _scale(network))
    definition.by_head = False
    right = FunctionSide(lambda tokens, field: definition(tokens, field), *definition.degree())
    return identity(
        f"the weights of {network.name} ({network.shape}) return T(X) for every T and X, n={n}",
        left,
        right,
        drawn(construction),
        error=error,
        prime=prime,
        seed=seed,
    )


def _scale(network: Network) -> Scale:
    """The target's scale in terms of the irrational number that stands among the weights."""
    d_k = network.shape.d_k
    root = float(np.sqrt(d_k))
    found = irrational_weights(network)
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


def irrational_weights(network: Network) -> set[float]:
    """The weights (and scales of softmax heads) that are no simple fractions."""
    field = PrimeField()
    numbers: set[float] = set()
    for layer in network.model.layers:
        parts: list[Head | Units] = [*layer.heads, *layer.units]
        for matrix in (matrix for part in parts for matrix in part.matrices.values()):
            numbers.update(matrix.data.tolist())
        numbers.update(head.scale for head in layer.heads if head.kind == "softmax")
    return {number for number in numbers if isinstance(field.constant(number), Residue)}
