"""U and products of matrices as tensor contractions: times over hand-written NumPy, and memory.

Run as `python benchmarks/contractions.py`. The shape is that of a pretrained layer (12 heads,
d = 384, output map); the weights are random, which takes as long. Every length runs in a process
of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from raspire.evaluate import contraction
from raspire.library.linear_algebra import matmul
from raspire.simulator import AttentionTarget, UniversalSimulator, attention
from raspire.simulator.run import peak_bytes

D, HEADS = 384, 12
MASKS = ("none", "causal", "padding")
RATIO, AIM_RATIO, BYTES, ERROR, PLANNING = 30.0, 10.0, 1 << 30, 1e-11, 2.0


def target(seed: int, mask: Any) -> AttentionTarget:
    """A random layer of the shape."""
    rng = np.random.default_rng(seed)
    w = [0.05 * rng.standard_normal((D, D)) for _ in range(4)]
    b = [0.05 * rng.standard_normal(D) for _ in range(4)]
    return AttentionTarget.from_arrays(
        *w, heads=HEADS, b_q=b[0], b_k=b[1], b_v=b[2], b_o=b[3], mask=mask
    )


def timed(function: Callable[[], Any], times: int) -> tuple[float, Any]:
    """The least time of several calls, and the last result."""
    best, result = float("inf"), None
    for _ in range(times):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def attention_row(n: int, softmax: Any, mask: Any, slow: bool) -> dict[str, Any]:
    """U on one target and then on another; `slow` runs the path without contractions too."""
    u = UniversalSimulator(n, D, HEADS, softmax=softmax, mask=mask)
    targets = [target(seed, mask) for seed in (0, 1)]
    inputs = np.random.default_rng(n).standard_normal((2, n, D))
    padding = (np.arange(n) <= n // 2).astype(float) if mask == "padding" else None
    first, _ = timed(lambda: u(targets[0], inputs[0], padding), 1)
    second, found = timed(lambda: u(targets[1], inputs[1], padding), 5)
    direct, expected = timed(lambda: attention(targets[1], inputs[1], padding), 9)
    row = {
        "n": n,
        "softmax": softmax,
        "mask": mask,
        "first": first,
        "second": second,
        "direct": direct,
        "error": float(np.abs(found - expected).max()),
        "bytes": peak_bytes(),
    }
    if slow:
        sequence = u.encode(targets[1], inputs[1], padding)
        seconds, without = timed(lambda: u.run(sequence, contract=False), 1)
        row |= {"without": seconds, "apart": float(np.abs(u.decode(without) - found).max())}
    return row


def product_row(size: int) -> tuple[float, float, float]:
    """The product of two matrices, construction `long`, and NumPy's; their difference."""
    program = matmul(size, size, size, "long")
    a, b = np.random.default_rng(size).standard_normal((2, size, size))
    row = np.zeros(program.length)
    row[: 2 * size * size] = np.concatenate([a.ravel(), b.ravel()])
    positions = np.asarray(program.output.positions())
    plan = contraction.plan(program.program, program.length, positions)
    if plan is None:
        raise SystemExit("the product of matrices is not recognised as a contraction")
    ours, found = timed(lambda: plan.run(row), 5)
    numpy, expected = timed(lambda: a @ b, 5)
    return ours, numpy, float(np.abs(found - expected.ravel()).max())


def main() -> int:
    """Print the tables and the aims; the exit code is 0 whether or not they are met."""
    aims: list[tuple[str, bool]] = []
    print("U long; seconds; the second call has another T and X of the same shape")
    print(f"{'n':>4} {'softmax':>7} {'mask':>7} {'first':>8} {'second':>8} {'direct':>8}", end="")
    print(f" {'ratio':>6} {'error':>8} {'MB':>5}  without contractions: seconds, difference")
    cases = [(n, s, m) for n in (32, 128) for s in ("plain", "stable") for m in MASKS]
    for n, softmax, mask in cases:
        slow = n == 32 and mask == "none"
        command = [sys.executable, __file__, json.dumps([n, softmax, mask, slow])]
        row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        ratio = row["second"] / row["direct"]
        print(
            f"{n:>4} {softmax:>7} {mask:>7} {row['first']:>8.3f} {row['second']:>8.4f} "
            f"{row['direct']:>8.5f} {ratio:>6.1f} {row['error']:>8.1e} {row['bytes'] >> 20:>5}"
            + (f"  {row['without']:.1f}, {row['apart']:.1e}" if slow else "")
        )
        if mask == "none" and softmax == "plain":
            aims.append((f"n={n}: second call at most {RATIO:g} times direct", ratio <= RATIO))
            aims.append((f"n={n}: the aim of {AIM_RATIO:g} times", ratio <= AIM_RATIO))
            aims.append((f"n={n}: error under {ERROR:g}", row["error"] < ERROR))
            aims.append((f"n={n}: first call under {PLANNING:g} s", row["first"] < PLANNING))
            if slow:
                aims.append((f"n={n}: {ERROR:g} from the other path", row["apart"] < ERROR))
            else:
                aims.append((f"n={n}: peak memory under 1 GiB", row["bytes"] < BYTES))
    print("\nproduct of two matrices, construction long")
    for size in (64, 256):
        ours, numpy, error = product_row(size)
        print(f"{size:>4} {ours:.5f} s, NumPy {numpy:.5f} s, ratio {ours / numpy:.1f}, {error:.1e}")
    for what, met in aims:
        print(f"{'met' if met else 'NOT MET':>8}  {what}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(attention_row(*json.loads(sys.argv[1]))))
        sys.exit(0)
    sys.exit(main())
