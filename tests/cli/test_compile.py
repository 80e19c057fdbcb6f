"""``raspire compile`` and ``raspire doctor --genuine``, as somebody at a terminal meets them."""

import json

import pytest
from click.testing import CliRunner

from raspire.cli.check import check
from raspire.cli.compile import compile_command
from raspire.cli.doctor import doctor
from raspire.cli.draw import draw
from raspire.cli.explain import explain
from raspire.cli.run import run as run_command
from raspire.errors import BudgetError, RaspError
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
    assert "layer 2 head 0: flip" in result.output
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tokens", "[1,2,[3]]"], r"\[3\] is no token"),
        (["--tokens", "[1,null]"], "None is no token"),
        (["--tokens", "[1,1.0,true]"], "1 and 1.0 would be one token"),
        (["--tokens", "[0,NaN]"], "nan is no token"),
        (["--tokens", "[]"], "the alphabet is empty"),
        (["--reals", "2:1"], "interval is wrong(.|\n)*found: +2:1"),
        (["--reals", "nan:1"], "interval is wrong(.|\n)*found: +nan:1"),
    ],
)
def test_tokens_that_are_none_are_named(source, options, said):
    with pytest.raises(RaspError, match=said):
        run(compile_command, source, *options, "--max-length", 3)


@pytest.mark.parametrize("tokens", [["--alphabet", "ab"], ["--reals", "0:1"]])
def test_a_length_beyond_reason_is_refused_at_once(source, tokens):
    with pytest.raises(BudgetError, match=r"at most [56]0?,000 positions(.|\n)*99,999,999"):
        run(compile_command, source, *tokens, "--max-length", 99_999_999)


@pytest.mark.slow
def test_a_long_network_is_verified_on_few_long_inputs(source):
    result = run(compile_command, source, "--alphabet", "ab", "--max-length", 1500, "--json")
    assert json.loads(result.output)["verified"]["inputs"] < 4200 + 40


@pytest.mark.parametrize("place", ["x.foo", "x", "folder", "none/x.pt", "x.rasp"])
def test_a_place_that_cannot_be_written_is_refused_before_compiling(
    source, tmp_path, place, monkeypatch
):
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr("raspire.compile.compile", lambda *a, **o: pytest.fail("compiled"))
    with pytest.raises(RaspError, match="written"):
        run(compile_command, source, "--alphabet", "ab", "--max-length", 3, "--to",
            tmp_path / place)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (compile_command, ["--alphabet", "ab", "--max-length", 3]),
        (explain, ["--length", 9]),
        (run_command, ["--input", "ab"]),
        (check, []),
        (draw, ["--input", "ab"]),
    ],
)
def test_every_command_knows_our_own_programs(command, options):
    assert run(command, "reverse", *options).exit_code == 0
    with pytest.raises(RaspError, match="cannot read"):
        run(command, "revers", *options)
