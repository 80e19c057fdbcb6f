"""The explicit weights return T(X) for all T and X over GF(p); changed weights are rejected."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from raspire.compile import REALS, compile
from raspire.errors import RaspTypeError, UnsupportedError
from raspire.library.inverse import determinant, faddeev_leverrier, inverse_3x3, linear_system
from raspire.library.linear_algebra import matmul, row_softmax, transpose
from raspire.paper.network_proofs import irrational_weights, prove_network
from raspire.program.embedding import tokens
from raspire.simulator.networks import (
    Network,
    long_network,
    native_network,
    pair_network,
    wide_network,
)
from raspire.simulator.target import Shape
from raspire.transformer import Builder, beside, read, write
from raspire.verify.identity import ProgramSide, identity
from raspire.verify.network import Forward, NetworkSide

SHAPE = Shape(d=2, heads=2, d_k=2, d_v=1, output=True)


def networks(shape: Shape, n: int) -> dict[str, Network]:
    return {
        "native": native_network(shape),
        "pair": pair_network(n, shape),
        "wide": wide_network(n, shape),
        "long": long_network(n, shape),
    }


@pytest.mark.parametrize("name", ["native", "pair", "wide", "long"])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_weights_are_attention_for_every_t_and_x(name: str, mask: Any) -> None:
    found = prove_network(networks(dataclasses.replace(SHAPE, mask=mask), 2)[name], 2)
    assert found.holds, found.details
    assert found.error_probability < 1e-14
    assert found.details["results compared"] == 4


@pytest.mark.parametrize("name", ["native", "wide"])
def test_other_shapes(name: str) -> None:
    for shape in (Shape(3, 1, 3, 2, False), Shape(2, 1, 4, 2, True)):
        assert prove_network(networks(shape, 3)[name], 3).holds


def test_native_turns_queries_and_keys_by_any_numbers() -> None:
    """Rotary positions: the cosines and sines are input, so the proof holds for all of them."""
    shape = dataclasses.replace(SHAPE, mask="causal", rotary=True)
    found = prove_network(native_network(shape), 3)
    assert found.holds, found.details
    assert not prove_network(changed(native_network(shape), 1, "first", 0, 1.0), 3).holds


def test_native_is_one_network_for_every_n() -> None:
    network = native_network(SHAPE)
    assert all(prove_network(network, n).holds for n in (1, 2, 4))


def changed(network: Network, layer: int, part: str, entry: int, by: float) -> Network:
    """The network with one weight of the first head or units of a layer changed."""
    layers = list(network.model.layers)
    kind = "units" if part in ("first", "second") else "heads"
    parts = list(getattr(layers[layer], kind))
    matrix = getattr(parts[0], part).copy()
    matrix.data[entry] += by
    parts[0] = dataclasses.replace(parts[0], **{part: matrix})
    layers[layer] = dataclasses.replace(layers[layer], **{kind: tuple(parts)})
    return dataclasses.replace(
        network, model=dataclasses.replace(network.model, layers=tuple(layers))
    )


@pytest.mark.parametrize(
    ("layer", "part", "by"),
    [(0, "value", 1.0), (0, "first", 1.0), (0, "query", 2.0), (1, "output", 1.0), (1, "key", -2.0)],
)
def test_a_changed_weight_is_rejected(layer: int, part: str, by: float) -> None:
    assert not prove_network(changed(native_network(SHAPE), layer, part, 0, by), 2).holds


def test_another_scale_is_refused_by_name() -> None:
    network = native_network(SHAPE)
    layers = list(network.model.layers)
    heads = tuple(dataclasses.replace(h, scale=0.3171828) for h in layers[1].heads)
    layers[1] = dataclasses.replace(layers[1], heads=heads)
    other = dataclasses.replace(
        network, model=dataclasses.replace(network.model, layers=tuple(layers))
    )
    assert irrational_weights(network.model) == {1 / np.sqrt(2)}
    with pytest.raises(UnsupportedError, match="irrational numbers that this proof cannot name"):
        prove_network(other, 2)


def test_refusals() -> None:
    with pytest.raises(UnsupportedError, match="padding mask"):
        prove_network(native_network(dataclasses.replace(SHAPE, mask="padding")), 2)
    stable = long_network(2, Shape(2, 1, 2, 1, False), "stable")
    with pytest.raises(RaspTypeError, match="the average-hard head 'row maximum' compares a value"):
        prove_network(stable, 2)


def test_networks_over_an_alphabet_are_refused() -> None:
    from raspire.arithmetic.field import PrimeField

    b = Builder("letters")
    slot = b.space("letter")
    b.tokens({"a": {slot: 1.0}, "b": {slot: 2.0}})
    b.numeric(read(slot))
    with pytest.raises(UnsupportedError, match="a network over a finite alphabet"):
        Forward(b.build(), [[0], [1]], PrimeField())


def test_positive_parts_use_that_the_absolute_value_is_even() -> None:
    b = Builder("relu")
    slot, other = b.space("x"), b.space("y")
    b.values(write(slot))
    both = beside(read(slot), -read(slot))
    b.layer().units("parts", "relu", both, write(other, [[1.0], [-1.0]]))
    b.numeric(read(other))
    side = NetworkSide(b.build(), [0, 1])
    assert identity("x", side, ProgramSide(tokens), 2).holds
    assert not identity("2x", side, ProgramSide(2 * tokens), 2).holds


COMPILED = {
    "transposition": transpose(2, 3),
    "product": matmul(2, 2, 2),
    "product, long": matmul(2, 2, 2, "long"),
    "softmax": row_softmax(2, 2),
    "determinant": determinant(3),
    "inverse": inverse_3x3(),
    "recursion": faddeev_leverrier(3),
    "recursion, long": faddeev_leverrier(2, "long"),
    "system": linear_system(2),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_networks_are_their_programs_for_every_input(name: str) -> None:
    program = COMPILED[name]
    network = compile(program.program, alphabet=REALS, max_length=program.length).transformer
    positions = [int(p) for p in program.output.positions()]
    left, right = NetworkSide(network, positions), ProgramSide(program.program, positions)
    found = identity(name, left, right, program.length)
    assert found.holds, found.details
    assert found.error_probability < 1e-12
