"""One run of U beside the direct computation, and the report of it."""

from __future__ import annotations

import math
import resource
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raspire.evaluate import BUDGET
from raspire.simulator.construction import Softmax
from raspire.simulator.direct import attention
from raspire.simulator.target import AttentionTarget
from raspire.simulator.universal import UniversalSimulator, plain_fits
from raspire.simulator.weights import Array


@dataclass(frozen=True)
class Run:
    """T(X) by U and directly, with the time that each took; bytes are the process's peak."""

    simulator: UniversalSimulator
    target: AttentionTarget
    result: Array
    direct: Array
    seconds: float
    seconds_direct: float
    peak_bytes: int

    @property
    def max_abs_error(self) -> float:
        """The largest difference between U and the direct computation in float64."""
        return float(np.abs(self.result - self.direct).max())

    def report(self) -> dict[str, Any]:
        """What was run and what came out, ready for JSON."""
        cost, target, error = self.simulator.cost, self.target, self.max_abs_error
        return {
            "construction": cost.construction,
            "softmax": self.simulator.construction.softmax,
            "attention_depth": cost.attention_depth,
            "layers": cost.layers,
            "heads_per_layer": list(cost.heads_per_layer),
            "sequence_length": cost.sequence_length,
            "feed_forward": list(cost.feed_forward),
            "n": self.simulator.n,
            "max_abs_error": error if math.isfinite(error) else None,
            "evidence": "measured against the direct computation in float64",
            "seconds": self.seconds,
            "seconds_direct": self.seconds_direct,
            "peak_bytes": self.peak_bytes,
            "target": {
                "d": target.d,
                "heads": target.heads,
                "d_k": target.d_k,
                "d_v": target.d_v,
                "mask": target.mask,
                "positions": target.shape.positional,
                "scale_ratio": target.ratio,
                "scale": _scale_words(target.ratio),
                "notes": list(target.notes),
                "tensors": [
                    {"name": r.name, "shape": list(r.shape), "dtype": r.dtype} for r in target.reads
                ],
            },
        }


def simulate(
    simulator: UniversalSimulator,
    target: AttentionTarget,
    x: ArrayLike,
    padding: ArrayLike | None = None,
    *,
    budget: int = BUDGET,
) -> Run:
    """Run U on ⟨T, X⟩ and the direct computation beside it."""
    start = time.perf_counter()
    result = simulator(target, x, padding, budget=budget)
    middle = time.perf_counter()
    direct = attention(target, x, padding)
    end = time.perf_counter()
    return Run(simulator, target, result, direct, middle - start, end - middle, peak_bytes())


def softmax_for(target: AttentionTarget, x: ArrayLike) -> tuple[Softmax, float]:
    """The shallower softmax that T and X allow, and the bound on the scores that decides it."""
    fits, bound = plain_fits(target, x)
    return ("plain" if fits else "stable"), bound


def peak_bytes() -> int:
    """The largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _scale_words(ratio: float) -> str:
    if ratio == 1.0:
        return "1/sqrt(d_k), which is U's own"
    return f"1/sqrt(d_k) times {ratio!r}; W_Q and its bias were multiplied by it"
