"""`raspire simulate --block`: U runs a whole encoder block from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from raspire.cli.simulate import _conclude, _read_array, _text_input, _write_results


def simulate_block(
    path: Path,
    layer: int | str,
    input_path: str | None,
    text: str | None,
    heads: int | None,
    mask: Any,
    padding_path: str | None,
    out_path: str | None,
    report_path: str | None,
    budget: int,
    quiet: bool,
) -> None:
    """Read the block, run it through U and directly, print both and how far apart they are."""
    from raspire.simulator.block_reader import read_block
    from raspire.simulator.block_run import simulate_block as run_beside
    from raspire.simulator.inputs import checked_input

    block = read_block(path, layer, heads, mask=mask)
    if text is None:
        x, said = _read_array(input_path or "", "X"), ""
    else:
        x, said = _text_input(path, str(layer), text)
    x = checked_input(x, block.attention.d)
    padding = _read_array(padding_path, "the key padding") if padding_path else None
    if not quiet:
        click.echo(said, nl=bool(said))
        click.echo(f"Block: {block.shape}, n={len(x)}")
        for note in block.notes:
            click.echo(f"  note: {note}")
    run = run_beside(block, x, padding, budget=budget)
    if not quiet:
        cost = run.simulator.cost
        click.echo(
            f"U, construction long, softmax stable: attention depth {cost.attention_depth}, "
            f"layers {cost.layers}, heads per layer {', '.join(map(str, cost.heads_per_layer))}, "
            f"N = {run.simulator.sequence_length:,}"
        )
        click.echo(f"  feed-forward {', '.join(cost.feed_forward)}")
    _write_results(run, out_path, report_path)
    _conclude(run)
