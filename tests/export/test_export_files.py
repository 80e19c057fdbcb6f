"""Files: round trips, labels of every kind, atomic writes, and errors that say what is wrong."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from raspire import full, selector_width
from raspire.compile import compile
from raspire.errors import RaspError
from raspire.export import load, save
from raspire.export.labels import from_json, to_json
from raspire.files import write_whole
from raspire.transformer import cost, forward
from tests.transformer.random_models import random_inputs, random_transformer


@pytest.mark.parametrize("values", [False, True])
def test_safetensors_round_trip(tmp_path, values: bool) -> None:
    model = random_transformer(0, values=values)
    model.notes.update(source="x", table={("a", 1): Fraction(1, 3)}, function=len)
    path = save(model, tmp_path / "model.safetensors")
    again = load(path)
    inputs = random_inputs(model, 0)
    np.testing.assert_array_equal(forward(again, inputs), forward(model, inputs))
    assert cost(again) == cost(model)
    assert again.spaces == model.spaces
    assert again.notes == {"source": "x", "table": {("a", 1): Fraction(1, 3)}}
    beside = json.loads((tmp_path / "model.json").read_text())
    assert beside["unembedding"]["labels"] == ["x", "y", "z"]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "value",
    ["a", 1, 1.5, True, None, Fraction(2, 7), (1, ("b", None)), float("inf"), frozenset({1, 2})],
)
def test_labels_come_back(value: object) -> None:
    found = from_json(json.loads(json.dumps(to_json(value))))
    assert found == value
    assert type(found) is type(value)


def test_unwritable_labels_are_refused() -> None:
    with pytest.raises(RaspError, match="type object cannot be written"):
        to_json(object())


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    target = write_whole(tmp_path / "a.bin", b"old")
    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(RaspError, match="disk full"):
        write_whole(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_errors_of_files(tmp_path) -> None:
    with pytest.raises(RaspError, match="there is no file"):
        load(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"nonsense")
    with pytest.raises(RaspError, match="not a safetensors file"):
        load(tmp_path / "bad.safetensors")
    with pytest.raises(RaspError, match="cannot be written"):
        save(random_transformer(0), tmp_path / "model.doc")


def test_a_compiled_program_is_written_like_its_transformer(tmp_path) -> None:
    compiled = compile(selector_width(full), alphabet="ab", max_length=3)
    again = load(save(compiled, tmp_path / "model.safetensors"))
    assert again.run("aba") == compiled("aba") == [3, 3, 3]
