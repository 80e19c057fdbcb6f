"""Layers and blocks of LLaMA, GPT-NeoX, BLOOM and T5 from files, against torch and formulas."""

import json
import math

import numpy as np
import pytest
from safetensors.numpy import save_file

from raspire import RaspError
from raspire.simulator import AttentionTarget, UniversalSimulator
from raspire.simulator.block_reader import read_block
from raspire.simulator.block_simulator import BlockSimulator
from raspire.simulator.networks import native_block_network
from tests.simulator.positions_textbook import (
    NEAR,
    bucket_of_t5,
    distances,
    rotated_by_halves,
)

# ---------------------------------------------------------------- the LLaMA family


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
