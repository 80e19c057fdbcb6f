"""The commands run, check and draw, as a shell sees them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from raspire.cli.main import cli


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
def test_bad_input_is_one_message_and_exit_code_two(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "raspire.cli.main", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("Error: ")


def test_a_file_on_the_command_line_is_loaded_first(file: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "raspire.cli.main", file("x = 41;")],
        input="x + 1;\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "    value: x =  41\n    value: out =  42\n"
    assert done.returncode == 0
