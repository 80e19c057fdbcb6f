"""The session: what it shows, its commands, its prompt and its pipe."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from raspire.language import read_source
from raspire.session import prompt
from raspire.session.session import Quit, Session


def shown(text: str, example: object = "hello") -> list[str]:
    return [m.text for m in Session(example).feed(text)]


def test_sops_and_selectors() -> None:
    assert shown("a = indices * 0.5;") == [
        "     s-op: a",
        ' \t Example: a("hello") = [0.0, 0.5, 1.0, 1.5, 2.0] (floats)',
    ]
    assert shown("select(tokens, 'l', ==);", "lel")[1:] == [
        " \t Example:",
        "\t\t\t    l e l",
        "\t\t\tl | 1   1",
        "\t\t\te | 1   1",
        "\t\t\tl | 1   1",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("3 / 2;", "    value: out =  1.5"),
        ('x = "a";', '    value: x =  "a"'),
        ("True;", "    value: True =  True"),
        ("[1, 'a', True];", "     list: out = [1, 'a', True]"),
        ("{1: 2.5};", "     dict: out = {1: 2.5}"),
        ("def f(a, b) { return a; }", "     console function: f(a, b)"),
        ("max;", "     RASP_support/rasplib function: max(a, b)"),
        ('tokens("hi");', "\t =  [h, i] (strings)"),
        ("(1 / (indices + 3))([1, 2]);", "\t =  [0.333, 0.25] (floats)"),
        ("(indices > 0)('ab');", "\t =  [F, T] (bools)"),
        ("length('hello');", "\t =  [5]*5 (ints)"),
    ],
)
def test_the_forms_of_the_original(text: str, line: str) -> None:
    assert shown(text) == [line]


def test_nested_collections_show_every_entry_with_its_key() -> None:
    lines = shown('{"a": indices, "b": 2};')
    assert lines[0] == "     dict: out ="
    assert lines[-1] == '\t ["b"] = 2'
    assert any('Example: out["a"]("hello") = [0, 1, 2, 3, 4] (ints)' in line for line in lines)


def test_examples() -> None:
    text = 'set example [1, 2]\nset selector example "ab"\nshow example\nindices;\n'
    assert shown(text) == [
        "\ts-op example: [1, 2]",
        '\tselector example: "ab"',
        "     s-op: indices",
        " \t Example: indices([1, 2]) = [0, 1] (ints)",
    ]
    assert shown("examples off\nindices;full_s;") == ["     s-op: indices", "     selector: full_s"]
    assert len(shown("s-op examples off\nindices; full_s;")) == 9


def test_full_display() -> None:
    lines = shown('full seq display on\ntokens == "e"; length;')
    assert lines[1:4] == [
        " \t Example: out",
        "\t\t\tinput:  h e l l o (strings)",
        "\t\t\toutput:   T       (bools)",
    ]
    assert lines[-1].endswith("[5]*5 (ints) [skipped full display: identical values]")


def test_commands_are_names_elsewhere() -> None:
    assert shown("set = 3; show = set; on = show; quit = on + 1;")[-1] == "    value: quit =  4"
    with pytest.raises(Quit):
        shown("quit")
    with pytest.raises(Quit):
        shown("exit()")
    assert "select(keys, queries, ==)" in shown("help")[0]


def test_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lib.rasp").write_text(
        "# a file\nx = 3;\n_y = 4;\ndef f(a) { return a + x + _y; }\nx = 5;"
    )
    session = Session("ab")
    lines = [m.text for m in session.feed('mine = 1; load "lib"; f(1); _y; mine;')]
    assert lines[1:4] == ["    value: x =  5", "     lib function: f(a)", "    value: out =  10"]
    assert "'_y' is not defined" in lines[4]
    assert lines[5] == "    value: mine =  1"
    assert next(m.text for m in session.open(read_source("lib.rasp"))) == "    value: x =  5"


def test_a_loaded_file_with_faults_shows_them_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.rasp").write_text("x = 3;\ny = nosuch;\nz = x\n")
    lines = shown('load "bad"; x;')
    assert lines[0] == "    value: x =  3"
    assert lines[1].startswith("bad.rasp:2:5: the name 'nosuch'")
    assert lines[2].startswith("bad.rasp:3:6: the statement is not finished")
    assert lines[3] == "    value: x =  3"


def test_a_file_that_loads_itself_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("self.rasp").write_text('load "self";')
    assert any("load each other without end" in line for line in shown('load "self";'))


def test_drawing_prints_and_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = shown('draw(tokens[0], "a/b");')
    assert "layer 1: 1 head" in lines[0]
    assert lines[1] == "picture: comp_flows/out_a_b.svg"
    assert lines[2] == "\t =  [a]*3 (strings)"
    assert Path("comp_flows/out_a_b.svg").read_text().startswith("<svg")


def test_positions_count_on_through_a_session() -> None:
    session = Session("ab")
    list(session.feed("1;\n"))
    assert next(m.text for m in session.feed("\nnosuch;\n")).startswith("console:3:1:")


# ------------------------------------------------------------------ pipe and prompt


def piped(text: str) -> str:
    output = io.StringIO()
    prompt.pipe(Session("ab"), io.StringIO(text), output)
    return output.getvalue()


def test_a_pipe_runs_statement_by_statement() -> None:
    text = "a = [1,\n2];\ndef f(x) { # note\n  y = x;\n  return y;\n}\nf(3);\nb c;\nquit\n4;\n"
    lines = piped(text).split("\n")
    assert lines[:3] == [
        "     list: a = [1, 2]",
        "     console function: f(x)",
        "    value: out =  3",
    ]
    assert lines[3].startswith("console:8:3: this is not RASP: unexpected 'c'")
    assert "4" not in lines[-2]


def test_a_pipe_that_ends_in_a_statement_says_so() -> None:
    assert "';' is missing" in piped("a = 3\n")
    assert "ends in the middle" in piped("f(3,\n")


def test_a_long_definition_from_a_pipe_is_not_parsed_again_and_again() -> None:
    body = "".join(f"  x{i} = {i};\n" for i in range(2000))
    assert piped(f"def f() {{\n{body}return x1;\n}}\nf();\n").endswith("value: out =  1\n")


def test_the_prompt_reads_lines_and_survives_ctrl_c() -> None:
    session = Session("ab")
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text("a = [1,\r2];\rb = junk\x03b = a + [3];\r\x04")
        prompt.interact(session)
    assert session.interpreter.scope.names == {"a": [1, 2], "b": [1, 2, 3]}


def test_completion_knows_names_and_commands() -> None:
    session = Session("ab")
    list(session.feed("my_value = 1;"))
    completer = prompt.Names(session)

    def completions(text: str) -> set[str]:
        found = completer.get_completions(Document(text), CompleteEvent())
        return {completion.text for completion in found}

    assert completions("x = my_") == {"my_value"}
    assert {"selector_width", "select", "select_from_last"} <= completions("x = sel")
    assert "set example" in completions("set")


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_ctrl_c_interrupts_a_computation_and_keeps_the_session() -> None:
    session = Session("ab")
    messages: list[str] = []
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    text = "x = 1; for i in range(10000000) { x = i; } y = 2;"
    assert prompt.run(session, text, lambda message: messages.append(message.text))
    assert messages[-1] == "interrupted; the session goes on"
    assert prompt.run(session, "x + 1 > 0;", lambda message: messages.append(message.text))
    assert messages[-1] == "    value: out =  True"


def test_the_command_line_reads_a_pipe() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "raspire.cli.main"],
        input="indices;\nnosuch;\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "[0, 1, 2, 3, 4] (ints)" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_long_example_is_shown_in_part() -> None:
    text = shown("indices;", "a" * 10**6)[1]
    assert text.startswith(' \t Example: indices("aaaa')
    assert 'aaa ... 999600 more") = [0, 1, 2' in text
    assert len(text) < 4000
    assert "7, 7 ... 100 more]) = " in shown("indices;", [7] * 500)[1]
