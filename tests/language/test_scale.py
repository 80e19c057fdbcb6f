"""Large texts, deep nesting and long inputs."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from raspire.evaluate import evaluate
from raspire.language.interpreter import Interpreter, from_rasp
from raspire.language.source import Source
from raspire.language.statements import parse
from raspire.library.sources import source_names, source_path, source_program

LINE = (
    "x = aggregate(select(indices, indices - 3, ==) and full_s, indices + 4 * 2, 0) if a else 3;\n"
)


def last(text: str, example: str = "ab") -> Any:
    interpreter = Interpreter(example)
    for outcome in interpreter.run(text):
        assert outcome.error is None, outcome.error
    return interpreter.machine.last


@pytest.mark.slow
def test_sums_of_five_thousand_terms() -> None:
    assert last(" + ".join(["1"] * 5000) + ";") == 5000
    total = last(" + ".join(["indices"] * 5000) + ";")
    assert Interpreter("abc").result(total) == [0, 5000, 10000]
    assert evaluate(total, "abc") == [0, 5000, 10000]


@pytest.mark.slow
def test_lists_of_fifty_thousand_elements() -> None:
    text = f"l = [{', '.join(map(str, range(50_000)))}]; l[indices + 40000];"
    assert Interpreter("ab").result(last(text)) == [40_000, 40_001]


@pytest.mark.slow
def test_calls_nested_five_hundred_deep() -> None:
    assert last("def f(x) { return x + 1; }" + "f(" * 500 + "0" + ")" * 500 + ";") == 500
    deep = last("def f(x) { return x + 1; }" + "f(" * 3000 + "indices" + ")" * 3000 + ";")
    assert Interpreter("ab").result(deep) == [3000, 3001]
    nested = last("[" * 2000 + "1" + "]" * 2000 + ";")
    assert len(nested) == 1


def test_recursion_goes_deeper_than_pythons() -> None:
    text = "def sum(n) { return n + sum(n - 1) if n > 0 else 0; } sum(9000);"
    assert last(text) == 9000 * 9001 // 2


def test_arguments_are_evaluated_once() -> None:
    text = "def f(x) { return x + x; }" + "f(" * 40 + "indices" + ")" * 40 + ";"
    assert Interpreter("ab").result(last(text)) == [0, 2**40]


def parse_time(lines: int) -> float:
    text = LINE * lines
    began = time.process_time()
    assert sum(1 for _ in parse(Source(text))) == lines
    return time.process_time() - began


@pytest.mark.slow
def test_five_thousand_lines_parse_in_four_seconds_and_more_in_proportion() -> None:
    few = parse_time(5_000)
    assert few < 4
    assert parse_time(50_000) < 15 * max(few, 0.5)


@pytest.mark.slow
def test_a_definition_of_fifty_thousand_lines() -> None:
    body = "".join(f"  x{i} = {i} + 1;\n" for i in range(50_000))
    assert last(f"def f() {{\n{body}  return x49999;\n}}\nf();") == 50_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reverse", "histogram", "sort", "dyck1"])
def test_a_hundred_thousand_tokens_take_two_seconds(name: str, tmp_path: Path) -> None:
    alphabet = "()" if name == "dyck1" else "abcdefgh"
    file = tmp_path / "input.txt"
    file.write_text("".join(random.Random(7).choices(alphabet, k=100_000)))
    command = [sys.executable, "-m", "raspire.cli.main", "run", str(source_path(name))]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*command, "--input-file", str(file), "--json"], capture_output=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert len(done.stdout) > 100_000
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert used < 2


@pytest.mark.slow
def test_long_inputs_give_what_short_ones_give() -> None:
    """The engine that runs long inputs agrees with the trial runs of short ones."""
    chance = random.Random(3)
    numeric = ("transpose", "softmax", "matmul", "maxmin", "determinant", "inverse3", "match2")
    for name in source_names():
        if "attention" in name:
            continue
        for _ in range(10):
            size = chance.randint(9, 30)
            tokens: Any = [float(chance.randint(1, 9)) for _ in range(size)]
            if name not in numeric:
                tokens = "".join(chance.choices("01()[]", k=size))
            if name == "addition":
                tokens = "".join(chance.choices("0123456789", k=size)) + "+7"
            sop = source_program(name)
            try:
                wanted = Interpreter(tokens).result(sop)
            except Exception as error:  # the engine must refuse what the trial refuses
                with pytest.raises(type(error)):
                    evaluate(sop, tokens)
                continue
            assert evaluate(sop, tokens) == pytest.approx(wanted), (name, tokens)


def test_a_program_does_not_depend_on_the_example() -> None:
    assert from_rasp("tokens_int + 1;")([1, 2]) == [2, 3]


def test_a_program_is_read_and_checked_without_numpy() -> None:
    code = (
        "import sys\nfrom raspire.language import from_rasp, to_rasp\n"
        "to_rasp(from_rasp('selector_width(select(tokens, tokens, ==));'))\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
