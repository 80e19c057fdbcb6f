"""Encoder blocks by U: against torch's own layer, the direct computation, and files of models."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from raspire import RaspError
from raspire.program.facts import cost
from raspire.simulator.block import BlockShape, EncoderBlock, FeedForward, Norm
from raspire.simulator.block_layers import block_long
from raspire.simulator.block_reader import NAMINGS, read_block, read_block_state
from raspire.simulator.block_simulator import BlockSimulator
from raspire.simulator.direct_block import block_result
from raspire.simulator.target import AttentionTarget, Shape

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")


def random_block(seed, *, d=6, heads=2, hidden=5, act="gelu", gated=False, norm="layer",
                 order="post", mask="none"):  # fmt: skip
    rng = np.random.default_rng(seed)
    d_k = d // heads

    def draw(*size):
        return rng.normal(size=size)

    target = AttentionTarget.from_arrays(
        draw(heads, d, d_k), draw(heads, d, d_k), draw(heads, d, d_k), draw(d, d),
        b_q=draw(heads, d_k), b_k=draw(heads, d_k), b_v=draw(heads, d_k), b_o=draw(d), mask=mask,
    )  # fmt: skip
    gate = (draw(d, hidden), draw(hidden)) if gated else (None, None)
    part = FeedForward(draw(d, hidden), draw(hidden), draw(hidden, d), draw(d), act, *gate)
    norms = [
        Norm(draw(d), draw(d) if norm == "layer" else np.zeros(d), 1e-5, norm) for _ in range(2)
    ]
    return EncoderBlock(target, part, *norms, order)


@pytest.mark.parametrize("order", ["post", "pre"])
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.slow
def test_every_kind_of_block_runs_in_u(order, norm):
    x = np.random.default_rng(1).normal(size=(4, 6))
    for act, gated, mask in itertools.product(ACTIVATIONS, (False, True), ("none", "padding")):
        block = random_block(7, act=act, gated=gated, norm=norm, order=order, mask=mask)
        padding = [1, 1, 0, 1] if mask == "padding" else None
        found = BlockSimulator.for_block(block, 4)(block, x, padding)
        assert np.abs(found - block_result(block, x, padding)).max() < 1e-11


@given(
    n=st.integers(1, 5),
    heads=st.integers(1, 3),
    width=st.integers(1, 3),
    hidden=st.integers(1, 6),
    act=st.sampled_from(("relu", "gelu")),
    norm_first=st.booleans(),
    mask=st.sampled_from(("none", "causal", "padding")),
    seed=st.integers(0, 2**31 - 1),
)
@settings(max_examples=12, deadline=None)
def test_u_equals_the_encoder_layer_of_torch(n, heads, width, hidden, act, norm_first, mask, seed):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    torch.manual_seed(seed)
    d = heads * width
    layer = torch.nn.TransformerEncoderLayer(
        d, heads, hidden, 0.0, act, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    for tensor in layer.parameters():
        torch.nn.init.normal_(tensor)
    rng = np.random.default_rng(seed)
    x, seen = rng.normal(size=(n, d)), rng.integers(0, 2, n)
    seen[rng.integers(n)] = 1
    hidden_keys = torch.tensor(seen == 0)[None] if mask == "padding" else None
    later = torch.ones(n, n, dtype=torch.bool).triu(1) if mask == "causal" else None
    expected = layer(torch.tensor(x)[None], later, hidden_keys)[0].detach().numpy()
    state = {name: value.numpy() for name, value in layer.state_dict().items()}
    prefixed = {f"layers.0.{name}": value for name, value in state.items()}
    block = read_block_state(
        prefixed, 0, heads, act=act, order="pre" if norm_first else "post", mask=mask
    )
    found = BlockSimulator.for_block(block, n)(block, x, seen if mask == "padding" else None)
    # a norm over one column is 0 + bias in both; its rounding is amplified by 1/sqrt(eps)
    assert np.abs(found - expected).max() < 1e-9


def test_the_program_depends_on_the_shape_alone_and_has_few_heads():
    shape = Shape(6, 2, 3, 3, output=True)
    costs = {}
    for order in ("post", "pre"):
        block = BlockShape(shape, 5, "gelu", False, "layer", order)
        assert random_block(1, order=order).shape == block
        costs[order] = cost(block_long(4, block).program)
        larger = BlockShape(Shape(8, 4, 2, 2, output=True), 9, "gelu", False, "layer", order)
        assert cost(block_long(7, larger).program).heads_per_layer == costs[order].heads_per_layer
    assert (costs["post"].attention_depth, costs["post"].layers) == (19, 19)
    assert max(costs["post"].heads_per_layer) == 3


@pytest.mark.parametrize("order", ["post", "pre"])
def test_u_for_blocks_compiles_to_a_transformer(order):
    """Explicit weights by the compiler: average-hard heads, and one input for every block."""
    block = random_block(4, d=2, heads=1, hidden=2, act="relu", order=order)
    x = np.random.default_rng(0).normal(size=(2, 2))
    u = BlockSimulator(2, block.shape, "plain")
    found = u.read(u.compile()(u.encode(block, x).tolist()))
    assert np.abs(found - block_result(block, x)).max() < 1e-11


def test_a_block_that_does_not_fit_is_refused():
    block = random_block(0)
    with pytest.raises(RaspError, match="U for blocks does not take this block"):
        BlockSimulator.for_block(block, 3)(block, np.zeros((4, 6)))
    part = block.feed_forward
    with pytest.raises(RaspError, match=r"down does not fit the block \(d=6, hidden=5\)"):
        EncoderBlock(
            block.attention,
            FeedForward(part.up, part.b_up, part.down.T, part.b_down),
            block.norm1,
            block.norm2,
        )


def columns(weights):
    """(heads, d, width) as (d, heads * width)."""
    return np.ascontiguousarray(weights.transpose(1, 0, 2).reshape(weights.shape[1], -1))


def gpt2_files(folder, block):
    t, part = block.attention, block.feed_forward
    tensors = {
        "h.0.attn.c_attn.weight": np.hstack([columns(w) for w in (t.w_q, t.w_k, t.w_v)]),
        "h.0.attn.c_attn.bias": np.concatenate([b.ravel() for b in (t.b_q, t.b_k, t.b_v)]),
        "h.0.attn.c_proj.weight": t.w_o,
        "h.0.attn.c_proj.bias": t.b_o,
        "h.0.mlp.c_fc.weight": part.up,
        "h.0.mlp.c_fc.bias": part.b_up,
        "h.0.mlp.c_proj.weight": part.down,
        "h.0.mlp.c_proj.bias": part.b_down,
    }
    for name, norm in (("ln_1", block.norm1), ("ln_2", block.norm2)):
        tensors[f"h.0.{name}.weight"], tensors[f"h.0.{name}.bias"] = norm.weight, norm.bias
    save_file(tensors, folder / "model.safetensors")
    facts = {"model_type": "gpt2", "n_head": t.heads, "layer_norm_epsilon": 1e-5}
    (folder / "config.json").write_text(json.dumps(facts))


def test_a_block_of_gpt2_is_read_from_files(tmp_path):
    block = random_block(3, act="gelu_tanh", order="pre", mask="causal")
    gpt2_files(tmp_path, block)
    read = read_block(tmp_path, 0)
    assert read.shape == block.shape
    x = np.random.default_rng(0).normal(size=(3, 6))
    assert np.array_equal(block_result(read, x), block_result(block, x))


def test_what_is_not_supported_is_refused_by_name(tmp_path):
    gpt2_files(tmp_path, random_block(3, act="gelu_tanh", order="pre", mask="causal"))
    facts = {"model_type": "gpt2", "n_head": 2, "activation_function": "mish"}
    (tmp_path / "config.json").write_text(json.dumps(facts))
    with pytest.raises(RaspError, match="no activation 'mish'"):
        read_block(tmp_path, 0)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "opt", "n_head": 2}))
    with pytest.raises(RaspError, match="blocks of the family 'opt' are not known"):
        read_block(tmp_path, 0)
    block = {"layers.0.self_attn.in_proj_weight": np.zeros((12, 4))}
    block["layers.0.self_attn.out_proj.weight"] = np.zeros((4, 4))
    with pytest.raises(RaspError, match=r"the block 'layers\.0' lacks a tensor"):
        read_block_state(block, 0, 2)


ATTENTION = {
    "bert": [f"attention.{n}" for n in ("self.query", "self.key", "self.value", "output.dense")],
    "distilbert": [f"attention.{n}" for n in ("q_lin", "k_lin", "v_lin", "out_lin")],
    "vit": [
        f"attention.{n}"
        for n in ("attention.query", "attention.key", "attention.value", "output.dense")
    ],
    "bart": [f"self_attn.{n}" for n in ("q_proj", "k_proj", "v_proj", "out_proj")],
}
PLACES = {
    "bert": "encoder.layer.1", "distilbert": "transformer.layer.1", "vit": "encoder.layer.1",
    "bart": "encoder.layers.1",
}  # fmt: skip


def family_tensors(family, block):
    """The block under the names of a family whose linear layers store outputs first."""
    t, part, at = block.attention, block.feed_forward, PLACES[family]
    naming = next(n for n in NAMINGS if family in n.families)
    linear = dict(
        zip(
            ATTENTION[family],
            ((columns(t.w_q), t.b_q), (columns(t.w_k), t.b_k), (columns(t.w_v), t.b_v),
             (t.w_o, t.b_o)),
            strict=True,
        )
    )  # fmt: skip
    linear |= {naming.up: (part.up, part.b_up), naming.down: (part.down, part.b_down)}
    tensors = {}
    for name, (weight, bias) in linear.items():
        tensors[f"{at}.{name}.weight"] = np.ascontiguousarray(weight.T)
        tensors[f"{at}.{name}.bias"] = bias.ravel()
    for name, norm in ((naming.norm1, block.norm1), (naming.norm2, block.norm2)):
        tensors[f"{at}.{name}.weight"], tensors[f"{at}.{name}.bias"] = norm.weight, norm.bias
    return tensors


@pytest.mark.parametrize("family", ATTENTION)
def test_the_blocks_of_every_family_are_read(family, tmp_path):
    block = random_block(5, order="pre" if family == "vit" else "post")
    tensors = family_tensors(family, block)
    save_file(tensors, tmp_path / "model.safetensors")
    facts = {"model_type": family, "num_attention_heads": 2, "layer_norm_eps": 1e-5}
    (tmp_path / "config.json").write_text(json.dumps(facts))
    read = read_block(tmp_path, 1)
    x = np.random.default_rng(0).normal(size=(3, 6))
    assert read.shape == block.shape
    assert np.array_equal(block_result(read, x), block_result(block, x))


def test_a_block_with_tensors_that_nothing_reads_is_refused(tmp_path):
    tensors = family_tensors("bert", random_block(5))
    tensors["encoder.layer.1.crossattention.self.query.weight"] = np.ones((6, 6))
    save_file(tensors, tmp_path / "model.safetensors")
    facts = {"model_type": "bert", "num_attention_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps(facts))
    with pytest.raises(RaspError, match=r"has tensors that are not known here[^$]*crossattention"):
        read_block(tmp_path, 1)


@pytest.mark.slow
def test_a_block_of_the_pretrained_encoder(minilm):
    block = read_block(minilm, 2)
    x = np.random.default_rng(0).normal(size=(16, 384))
    found = BlockSimulator.for_block(block, 16)(block, x)
    assert np.abs(found - block_result(block, x)).max() < 1e-12
