"""U runs other attention mechanisms: proved over GF(p); another mechanism is rejected."""

from __future__ import annotations

from typing import Any

import pytest

from raspire.paper.attention import Definition
from raspire.paper.mechanism_proofs import (
    CrossDefinition,
    LinearDefinition,
    LinformerDefinition,
    prove_mechanism,
)
from raspire.simulator.mechanism_layers import cross_long, linear_long, linformer_long
from raspire.simulator.target import Shape


def shape(mask: Any = "none", output: bool = False) -> Shape:
    return Shape(d=2, heads=2, d_k=2, d_v=1, output=output, mask=mask)


@pytest.mark.parametrize("softmax", ["plain", "stable"])
@pytest.mark.parametrize("mask", ["none", "padding"])
def test_cross_attention(softmax: Any, mask: Any) -> None:
    u = cross_long(2, 3, shape(mask), softmax)
    found = prove_mechanism(CrossDefinition(u), u, "cross-attention", seen=[1, 0, 1])
    assert found.holds, found.details
    assert found.error_probability < 1e-12


@pytest.mark.parametrize("softmax", ["plain", "stable"])
def test_linformer(softmax: Any) -> None:
    u = linformer_long(3, 2, shape(output=True), softmax)
    assert prove_mechanism(LinformerDefinition(u), u, "linformer").holds


@pytest.mark.parametrize("feature", ["elu", "relu", "exp"])
@pytest.mark.parametrize("mask", ["none", "causal", "padding"])
def test_linear_attention(feature: Any, mask: Any) -> None:
    u = linear_long(3, shape(mask), feature)
    found = prove_mechanism(LinearDefinition(u, feature), u, "linear", seen=[1, 1, 0])
    assert found.holds, found.details


def test_another_mechanism_is_rejected() -> None:
    u = linear_long(3, shape())
    assert not prove_mechanism(LinearDefinition(u, "exp"), u, "linear").holds
    assert not prove_mechanism(Definition(u), u, "softmax").holds
    u = linformer_long(2, 2, shape())
    assert not prove_mechanism(Definition(u), u, "softmax").holds
    u = linear_long(3, shape("causal"), "relu")
    plain = LinearDefinition(linear_long(3, shape(), "relu"), "relu")
    assert not prove_mechanism(plain, u, "mask").holds
