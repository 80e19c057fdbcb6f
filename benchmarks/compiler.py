"""What the compiler makes of the usual programs, beside Tracr: layers, heads, width, errors.

Run ``python benchmarks/compiler.py [--inputs N] [--json FILE]``. Tracr's numbers are those of its
version 9ce2b8c (2024-02-05) on its own library programs; where it did not finish in two minutes
its width is the formula that its smaller sizes follow.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from raspire.compile import Compiled, compile
from raspire.library.languages import pair_balance, shuffle_dyck
from raspire.library.sequences import (
    fraction_of_previous,
    histogram,
    reverse,
    sequence_length,
    sort,
)
from raspire.program.nodes import SOp

LENGTHS = (5, 10, 20, 40, 80)
TRACR: dict[str, tuple[SOp, Any, int, Callable[[int], int]]] = {
    "length": (sequence_length(), "abc", 1, lambda n: 13 + 2 * n),
    "reverse": (reverse(), "abcde", 4, lambda n: 21 + 6 * n),
    "histogram": (histogram(), "abcde", 1, lambda n: 13 + 2 * n),
    "sort": (sort(), [1, 2, 3, 4, 5], 3, lambda n: 21 + 10 * n),
    "fraction of previous": (fraction_of_previous("a"), "abc", 2, lambda n: 13 + n),
    "pair balance": (pair_balance(), "()", 2, lambda n: 12 + n),
    "Dyck-3": (shuffle_dyck(), "()[]{}", 9, lambda n: 55 + 3 * n),
}
VOCABULARIES = (64, 256, 1024)
LINE = "{:<22}{:>5}{:>8}{:>12}{:>7}{:>8}{:>9}{:>16}{:>7}   {}"
HEAD = ("program", "L", "layers", "heads", "width", "units", "weights", "wrong", "s", "Tracr")


def timed(program: SOp, alphabet: Any, length: int) -> tuple[Compiled, float]:
    """A compiled program and the seconds it took."""
    start = time.perf_counter()
    compiled = compile(program, alphabet=alphabet, max_length=length)
    return compiled, time.perf_counter() - start


def row(name: str, compiled: Compiled, seconds: float, inputs: int) -> dict[str, Any]:
    """The facts of one compiled program, its wrong positions counted on hard and softmax."""
    options = {"most": inputs, "samples": inputs}
    hard = compiled.verify(**options)
    soft = compiled.verify(network=compiled.softmax().batch, **options)
    cost = compiled.cost
    return {
        "program": name,
        "length": (cost.max_length or 1) - 1,
        "layers": cost.layers,
        "heads": list(cost.heads),
        "width": cost.width,
        "units": sum(cost.units.values()),
        "nonzeros": cost.nonzeros + cost.embedding_nonzeros,
        "full": cost.parameters,
        "wrong": hard.wrong_positions + soft.wrong_positions,
        "positions": hard.positions + soft.positions,
        "seconds": round(seconds, 2),
    }


def show(facts: dict[str, Any], tracr: str) -> None:
    """One line of the table."""
    heads = ",".join(map(str, facts["heads"]))
    wrong = f"{facts['wrong']}/{facts['positions']}"
    print(
        LINE.format(
            facts["program"], facts["length"], facts["layers"], heads, facts["width"],
            facts["units"], facts["nonzeros"], wrong, facts["seconds"], tracr,
        ),
        flush=True,
    )  # fmt: skip


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=300, help="inputs a program is checked on")
    parser.add_argument("--json", help="write the rows to this file too")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(LINE.format(*HEAD))
    for name, (program, alphabet, layers, width) in TRACR.items():
        for length in LENGTHS:
            compiled, seconds = timed(program, alphabet, length)
            rows.append(row(name, compiled, seconds, options.inputs))
            show(rows[-1], f"layers {layers}, width {width(length)}")
    print("\nmaximal length 8, vocabularies of 64 to 1024 symbols")
    for name in ("histogram", "reverse", "sort"):
        for size in VOCABULARIES:
            compiled, seconds = timed(TRACR[name][0], [f"w{i}" for i in range(size)], 8)
            rows.append(row(f"{name}, {size}", compiled, seconds, options.inputs))
            show(rows[-1], f"full matrices {rows[-1]['full']}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
