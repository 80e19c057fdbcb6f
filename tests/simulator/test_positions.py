"""Masks, windows, biases, rotary positions, shared heads: torch, and textbook formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raspire import RaspError
from raspire.simulator import AttentionTarget, Shape, UniversalSimulator, attention
from raspire.simulator.networks import native_network, pair_network
from raspire.simulator.positions import Relative, Rotary, alibi_slopes
from raspire.simulator.target import shared_heads
from tests.simulator.positions_textbook import (
    NEAR,
    bucket_of_t5,
    by_torch,
    distances,
    quick,
    random_target,
    rotated_by_halves,
    rotated_by_neighbours,
    seeds,
)

# ---------------------------------------------------------------- masks, windows, biases


@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 7), st.booleans(), seeds)
@quick
def test_a_sliding_window_equals_torch_under_that_mask(n, heads, window, causal, seed):
    rng = np.random.default_rng(seed)
    target = random_target(rng, 3, heads, 2, 2, window=window, mask="causal" if causal else "none")
    x, away = rng.normal(size=(n, 3)), distances(n)
    seen = (np.abs(away) < window) & ((away >= 0) | (not causal))
    expected = by_torch(target, x, np.where(seen, 0.0, -np.inf))
    for softmax in ("plain", "stable"):
        found = UniversalSimulator.for_target(target, n, "long", softmax)(target, x)
        assert np.abs(found - expected).max() < NEAR
    assert np.abs(attention(target, x) - expected).max() < NEAR


def alibi_of_the_press_paper(heads, n):
    """Slopes by the geometric rule, biases as minus the distance, for powers of two."""
    start = 2 ** (-8 / heads)
    slopes = [start * start**k for k in range(heads)]
    return -np.array(slopes)[:, None, None] * np.abs(distances(n))


@given(st.integers(1, 6), st.sampled_from((1, 2, 4)), st.booleans(), seeds)
@quick
def test_linear_biases_equal_torch_with_a_float_mask(n, heads, causal, seed):
    rng = np.random.default_rng(seed)
    target = random_target(
        rng, 4, heads, 2, 3, relative=Relative.alibi(heads), mask="causal" if causal else "none"
    )
    x = rng.normal(size=(n, 4))
    bias = alibi_of_the_press_paper(heads, n)
    if causal:
        bias = np.where(distances(n) >= 0, bias, -np.inf)
    expected = by_torch(target, x, bias)
    found = UniversalSimulator.for_target(target, n)(target, x)
    assert np.abs(found - expected).max() < NEAR


def test_slopes_for_any_number_of_heads():
    assert alibi_slopes(8).tolist() == [2.0**-k for k in range(1, 9)]
    assert alibi_slopes(12)[:8].tolist() == alibi_slopes(8).tolist()
    assert alibi_slopes(12)[8:].tolist() == alibi_slopes(16)[0:8:2].tolist()


@pytest.mark.parametrize("bidirectional", [True, False])
def test_relative_biases_in_buckets_without_a_scale(bidirectional):
    rng, n = np.random.default_rng(3), 9
    weights = rng.normal(size=(8, 2))
    relative = Relative.buckets(weights, bidirectional=bidirectional, farthest=7)
    mask = "none" if bidirectional else "causal"
    target = random_target(rng, 3, 2, 2, 2, relative=relative, mask=mask, scale=1.0)
    x = rng.normal(size=(n, 3))
    bias = np.array(
        [
            [
                [weights[bucket_of_t5(a, 8, 7, bidirectional), t] for a in row]
                for row in distances(n)
            ]
            for t in range(2)
        ]
    )
    if not bidirectional:
        bias = np.where(distances(n) >= 0, bias, -np.inf)
    found = UniversalSimulator.for_target(target, n)(target, x)
    assert np.abs(found - by_torch(target, x, bias)).max() < NEAR


def test_a_table_of_biases_by_distance():
    rng, n = np.random.default_rng(4), 4
    table = rng.normal(size=(2, 9))
    target = random_target(rng, 3, 2, 2, 1, relative=Relative.of_table(table))
    x = rng.normal(size=(n, 3))
    expected = by_torch(target, x, table[:, distances(n) + 4])
    found = UniversalSimulator.for_target(target, n)(target, x)
    assert np.abs(found - expected).max() < NEAR
    with pytest.raises(RaspError, match="table of relative biases is too short"):
        UniversalSimulator.for_target(target, 6)(target, rng.normal(size=(6, 3)))


def test_a_window_in_which_a_row_sees_nothing_is_refused():
    rng = np.random.default_rng(0)
    target = random_target(rng, 3, 1, 2, 2, window=1, mask="padding")
    x, u = rng.normal(size=(3, 3)), UniversalSimulator.for_target(target, 3)
    for run in (u, attention):
        with pytest.raises(RaspError, match="hides every key in the window of a row"):
            run(target, x, [1, 0, 1])
    assert not u.accepts(target.shape, 2)
    assert np.abs(u(target, x) - attention(target, x)).max() < NEAR


def test_constructions_without_positions_refuse_them_by_name():
    shape = Shape(2, 1, 2, 2, output=True, rotary=True, window=3)
    assert str(shape).endswith("rotary positions, window 3")
    target = random_target(np.random.default_rng(0), 2, 1, 2, 2, rotary=Rotary.of_base(1))
    with pytest.raises(RaspError, match="construction wide has no rotary positions"):
        UniversalSimulator.for_target(target, 2, "wide")
    plain = UniversalSimulator(2, 2, 1, 2, 2)
    assert not plain.accepts(target.shape)
    with pytest.raises(RaspError, match="does not take this target: rotary positions"):
        plain(target, np.ones((2, 2)))


# ---------------------------------------------------------------- rotary positions, shared heads


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("width", [2, 4, 6])
def test_rotary_positions_equal_the_formulas_of_their_families(interleaved, width):
    rng, n, base = np.random.default_rng(width), 6, 50.0
    rotary = Rotary.of_base(width // 2, base, interleaved=interleaved)
    target = random_target(rng, 5, 2, 6, 3, rotary=rotary, mask="causal")
    x, turn = rng.normal(size=(n, 5)), rotated_by_neighbours if interleaved else rotated_by_halves
    heads = []
    for t in range(2):
        q = turn(x @ target.w_q[t] + target.b_q[t], base, width)
        k = turn(x @ target.w_k[t] + target.b_k[t], base, width)
        weights = np.where(distances(n) >= 0, np.exp(q @ k.T / math.sqrt(6)), 0)
        value = x @ target.w_v[t] + target.b_v[t]
        heads.append(weights @ value / weights.sum(axis=1, keepdims=True))
    expected = np.concatenate(heads, axis=1) @ target.w_o + target.b_o
    for softmax in ("plain", "stable"):
        found = UniversalSimulator.for_target(target, n, "long", softmax)(target, x)
        assert np.abs(found - expected).max() < NEAR
    assert np.abs(attention(target, x) - expected).max() < NEAR


@pytest.mark.parametrize("mask", ["none", "causal", "padding"])
def test_one_native_network_turns_queries_and_keys_for_every_n(mask):
    rng = np.random.default_rng(5)
    target = random_target(rng, 3, 2, 4, 2, rotary=Rotary.of_base(1, 20.0), mask=mask)
    network = native_network(target.shape)
    assert (network.cost.attention_depth, network.cost.layers) == (2, 3)
    for n in (1, 3, 6):
        x = rng.normal(size=(n, 3))
        expected = attention(target, x)
        assert np.abs(network(target, x) - expected).max() < NEAR
        assert np.abs(network.saturated()(target, x) - expected).max() < NEAR


def test_networks_of_rows_refuse_biases_and_windows_by_name():
    for shape in (Shape(2, 1, 2, 2, output=True, window=2), Shape(2, 1, 2, 2, True, relative=True)):
        with pytest.raises(RaspError, match=f"networks of row tokens have no {shape.positional}"):
            native_network(shape)
        with pytest.raises(RaspError, match=f"network `pair` has no {shape.positional}"):
            pair_network(2, shape)


def test_rotary_positions_that_do_not_fit_are_refused():
    rng = np.random.default_rng(0)
    for d_k, pairs in ((3, 1), (2, 2)):
        with pytest.raises(RaspError, match="rotary positions do not fit the head"):
            random_target(rng, 2, 1, d_k, 2, rotary=Rotary.of_base(pairs))


@given(st.sampled_from(((1, 1), (4, 2), (3, 1), (6, 2))), st.integers(1, 3), seeds)
@quick
def test_grouped_query_heads_equal_those_of_torch(shared, width, seed):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    heads, groups = shared
    rng, n, d = np.random.default_rng(seed), 4, 3
    w_q, w_k = rng.normal(size=(d, heads * width)), rng.normal(size=(d, groups * width))
    w_v, x = rng.normal(size=(d, groups * width)), rng.normal(size=(n, d))
    q, k, v = (
        torch.tensor((x @ w).reshape(n, -1, width).transpose(1, 0, 2))[None]
        for w in (w_q, w_k, w_v)
    )
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    expected = expected[0].transpose(0, 1).reshape(n, -1).numpy()
    repeated = [shared_heads(w, groups, heads, "keys and values") for w in (w_k, w_v)]
    target = AttentionTarget.from_arrays(w_q, *repeated, heads=heads)
    assert np.abs(UniversalSimulator.for_target(target, n)(target, x) - expected).max() < NEAR
