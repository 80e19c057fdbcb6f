"""One run of U for an encoder block beside the direct computation, and the report of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raspire.evaluate import BUDGET
from raspire.simulator.block import EncoderBlock
from raspire.simulator.block_simulator import BlockSimulator
from raspire.simulator.direct_block import block_result
from raspire.simulator.run import peak_bytes
from raspire.simulator.weights import Array


@dataclass(frozen=True)
class BlockRun:
    """A block's output by U and directly, with the time that each took."""

    simulator: BlockSimulator
    block: EncoderBlock
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
        cost = self.simulator.cost
        return {
            "construction": "long",
            "softmax": self.simulator.construction.softmax,
            "block": str(self.block.shape),
            "attention_depth": cost.attention_depth,
            "layers": cost.layers,
            "heads_per_layer": list(cost.heads_per_layer),
            "sequence_length": self.simulator.sequence_length,
            "feed_forward": list(cost.feed_forward),
            "n": self.simulator.n,
            "max_abs_error": self.max_abs_error,
            "evidence": "measured against the direct computation in float64",
            "seconds": self.seconds,
            "seconds_direct": self.seconds_direct,
            "peak_bytes": self.peak_bytes,
            "notes": list(self.block.notes),
        }


def simulate_block(
    block: EncoderBlock,
    x: ArrayLike,
    padding: ArrayLike | None = None,
    *,
    budget: int = BUDGET,
) -> BlockRun:
    """Run U on ⟨block, X⟩ and the direct computation beside it."""
    simulator = BlockSimulator.for_block(block, len(np.asarray(x)))
    start = time.perf_counter()
    result = simulator(block, x, padding, budget=budget)
    middle = time.perf_counter()
    direct = block_result(block, x, padding)
    end = time.perf_counter()
    return BlockRun(simulator, block, result, direct, middle - start, end - middle, peak_bytes())
