"""Programs on real numbers: products, a matrix product, a row softmax, and U itself."""

import numpy as np
import pytest

from raspire.compile import REALS, Real, compile
from raspire.errors import UnsupportedError
from raspire.library.linear_algebra import matmul, row_softmax, transpose
from raspire.library.sorting import sort_pairs
from raspire.program.embedding import (
    aggregate,
    exp,
    indices,
    maximum,
    select,
    selector_width,
    tokens,
    where,
)
from raspire.simulator import AttentionTarget, UniversalSimulator


def run(compiled, rows):
    model = compiled.transformer
    return model.logits(model.inputs([list(row) for row in rows]))[:, 1:, 0]


def test_products_of_two_numeric_sops():
    before = aggregate(select(indices, indices, "<="), tokens)
    program = before * tokens + where(tokens > 0, tokens, exp(tokens)) - maximum(tokens, before)
    compiled = compile(program, alphabet=REALS, max_length=6)
    x = np.random.default_rng(0).normal(size=(5, 6))
    mean = np.cumsum(x, axis=1) / np.arange(1, 7)
    wanted = mean * x + np.where(x > 0, x, np.exp(x)) - np.maximum(x, mean)
    assert np.abs(run(compiled, x) - wanted).max() <= 1e-12


@pytest.mark.parametrize("construction", ["wide", "long"])
def test_a_matrix_product(construction):
    product = matmul(2, 3, 2, construction)
    compiled = compile(product.program, alphabet=REALS, max_length=product.length)
    draw = np.random.default_rng(1)
    a, b = draw.normal(size=(2, 3)), draw.normal(size=(3, 2))
    row = np.zeros(product.length)
    row[:12] = [*a.ravel(), *b.ravel()]
    found = product.output.positions()
    assert np.abs(run(compiled, [row])[0][found] - (a @ b).ravel()).max() <= 1e-12
    assert compiled.cost.layers == product.cost.attention_depth


@pytest.mark.parametrize("stable", [False, True])
def test_a_row_softmax(stable):
    softmax = row_softmax(2, 3, stable)
    compiled = compile(softmax.program, alphabet=Real(-9, 9), max_length=6)
    x = np.random.default_rng(2).normal(size=(2, 3))
    wanted = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    assert np.abs(run(compiled, [x.ravel()])[0] - wanted.ravel()).max() <= 1e-12


def test_a_transposition_copies():
    program = transpose(2, 3).program
    compiled = compile(program, alphabet=REALS, max_length=6, attention="softmax")
    x = np.random.default_rng(3).normal(size=(2, 3))
    assert np.array_equal(run(compiled, [x.ravel()])[0], x.T.ravel())


def u_and_target(construction):
    u = UniversalSimulator(n=3, d=2, heads=2, construction=construction)
    draw = np.random.default_rng(4)
    weights = [draw.normal(size=(2, 2)) for _ in range(4)]
    target = AttentionTarget.from_arrays(*weights, heads=2)
    return u, target, draw.normal(size=(3, 2))


HEADS = {"wide": (6, 2, 6, 0, 5), "long": (2, 1, 2, 1, 2, 1, 2, 1)}


@pytest.mark.parametrize("construction", ["wide", "long"])
def test_u_compiles_to_the_heads_of_its_construction(construction):
    u, target, x = u_and_target(construction)
    compiled = u.compile()
    assert compiled.cost.heads == HEADS[construction]
    values = compiled(u.encode(target, x).tolist())
    assert np.abs(u.read(values) - u(target, x)).max() <= 1e-12


@pytest.mark.parametrize("construction", ["wide", "long"])
def test_u_runs_in_torch_and_onnx(construction):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    from raspire.export import to_onnx, to_torch

    u, target, x = u_and_target(construction)
    model = u.compile(attention="softmax").transformer
    values = model.inputs([u.encode(target, x).tolist()])
    with torch.no_grad():
        logits = to_torch(model)(torch.from_numpy(values)).numpy()
    assert np.abs(u.read(logits[0, 1:, 0]) - u(target, x)).max() <= 1e-12
    session = runtime.InferenceSession(
        to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (outputs,) = session.run(["outputs"], {"values": values})
    assert np.abs(u.read(outputs[0, 1:]) - u(target, x)).max() <= 1e-12


@pytest.mark.parametrize("error", [1e-2, 1e-4])
@pytest.mark.parametrize("name", ["product", "softmax"])
def test_relu_alone_keeps_to_the_error_it_certifies(name, error):
    layout = matmul(2, 3, 2) if name == "product" else row_softmax(2, 3)
    options = {"alphabet": Real(-1, 1), "max_length": layout.length}
    plain = compile(layout.program, relu_error=error, **options)
    gated = compile(layout.program, **options)
    assert set(plain.cost.units) == {"relu"}
    x = np.random.default_rng(5).uniform(-1, 1, size=(200, layout.length))
    seen = np.abs(run(plain, x) - run(gated, x)).max()
    assert seen <= plain.certificate.error <= error
    assert plain.certificate.record()["error"] == plain.certificate.error


def test_relu_alone_has_no_jumps():
    with pytest.raises(UnsupportedError, match="no broken line"):
        compile(where(tokens > 0, tokens, 0), alphabet=Real(-1, 1), max_length=3, relu_error=0.1)
    with pytest.raises(UnsupportedError, match="not bounded"):
        compile(exp(tokens), alphabet=REALS, max_length=3, relu_error=0.1)


def test_choices_and_maxima_by_relu_alone_are_exact():
    program = where(indices > 1, maximum(tokens, 0.25), -tokens)
    compiled = compile(program, alphabet=Real(-1, 1), max_length=4, relu_error=1e-9)
    x = np.array([[0.5, -0.75, -0.5, 0.875]])
    assert run(compiled, x).tolist() == [[-0.5, 0.75, 0.25, 0.875]]


def test_a_selection_by_the_sign_of_a_real():
    positive = select(tokens > 0, True, "==")
    program = aggregate(positive, tokens) + selector_width(positive)
    compiled = compile(program, alphabet=REALS, max_length=5)
    x = np.array([[0.5, -1.0, 0.25, 3.0, -0.5]])
    assert run(compiled, x)[0] == pytest.approx(np.full(5, 3.75 / 3 + 3))


def test_a_sort_of_reals_with_a_position_for_every_pair():
    layout = sort_pairs(4)
    compiled = compile(layout.program, alphabet=REALS, max_length=layout.length)
    assert compiled.cost.heads == (2, 1, 1)
    values = [0.5, -1.25, 0.5, 3.0]
    padded = [*values, *[0.0] * (layout.length - 4)]
    assert run(compiled, [padded])[0][layout.output.positions()].tolist() == sorted(values)


@pytest.mark.parametrize("construction", ["wide", "long"])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_u_with_the_stable_softmax(construction, mask):
    options = {"construction": construction, "softmax": "stable", "mask": mask}
    u = UniversalSimulator(n=3, d=2, **options)
    draw = np.random.default_rng(6)
    weights = [draw.normal(size=(2, 2)) for _ in range(4)]
    target = AttentionTarget.from_arrays(*weights, heads=1, mask=mask)
    x = draw.normal(size=(3, 2))
    compiled = compile(u.program, alphabet=Real(-4, 4), max_length=u.sequence_length)
    found = u.read(compiled(u.encode(target, x).tolist()))
    assert np.abs(found - u(target, x)).max() <= 1e-12
