"""What a simulator is, in words: its cost, the layout of its input, the plan of its evaluation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from raspire.library.layout import Block, Face

if TYPE_CHECKING:
    from raspire.simulator.universal import UniversalSimulator

_MEANING = {
    "X": "X, row-major, each row ending in a 1",
    "W": "[W_Q | W_K | W_V], heads side by side, the last row the biases",
    "WO": "W_O, the last row its biases",
    "seen": "1 for a key that is seen, 0 for padding",
}


def explain(u: UniversalSimulator) -> str:
    """The text of `UniversalSimulator.explain`."""
    from raspire.evaluate import explain as plan

    result = u.parts["result"]
    plans = plan(result.sop, u.sequence_length, positions=result.place.positions())
    return "\n".join([*description(u), "", str(plans).rstrip()])


def _where(place: Block | Face) -> str:
    size = " x ".join(map(str, place.shape))
    return f"{math.prod(place.shape):,} positions, {size}"


def description(u: UniversalSimulator) -> list[str]:
    """What U is and how its input is laid out, one line each."""
    used = max(block.end for block in u.construction.inputs.values())
    lines = [
        f"U for n={u.n}, {u.shape}, softmax {u.construction.softmax}",
        str(u.cost),
        "the input, one number a position:",
    ]
    for name, block in u.construction.inputs.items():
        size = " x ".join(map(str, block.shape))
        lines.append(f"  {block.base:>12,} to {block.end - 1:,}: {size}  {_MEANING[name]}")
    if used < u.sequence_length:
        lines.append(f"  {used:>12,} to {u.sequence_length - 1:,}: zeros, the padding")
    return [*lines, f"the result is read at {_where(u.parts['result'].place)}"]
