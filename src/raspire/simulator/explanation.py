"""What a simulator is, in words: its cost, the layout of its input, the plan of its evaluation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from raspire.library.layout import Block, Face

if TYPE_CHECKING:
    from raspire.program.facts import Cost
    from raspire.simulator.construction import Construction
    from raspire.simulator.universal import UniversalSimulator

_MEANING = {
    "X": "X, row-major, each row ending in a 1",
    "W": "[W_Q | W_K | W_V], heads side by side, the last row the biases",
    "WO": "W_O, the last row its biases",
    "seen": "1 for a key that is seen, 0 for padding",
    "turns": "rotary positions: a cosine and a signed sine for each row and coordinate",
    "relative": "biases by head and distance, query position minus key position",
    "reduce": "maps along the sequence, of the keys and of the values",
    "norm1": "the first norm: weight, bias, eps in every column",
    "norm2": "the second norm: weight, bias, eps in every column",
    "up": "into the feed-forward part, the last row the biases",
    "gate": "the gate of the feed-forward part, the last row the biases",
    "down": "out of the feed-forward part, the last row the biases",
}


def explain(u: UniversalSimulator) -> str:
    """The text of `UniversalSimulator.explain`."""
    return "\n".join([*description(u), "", _plan(u.construction)])


def explain_construction(construction: Construction, what: str, cost: Cost) -> str:
    """The same for U for blocks, or for another mechanism."""
    heads = ", ".join(map(str, cost.heads_per_layer))
    lines = [
        f"{what}, softmax {construction.softmax}",
        f"construction {construction.name}: attention depth {cost.attention_depth}, layers "
        f"{cost.layers}, heads per layer {heads}, feed-forward {', '.join(cost.feed_forward)}, "
        f"N = {construction.length:,}",
        *_layout(construction),
    ]
    return "\n".join([*lines, "", _plan(construction)])


def _plan(construction: Construction) -> str:
    from raspire.evaluate import explain as plan

    result = construction.parts["result"]
    return str(plan(result.sop, construction.length, positions=result.place.positions())).rstrip()


def _where(place: Block | Face) -> str:
    size = " x ".join(map(str, place.shape))
    return f"{math.prod(place.shape):,} positions, {size}"


def description(u: UniversalSimulator) -> list[str]:
    """What U is and how its input is laid out, one line each."""
    head = f"U for n={u.n}, {u.shape}, softmax {u.construction.softmax}"
    return [head, str(u.cost), *_layout(u.construction)]


def _layout(construction: Construction) -> list[str]:
    """Where the input is written and where the result is read."""
    used = max(block.end for block in construction.inputs.values())
    lines = ["the input, one number a position:"]
    for name, block in construction.inputs.items():
        size = " x ".join(map(str, block.shape))
        lines.append(f"  {block.base:>12,} to {block.end - 1:,}: {size}  {_MEANING[name]}")
    if used < construction.length:
        lines.append(f"  {used:>12,} to {construction.length - 1:,}: zeros, the padding")
    return [*lines, f"the result is read at {_where(construction.parts['result'].place)}"]
