"""Compiled programs in torch, ONNX and safetensors give what the network gives here."""

import numpy as np
import pytest

from raspire.compile import compile
from raspire.compile.sampling import sample
from raspire.export import load, save, to_onnx, to_torch
from tests.compile.programs import LIBRARY

SOME = [
    "reverse",
    "sort letters",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in LIBRARY
        if name not in ("reverse", "sort letters")
    ),
]


def inputs_of(compiled, alphabet, count=12):
    draw = np.random.default_rng(0)
    alphabet = list(alphabet)
    lengths = draw.integers(1, 8, size=count)
    words = [[alphabet[i] for i in draw.integers(len(alphabet), size=n)] for n in lengths]
    return words, compiled.transformer.inputs(words)


def decoded(compiled, logits, words):
    unembedding = compiled.transformer.unembedding
    return [unembedding.decode(r[1 : 1 + len(w)]) for r, w in zip(logits, words, strict=True)]


def close(a, b, tolerance):
    for x, y in zip(a, b, strict=True):
        assert x == pytest.approx(y, abs=tolerance) if isinstance(y[0], float) else x == y


@pytest.mark.parametrize("attention", ["hard", "softmax"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", SOME)
def test_torch(name, precision, attention):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    program, alphabet = LIBRARY[name]
    compiled = compile(
        program, alphabet=alphabet, max_length=8, attention=attention, precision=precision
    )
    words, ids = inputs_of(compiled, alphabet)
    with torch.no_grad():
        logits = to_torch(compiled.transformer, precision)(torch.from_numpy(ids)).numpy()
    close(decoded(compiled, logits, words), compiled.batch(words), 1e-5)


@pytest.mark.parametrize("attention", ["hard", "softmax"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", SOME)
def test_onnx(name, precision, attention):
    pytest.importorskip("onnx", reason="needs the extra onnx")
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    program, alphabet = LIBRARY[name]
    compiled = compile(
        program, alphabet=alphabet, max_length=8, attention=attention, precision=precision
    )
    words, ids = inputs_of(compiled, alphabet)
    session = runtime.InferenceSession(
        to_onnx(compiled.transformer, precision).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    (logits,) = session.run(["logits"], {"tokens": ids})
    close(decoded(compiled, logits, words), compiled.batch(words), 1e-5)


@pytest.mark.parametrize("name", ["sort letters", "fraction of previous"])
def test_a_saved_network_is_the_network(name, tmp_path):
    program, alphabet = LIBRARY[name]
    compiled = compile(program, alphabet=alphabet, max_length=8)
    loaded = load(save(compiled.transformer, tmp_path / "model.safetensors"))
    _, ids = inputs_of(compiled, alphabet)
    assert np.array_equal(loaded.logits(ids), compiled.transformer.logits(ids))
    assert loaded.notes["circuit"]["nodes"][0]["name"] == "embedding"
    assert loaded.notes["certificate"]["precision"] == "float64"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_in_torch_and_onnx(seed):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    compiled = compile(sample(seed, 12), alphabet="abc", max_length=8, attention="softmax")
    words, ids = inputs_of(compiled, "abc")
    with torch.no_grad():
        logits = to_torch(compiled.transformer)(torch.from_numpy(ids)).numpy()
    close(decoded(compiled, logits, words), compiled.batch(words), 1e-9)
    session = runtime.InferenceSession(
        to_onnx(compiled.transformer).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (logits,) = session.run(["logits"], {"tokens": ids})
    close(decoded(compiled, logits, words), compiled.batch(words), 1e-9)


STOCK = ["reverse", "sort letters", "Dyck-3", "double histogram", "fraction of previous"]


@pytest.mark.parametrize("name", STOCK)
def test_stock_parts_are_relu_softmax_and_one_mask(name):
    program, alphabet = LIBRARY[name]
    compiled = compile(program, alphabet=alphabet, max_length=9, attention="softmax", stock=True)
    model = compiled.transformer
    assert set(compiled.cost.units) <= {"relu", "linear"}
    assert {(h.kind, h.mask.causal) for _, _, h in model.heads()} == {("softmax", False)}
    assert compiled.verify(most=300, samples=50).holds


@pytest.mark.slow
@pytest.mark.parametrize("name", STOCK)
def test_transformer_lens(name):
    pytest.importorskip("transformer_lens", reason="needs the extra lens")
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    from raspire.export import to_lens

    program, alphabet = LIBRARY[name]
    compiled = compile(program, alphabet=alphabet, max_length=7, attention="softmax", stock=True)
    words, ids = inputs_of(compiled, alphabet)
    pad = compiled.transformer.embedding.pad
    tokens = torch.from_numpy(ids)
    with torch.no_grad():
        logits = to_lens(compiled.transformer)(tokens, attention_mask=(tokens != pad).long())
    close(decoded(compiled, logits.numpy(), words), compiled.batch(words), 1e-9)
