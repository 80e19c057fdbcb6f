"""Theorems 6 and 9, Corollary 6.2 and soft by hard: the universal simulator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from raspire.paper.block_proofs import prove_block
from raspire.paper.claims import Claim
from raspire.paper.measures import NEAR, measured_network, random_target
from raspire.paper.network_proofs import named_network, prove_block_network, prove_network
from raspire.paper.proofs import prove_hierarchy, prove_identity
from raspire.simulator.block import BlockShape
from raspire.simulator.block_simulator import BlockSimulator
from raspire.simulator.networks.native_block import native_block_network
from raspire.simulator.target import Shape
from raspire.simulator.universal import UniversalSimulator
from raspire.verify.certificate import Certificate

if TYPE_CHECKING:
    from raspire.simulator.networks import Network

FIELD = "identity over GF(p)"
WEIGHTS = "identity over GF(p), of the weights"
N = 3
ONE = Shape(d=3, heads=1, d_k=2, d_v=2, output=False)
MANY = Shape(d=4, heads=2, d_k=2, d_v=2, output=True)
SEQUENCE = "X with a column of ones, [W_Q|W_K|W_V] with a row of biases{out}; {rest}"
LONG = SEQUENCE.format(out="{out}", rest="then a position for every product")
WIDE = SEQUENCE.format(out="{out}", rest="results from position 0")
ROWS = "n tokens hold rows of X, d+1 tokens the rows of [W_Q|W_K|W_V] of all heads{out}"


def _simulator(shape: Shape, construction: str, softmax: str = "plain") -> UniversalSimulator:
    return UniversalSimulator(
        N,
        shape.d,
        shape.heads,
        shape.d_k,
        shape.d_v,
        construction,  # type: ignore[arg-type]
        softmax,  # type: ignore[arg-type]
        shape.mask,
        shape.output,
    )


def _program(
    key: str, result: str, statement: str, shape: Shape, expected: tuple[int, int], **options: str
) -> Claim:
    layout = {"long": LONG, "wide": WIDE}[options["construction"]]
    declared = ", exp(a-M) := exp(a)/exp(M)" if options.get("softmax") == "stable" else ""
    return Claim(
        key,
        result,
        statement,
        layout.format(out=", W_O with its biases" if shape.output else ""),
        lambda: _simulator(shape, **options),
        expected,
        FIELD + declared,
        lambda: prove_identity(_simulator(shape, **options)),
    )


def _network(
    key: str, result: str, statement: str, shape: Shape, expected: tuple[int, int], name: str
) -> Claim:
    def build() -> Network:
        return named_network(name, N, shape)

    layout = {"long": LONG, "wide": WIDE, "native": ROWS}.get(name, ROWS)
    return Claim(
        key,
        result,
        statement,
        layout.format(out=", more tokens the rows of W_O" if shape.output else ""),
        build,
        expected,
        WEIGHTS,
        lambda: _proved(build()),
        kind="network",
    )


def _proved(network: Network) -> Certificate:
    """For all T and X over GF(p); beside it, what floating point does with random ones."""
    proof, measured = prove_network(network, N), measured_network(network, N)
    seen = {"largest difference in float64": measured.details["largest difference"]}
    return replace(proof, holds=proof.holds and measured.holds, details={**proof.details, **seen})


SINGLE = "U simulates every single-head softmax attention layer"
HEADS = "U simulates every multi-head layer with its output map"


def _hierarchy() -> Certificate:
    large = UniversalSimulator(4, 3, 2, 2, 2, "long", "plain", "padding", True)
    return prove_hierarchy(large, Shape(d=2, heads=1, d_k=1, d_v=1, output=True), n=2)


def _block(key: str, shape: BlockShape, layers: int, statement: str) -> Claim:
    def build() -> BlockSimulator:
        return BlockSimulator(N, shape)

    return Claim(
        key,
        "Theorem 9, extended",
        statement,
        "as for attention, then weight, bias and eps of both norms and the feed-forward matrices",
        build,
        (layers, layers),
        FIELD + ", exp(a-M) := exp(a)/exp(M)",
        lambda: prove_block(build()),
    )


def _block_network(key: str, shape: BlockShape, layers: int, statement: str) -> Claim:
    return Claim(
        key,
        "Theorem 9, extended",
        statement,
        "tokens hold the rows of every matrix of the block, then the rows of X",
        lambda: native_block_network(shape),
        (2, layers),
        WEIGHTS,
        lambda: prove_block_network(native_block_network(shape), N),
        kind="network",
    )


BERT = BlockShape(MANY, hidden=3, activation="gelu", gated=False, norm="layer", order="post")
LLAMA = BlockShape(
    replace(MANY, mask="causal", rotary=True),
    hidden=3,
    activation="silu",
    gated=True,
    norm="rms",
    order="pre",
)


def _soft_by_hard() -> UniversalSimulator:
    return _simulator(ONE, "long", "stable")


def _check_soft_by_hard() -> Certificate:
    """The identity, and what each layer of the average-hard network does, read from its weights."""
    from raspire.simulator.soft_by_hard import soft_by_hard

    shown, proof = soft_by_hard(N, ONE), prove_identity(_soft_by_hard())
    apart = shown.difference(
        random_target(ONE, 0), np.random.default_rng(1).normal(size=(N, ONE.d))
    )
    roles = {f"layer {role.number}": str(role) for role in shown.layers}
    said = {"statement": shown.statement, **roles, "largest difference of its network": apart}
    return replace(proof, holds=proof.holds and apart < NEAR, details={**said, **proof.details})


def _self_simulation() -> UniversalSimulator:
    """The outer U: the one for the first layer of the network `wide`."""
    from raspire.simulator.self_simulation import inner_layers

    layer, seen = inner_layers(named_network("wide", N, ONE), N)[0]
    return UniversalSimulator.for_target(layer, len(seen), "long", "stable")


def _check_self_simulation() -> Certificate:
    """U, the program, runs every layer of each network of U, which runs a target."""
    from raspire.simulator.self_simulation import self_simulate

    found: dict[str, float] = {}
    for name in ("native", "pair", "wide", "long"):
        target, x = random_target(ONE, 2, 0.5), np.random.default_rng(3).normal(size=(N, ONE.d))
        run = self_simulate(named_network(name, N, ONE), target, x)
        found[f"largest difference of three results, {name}"] = run.max_abs_error
    holds = max(found.values()) < NEAR
    claim = f"U running U running T, and U running T, return T(X), n={N}, {ONE}"
    details = {**found, "allowed": NEAR, "precision": "float64"}
    return Certificate(claim, "measurement", holds, 0.0, details)


SIMULATORS: tuple[Claim, ...] = (
    _program("simulator-long", "Theorem 6", SINGLE, ONE, (6, 6), construction="long"),
    _program("simulator-wide", "Theorem 6", SINGLE, ONE, (3, 4), construction="wide"),
    _program("heads-long", "Theorem 9", HEADS, MANY, (8, 8), construction="long"),
    _program("heads-wide", "Theorem 9", HEADS, MANY, (4, 5), construction="wide"),
    _network("network-long", "Theorem 6", SINGLE + ", as weights", ONE, (6, 6), "long"),
    _network("network-wide", "Theorem 6", SINGLE + ", as weights", ONE, (3, 4), "wide"),
    _network("network-pair", "Theorem 6", SINGLE + ", as narrow weights", ONE, (3, 3), "pair"),
    _network("network-native", "Theorem 6", SINGLE + ", for every n", ONE, (2, 2), "native"),
    _network("network-heads-long", "Theorem 9", HEADS + ", as weights", MANY, (8, 8), "long"),
    _network("network-heads-wide", "Theorem 9", HEADS + ", as weights", MANY, (4, 5), "wide"),
    _network(
        "network-heads-pair", "Theorem 9", HEADS + ", as narrow weights", MANY, (4, 4), "pair"
    ),
    _network("network-heads-native", "Theorem 9", HEADS + ", for every n", MANY, (2, 2), "native"),
    Claim(
        "hierarchy",
        "Corollary 6.2",
        "U for a shape runs every smaller target: weights padded with zeros, rows masked",
        LONG.format(out=", W_O with its biases, flags of the rows"),
        lambda: UniversalSimulator(4, 3, 2, 2, 2, "long", "plain", "padding", True),
        (8, 8),
        FIELD,
        _hierarchy,
    ),
    _block(
        "block-post-norm", BERT, 19, "U runs whole encoder blocks: layer norms, gelu, post-norm"
    ),
    _block_network("network-block-post-norm", BERT, 13, "U as weights for whole blocks, every n"),
    _block_network(
        "network-block-pre-norm", LLAMA, 12, "the same for LLaMA's blocks: rotary, RMS, SwiGLU"
    ),
    _block(
        "block-pre-norm", LLAMA, 20, "U runs LLaMA's blocks: rotary positions, RMS norms, SwiGLU"
    ),
    Claim(
        "soft-by-hard",
        "soft by hard",
        "average-hard attention computes softmax attention: exp and a quotient are feed-forward",
        LONG.format(out=""),
        _soft_by_hard,
        (7, 7),
        FIELD + ", exp(a-M) := exp(a)/exp(M)",
        _check_soft_by_hard,
    ),
    Claim(
        "self-simulation",
        "past the paper",
        "U runs every layer of U, which runs a target: the three results agree",
        "the stream of a layer of U is X, its heads are W; average-hard heads as saturated softmax",
        _self_simulation,
        (9, 10),
        "measurement, float64",
        _check_self_simulation,
    ),
)
