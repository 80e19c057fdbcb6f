"""``raspire prove``: certificates of U and of pairs of programs, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from raspire.cli.prove import prove
from raspire.errors import RaspTypeError, UnsupportedError
from raspire.verify.certificate import Certificate


def call(*arguments: str) -> Result:
    return CliRunner().invoke(prove, list(arguments))


@pytest.mark.parametrize("construction", ["long", "wide", "native", "pair"])
def test_every_construction(construction: str) -> None:
    run = call("simulator", "--n", "2", "--d", "2", "--construction", construction)
    assert run.exit_code == 0, run.output
    assert "for every T and X" in run.output
    assert "holds (identity over a finite field" in run.output


def test_programs_or_weights_under_masks() -> None:
    shape = ["simulator", "--n", "2", "--d", "2", "--construction", "wide"]
    assert "U (wide" in call(*shape, "--mask", "padding", "--softmax", "stable").output
    assert "the weights of wide" in call(*shape, "--mask", "causal", "--weights").output
    refused = call(*shape, "--softmax", "stable", "--weights")
    assert isinstance(refused.exception, UnsupportedError)


def test_the_certificate_is_written(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    run = call("simulator", "--n", "1", "--d", "1", "--random-prime", "--out", str(path))
    assert run.exit_code == 0, run.output
    assert Certificate.from_json(path.read_text(encoding="utf-8")).holds


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    texts = {
        "product.rasp": "value = (tokens_int + 1) * (tokens_int - 1);",
        "square.rasp": "value = tokens_int * tokens_int - 1;",
        "selector.rasp": "s = select(indices, indices, ==);",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    product, square, selector = (str(tmp_path / name) for name in texts)
    return product, square, selector


def test_programs_by_words(files: tuple[str, str, str]) -> None:
    run = call("programs", files[0], files[1], "--alphabet", "[0, 1, 2]", "--longest", "3")
    assert run.exit_code == 0, run.output
    assert "inputs: 40" in run.output
    differs = call("programs", "sort", "reverse", "--alphabet", "ab", "--longest", "2")
    assert differs.exit_code == 1
    assert "DOES NOT HOLD" in differs.output
    assert "input: ['a', 'b']" in differs.output


def test_programs_by_a_solver(files: tuple[str, str, str]) -> None:
    pytest.importorskip("z3", reason="needs the extra proof")
    run = call("programs", files[0], files[1], "--integers", "2")
    assert run.exit_code == 0, run.output
    assert "decided by a solver" in run.output


def test_bad_requests(files: tuple[str, str, str]) -> None:
    assert call("programs", files[0], files[1]).exit_code == 2
    run = call("programs", files[0], files[2], "--alphabet", "ab")
    assert isinstance(run.exception, RaspTypeError)
    assert "is no s-op" in str(run.exception)
