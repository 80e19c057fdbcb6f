"""The time of U over the time of the direct NumPy computation, on a real pretrained layer.

Run as `python benchmarks/simulate.py`; prints one line for each n and whether the aims are met.
Without the pretrained encoder a random layer of the same shape is used, which takes as long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from raspire.errors import RaspError
from raspire.simulator import AttentionTarget, UniversalSimulator, attention
from raspire.simulator.pretrained import weights_path
from raspire.simulator.run import peak_bytes

D, HEADS = 384, 12
LENGTHS = (8, 16, 32, 64, 128)
AIM_SECONDS = {32: 4.0, 16: 20.0, 128: 300.0}
AIM_RATIO = {32: 30.0, 128: 30.0}
AIM_BYTES = 4 << 30


def layer(number: int) -> AttentionTarget:
    """One layer of the pretrained encoder, or a random one where it is not installed."""
    try:
        return AttentionTarget.from_safetensors(weights_path("minilm"), number)
    except RaspError as error:
        print(f"random weights instead of the pretrained encoder: {error.what}")
    rng = np.random.default_rng(number)
    w = [0.05 * rng.standard_normal((D, D)) for _ in range(4)]
    b = [0.05 * rng.standard_normal(D) for _ in range(4)]
    return AttentionTarget.from_arrays(*w, heads=HEADS, b_q=b[0], b_k=b[1], b_v=b[2], b_o=b[3])


def timed(function: Callable[[], Any], times: int) -> tuple[float, Any]:
    """The least time of several calls, and the last result."""
    best, result = float("inf"), None
    for _ in range(times):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def measure(n: int, targets: list[AttentionTarget]) -> dict[str, float]:
    """First and second call of U (the second with another T and X), and the direct computation."""
    rng = np.random.default_rng(n)
    inputs = [rng.standard_normal((n, D)) for _ in targets]
    u = UniversalSimulator(n, D, HEADS, D // HEADS, D // HEADS)
    first, _ = timed(lambda: u(targets[0], inputs[0]), 1)
    second, found = timed(lambda: u(targets[1], inputs[1]), 2)
    direct, expected = timed(lambda: attention(targets[1], inputs[1]), 9)
    return {
        "N": u.sequence_length,
        "first": first,
        "second": second,
        "direct": direct,
        "ratio": second / direct,
        "error": float(np.abs(found - expected).max()),
    }


def main() -> int:
    """Print the table and the aims; the exit code is 0 whether or not they are met."""
    targets = [layer(2), layer(3)]
    print(f"U long, d={D}, heads={HEADS}, output map; seconds; the second call has another T and X")
    print(f"{'n':>4} {'N':>12} {'first':>8} {'second':>8} {'direct':>9} {'ratio':>7} {'error':>9}")
    aims = []
    for n in LENGTHS:
        row = measure(n, targets)
        print(
            f"{n:>4} {row['N']:>12,} {row['first']:>8.3f} {row['second']:>8.3f} "
            f"{row['direct']:>9.5f} {row['ratio']:>7.1f} {row['error']:>9.1e}"
        )
        if n in AIM_SECONDS:
            aims.append((f"U at n={n} under {AIM_SECONDS[n]:g} s", row["first"] < AIM_SECONDS[n]))
        if n in AIM_RATIO:
            aims.append((f"ratio at n={n} at most {AIM_RATIO[n]:g}", row["ratio"] <= AIM_RATIO[n]))
        aims.append((f"error at n={n} under 1e-11", row["error"] < 1e-11))
    aims.append((f"peak memory under {AIM_BYTES >> 30} GiB", peak_bytes() < AIM_BYTES))
    for what, met in aims:
        print(f"{'met' if met else 'NOT MET':>8}  {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
