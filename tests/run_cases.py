"""Run a file of conformance cases: ``python tests/run_cases.py FILE.jsonl``.

Three formats are known by their fields: programs with inputs and expected values (``rasp``),
programs with layers and heads (``draw``), programs of the Python embedding of Tracr (``tracr``).
Prints ``N passed, N failed`` and every failure; the exit code is 1 if any failed.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Case = dict[str, Any]


def load(path: str | Path) -> list[Case]:
    """The cases of a file, one JSON object a line."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def failures(case: Case) -> Iterator[str]:
    """What is wrong with a case, if anything; one text for every input that fails."""
    if "api_program" in case:
        yield from _tracr(case)
    elif "heads_per_layer" in case:
        yield from _draw(case)
    else:
        yield from _rasp(case)


def outcome(program: str, example: Any) -> dict[str, Any]:
    """The fact of a program in a fresh session: the last value, or the first failure."""
    from raspire.errors import RaspError
    from raspire.language.interpreter import Interpreter
    from raspire.language.report import fact, fault

    interpreter = Interpreter(example)
    interpreter.drawer = lambda node, tokens: None
    last: Any = None
    try:
        for result in interpreter.run(program):
            if result.error is not None:
                return fault(result.error)
            if result.kind in ("value", "assigned"):
                last = result.value
        return fact(last, interpreter)
    except RaspError as error:
        return fault(error)


def _rasp(case: Case) -> Iterator[str]:
    for example in case["inputs"]:
        key = example if isinstance(example, str) else json.dumps(example, ensure_ascii=False)
        wanted = case["expect"][key]
        found = outcome(case["program"], example)
        if not _agrees(wanted, found):
            yield f"input {key}: expected {json.dumps(wanted)}, found {json.dumps(found)}"


def _agrees(wanted: dict[str, Any], found: dict[str, Any]) -> bool:
    if wanted["kind"] == "error":
        syntax = wanted["category"] == "syntax"
        return found["kind"] == "error" and (not syntax or found["category"] == "syntax")
    same_type = wanted.get("type") == found.get("type")
    return same_type and equal(wanted, {key: found.get(key) for key in wanted})


def equal(wanted: Any, found: Any) -> bool:
    """Equality of data: types count, floats agree to 1e-9."""
    if type(wanted) is not type(found):
        return False
    if isinstance(wanted, dict):
        return wanted.keys() == found.keys() and all(equal(wanted[k], found[k]) for k in wanted)
    if isinstance(wanted, list):
        return len(wanted) == len(found) and all(map(equal, wanted, found))
    if isinstance(wanted, float):
        return math.isclose(wanted, found, rel_tol=1e-9, abs_tol=1e-9)
    return bool(wanted == found)


def _draw(case: Case) -> Iterator[str]:
    from raspire.language.interpreter import Interpreter
    from raspire.program.facts import heads_by_depth

    interpreter = Interpreter(case["input"])
    for result in interpreter.run(case["program"]):
        if result.error is not None:
            yield str(result.error)
            return
    rows = heads_by_depth(interpreter.machine.last)
    heads = {str(depth): len(row) for depth, row in rows.items()}
    found = {"0": 0, **heads}
    if found != case["heads_per_layer"]:
        yield f"heads per layer: expected {case['heads_per_layer']}, found {found}"
    if max(map(int, found)) != case["n_layers"] or max(found.values()) != case["max_heads"]:
        yield f"layers and heads: expected {case['n_layers']}, {case['max_heads']}, found {found}"


def tracr_program(case: Case) -> Any:
    """The program of a case, its import of Tracr changed to ours."""
    text = case["api_program"].replace(
        "from tracr.rasp.rasp import", "from raspire.compat.tracr import"
    )
    text = text.replace("from tracr.rasp import rasp", "from raspire.compat.tracr import rasp")
    names: dict[str, Any] = {}
    exec(text, names)
    return names["program"]


def _tracr(case: Case) -> Iterator[str]:
    """The interpreter and the compiled model, hard and softmax, against the expected values."""
    from raspire.compat.tracr import compile_rasp_to_model
    from raspire.compile import compile
    from raspire.errors import RaspError

    program = tracr_program(case)
    vocab, size, causal = case["vocab"], case["max_seq_len"], case["causal"]
    try:
        model = compile_rasp_to_model(program, set(map(_frozen, vocab)), size, causal=causal)
        saturated = compile(
            program.program, alphabet=tuple(vocab), max_length=size, causal=causal,
            attention="softmax",
        )  # fmt: skip
    except RaspError as error:
        yield f"does not compile: {error}"
        return
    for tokens, wanted in zip(case["inputs"], case["expect"], strict=True):
        if isinstance(wanted, dict):
            yield from _refused(program, tokens, wanted)
            continue
        found = {
            "hard": model.apply(["compiler_bos", *tokens]).decoded[1:],
            "softmax": saturated(tokens),
        }
        if not causal:
            found["interpreter"] = program(tokens)
        for engine, values in found.items():
            if not _alike(wanted, _plain(values)):
                yield f"{engine} on {tokens}: expected {wanted}, found {values}"


def _refused(program: Any, tokens: list[Any], wanted: Case) -> Iterator[str]:
    from raspire.errors import RaspError

    try:
        found = program(tokens)
    except RaspError as error:
        if wanted["error"] not in str(error):
            yield f"on {tokens}: expected {wanted['error']!r}, found {error}"
    else:
        yield f"on {tokens}: expected {wanted['error']!r}, found {found}"


def _frozen(symbol: Any) -> Any:
    return tuple(symbol) if isinstance(symbol, list) else symbol


def _plain(values: Any) -> Any:
    return [_plain(v) for v in values] if isinstance(values, list | tuple) else values


def _alike(wanted: Any, found: Any) -> bool:
    """Equality by value, as Python has it: 1, 1.0 and True are alike, None is like nothing else."""
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_alike, wanted, found))
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return math.isclose(wanted, found, rel_tol=1e-9, abs_tol=1e-9)
    return type(wanted) is type(found) and bool(wanted == found)


def main(paths: list[str]) -> int:
    """Run the cases of every file and print the outcome."""
    passed = failed = 0
    for path in paths:
        for case in load(path):
            found = list(failures(case))
            passed, failed = (passed, failed + 1) if found else (passed + 1, failed)
            for text in found:
                print(f"FAILED {case['id']}: {text}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
