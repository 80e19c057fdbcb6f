"""The commands run, check and draw, as a shell sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from raspire.cli.main import cli, main
from raspire.errors import RaspError
from raspire.language import from_rasp


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=True)


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        path = tmp_path / "demo.rasp"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def json_of(*arguments: str) -> dict[str, Any]:
    lines = call(*arguments).stdout.splitlines()
    assert len(lines) == 1
    found: dict[str, Any] = json.loads(lines[0])
    return found


def test_run_prints_one_json_line_for_the_last_expression(file: Any) -> None:
    path = file("flip = select(indices, length - 1 - indices, ==);\naggregate(flip, tokens);")
    found = json_of("run", path, "--input", "hello", "--json")
    assert found == {"kind": "sop", "value": list("olleh"), "type": "string"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("select(indices, 0, ==);", {"kind": "selector", "value": [[True, False]] * 2}),
        ("1 / 4;", {"kind": "atom", "value": [0.25], "type": "float"}),
        ("[1, [indices]];", {"kind": "list"}),
        ("{'a': 1};", {"kind": "dict", "value": [["a", 1]]}),
        ("def f(x) { return x; }", {"kind": "function", "value": ["console function: f(x)"]}),
        ("tokens('xyz');", {"kind": "sop", "value": ["x", "y", "z"], "type": "string"}),
        ("10.0 ^ 300 * 10.0 ^ 300;", {"kind": "atom", "value": ["inf"]}),
    ],
)
def test_every_kind_of_value(file: Any, text: str, wanted: dict[str, Any]) -> None:
    found = json_of("run", file(text), "--input", "ab", "--json")
    assert wanted.items() <= found.items()


def test_inputs_as_text_as_json_and_as_files(file: Any, tmp_path: Path) -> None:
    path = file("tokens_asis;")
    assert json_of("run", path, "--tokens", '[1, 2.5, "a"]', "--json")["kind"] == "error"
    assert json_of("run", path, "--tokens", "[1, 2.5]", "--json")["value"] == [1, 2.5]
    (tmp_path / "in.txt").write_text("abc\n")
    (tmp_path / "in.json").write_text("[true, false]")
    for name, wanted in (("in.txt", ["a", "b", "c"]), ("in.json", [True, False])):
        found = json_of("run", path, "--input-file", str(tmp_path / name), "--json")
        assert found["value"] == wanted


def test_an_error_as_json_has_category_and_place(file: Any) -> None:
    result = call("run", file("a = 1;\n b = a + lenght;"), "--json")
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert (found["kind"], found["category"]) == ("error", "undefined")
    assert (found["line"], found["column"]) == (2, 10)
    assert "lenght" in found["message"]


def test_our_own_programs_run_by_name() -> None:
    assert json_of("run", "sort", "--input", "banana", "--json")["value"] == list("aaabnn")


def test_check_runs_nothing_and_finds_everything(file: Any) -> None:
    path = file("a = tokens_str - 1;\nb = nosuch;\nc = 1 / 0;\nd = (;\n")
    result = call("check", path, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [e["line"] for e in found["errors"]] == [4]
    result = call("check", file("a = tokens_str - 1;\nb = nosuch;\nc = 1 / 0;\n"), "--json")
    errors = json.loads(result.stdout)["errors"]
    assert [(e["line"], e["category"]) for e in errors] == [
        (1, "type"),
        (2, "undefined"),
        (3, "zero-division"),
    ]


def test_check_tells_type_dialect_and_cost(file: Any) -> None:
    path = file("h = selector_width(select(tokens, tokens, ==));\nexp(h != 1);")
    result = call("check", path, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["dialect"] == "extended"
    assert found["additions"] == {"the function exp": 2, "the operator !=": 2}
    last = found["last"]
    assert (last["types"], last["depth"], last["heads_per_depth"]) == (["float"], 1, [2])
    assert last["attention"]["comparisons"] == ["=="]
    plain = call("check", path).stdout
    assert "attention depth 1, heads per depth: 2" in plain


def test_check_does_not_depend_on_the_example(file: Any) -> None:
    assert call("check", file("tokens_int + 1;")).exit_code == 0


def test_draw_prints_and_writes_a_picture(tmp_path: Path) -> None:
    target = tmp_path / "sort.svg"
    result = call("draw", "sort", "--input", "cab", "--svg", str(target))
    assert result.exit_code == 0
    assert "layer 2: 1 head" in result.stdout
    assert target.read_text().startswith("<svg")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "no/such.rasp"],
        ["check", "no/such.rasp"],
        ["draw", "no/such.rasp"],
        ["run", "sort", "--tokens", "[1"],
        ["run", "sort", "--tokens", "3"],
        ["run", "sort", "--tokens", "[]"],
        ["run", "sort", "--tokens", "[[1], null]"],
        ["run", "transpose", "--input", "abc"],
    ],
)
def test_bad_input_is_one_message_and_exit_code_two(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["raspire", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("Error: ")


def test_a_file_on_the_command_line_is_loaded_first(file: Any) -> None:
    result = CliRunner().invoke(cli, [file("x = 41;")], input="x + 1;\n")
    assert result.stdout == "    value: x =  41\n    value: out =  42\n"
    assert result.exit_code == 0


def test_a_failure_in_a_loaded_file_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("inner.rasp").write_text("y = 1;\nz = nope;")
    Path("outer.rasp").write_text('load "inner";\nx = tokens;')
    for command in ("run", "draw"):
        failure = call(command, "outer.rasp").exception
        assert isinstance(failure, RaspError)
        assert str(failure).startswith("inner.rasp:2:5: the name 'nope' is not defined")
    result = call("check", "outer.rasp", "--json")
    assert result.exit_code == 1
    assert [e["category"] for e in json.loads(result.stdout)["errors"]] == ["undefined"]
    with pytest.raises(RaspError, match="'nope' is not defined"):
        from_rasp(Path("outer.rasp").read_text())


def test_exit_ends_a_file(file: Any) -> None:
    assert call("run", file("1;\nexit\n2;")).stdout == "    value: out =  1\n"


def test_one_input_only(file: Any) -> None:
    result = call("run", "sort", "--input", "a", "--tokens", "[1]")
    assert result.exit_code == 2
    assert "give one input" in result.output


def test_an_empty_input_is_named(file: Any) -> None:
    assert "the input is empty" in str(call("run", "sort", "--input", "").exception)


def test_an_input_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"\xff\x00")
    failure = call("run", "sort", "--input-file", str(path)).exception
    assert isinstance(failure, RaspError)
    assert "is not text" in str(failure)


def test_a_program_without_work_is_drawn_with_its_value(file: Any, tmp_path: Path) -> None:
    picture = tmp_path / "y.svg"
    result = call("draw", file("y = tokens;"), "--input", "ab", "--svg", str(picture))
    assert result.stdout.splitlines()[:2] == [
        "y on a b",
        "  nothing to compute -> y = [a, b] (strings)",
    ]
    assert ">y</text>" in picture.read_text()
    assert "no value" in str(call("draw", file("# nothing")).exception)


def test_many_heads_are_counted_not_listed(file: Any) -> None:
    lines = ["a = indices;", *["a = aggregate(select(a, indices, <=), a + 1);"] * 60]
    found = call("check", file("\n".join(lines))).stdout
    assert "attention depth 60, heads per depth: 60 times 1 (as written)" in found


@pytest.mark.parametrize("name", ['we"ird.rasp', "plain", "it's.rasp"])
def test_any_file_opens_a_session(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("x = 41;")
    result = CliRunner().invoke(cli, ["repl", name], input="x + 1;\nnope;\n")
    assert result.stdout.startswith("    value: x =  41\n    value: out =  42\nconsole:2:1: ")
    assert result.exit_code == 2


def test_a_place_that_cannot_be_written_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "folder" / "x.svg"
    monkeypatch.setattr("sys.argv", ["raspire", "draw", "sort", "--svg", str(target)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("Error: ")
