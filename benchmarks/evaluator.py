"""RASP programs on a million positions, against hand-written NumPy for the same values.

Prints a table, and for every aim whether it is met.
Inputs are factorised before (the conversion from a list of strings is timed apart); both sides
give one value at every position, and they must be equal.
"""

from __future__ import annotations

import importlib.util
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from raspire import aggregate, full, indices, length, select, selector_width, tokens
from raspire.evaluate import BUDGET, Column, batch, column, evaluate
from raspire.library.formal_languages import dyck1, majority, parity
from raspire.library.languages import shuffle_dyck
from raspire.library.sequences import (
    double_histogram,
    histogram,
    reverse,
    sort,
    sort_by_frequency,
)
from raspire.simulator import UniversalSimulator

N = 1_000_000
LARGE = 8 * N
LETTERS, BITS, NUMBERS, ROUND, BRACKETS = "letters", "bits", "numbers", "()", "()[]"
AIM_SECONDS, AIM_RATIO, FLOOR = 1.0, 5.0, 0.05
AIM_GROWTH, AIM_BATCH = 12.0, 10.0


@dataclass(frozen=True)
class Case:
    """A program, the kind of its input, and the same by hand on codes (or numbers)."""

    name: str
    program: Any
    tokens: str
    by_hand: Callable[[Any], Any]


def _counts(x: Any) -> Any:
    return np.bincount(x)[x]


def _double(x: Any) -> Any:
    counts = np.bincount(x)
    return np.bincount(counts)[counts][x]


def _by_frequency(x: Any) -> Any:
    return x[np.argsort(-_counts(x), kind="stable")]


def _balanced(x: Any) -> Any:
    height = np.cumsum(1 - 2 * x)
    return np.full(len(x), height.min() >= 0 and height[-1] == 0)


def _shuffled(x: Any) -> Any:
    steps = [(x == 2 * kind).astype(np.int64) - (x == 2 * kind + 1) for kind in (0, 1)]
    heights = [np.cumsum(step) for step in steps]
    return np.full(len(x), all(h.min() >= 0 and h[-1] == 0 for h in heights))


def _running(x: Any) -> Any:
    order = np.argsort(x, kind="stable")
    starts = np.cumsum(np.bincount(x)) - np.bincount(x)
    found = np.empty(len(x), dtype=np.int64)
    found[order] = np.arange(len(x)) - starts[x[order]]
    return found


SAME_BEFORE = select(tokens, tokens, "==") & select(indices, indices, "<")
CASES = (
    Case("reverse", reverse(), LETTERS, lambda x: x[::-1].copy()),
    Case("histogram", histogram(), LETTERS, _counts),
    Case("double histogram", double_histogram(), LETTERS, _double),
    Case("sort", sort(), NUMBERS, lambda x: np.sort(x, kind="stable")),
    Case("most frequent first", sort_by_frequency(), LETTERS, _by_frequency),
    Case("Dyck-1", dyck1(), ROUND, _balanced),
    Case("shuffle-Dyck-2", shuffle_dyck(("()", "[]")), BRACKETS, _shuffled),
    Case("length", length + 0, LETTERS, lambda x: np.full(len(x), len(x))),
    Case(
        "parity by mean",
        round(aggregate(full, tokens) * length) % 2,
        BITS,
        lambda x: np.full(len(x), x.sum() % 2),
    ),
    Case("same token before", selector_width(SAME_BEFORE), LETTERS, _running),
)
"""`length + 0`, so that it is a column and not the plan's constant."""

ALPHABETS = {LETTERS: "abcdefghijklmnopqrstuvwxyz", ROUND: ROUND, BRACKETS: BRACKETS}


def inputs(kind: str, size: int) -> tuple[Any, Column]:
    """Random codes (or numbers), and the column of tokens that they stand for."""
    rng = np.random.default_rng(size)
    if kind == NUMBERS:
        numbers = rng.integers(0, size, size)
        return numbers, column(numbers)
    if kind == BITS:
        bits = rng.integers(0, 2, size)
        return bits, column(bits)
    alphabet = ALPHABETS[kind]
    codes = rng.integers(0, len(alphabet), size)
    return codes, Column("c", codes, vocabulary=list(alphabet))


def timed(function: Callable[[], Any], times: int = 5) -> tuple[float, Any]:
    """The least time of several calls, and the last result."""
    _, best, result = worked(function, times)
    return best, result


def worked(function: Callable[[], Any], times: int = 5) -> tuple[float, float, Any]:
    """The same, after the least processor time: one thread works, others do not count."""
    work, wall, result = float("inf"), float("inf"), None
    for _ in range(times):
        start, began = time.perf_counter(), time.process_time()
        result = function()
        work = min(work, time.process_time() - began)
        wall = min(wall, time.perf_counter() - start)
    return work, wall, result


def same(found: Column, expected: Any, codes: Any) -> bool:
    """Whether a column holds the codes, numbers or truths that were computed by hand."""
    data = found.full().data
    if found.kind == "c" and found.vocabulary is not None:
        order = {value: code for code, value in enumerate(sorted(found.vocabulary))}
        letters = sorted(set(found.vocabulary))
        if len(letters) == int(codes.max()) + 1:
            data = np.array([order[v] for v in found.vocabulary])[data]
    return bool(np.array_equal(data, expected))


def by_position(aims: list[tuple[str, bool]]) -> None:
    """Each program on a million positions, by hand, and on eight million."""
    print(f"N = {N:,}: seconds of processor time of a second call, the same by hand in NumPy,")
    print(f"their ratio; how both grow to N = {LARGE:,}, and ours by the clock on the wall")
    print("(a column in equal steps, of one value, or a slice of another is not written out)")
    print(
        f"{'program':<22}{'seconds':>9}{'by hand':>9}{'ratio':>8}"
        f"{'growth':>8}{'by hand':>10}{'wall':>8}  equal"
    )
    for case in CASES:
        codes, given = inputs(case.tokens, N)
        evaluate(case.program, given)
        seconds, wall, found = worked(lambda c=case, g=given: evaluate(c.program, g), 7)
        by_hand, _, expected = worked(lambda c=case, x=codes: c.by_hand(x))
        equal = same(found, expected, codes)
        large_codes, large = inputs(case.tokens, LARGE)
        longer, long_wall, _ = worked(lambda c=case, g=large: evaluate(c.program, g), 7)
        growth, of_wall = longer / seconds, long_wall / wall
        hand_growth = worked(lambda c=case, x=large_codes: c.by_hand(x), 2)[0] / by_hand
        print(
            f"{case.name:<22}{seconds:>9.3f}{by_hand:>9.4f}{seconds / by_hand:>8.1f}"
            f"{growth:>8.1f}{hand_growth:>10.1f}{of_wall:>8.1f}  {'yes' if equal else 'NO'}"
        )
        limit = max(AIM_RATIO * by_hand, FLOOR)
        aims.append((f"{case.name}: equal to NumPy", equal))
        aims.append((f"{case.name}: under {AIM_SECONDS:g} s", seconds < AIM_SECONDS))
        aims.append((f"{case.name}: {AIM_RATIO:g} times NumPy, or 50 ms", seconds <= limit))
        aims.append((f"{case.name}: at most {AIM_GROWTH:g}-fold to 8 N", growth <= AIM_GROWTH))


def conversions() -> None:
    """What it costs to bring a million tokens in."""
    letters = [ALPHABETS[LETTERS][i % 26] for i in range(N)]
    for what, given in (
        ("a list of strings", letters),
        ("an array of strings", np.array(letters)),
        ("a list of ints", list(range(N))),
        ("a list of floats", [i / 2 for i in range(N)]),
    ):
        seconds, _ = timed(lambda g=given: column(g), 2)
        print(f"conversion of {what}: {seconds:.3f} s")


def batches(aims: list[tuple[str, bool]]) -> None:
    """All binary strings of length 20 at once."""
    size = 20
    bits = (np.arange(1 << size)[:, None] >> np.arange(size)) & 1
    brackets = np.array(list(ROUND))[bits]
    ones = bits.sum(axis=1, keepdims=True)
    height = np.cumsum(1 - 2 * bits, axis=1)
    balanced = (height.min(axis=1) >= 0) & (height[:, -1] == 0)
    print(f"a batch of 2^{size} strings of length {size}")
    for name, program, given, expected in (
        ("parity", parity(), bits, ones % 2),
        ("Dyck-1", dyck1(), brackets, balanced[:, None]),
        ("histogram", histogram(), bits, np.where(bits == 1, ones, size - ones)),
        ("majority", majority(), bits, 2 * ones > size),
    ):
        seconds, found = timed(lambda p=program, g=given: batch(p, g), 1)
        equal = bool(np.array_equal(found, np.broadcast_to(expected, found.shape)))
        print(f"{name:<22}{seconds:>9.3f}  {'equal to NumPy' if equal else 'NOT equal to NumPy'}")
        aims.append((f"batch, {name}: equal, under {AIM_BATCH:g} s", equal and seconds < AIM_BATCH))


def arithmetics(aims: list[tuple[str, bool]]) -> None:
    """U `long`, with its output map, in the arithmetics that prove something."""
    rng = np.random.default_rng(0)
    for arithmetic, n, d, heads in (
        ("field", 4, 16, 2),
        ("field", 16, 384, 12),
        ("field", 64, 384, 12),
        ("ball", 4, 16, 2),
        ("ball", 16, 64, 4),
    ):
        if arithmetic == "ball" and importlib.util.find_spec("flint") is None:
            print("ball: needs the extra proof")
            continue
        u = UniversalSimulator(n, d, heads, d // heads, d // heads)
        used = max(block.end for block in u.construction.inputs.values())
        sequence = np.zeros(u.sequence_length, np.uint64 if arithmetic == "field" else float)
        sequence[:used] = (
            rng.integers(1, 2**61 - 1, used, dtype=np.uint64)
            if arithmetic == "field"
            else 0.1 * rng.standard_normal(used)
        )
        seconds, _ = timed(lambda: u.run(sequence, arithmetic=arithmetic), 1)  # noqa: B023
        shape = f"n={n}, d={d}, {heads} heads, N = {u.sequence_length:,}"
        print(f"U long over {arithmetic}, {shape}: {seconds:.1f} s")
        aims.append((f"U long over {arithmetic}, n={n}, d={d}: under a minute", seconds < 60))


def others() -> None:
    """Other RASP interpreters, where they are installed."""
    if importlib.util.find_spec("raspy") is None:
        print("no other RASP interpreter is installed (RASPy is looked for)")
        return
    raspy: Any = importlib.import_module("raspy.rasp")
    for size in (256, 1024):
        text = "".join(ALPHABETS[LETTERS][i * 7 % 26] for i in range(size))
        flip = raspy.key(raspy.indices) == raspy.query(size - 1 - raspy.indices)
        theirs, _ = timed(lambda f=flip, t=text: f.value(raspy.tokens)(t), 2)
        ours, _ = timed(lambda t=text: evaluate(reverse(), t), 2)
        print(f"reverse at {size}: RASPy over ours {theirs / ours:.1f}")


def peak_bytes() -> int:
    """The largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> int:
    """Print the tables and the aims; the exit code is 0 whether or not they are met."""
    aims: list[tuple[str, bool]] = []
    by_position(aims)
    conversions()
    batches(aims)
    arithmetics(aims)
    others()
    limit = BUDGET + 500 * 10**6
    print(f"peak memory {peak_bytes() / 2**30:.2f} GiB")
    aims.append(("peak memory under the budget and 500 MB", peak_bytes() < limit))
    for what, met in aims:
        print(f"{'met' if met else 'NOT MET':>8}  {what}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
