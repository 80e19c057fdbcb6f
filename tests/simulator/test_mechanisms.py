"""Other attention in U: against torch's own functions, textbook formulas, and recurrences."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from raspire import RaspError
from raspire.simulator import AttentionTarget, Shape, UniversalSimulator, attention
from raspire.simulator.block import BlockShape
from raspire.simulator.block_reader import read_block
from raspire.simulator.block_simulator import BlockSimulator
from raspire.simulator.direct_mechanisms import cross_attention, linear_attention, linformer
from raspire.simulator.mechanisms import CrossAttention, LinearAttention, Linformer
from raspire.simulator.networks import native_block_network, native_network, pair_network
from raspire.simulator.positions import Relative, Rotary, alibi_slopes
from raspire.simulator.target import shared_heads

NEAR = 1e-10
seeds = st.integers(0, 2**31 - 1)
quick = settings(max_examples=12, deadline=None)


def random_target(rng, d, heads, d_k, d_v, *, output=True, **options):
    def draw(*size):
        return rng.normal(size=size)

    return AttentionTarget.from_arrays(
        draw(heads, d, d_k), draw(heads, d, d_k), draw(heads, d, d_v),
        draw(heads * d_v, d) if output else None,
        b_q=draw(heads, d_k), b_k=draw(heads, d_k), b_v=draw(heads, d_v),
        b_o=draw(d) if output else None, **options,
    )  # fmt: skip


def by_torch(target, x, bias=None, *, memory=None):
    """The target by torch's scaled_dot_product_attention, with a bias that may be -inf."""
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    rows, others = torch.tensor(x), torch.tensor(x if memory is None else memory)
    parts = ((target.w_q, target.b_q, rows), (target.w_k, target.b_k, others),
             (target.w_v, target.b_v, others))  # fmt: skip
    q, k, v = (r @ torch.tensor(w) + torch.tensor(b)[:, None] for w, b, r in parts)
    mask = None if bias is None else torch.tensor(bias)
    mixed = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, scale=target.scale
    )
    mixed = mixed.transpose(0, 1).reshape(len(x), -1).numpy()
    return mixed if target.w_o is None else mixed @ target.w_o + target.b_o


def distances(n):
    return np.subtract.outer(np.arange(n), np.arange(n))


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


def bucket_of_t5(distance, buckets, farthest, bidirectional):
    """The rule of the T5 paper for key minus query, one distance at a time."""
    key_minus_query, base = -distance, 0
    if bidirectional:
        buckets //= 2
        if key_minus_query > 0:
            base = buckets
        away = abs(key_minus_query)
    else:
        away = max(-key_minus_query, 0)
    exact = buckets // 2
    if away < exact:
        return base + away
    ratio = math.log(away / exact) / math.log(farthest / exact)
    return base + min(exact + int(ratio * (buckets - exact)), buckets - 1)


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


def rotated_by_halves(x, base, width):
    """LLaMA's formula: x·cos + rotate_half(x)·sin on the first `width` coordinates."""
    frequencies = 1 / base ** (np.arange(0, width, 2) / width)
    angles = np.concatenate([np.outer(np.arange(len(x)), frequencies)] * 2, axis=1)
    turned, rest = x[:, :width], x[:, width:]
    half = np.concatenate([-turned[:, width // 2 :], turned[:, : width // 2]], axis=1)
    return np.concatenate([turned * np.cos(angles) + half * np.sin(angles), rest], axis=1)


def rotated_by_neighbours(x, base, width):
    """GPT-J's formula: neighbours (0, 1), (2, 3), ... turn together."""
    out = x.copy()
    for k in range(width // 2):
        angle = np.arange(len(x)) / base ** (2 * k / width)
        a, b = x[:, 2 * k], x[:, 2 * k + 1]
        out[:, 2 * k] = a * np.cos(angle) - b * np.sin(angle)
        out[:, 2 * k + 1] = b * np.cos(angle) + a * np.sin(angle)
    return out


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


LLAMA = {
    "model_type": "llama", "num_attention_heads": 4, "num_key_value_heads": 2,
    "rope_theta": 500.0, "rms_norm_eps": 1e-5, "hidden_act": "silu",
}  # fmt: skip


def llama_files(folder, facts, d=8, hidden=6, heads=4, groups=2):
    """A model of one layer in files, and its tensors."""
    rng, at, width = np.random.default_rng(11), "model.layers.0.", d // heads
    sizes = {
        "self_attn.q_proj": (d, d), "self_attn.k_proj": (groups * width, d),
        "self_attn.v_proj": (groups * width, d), "self_attn.o_proj": (d, d),
        "mlp.gate_proj": (hidden, d), "mlp.up_proj": (hidden, d), "mlp.down_proj": (d, hidden),
        "input_layernorm": (d,), "post_attention_layernorm": (d,),
    }  # fmt: skip
    tensors = {at + name + ".weight": rng.normal(size=size) for name, size in sizes.items()}
    tensors[at + "self_attn.rotary_emb.inv_freq"] = np.ones(width // 2)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(facts))
    return {name.removeprefix(at).removesuffix(".weight"): t for name, t in tensors.items()}


def llama_block(w, x, *, base, window=None, heads=4, groups=2):
    """One block of the LLaMA family by torch's functions."""
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    f, n, d = torch.nn.functional, *x.shape
    width = d // heads
    w = {name: torch.tensor(value) for name, value in w.items()}
    rows = torch.tensor(x)

    def turned(linear, count):
        split = linear.view(n, count, width).transpose(0, 1).numpy()
        return torch.tensor(np.stack([rotated_by_halves(head, base, width) for head in split]))

    normed = f.rms_norm(rows, (d,), w["input_layernorm"], 1e-5)
    q, k, v = (f.linear(normed, w[f"self_attn.{n}_proj"]) for n in "qkv")
    away = torch.tensor(distances(n))
    seen = (away >= 0) & (away < (window or n))
    mixed = f.scaled_dot_product_attention(
        turned(q, heads)[None], turned(k, groups)[None],
        v.view(n, groups, width).transpose(0, 1)[None], attn_mask=seen, enable_gqa=True,
    )  # fmt: skip
    attended = f.linear(mixed[0].transpose(0, 1).reshape(n, d), w["self_attn.o_proj"])
    middle = rows + attended
    normed = f.rms_norm(middle, (d,), w["post_attention_layernorm"], 1e-5)
    gate = f.silu(f.linear(normed, w["mlp.gate_proj"])) * f.linear(normed, w["mlp.up_proj"])
    return attended.numpy(), (middle + f.linear(gate, w["mlp.down_proj"])).numpy()


@pytest.mark.parametrize("facts", [{}, {"model_type": "mistral", "sliding_window": 2}])
def test_a_layer_and_a_block_of_the_llama_family_are_read_and_run(tmp_path, facts):
    tensors = llama_files(tmp_path, LLAMA | facts)
    x = np.random.default_rng(0).normal(size=(5, 8))
    window = facts.get("sliding_window")
    attended, expected = llama_block(tensors, x, base=500.0, window=window)
    block = read_block(tmp_path, 0)
    assert block.attention.window == window
    assert "4 heads share 2 heads of keys and values" in block.notes[0]
    assert np.abs(BlockSimulator.for_block(block, 5)(block, x) - expected).max() < NEAR
    if window is None:  # the whole block as explicit weights, of attention depth 2
        network = native_block_network(block.shape)
        assert network.cost.attention_depth == 2
        assert np.abs(network(block, x) - expected).max() < NEAR
    target = AttentionTarget.from_safetensors(tmp_path, 0)
    normed = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * tensors["input_layernorm"]
    found = UniversalSimulator.for_target(target, 5)(target, normed)
    assert np.abs(found - attended).max() < NEAR


@pytest.mark.parametrize(
    ("facts", "window"),
    [
        ({"model_type": "mistral"}, 3),
        ({"model_type": "qwen2"}, None),  # its own default is no window
        ({"model_type": "qwen2", "use_sliding_window": True}, 3),
        ({"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 1}, None),
        ({"model_type": "qwen2", "use_sliding_window": True, "layer_types": ["full_attention"]},
         None),
        ({"model_type": "mistral", "layer_types": ["sliding_attention"]}, 3),
    ],
)  # fmt: skip
def test_which_layers_have_a_window(tmp_path, facts, window):
    llama_files(tmp_path, LLAMA | facts | {"sliding_window": 3})
    assert AttentionTarget.from_safetensors(tmp_path, 0).window == window


def test_scaled_rotary_positions_are_read_or_refused(tmp_path):
    rules = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
             "high_freq_factor": 4.0, "original_max_position_embeddings": 64}  # fmt: skip
    llama_files(tmp_path, LLAMA | {"rope_scaling": rules}, d=32)
    found = AttentionTarget.from_safetensors(tmp_path, 0).rotary.frequencies
    plain = 500.0 ** -(np.arange(4) / 4)
    for scaled, own in zip(found, plain, strict=True):
        wave = 2 * math.pi / own
        if wave > 64 / 1.0:
            expected = own / 8
        elif wave < 64 / 4.0:
            expected = own
        else:
            smooth = (64 / wave - 1.0) / (4.0 - 1.0)
            expected = (1 - smooth) * own / 8 + smooth * own
        assert abs(scaled - expected) < 1e-15
    llama_files(tmp_path, LLAMA | {"rope_scaling": {"type": "linear", "factor": 4.0}})
    target = AttentionTarget.from_safetensors(tmp_path, 0)
    assert target.rotary.frequencies.tolist() == [0.25]
    llama_files(tmp_path, LLAMA | {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}})
    with pytest.raises(RaspError, match="scaled in the form 'yarn' wait for a later version"):
        AttentionTarget.from_safetensors(tmp_path, 0)


# ---------------------------------------------------------------- GPT-NeoX, BLOOM, T5


def packed_by_head(rng, prefix, d, heads):
    """Tensors of a layer whose queries, keys and values are grouped by head first."""
    sizes = {"query_key_value": (3 * d, d), "dense": (d, d)}
    tensors = {}
    for name, size in sizes.items():
        tensors[f"{prefix}.{name}.weight"] = rng.normal(size=size)
        tensors[f"{prefix}.{name}.bias"] = rng.normal(size=size[0])
    return tensors


def by_heads(tensors, prefix, x, heads, turn, bias):
    """Attention from those tensors, one head and one query at a time."""
    d, n = x.shape[1], len(x)
    width = d // heads
    packed = x @ tensors[f"{prefix}.query_key_value.weight"].T
    packed = packed + tensors[f"{prefix}.query_key_value.bias"]
    split = packed.reshape(n, heads, 3, width)
    mixed = []
    for t in range(heads):
        q, k, v = turn(split[:, t, 0]), turn(split[:, t, 1]), split[:, t, 2]
        scores = q @ k.T / math.sqrt(width) + bias(t)
        weights = np.where(distances(n) >= 0, np.exp(scores), 0)
        mixed.append(weights @ v / weights.sum(axis=1, keepdims=True))
    merged = np.concatenate(mixed, axis=1)
    return merged @ tensors[f"{prefix}.dense.weight"].T + tensors[f"{prefix}.dense.bias"]


def read_from(folder, tensors, facts, layer):
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(facts))
    return AttentionTarget.from_safetensors(folder, layer)


def test_a_layer_of_gpt_neox_turns_a_part_of_each_head(tmp_path):
    rng, at = np.random.default_rng(1), "gpt_neox.layers.2.attention"
    tensors = packed_by_head(rng, at, 16, 2)
    tensors[at + ".rotary_emb.inv_freq"] = np.ones(1)
    facts = {"model_type": "gpt_neox", "num_attention_heads": 2, "rotary_pct": 0.5,
             "rotary_emb_base": 300}  # fmt: skip
    target, x = read_from(tmp_path, tensors, facts, 2), rng.normal(size=(5, 16))
    expected = by_heads(
        tensors, at, x, 2, lambda rows: rotated_by_halves(rows, 300.0, 4), lambda t: 0.0
    )
    assert np.abs(UniversalSimulator.for_target(target, 5)(target, x) - expected).max() < NEAR


def test_a_layer_of_bloom_has_linear_biases(tmp_path):
    rng, at = np.random.default_rng(2), "h.1.self_attention"
    tensors = packed_by_head(rng, at, 8, 4)
    target = read_from(tmp_path, tensors, {"model_type": "bloom", "n_head": 4}, 1)
    x = rng.normal(size=(5, 8))
    # as the family writes it: the slope times the key's position; each row differs by a constant
    expected = by_heads(
        tensors, at, x, 4, lambda rows: rows, lambda t: 0.25 ** (t + 1) * np.arange(5)
    )
    assert np.abs(UniversalSimulator.for_target(target, 5)(target, x) - expected).max() < NEAR


def t5_tensors(rng, d, heads, width, hidden, gated):
    inner = heads * width
    sizes = {
        "layer.0.SelfAttention.q": (inner, d), "layer.0.SelfAttention.k": (inner, d),
        "layer.0.SelfAttention.v": (inner, d), "layer.0.SelfAttention.o": (d, inner),
        "layer.0.layer_norm": (d,), "layer.1.layer_norm": (d,),
        "layer.1.DenseReluDense.wo": (d, hidden),
    }  # fmt: skip
    for name in ("wi_0", "wi_1") if gated else ("wi",):
        sizes["layer.1.DenseReluDense." + name] = (hidden, d)
    return {name: rng.normal(size=size) for name, size in sizes.items()}


@pytest.mark.parametrize("gated", [False, True])
def test_a_block_of_t5_has_biases_in_buckets_from_the_first(tmp_path, gated):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    f, rng, n, d, heads = torch.nn.functional, np.random.default_rng(3), 7, 6, 2
    w = t5_tensors(rng, d, heads, 4, 5, gated)
    table = rng.normal(size=(8, heads))
    tensors = {f"encoder.block.3.{name}.weight": value for name, value in w.items()}
    first = "encoder.block.0.layer.0.SelfAttention."
    tensors[first + "relative_attention_bias.weight"] = table
    facts = {"model_type": "t5", "num_heads": heads, "relative_attention_num_buckets": 8,
             "relative_attention_max_distance": 6}  # fmt: skip
    read_from(tmp_path, tensors, facts, 3)
    x = rng.normal(size=(n, d))
    w = {name: torch.tensor(value) for name, value in w.items()}
    rows = torch.tensor(x)
    normed = f.rms_norm(rows, (d,), w["layer.0.layer_norm"], 1e-6)
    q, k, v = (
        f.linear(normed, w[f"layer.0.SelfAttention.{name}"]).view(n, heads, 4).transpose(0, 1)
        for name in "qkv"
    )
    bias = np.array(
        [[[table[bucket_of_t5(a, 8, 6, True), t] for a in row] for row in distances(n)]
         for t in range(heads)]
    )  # fmt: skip
    mixed = f.scaled_dot_product_attention(q, k, v, attn_mask=torch.tensor(bias), scale=1.0)
    rows = rows + f.linear(mixed.transpose(0, 1).reshape(n, -1), w["layer.0.SelfAttention.o"])
    normed = f.rms_norm(rows, (d,), w["layer.1.layer_norm"], 1e-6)
    part = "layer.1.DenseReluDense."
    if gated:
        hidden = f.gelu(f.linear(normed, w[part + "wi_0"]), approximate="tanh")
        hidden = hidden * f.linear(normed, w[part + "wi_1"])
    else:
        hidden = f.relu(f.linear(normed, w[part + "wi"]))
    expected = (rows + f.linear(hidden, w[part + "wo"])).numpy()
    block = read_block(tmp_path, 3)
    assert np.abs(BlockSimulator.for_block(block, n)(block, x) - expected).max() < NEAR


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
