"""Whole encoder blocks as explicit weights, against NumPy and against torch's own layer."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from raspire.simulator import AttentionTarget
from raspire.simulator.block import BlockShape, EncoderBlock, FeedForward, Norm
from raspire.simulator.block_reader import read_block
from raspire.simulator.direct_block import block_result
from raspire.simulator.encoder import Encoder
from raspire.simulator.networks import native_block_network
from raspire.simulator.target import Shape


def random_block(shape: BlockShape, rng: np.random.Generator) -> EncoderBlock:
    s, hidden = shape.attention, shape.hidden

    def draw(*size: int) -> np.ndarray:
        return rng.normal(size=size)

    attention = AttentionTarget.from_arrays(
        draw(s.heads, s.d, s.d_k), draw(s.heads, s.d, s.d_k), draw(s.heads, s.d, s.d_v),
        draw(s.merged, s.d), b_q=draw(s.heads, s.d_k), b_v=draw(s.heads, s.d_v), b_o=draw(s.d),
        mask=s.mask,
    )  # fmt: skip
    gate = (draw(s.d, hidden), draw(hidden)) if shape.gated else (None, None)
    part = FeedForward(
        draw(s.d, hidden), draw(hidden), draw(hidden, s.d), draw(s.d), shape.activation, *gate
    )
    norms = [Norm(draw(s.d), draw(s.d), 10.0**-k, shape.norm) for k in (5, 6)]
    return EncoderBlock(attention, part, *norms, shape.order)


CASES = [
    *product(["relu", "gelu", "gelu_tanh", "silu"], [False], ["layer"], ["post"]),
    *product(["gelu", "silu"], [True], ["layer", "rms"], ["pre", "post"]),
    ("relu", False, "rms", "pre"),
]


@pytest.mark.parametrize(("activation", "gated", "norm", "order"), CASES)
@pytest.mark.parametrize("mask", ["none", "causal", "padding"])
def test_every_kind_of_block(
    activation: str, gated: bool, norm: str, order: str, mask: str
) -> None:
    attention = Shape(3, 2, 2, 1, True, mask)  # type: ignore[arg-type]
    shape = BlockShape(attention, 4, activation, gated, norm, order)  # type: ignore[arg-type]
    network = native_block_network(shape)
    for n in (1, 4):
        rng = np.random.default_rng(n)
        block, x = random_block(shape, rng), rng.normal(size=(n, 3))
        padding = np.arange(n) % 3 < 2 if mask == "padding" else None
        seen = slice(None) if padding is None else padding
        expected = block_result(block, x, padding)[seen]
        np.testing.assert_allclose(network(block, x, padding)[seen], expected, atol=1e-10)


def test_depth_does_not_depend_on_the_block() -> None:
    attention = Shape(3, 2, 2, 1, True)
    for norm, order, layers in (
        ("layer", "post", 13),
        ("layer", "pre", 13),
        ("rms", "post", 11),
        ("rms", "pre", 11),
    ):
        shape = BlockShape(attention, 4, "gelu", True, norm, order)  # type: ignore[arg-type]
        cost = native_block_network(shape).cost
        assert (cost.attention_depth, cost.layers) == (2, layers), (norm, order)


@pytest.mark.parametrize("pre", [False, True])
def test_torch_encoder_layer_is_an_oracle(pre: bool) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        4, 2, 6, dropout=0.0, activation="gelu", batch_first=True, norm_first=pre,
        dtype=torch.float64,
    ).eval()  # fmt: skip
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    state = {name: p.detach().numpy() for name, p in layer.named_parameters()}
    w = state["self_attn.in_proj_weight"].reshape(3, 4, 4).transpose(0, 2, 1)
    q, k, v = state["self_attn.in_proj_bias"].reshape(3, 4)
    attention = AttentionTarget.from_arrays(
        *w, state["self_attn.out_proj.weight"].T, heads=2, b_q=q, b_k=k, b_v=v,
        b_o=state["self_attn.out_proj.bias"],
    )  # fmt: skip
    part = FeedForward(
        state["linear1.weight"].T, state["linear1.bias"],
        state["linear2.weight"].T, state["linear2.bias"],
    )  # fmt: skip
    norms = [Norm(state[f"norm{i}.weight"], state[f"norm{i}.bias"], 1e-5) for i in (1, 2)]
    block = EncoderBlock(attention, part, *norms, "pre" if pre else "post")
    x = torch.randn(1, 5, 4, dtype=torch.float64)
    expected = layer(x)[0].detach().numpy()
    found = native_block_network(block.shape)(block, x[0].numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_saturated_and_exported() -> None:
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    from raspire.export import to_onnx

    shape = BlockShape(Shape(2, 1, 2, 2, True), 3, "gelu", False, "layer", "post")
    rng = np.random.default_rng(0)
    block, x = random_block(shape, rng), rng.normal(size=(3, 2))
    network = native_block_network(shape).saturated()
    expected = block_result(block, x)
    np.testing.assert_allclose(network(block, x, engine="dense"), expected, atol=1e-11)
    session = runtime.InferenceSession(to_onnx(network.model).SerializeToString())
    values = network.encode(block, x)[None]
    logits = session.run(["logits"], {"values": values})[0]
    np.testing.assert_allclose(logits[0, network.tokens.count :], expected, atol=1e-11)


@pytest.mark.slow
def test_a_pretrained_encoder_loops_one_network(minilm: Path) -> None:
    encoder = Encoder.open(minilm)
    ids, _ = encoder.tokens("The quick brown fox jumps over the lazy dog, and then sleeps.")
    direct = found = encoder.embed(ids)
    network = native_block_network(read_block(minilm, 0).shape)
    assert network.cost.attention_depth == 2
    for layer in range(encoder.layers):
        found = network(read_block(minilm, layer), found)
        direct = encoder.block(direct, layer)
    np.testing.assert_allclose(found, direct, atol=1e-10)
