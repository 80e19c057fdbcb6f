"""U runs whole encoder blocks: proved over GF(p) for all weights; a wrong block is rejected."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from raspire.arithmetic import FLOAT64
from raspire.errors import UnsupportedError
from raspire.paper import block_proofs
from raspire.paper.block_proofs import BlockDefinition, prove_block
from raspire.paper.network_proofs import prove_block_network
from raspire.simulator.block import BlockShape, EncoderBlock, FeedForward, Norm
from raspire.simulator.block_simulator import BlockSimulator
from raspire.simulator.direct_block import block_result
from raspire.simulator.networks.native_block import native_block_network
from raspire.simulator.target import AttentionTarget, Shape

KINDS: list[tuple[Any, Any, Any, bool, Any]] = [
    ("post", "layer", "gelu", False, "none"),
    ("post", "rms", "relu", True, "padding"),
    ("pre", "rms", "silu", True, "causal"),
    ("pre", "layer", "gelu_tanh", False, "none"),
]


def simulator(order: Any, norm: Any, act: Any, gated: bool, mask: Any) -> BlockSimulator:
    attention = Shape(d=2, heads=2, d_k=1, d_v=2, output=True, mask=mask)
    return BlockSimulator(2, BlockShape(attention, 3, act, gated, norm, order))


@pytest.mark.parametrize(("order", "norm", "act", "gated", "mask"), KINDS)
def test_u_is_the_block_for_all_weights(
    order: Any, norm: Any, act: Any, gated: bool, mask: Any
) -> None:
    found = prove_block(simulator(order, norm, act, gated, mask), seen=[1, 0])
    assert found.holds, found.details
    assert found.error_probability < 1e-10


@pytest.mark.parametrize(("order", "norm", "act", "gated", "mask"), KINDS)
def test_the_weights_of_native_are_the_block_too(
    order: Any, norm: Any, act: Any, gated: bool, mask: Any
) -> None:
    shape = simulator(order, norm, act, gated, mask).shape
    network = native_block_network(shape)
    if mask == "padding":
        with pytest.raises(UnsupportedError, match="padding mask"):
            prove_block_network(network, 2)
        return
    found = prove_block_network(network, 2)
    assert found.holds, found.details
    assert found.error_probability < 1e-10
    layers = list(network.model.layers)
    layers[-1] = dataclasses.replace(layers[-1], units=layers[-1].units[:-1])
    spoiled = dataclasses.replace(network.model, layers=tuple(layers))
    assert not prove_block_network(dataclasses.replace(network, model=spoiled), 2).holds


def test_another_block_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    u = simulator(*KINDS[0])
    for name in ("norm", "fed", "attended"):
        with monkeypatch.context() as patch:
            original = getattr(BlockDefinition, name)

            def wrong(self: Any, *args: Any, original: Any = original) -> Any:
                rows = original(self, *args)
                rows[0][0] = rows[0][0] * 2
                return rows

            patch.setattr(BlockDefinition, name, wrong)
            assert not prove_block(u).holds, name
    monkeypatch.setattr(block_proofs, "activation", lambda name, a, named: a.form(_relu()))
    assert not prove_block(u).holds


def _relu() -> Any:
    from raspire.program.primitives import primitive

    return primitive("relu")


def test_the_definition_is_the_oracle_of_the_simulator_too() -> None:
    rng = np.random.default_rng(3)
    attention = AttentionTarget.from_arrays(
        rng.normal(size=(2, 2, 1)),
        rng.normal(size=(2, 2, 1)),
        rng.normal(size=(2, 2, 2)),
        rng.normal(size=(4, 2)),
        b_q=rng.normal(size=(2, 1)),
        b_o=rng.normal(size=2),
    )
    part = FeedForward(
        rng.normal(size=(2, 3)), rng.normal(size=3), rng.normal(size=(3, 2)), rng.normal(size=2)
    )
    norms = [Norm(rng.normal(size=2), rng.normal(size=2), 1e-5) for _ in range(2)]
    block = EncoderBlock(attention, part, *norms)
    u = BlockSimulator.for_block(block, 3)
    x = rng.normal(size=(3, 2))
    direct = BlockDefinition(u)(u.encode(block, x).tolist(), FLOAT64)
    assert np.allclose(np.reshape(direct, (3, 2)), block_result(block, x), rtol=0, atol=1e-12)
