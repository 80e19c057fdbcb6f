"""U through the compiler: a network with explicit weights, in NumPy, torch and ONNX."""

import numpy as np
import pytest

from raspire.simulator import AttentionTarget, UniversalSimulator
from raspire.simulator.universal import score_bound
from tests.simulator.attention_textbook import plain_attention, random_weights


def small_case():
    n, d, heads, d_k, d_v = 2, 3, 2, 1, 2
    rng = np.random.default_rng(11)
    weights = random_weights(rng, d, heads, d_k, d_v)
    w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o = weights
    target = AttentionTarget.from_arrays(
        w_q, w_k, w_v, w_o, heads=heads, b_q=b_q, b_k=b_k, b_v=b_v, b_o=b_o
    )
    x = rng.standard_normal((n, d))
    return target, x, plain_attention(weights, x, heads)


def real_case(minilm):
    """Two heads of the pretrained layer, two columns each, on the first four coordinates."""
    whole = AttentionTarget.from_safetensors(minilm, 3)
    w_q, w_k, w_v = (w[:2, :4, :2] for w in (whole.w_q, whole.w_k, whole.w_v))
    b_q, b_k, b_v = (b[:2, :2] for b in (whole.b_q, whole.b_k, whole.b_v))
    target = AttentionTarget.from_arrays(
        w_q, w_k, w_v, whole.w_o[:4, :4], b_q=b_q, b_k=b_k, b_v=b_v, b_o=whole.b_o[:4]
    )
    x = np.random.default_rng(1).standard_normal((2, 4))
    flat = [np.hstack(list(w)) for w in (w_q, w_k, w_v)]
    weights = (flat[0], b_q.ravel(), flat[1], b_k.ravel(), flat[2], b_v.ravel())
    expected = plain_attention((*weights, target.w_o, target.b_o), x, 2)
    return target, x, expected


@pytest.mark.parametrize("attention", ["hard", "softmax"])
@pytest.mark.parametrize("construction", ["long", "wide"])
def test_the_compiled_network_computes_the_target(construction, attention):
    target, x, expected = small_case()
    assert score_bound(target, x) < 700
    u = UniversalSimulator.for_target(target, len(x), construction)
    network = u.compile(attention=attention)
    assert network.cost.attention_depth == u.cost.attention_depth
    found = u.read(network(u.encode(target, x).tolist()))
    assert np.abs(found - expected).max() < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("construction", ["long", "wide"])
def test_torch_and_onnx_run_u_on_a_small_real_target(construction, minilm):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    import onnxruntime

    from raspire.export import to_onnx, to_torch

    target, x, expected = real_case(minilm)
    u = UniversalSimulator.for_target(target, len(x), construction)
    network = u.compile(attention="softmax").transformer
    values = network.inputs([u.encode(target, x).tolist()])  # the beginning of sequence first
    with torch.no_grad():
        theirs = to_torch(network)(torch.tensor(values)).numpy()[0]
    assert np.abs(u.read(theirs.ravel()[1:]) - expected).max() < 1e-11
    session = onnxruntime.InferenceSession(to_onnx(network).SerializeToString())
    theirs = session.run(["outputs"], {"values": values})[0][0]
    assert np.abs(u.read(theirs.ravel()[1:]) - expected).max() < 1e-11
