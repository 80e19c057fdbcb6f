"""``raspire compile`` and ``raspire doctor --genuine``, as somebody at a terminal meets them."""

import json

import pytest
from click.testing import CliRunner

from raspire.cli.compile import compile_command
from raspire.cli.doctor import doctor
from raspire.errors import RaspError
from raspire.export import load
from raspire.transformer import cost

REVERSE = """flip = select(indices, length - 1 - indices, ==);
reverse = aggregate(flip, tokens);
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "reverse.rasp"
    path.write_text(REVERSE)
    return str(path)


def run(command, *args):
    return CliRunner().invoke(command, [str(a) for a in args], catch_exceptions=False)


def test_compile_prints_cost_circuit_certificate_and_verification(source):
    result = run(compile_command, source, "--alphabet", "abc", "--max-length", 12)
    assert result.exit_code == 0
    assert "attention depth 2, layers 2" in result.output
    assert "layer 1 head 0: flip" in result.output
    assert "reverse == 'b'" in result.output
    assert "smallest score gap 1" in result.output
    assert "0 wrong" in result.output


@pytest.mark.parametrize("options", [(), ("--attention", "softmax"), ("--precision", "float32")])
def test_the_written_file_is_the_network_whose_cost_was_printed(source, tmp_path, options):
    path = tmp_path / "model.safetensors"
    result = run(compile_command, source, "--alphabet", "abc", "--max-length", 12, "--to", path,
                 "--json", *options)  # fmt: skip
    printed = json.loads(result.output)
    loaded = load(path)
    counted = cost(loaded)
    assert printed["cost"]["layers"] == counted.layers
    assert printed["cost"]["width"] == counted.width
    assert tuple(printed["cost"]["heads"]) == counted.heads
    assert printed["verified"]["wrong_positions"] == 0
    assert loaded.run("abca") == list("acba")


def test_onnx_and_a_circuit_file(source, tmp_path):
    pytest.importorskip("onnx", reason="needs the extra onnx")
    path, circuit = tmp_path / "model.onnx", tmp_path / "circuit.json"
    result = run(compile_command, source, "--alphabet", "abc", "--max-length", 6, "--to", path,
                 "--circuit", circuit)  # fmt: skip
    assert f"written to {path}" in result.output
    nodes = json.loads(circuit.read_text())["nodes"]
    assert "reverse.rasp:2" in json.dumps(nodes)
    checked = run(doctor, "--genuine", path)
    assert checked.exit_code == 0
    assert "weights are constants of the file" in checked.output


def test_a_rotated_file_computes_the_same(source, tmp_path):
    path = tmp_path / "model.safetensors"
    run(compile_command, source, "--alphabet", "ab", "--max-length", 6, "--to", path,
        "--rotate", 3)  # fmt: skip
    assert load(path).run("abb") == list("bba")


def test_doctor_finds_a_compiled_model_genuine(source, tmp_path):
    path = tmp_path / "model.safetensors"
    run(compile_command, source, "--alphabet", "ab", "--max-length", 6, "--to", path)
    result = run(doctor, "--genuine", path)
    assert result.exit_code == 0
    assert "NO" not in result.output
    assert "average-hard" in result.output


def test_doctor_lists_the_extras():
    result = run(doctor)
    assert result.exit_code == 0
    assert "torch" in result.output


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (REVERSE, (), "compile has to know the tokens"),
        (REVERSE, ("--alphabet", "ab", "--reals", "0:1"), "compile has to know the tokens"),
        (REVERSE, ("--tokens", "{1}"), "the tokens cannot be read"),
        ("full = select(1, 1, ==);", ("--alphabet", "ab"), "is a selector"),
        ("selector_width(select(tokens_float, tokens_float, <));", ("--reals", "0:1"),
         "cannot be listed"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said(tmp_path, text, options, message):
    path = tmp_path / "program.rasp"
    path.write_text(text)
    with pytest.raises(RaspError, match=message):
        run(compile_command, path, "--max-length", 4, *options)
