"""The commands that print the explicit weights of U, and U beside looped transformers."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from raspire.cli.compare import compare
from raspire.cli.theorems import theorems
from raspire.cli.weights import weights


def test_long_fits_on_one_page() -> None:
    result = CliRunner().invoke(weights, [])
    assert result.exit_code == 0
    assert result.output.startswith("U, construction long: 80 weights and 1 of the output")
    assert len(result.output.splitlines()) < 100


@pytest.mark.parametrize("construction", ["wide", "native", "pair"])
def test_other_constructions_have_a_summary(construction: str) -> None:
    result = CliRunner().invoke(weights, [construction, "--summary", "--softmax", "float64"])
    assert result.exit_code == 0
    assert "softmax ×1024" in result.output
    assert "real bound" in result.output


def test_weights_are_written_and_printed_as_json(tmp_path) -> None:
    path = tmp_path / "u.safetensors"
    result = CliRunner().invoke(weights, ["long", "--no-output", "--json", "--save", str(path)])
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert len(printed["weights"]) == 62
    assert path.exists()


def test_compare_prints_both_sides() -> None:
    result = CliRunner().invoke(compare, ["-k", "2", "--seeds", "1"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("attention")] == [
        ["attention", "looped"],
        ["attention", "native"],
        ["attention", "long"],
        ["attention", "wide"],
    ]
    assert "7 instructions apply 91" in result.output
    assert "transformer-vm" in result.output


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (theorems, ["softmax", "--json", "--markdown"]),
        (theorems, ["softmax", "--markdown"]),
        (theorems, ["--check", "--markdown"]),
        (compare, ["--json", "--markdown"]),
        (weights, ["long", "--json", "--summary"]),
    ],
)
def test_options_that_exclude_each_other_are_refused(command, options) -> None:
    result = CliRunner().invoke(command, options)
    assert result.exit_code == 2
    assert "give one of" in result.output or "leave it" in result.output
