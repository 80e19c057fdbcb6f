"""`raspire simulate --memory`: U runs a layer of cross-attention from a file."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raspire.cli.simulate import _read_array, _write_results

if TYPE_CHECKING:
    from raspire.simulator.naming import GivenNames
    from raspire.simulator.weights import Array


@dataclass(frozen=True)
class CrossRun:
    """What was computed, and what is written to a report."""

    result: Array
    facts: dict[str, Any]

    def report(self) -> dict[str, Any]:
        """The report, ready for JSON."""
        return self.facts


def simulate_cross(
    path: Path,
    layer: int | str,
    input_path: str,
    memory_path: str,
    heads: int | None,
    names: GivenNames | None,
    padding_path: str | None,
    out_path: str | None,
    report_path: str | None,
    budget: int,
    quiet: bool,
) -> None:
    """Read the layer, run it on X and the memory beside the direct computation, print and write."""
    import numpy as np

    from raspire.simulator.direct_mechanisms import cross_attention
    from raspire.simulator.inputs import checked_input
    from raspire.simulator.mechanisms import CrossAttention
    from raspire.simulator.reader import read_cross_target

    target = read_cross_target(path, layer, heads, names=names, padding=padding_path is not None)
    x = checked_input(_read_array(input_path, "X"), target.d)
    memory = checked_input(_read_array(memory_path, "the memory"), target.d)
    padding = _read_array(padding_path, "the key padding") if padding_path else None
    u = CrossAttention(len(x), len(memory), target.shape)
    start = time.perf_counter()
    result = u(target, x, memory, padding, budget=budget)
    seconds = time.perf_counter() - start
    error = float(np.abs(result - cross_attention(target, x, memory, padding)).max())
    cost = u.cost
    if not quiet:
        click.echo(f"Target: {target.shape}, n={len(x)}, a memory of {len(memory)} rows")
        click.echo(
            f"U, construction long, softmax stable: attention depth {cost.attention_depth}, "
            f"layers {cost.layers}, heads per layer {', '.join(map(str, cost.heads_per_layer))}, "
            f"N = {u.sequence_length:,}"
        )
        click.echo(f"U took {seconds:.2f} s")
    click.echo(f"Largest difference from the direct computation: {error:.2e}")
    facts = {
        "target": str(target.shape),
        "n": len(x),
        "memory": len(memory),
        "attention_depth": cost.attention_depth,
        "layers": cost.layers,
        "heads_per_layer": list(cost.heads_per_layer),
        "sequence_length": u.sequence_length,
        "max_abs_error": error,
        "evidence": "measured against the direct computation in float64",
        "seconds": seconds,
    }
    _write_results(CrossRun(result, facts), out_path, report_path)
