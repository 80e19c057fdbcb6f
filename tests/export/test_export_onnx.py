"""The ONNX file, run by onnxruntime, against the NumPy forward pass; what its metadata says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.transformer.random_models import random_inputs, random_transformer

onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")

from raspire.export import save, to_onnx  # noqa: E402
from raspire.export.onnx_model import metadata  # noqa: E402
from raspire.export.onnx_ops import GATES, PLAIN  # noqa: E402
from raspire.transformer import Builder, cost, families, forward, read, write  # noqa: E402


def session(model, precision: str = "float64"):
    return runtime.InferenceSession(
        to_onnx(model, precision).SerializeToString(), providers=["CPUExecutionProvider"]
    )


def test_every_family_has_an_onnx_form() -> None:
    assert set(GATES) == set(families.GATES)
    assert set(PLAIN) == set(families.PLAIN)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("gate", sorted(families.GATES))
def test_gates_agree_with_numpy(gate: str, precision: str) -> None:
    b = Builder(gate)
    x, y = b.space("x"), b.space("y")
    b.values(write(x))
    b.layer().units("u", f"gated:{gate}", None, write(y), second=read(x))
    b.numeric(read(y))
    values = np.linspace(0.1, 3, 30)[None] * (1 if gate in ("log", "sqrt", "rsqrt") else -1)
    outputs = session(b.build(), precision).run(["outputs"], {"values": values})[0]
    tolerance = 1e-13 if precision == "float64" else 1e-5
    expected = families.GATES[gate](values)
    np.testing.assert_allclose(outputs, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_onnx_agrees(seed: int, values: bool, precision: str) -> None:
    model = random_transformer(seed, hard=precision == "float64", values=values)
    run = session(model, precision)
    tolerance = 1e-10 if precision == "float64" else 2e-3
    for length in (1, 5, 9):
        inputs = random_inputs(model, seed, count=3, length=length)
        outputs, logits = run.run(["outputs", "logits"], {run.get_inputs()[0].name: inputs})
        real = ~np.isnan(inputs) if values else inputs != 1
        expected = forward(model, inputs)
        np.testing.assert_allclose(logits[real], expected[real], rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(outputs, logits.argmax(-1))


def test_the_file_says_what_it_is(tmp_path) -> None:
    model = random_transformer(0)
    path = save(model, tmp_path / "model.onnx")
    about = metadata(path)
    assert about["vocabulary"] == ["start", "fill", "a", "b", "c"]
    assert (about["bos"], about["pad"], about["start"], about["max_length"]) == (0, 1, 1, 9)
    assert about["output_labels"] == ["x", "y", "z"]
    assert about["attention"] == ["average-hard", "softmax"]
    proto = onnx.load(path)
    assert [o.version for o in proto.opset_import] == [18]
    scopes = {".".join(n.name.split(".")[:5]) for n in proto.graph.node}
    heads = {s for s in scopes if ".attn.head." in s}
    assert len(heads) == sum(cost(model).heads) == sum(about["cost"]["heads"])
    assert list(tmp_path.iterdir()) == [path]


def test_positions_past_the_table_are_refused_or_extended() -> None:
    model = random_transformer(0)
    longer = random_inputs(random_transformer(0, length=12), 0, length=12)
    with pytest.raises(Exception, match="out of data bounds"):
        session(model).run(None, {"tokens": longer})
    open_ended = replace(model, embedding=replace(model.embedding, extend=True))
    found = session(open_ended).run(["logits"], {"tokens": longer})[0]
    np.testing.assert_allclose(found[0], forward(open_ended, longer)[0], rtol=1e-10, atol=1e-10)


def test_vector_values_and_numeric_rows() -> None:
    b = Builder("rows")
    x, y = b.space("x", 3), b.space("y", 2)
    b.values(write(x))
    b.layer().head(
        "mean", query=read(x[0]) * 0, key=read(x[0]), value=read(x.part([1, 2])), output=write(y)
    )
    b.numeric(read(y))
    model = b.build()
    values = np.random.default_rng(0).normal(size=(2, 5, 3))
    values[1, 3:] = np.nan
    outputs = session(model).run(["outputs"], {"values": values})[0]
    np.testing.assert_allclose(outputs, forward(model, values), atol=1e-14)
    np.testing.assert_allclose(outputs[1, 0], values[1, :3, 1:].mean(0), atol=1e-14)
