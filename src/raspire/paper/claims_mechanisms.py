"""Other attention mechanisms as rows of the table: each proved for every target over GF(p)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from raspire.paper.attention import Definition
from raspire.paper.claims import Claim
from raspire.paper.mechanism_proofs import (
    CrossDefinition,
    LinearDefinition,
    LinformerDefinition,
    prove_mechanism,
)
from raspire.paper.proofs import prove_identity
from raspire.simulator.construction import Construction
from raspire.simulator.mechanisms import CrossAttention, LinearAttention, Linformer, Mechanism
from raspire.simulator.target import Shape
from raspire.simulator.universal import UniversalSimulator
from raspire.verify.certificate import Certificate

FIELD = "identity over GF(p)"
STABLE = FIELD + ", exp(a-M) := exp(a)/exp(M)"
EVEN = FIELD + ", |x| even"
N, FEWER = 3, 2
SHAPE = Shape(d=3, heads=2, d_k=2, d_v=2, output=True)
LAYOUT = "X and [W_Q|W_K|W_V] with biases, W_O{more}; then a position for every product"


def _mechanism(
    key: str,
    result: str,
    statement: str,
    more: str,
    expected: tuple[int, int],
    build: Callable[[], Mechanism],
    definition: Callable[[Construction], Definition],
    rests_on: str,
) -> Claim:
    def check() -> Certificate:
        construction = build().construction
        return prove_mechanism(definition(construction), construction, key)

    layout = LAYOUT.format(more=more)
    return Claim(key, result, statement, layout, build, expected, rests_on, check)


def _positional(
    key: str, statement: str, more: str, expected: tuple[int, int], shape: Shape
) -> Claim:
    def build() -> UniversalSimulator:
        s = shape
        return UniversalSimulator(
            N, s.d, s.heads, s.d_k, s.d_v, mask=s.mask, rotary=s.rotary, relative=s.relative,
            window=s.window,
        )  # fmt: skip

    return Claim(
        key,
        "past the paper",
        statement,
        LAYOUT.format(more=more),
        build,
        expected,
        FIELD,
        lambda: prove_identity(build()),
    )


MECHANISMS: tuple[Claim, ...] = (
    _mechanism(
        "linformer",
        "other mechanisms",
        "keys and values reduced along the sequence by maps that are part of ⟨T, X⟩",
        ", the maps",
        (11, 12),
        lambda: Linformer(N, FEWER, SHAPE),
        LinformerDefinition,
        STABLE,
    ),
    _mechanism(
        "linear-attention",
        "other mechanisms",
        "a feature map, elu(x) + 1, instead of the softmax",
        "",
        (8, 9),
        lambda: LinearAttention(N, SHAPE),
        LinearDefinition,
        EVEN,
    ),
    _mechanism(
        "cross-attention",
        "left open",
        "queries from one sequence, keys and values from another",
        ", the memory below X",
        (9, 9),
        lambda: CrossAttention(N, FEWER, SHAPE),
        CrossDefinition,
        STABLE,
    ),
    _positional(
        "rotary-positions",
        "queries and keys turned by their positions, under a causal mask",
        ", cosines and sines",
        (9, 9),
        replace(SHAPE, mask="causal", rotary=True),
    ),
    _positional(
        "relative-biases",
        "biases by head and distance (ALiBi, buckets), under a causal mask",
        ", the biases",
        (8, 9),
        replace(SHAPE, mask="causal", relative=True),
    ),
    _positional(
        "sliding-window",
        "a query sees the keys less than 2 positions back",
        "",
        (8, 8),
        replace(SHAPE, mask="causal", window=2),
    ),
)
