"""U as explicit weights against direct attention, against itself, and against its stated cost."""

from __future__ import annotations

import time
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raspire.errors import RaspError
from raspire.simulator import AttentionTarget, UniversalSimulator, attention
from raspire.simulator.networks import (
    Network,
    long_network,
    native_network,
    pair_network,
    render,
    weights_table,
    wide_network,
)
from raspire.simulator.target import Shape

NAMES = ("long", "stable", "wide", "native", "pair")


def build(name: str, n: int, shape: Shape) -> Network:
    if name in ("long", "stable"):
        return long_network(n, shape, "plain" if name == "long" else "stable")
    if name == "native":
        return native_network(shape)
    return (wide_network if name == "wide" else pair_network)(n, shape)


def random_target(shape: Shape, seed: int) -> tuple[AttentionTarget, np.random.Generator]:
    rng = np.random.default_rng(seed)
    h, d, dk, dv = shape.heads, shape.d, shape.d_k, shape.d_v

    def draw(*size: int) -> np.ndarray:
        return rng.normal(size=size)

    target = AttentionTarget.from_arrays(
        draw(h, d, dk), draw(h, d, dk), draw(h, d, dv), draw(h * dv, d) if shape.output else None,
        b_q=draw(h, dk), b_k=draw(h, dk), b_v=draw(h, dv), b_o=draw(d) if shape.output else None,
        mask=shape.mask,
    )  # fmt: skip
    return target, rng


def padding_for(shape: Shape, n: int) -> np.ndarray | None:
    return (np.arange(n) != 1).astype(float) if shape.mask == "padding" else None


SHAPES = st.builds(
    Shape,
    d=st.integers(1, 4),
    heads=st.integers(1, 2),
    d_k=st.integers(1, 3),
    d_v=st.integers(1, 3),
    output=st.booleans(),
    mask=st.sampled_from(["none", "causal", "padding"]),
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, derandomize=True)
@given(shape=SHAPES, n=st.integers(1, 3), seed=st.integers(0, 99))
def test_every_construction_computes_the_target(name: str, shape: Shape, n: int, seed: int) -> None:
    if shape.mask == "padding" and name in ("pair", "stable"):
        with pytest.raises(RaspError, match="padding mask"):
            build(name, n, shape)
        return
    target, rng = random_target(shape, seed)
    x = rng.normal(size=(n, shape.d))
    padding = padding_for(shape, n)
    seen = slice(None) if padding is None else padding == 1
    network = build(name, n, shape)
    expected = attention(target, x, padding)[seen]
    for engine in ("dense", "gather"):
        found = network(target, x, padding, engine=engine)[seen]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["long", "wide", "native", "pair"])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_saturated_softmax_equals_average_hard_bit_for_bit(name: str, mask: str) -> None:
    shape = Shape(3, 2, 2, 2, True, mask)  # type: ignore[arg-type]
    target, rng = random_target(shape, 1)
    x = rng.normal(size=(3, 3))
    network = build(name, 3, shape)
    soft = network.saturated()
    assert {head.kind for _, _, head in soft.model.heads()} == {"softmax"}
    scales = {h.scale for _, _, h in soft.model.heads() if "target" not in h.name}
    assert scales == {1024.0}
    hard_result = network(target, x, engine="dense")
    np.testing.assert_array_equal(soft(target, x, engine="dense"), hard_result)
    np.testing.assert_allclose(soft(target, x, engine="gather"), hard_result, atol=1e-12)


def test_the_input_of_long_and_wide_is_that_of_the_programs() -> None:
    shape = Shape(3, 2, 2, 1, True)
    target, rng = random_target(shape, 2)
    x = rng.normal(size=(2, 3))
    for name in ("long", "wide"):
        program = UniversalSimulator.for_target(target, 2, name)  # type: ignore[arg-type]
        np.testing.assert_array_equal(
            build(name, 2, shape).encode(target, x, None), program.encode(target, x)
        )
        np.testing.assert_allclose(
            build(name, 2, shape)(target, x), program(target, x), rtol=1e-12, atol=1e-13
        )


@pytest.mark.parametrize("output", [False, True])
def test_long_is_the_same_few_weights_for_every_shape(output: bool) -> None:
    tables = []
    for n, d, h, dk, dv in ((1, 1, 1, 1, 1), (3, 2, 2, 3, 1), (2, 5, 3, 1, 2)):
        rows = weights_table(long_network(n, Shape(d, h, dk, dv, output)))
        tables.append([(r.layer, r.part, r.matrix, r.source, r.target) for r in rows])
        shaped = {r.value for r in rows} - {1.0, 2.0, -1.0}
        assert shaped <= {d + 1.0, sqrt(dk), h * dv + 1.0}
    assert tables[0] == tables[1] == tables[2]
    assert len(tables[0]) - 1 == (80 if output else 61)


def test_the_table_says_what_every_weight_means() -> None:
    text = render(long_network(2, Shape(3, 1, 2, 2, True)))
    assert text.startswith("U, construction long: 80 weights and 1 of the output; layers 8")
    assert "averages query · key into score, times 1.41421" in text
    assert "left           the address of the first factor" in text


def test_costs_are_those_of_the_constructions() -> None:
    d, h, dk, dv, n = 3, 2, 2, 1, 4
    m, inputs, merged = h * (2 * dk + dv), d + 1, h * dv
    plain, output = Shape(d, h, dk, dv, False), Shape(d, h, dk, dv, True)
    expected = {
        ("long", plain): (6, 6, (2, 1, 2, 1, 2, 1)),
        ("long", output): (8, 8, (2, 1, 2, 1, 2, 1, 2, 1)),
        ("stable", plain): (7, 7, (2, 1, 2, 1, 1, 2, 1)),
        ("wide", plain): (3, 4, (2 * inputs, 2 * dk, 2 * n, 0)),
        ("wide", output): (4, 5, (2 * inputs, 2 * dk, 2 * n, 0, 2 * merged + 1)),
        ("native", plain): (2, 2, (inputs, h)),
        ("native", output): (2, 2, (inputs + merged + 1, h)),
        ("pair", plain): (3, 3, (2, m, h)),
        ("pair", output): (4, 4, (2, m, h, merged + 1)),
    }
    for (name, shape), (depth, layers, heads) in expected.items():
        cost = build(name, n, shape).cost
        assert (cost.attention_depth, cost.layers, cost.heads) == (depth, layers, heads), name
    assert "gated:exp" not in native_network(output).cost.units


def test_native_is_one_network_for_every_n() -> None:
    network = native_network(Shape(3, 2, 2, 2, True, "causal"))
    target, rng = random_target(network.shape, 3)
    for n in (1, 2, 7, 30):
        x = rng.normal(size=(n, 3))
        np.testing.assert_allclose(network(target, x), attention(target, x), rtol=1e-11, atol=1e-12)


def test_large_scores_need_no_care_in_native_and_stable() -> None:
    shape = Shape(2, 1, 2, 2, False)
    target, rng = random_target(shape, 4)
    x = 30 * rng.normal(size=(3, 2))
    for name in ("native", "pair", "stable"):
        found = build(name, 3, shape)(target, x)
        np.testing.assert_allclose(found, attention(target, x), rtol=1e-9, atol=1e-9)


def test_another_shape_is_refused() -> None:
    target, _ = random_target(Shape(3, 1, 2, 2, False), 0)
    with pytest.raises(RaspError, match="another shape"):
        native_network(Shape(2, 1, 2, 2, False))(target, np.zeros((1, 3)))


@pytest.mark.parametrize("name", ["long", "wide", "native", "pair"])
@pytest.mark.parametrize("soft", [False, True])
def test_torch_and_onnx_agree(name: str, soft: bool) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    pytest.importorskip("onnx", reason="needs the extra onnx")
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    from raspire.export import to_onnx, to_torch

    shape = Shape(2, 1, 2, 1, True)
    target, rng = random_target(shape, 5)
    x = rng.normal(size=(2, 2))
    network = build(name, 2, shape)
    network = network.saturated() if soft else network
    sequence = network.encode(target, x, None)[None]
    places = network.sorted_positions(2)
    expected = attention(target, x)
    logits = to_torch(network.model)(torch.from_numpy(sequence)).detach().numpy()
    np.testing.assert_allclose(network.decode(logits[0, places], 2), expected, atol=1e-12)
    session = runtime.InferenceSession(to_onnx(network.model).SerializeToString())
    logits = session.run(["logits"], {"values": sequence})[0]
    np.testing.assert_allclose(network.decode(logits[0, places], 2), expected, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_torch_attention_is_an_oracle_too(name: str) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(4, 2, dtype=torch.float64, batch_first=True)
    torch.nn.init.normal_(layer.in_proj_bias)
    w = layer.in_proj_weight.detach().numpy().reshape(3, 4, 4).transpose(0, 2, 1)
    q, k, v = layer.in_proj_bias.detach().numpy().reshape(3, 4)
    target = AttentionTarget.from_arrays(
        *w, layer.out_proj.weight.detach().numpy().T, heads=2, b_q=q, b_k=k, b_v=v,
        b_o=layer.out_proj.bias.detach().numpy(),
    )  # fmt: skip
    x = torch.randn(1, 3, 4, dtype=torch.float64)
    expected = layer(x, x, x, need_weights=False)[0][0].detach().numpy()
    found = build(name, 3, target.shape)(target, x[0].numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_native_at_the_shape_of_a_pretrained_layer() -> None:
    shape = Shape(384, 12, 32, 32, True)
    rng = np.random.default_rng(0)
    target = AttentionTarget.from_arrays(
        *(rng.normal(size=(12, 384, 32)) / 20 for _ in range(3)),
        rng.normal(size=(384, 384)) / 20,
        b_o=rng.normal(size=384),
    )
    x = rng.normal(size=(16, 384))
    start = time.monotonic()
    found = native_network(shape)(target, x)
    assert time.monotonic() - start < 30
    np.testing.assert_allclose(found, attention(target, x), atol=1e-11)
