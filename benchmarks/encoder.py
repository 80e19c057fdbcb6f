"""A whole pretrained encoder through U, one block of it, and the network `native` at its shape.

Run as `python benchmarks/encoder.py`; prints one line for each and whether the aims are met.
Needs the pretrained encoder and the extra `models`; the framework's own output needs torch.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from raspire.simulator import AttentionTarget, SentenceEncoder, attention
from raspire.simulator.block_reader import read_block
from raspire.simulator.block_run import simulate_block
from raspire.simulator.block_runner import BlockConstruction
from raspire.simulator.networks import native_network
from raspire.simulator.pretrained import weights_path

SENTENCE = "The quick brown fox jumps over the lazy dog, and then sleeps."
ROWS, WIDTH = 16, 384
BUDGET = 4 << 30
AIM_EMBED = (60.0, 1e-10)
AIM_BLOCK = (10.0, 1e-10)
AIM_NATIVE = (10.0, 1e-11)


def told(what: str, seconds: float, error: float, aim: tuple[float, float]) -> bool:
    """Print one line; whether both aims are met."""
    met = seconds < aim[0] and error < aim[1]
    print(
        f"{what:<44}{seconds:8.2f} s (aim {aim[0]:.0f} s)  difference {error:.1e} "
        f"(aim {aim[1]:.0e})  {'met' if met else 'not met'}"
    )
    return met


def embedding(text: str, construction: BlockConstruction = "long") -> bool:
    """The sentence embedding, all layers through U."""
    run = SentenceEncoder(weights_path("minilm"), construction)(text, budget=BUDGET)
    what = f"embedding, {len(run.tokens)} tokens, {construction}"
    return told(what, run.seconds, run.max_abs_error, AIM_EMBED)


def block() -> bool:
    """One block through U, on random rows."""
    x = np.random.default_rng(0).normal(size=(ROWS, WIDTH))
    run = simulate_block(read_block(weights_path("minilm"), 3), x)
    return told("one block, n = 16", run.seconds, run.max_abs_error, AIM_BLOCK)


def native() -> bool:
    """The explicit weights of `native` at the encoder's shape, with building them."""
    target = AttentionTarget.from_safetensors(weights_path("minilm"), 3)
    x = np.random.default_rng(0).normal(size=(ROWS, WIDTH))
    start = time.perf_counter()
    result = native_network(target.shape)(target, x)
    seconds = time.perf_counter() - start
    error = float(np.abs(result - attention(target, x)).max())
    return told("native, 12 heads with output map, n = 16", seconds, error, AIM_NATIVE)


if __name__ == "__main__":
    met = [embedding(SENTENCE), embedding("word " * 254), embedding(SENTENCE, "native")]
    met += [block(), native()]
    sys.exit(0 if all(met) else 1)
