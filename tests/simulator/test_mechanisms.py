"""Cross-attention, Linformer, linear attention: torch, formulas, recurrences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raspire import RaspError
from raspire.simulator import AttentionTarget, Shape, UniversalSimulator
from raspire.simulator.block import BlockShape
from raspire.simulator.block_simulator import BlockSimulator
from raspire.simulator.direct_mechanisms import cross_attention, linear_attention, linformer
from raspire.simulator.mechanisms import CrossAttention, LinearAttention, Linformer
from tests.simulator.positions_textbook import NEAR, quick, random_target, seeds

# ---------------------------------------------------------------- multi-head layers of torch


@given(
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from(("none", "causal", "padding")),
    st.booleans(),
    st.sampled_from(("long", "wide")),
    seeds,
)
@quick
def test_u_equals_the_multihead_attention_of_torch(n, heads, width, mask, bias, construction, seed):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    torch.manual_seed(seed)
    d = heads * width
    layer = torch.nn.MultiheadAttention(d, heads, bias=bias, batch_first=True, dtype=torch.float64)
    for tensor in layer.parameters():
        torch.nn.init.normal_(tensor)
    rng = np.random.default_rng(seed)
    x, flags = rng.normal(size=(n, d)), rng.integers(0, 2, n)
    flags[rng.integers(n)] = 1
    hidden = torch.tensor(flags == 0)[None] if mask == "padding" else None
    later = torch.ones(n, n, dtype=torch.bool).triu(1) if mask == "causal" else None
    rows = torch.tensor(x)[None]
    expected = layer(rows, rows, rows, key_padding_mask=hidden, attn_mask=later)[0][0]
    state = {"0." + name: value.numpy() for name, value in layer.state_dict().items()}
    target = AttentionTarget.from_state(state, 0, heads, mask=mask)
    u = UniversalSimulator.for_target(target, n, construction, "stable")
    found = u(target, x, flags if mask == "padding" else None)
    assert np.abs(found - expected.detach().numpy()).max() < NEAR


# ---------------------------------------------------------------- cross-attention


@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.booleans(), seeds
)
@quick
def test_cross_attention_equals_that_of_torch(n, memory, heads, width, padded, seed):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    torch.manual_seed(seed)
    d = heads * width
    layer = torch.nn.MultiheadAttention(d, heads, batch_first=True, dtype=torch.float64)
    for tensor in layer.parameters():
        torch.nn.init.normal_(tensor)
    rng = np.random.default_rng(seed)
    x, others = rng.normal(size=(n, d)), rng.normal(size=(memory, d))
    flags = rng.integers(0, 2, memory)
    flags[rng.integers(memory)] = 1
    hidden = torch.tensor(flags == 0)[None] if padded else None
    rows, keys = torch.tensor(x)[None], torch.tensor(others)[None]
    expected = layer(rows, keys, keys, key_padding_mask=hidden)[0][0].detach().numpy()
    state = {"0." + name: value.numpy() for name, value in layer.state_dict().items()}
    target = AttentionTarget.from_state(state, 0, heads, mask="padding" if padded else "none")
    u = CrossAttention(n, memory, target.shape)
    seen = flags if padded else None
    assert np.abs(u(target, x, others, seen) - expected).max() < NEAR
    assert np.abs(cross_attention(target, x, others, seen) - expected).max() < NEAR


def test_cross_attention_refuses_what_does_not_fit():
    target = random_target(np.random.default_rng(0), 3, 1, 2, 2)
    u = CrossAttention(2, 3, target.shape)
    x, memory = np.ones((2, 3)), np.ones((3, 3))
    with pytest.raises(RaspError, match="U does not take this target"):
        u(target, x, memory[:2])
    with pytest.raises(RaspError, match="key padding was given for a target without that mask"):
        u(target, x, memory, [1, 1, 0])
    with pytest.raises(RaspError, match="cross-attention has no mask causal"):
        CrossAttention(2, 3, Shape(3, 1, 2, 2, output=True, mask="causal"))
    assert (
        u.cost.heads_per_layer
        == UniversalSimulator(2, 3, 1, 2, 2, softmax="stable").cost.heads_per_layer
    )


# ---------------------------------------------------------------- Linformer, linear attention


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.booleans(), seeds)
@quick
def test_linformer_equals_torch_on_reduced_keys_and_values(n, reduced, heads, shared, seed):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    rng = np.random.default_rng(seed)
    target = random_target(rng, 3, heads, 2, 3)
    size = (reduced, n) if shared else (heads, reduced, n)
    x, keys, values = rng.normal(size=(n, 3)), rng.normal(size=size), rng.normal(size=size)
    q, k, v = (
        torch.tensor(x @ w + b[:, None])
        for w, b in ((target.w_q, target.b_q), (target.w_k, target.b_k), (target.w_v, target.b_v))
    )
    mixed = torch.nn.functional.scaled_dot_product_attention(
        q, torch.tensor(keys) @ k, torch.tensor(values) @ v
    )
    expected = mixed.transpose(0, 1).reshape(n, -1).numpy() @ target.w_o + target.b_o
    u = Linformer(n, reduced, target.shape)
    assert np.abs(u(target, x, keys, values) - expected).max() < NEAR
    maps = [np.broadcast_to(array, (heads, reduced, n)) for array in (keys, values)]
    assert np.abs(linformer(target, x, *maps) - expected).max() < NEAR


def test_linformer_refuses_a_map_that_does_not_fit():
    target = random_target(np.random.default_rng(0), 3, 1, 2, 2)
    with pytest.raises(RaspError, match="map along the sequence does not fit"):
        Linformer(4, 2, target.shape)(target, np.ones((4, 3)), np.ones((4, 2)), np.ones((2, 4)))


def by_recurrence(target, x):
    """Causal linear attention as a recurrent network with a matrix for its state."""
    heads = []
    for t in range(target.heads):
        q, k, v = (
            x @ w[t] + b[t]
            for w, b in (
                (target.w_q, target.b_q),
                (target.w_k, target.b_k),
                (target.w_v, target.b_v),
            )
        )
        state, mass, rows = np.zeros((target.d_k, target.d_v)), np.zeros(target.d_k), []
        for i in range(len(x)):
            key, query = (np.where(z[i] > 0, z[i] + 1, np.exp(z[i])) for z in (k, q))
            state, mass = state + np.outer(key, v[i]), mass + key
            rows.append(query @ state / (query @ mass))
        heads.append(np.array(rows))
    return np.concatenate(heads, axis=1) @ target.w_o + target.b_o


def test_causal_linear_attention_equals_its_recurrence():
    rng = np.random.default_rng(8)
    target = random_target(rng, 3, 2, 3, 2, mask="causal")
    x = rng.normal(size=(6, 3))
    found = LinearAttention(6, target.shape)(target, x)
    assert np.abs(found - by_recurrence(target, x)).max() < NEAR


@given(st.integers(1, 5), st.integers(1, 3), st.sampled_from(("elu", "exp")), st.booleans(), seeds)
@quick
def test_linear_attention_equals_its_definition(n, heads, feature, padded, seed):
    rng = np.random.default_rng(seed)
    target = random_target(rng, 3, heads, 3, 2, mask="padding" if padded else "none")
    x, flags = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    flags[rng.integers(n)] = 1
    seen = flags if padded else None
    expected = linear_attention(target, x, feature, seen)
    found = LinearAttention(n, target.shape, feature)(target, x, seen)
    assert np.abs(found - expected).max() < NEAR * max(1, np.abs(expected).max())


def test_linear_attention_grows_linearly_and_refuses_positions():
    shape = Shape(4, 2, 3, 2, output=False)
    lengths = [LinearAttention(n, shape).sequence_length for n in (10, 20, 30)]
    assert lengths[2] - lengths[1] == lengths[1] - lengths[0]
    with pytest.raises(RaspError, match="linear attention with window 2 waits"):
        LinearAttention(3, Shape(4, 2, 3, 2, output=False, window=2))


# ---------------------------------------------------------------- what they are, in words


def test_every_simulator_explains_its_layout():
    shape = Shape(2, 1, 2, 2, output=True, mask="causal", rotary=True, relative=True)
    positional = UniversalSimulator(3, 2, 1, 2, 2, mask="causal", rotary=True, relative=True)
    assert positional.shape == shape
    assert "3 x 2 x 2  rotary positions: a cosine and a signed sine" in positional.explain()
    assert "1 x 5  biases by head and distance" in positional.explain()
    plain = Shape(2, 1, 2, 2, output=True)
    assert "2 x 1 x 2 x 4  maps along the sequence" in Linformer(4, 2, plain).explain()
    assert CrossAttention(2, 3, plain).explain().startswith("CrossAttention, n=2, d=2, heads=1")
    block = BlockSimulator(2, BlockShape(plain, 3, "silu", True, "rms", "pre"))
    words = block.explain()
    assert "3 x 2  the first norm: weight, bias, eps in every column" in words
    assert "3 x 3  the gate of the feed-forward part" in words
    assert "gated:silu" in words
