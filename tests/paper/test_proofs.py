"""U computes T(X): proved over GF(p) for all T and X, enclosed at given ones, mutants rejected."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from raspire.paper.attention import Definition
from raspire.paper.proofs import prove_enclosure, prove_identity
from raspire.program.nodes import Apply, Constant, Indices, Node, SOp
from raspire.program.primitives import primitive
from raspire.program.walk import rewrite
from raspire.simulator import AttentionTarget, UniversalSimulator, attention
from raspire.simulator.construction import Part

CASES = list(
    product(("long", "wide"), ("plain", "stable"), ("none", "causal", "padding"), (False, True))
)


def simulator(construction: str, softmax: str, mask: str, output: bool) -> UniversalSimulator:
    return UniversalSimulator(
        n=3,
        d=2,
        heads=2,
        d_k=2,
        d_v=1,
        construction=construction,
        softmax=softmax,
        mask=mask,
        output=output,  # type: ignore[arg-type]
    )


def target(mask: str, output: bool, seed: int = 0) -> AttentionTarget:
    rng = np.random.default_rng(seed)
    w = [rng.normal(size=(2, 2, width)) for width in (2, 2, 1)]
    b = [rng.normal(size=(2, width)) for width in (2, 2, 1)]
    w_o, b_o = (rng.normal(size=(2, 2)), rng.normal(size=2)) if output else (None, None)
    return AttentionTarget.from_arrays(
        *w,
        w_o,
        b_q=b[0],
        b_k=b[1],
        b_v=b[2],
        b_o=b_o,
        mask=mask,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(("construction", "softmax", "mask", "output"), CASES)
def test_u_is_t_for_every_t_and_x(construction: str, softmax: str, mask: str, output: bool) -> None:
    found = prove_identity(simulator(construction, softmax, mask, output), seen=[1, 0, 1])
    assert found.holds, found
    assert found.error_probability < 1e-14
    assert found.details["results compared"] == 6


@pytest.mark.parametrize(("construction", "softmax", "mask", "output"), CASES[::5])
def test_u_encloses_t(construction: str, softmax: str, mask: str, output: bool) -> None:
    pytest.importorskip("flint", reason="needs the extra proof")
    x = np.random.default_rng(1).normal(size=(3, 2))
    padding = [1, 0, 1] if mask == "padding" else None
    found = prove_enclosure(
        simulator(construction, softmax, mask, output),
        target(mask, output),
        x,
        padding=padding,
        within=1e-14,
    )
    assert found.holds, found.details


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_the_definition_is_the_oracle_of_the_simulator_too(mask: str) -> None:
    from raspire.arithmetic import FLOAT64

    u, t = simulator("wide", "plain", mask, True), target(mask, True)
    x = np.random.default_rng(2).normal(size=(3, 2))
    direct = Definition(u.construction)(u.encode(t, x).tolist(), FLOAT64)
    assert np.allclose(np.reshape(direct, (3, 2)), attention(t, x), rtol=0, atol=1e-14)


# ------------------------------------------------------------------------ mutants must be caught


def mutated(u: UniversalSimulator, rule: Callable[[Node], Node]) -> UniversalSimulator:
    part = u.construction.parts["result"]
    sop = rewrite(part.sop, rule)
    assert sop is not part.sop
    parts = {**u.construction.parts, "result": Part(sop, part.place)}
    u.construction = dataclasses.replace(u.construction, parts=parts)
    return u


def swapped(name: str, by: str) -> Callable[[Node], Node]:
    def rule(node: Node) -> Node:
        if isinstance(node, Apply) and node.primitive.name == name:
            return Apply(primitive(by), *node.args)
        return node

    return rule


def shifted(node: Node) -> Node:
    """Every count by which a mean becomes a sum, one too large."""
    if (
        isinstance(node, Apply)
        and node.primitive.name == "mul"
        and isinstance(node.args[1], Constant)
    ):
        inner: SOp = node.args[0]
        if not isinstance(inner, Indices | Apply):
            return Apply(node.primitive, inner, Constant(node.args[1].value + 1))
    return node


@pytest.mark.parametrize("construction", ["long", "wide"])
def test_a_wrong_simulator_is_rejected(construction: str) -> None:
    for rule in (swapped("exp", "gelu"), swapped("sqrt", "exp"), swapped("div", "mul")):
        u = mutated(simulator(construction, "plain", "none", True), rule)
        assert not prove_identity(u).holds, rule
    assert not prove_identity(mutated(simulator("long", "plain", "none", True), shifted)).holds


def test_the_wrong_mask_is_rejected() -> None:
    causal = simulator("long", "plain", "causal", False)
    free = simulator("long", "plain", "none", False)
    causal.construction = dataclasses.replace(free.construction, shape=causal.shape)
    assert not prove_identity(causal).holds


def test_a_larger_shape() -> None:
    u = UniversalSimulator(n=4, d=8, heads=2)
    found = prove_identity(u, prime=None, error=1e-20)
    assert found.holds
    assert found.details["trials"] >= 2


@pytest.mark.parametrize(
    "options",
    [{"rotary": True}, {"relative": True, "mask": "causal"}, {"window": 2, "mask": "padding"}],
    ids=str,
)
def test_positions_are_part_of_the_definition(options: dict[str, Any]) -> None:
    u = UniversalSimulator(n=3, d=2, heads=2, d_k=2, d_v=1, **options)
    assert prove_identity(u).holds
    free = UniversalSimulator(n=3, d=2, heads=2, d_k=2, d_v=1, mask=options.get("mask", "none"))
    if "window" in options:  # the same inputs, so the two can be taken for each other
        free.construction = dataclasses.replace(free.construction, shape=u.construction.shape)
        assert not prove_identity(free).holds
