"""A transformer as text: what every head and every group of units reads and writes."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from raspire.transformer.cost import cost
from raspire.transformer.model import Transformer
from raspire.transformer.space import Space


def summary(model: Transformer) -> str:
    """A readable account of a transformer: its cost, then layer by layer, spaces by name."""
    lines = [f"transformer {model.name!r}", *("  " + x for x in str(cost(model)).split("\n"))]
    names = _names(model.spaces, model.width)
    for i, layer in enumerate(model.layers):
        lines.append(f"layer {i + 1}")
        for j, head in enumerate(layer.heads):
            scale = f" ×{head.scale:g}" if head.kind == "softmax" else ""
            lines.append(f"  head {j} {head.name}: {head.kind}{scale}, mask {head.mask}")
            lines.append(f"    query {_side(head.query, names)}; key {_side(head.key, names)}")
            lines.append(f"    {_side(head.value, names)} -> {_side(head.output.T, names)}")
        for units in layer.units:
            sources = units.first if units.second is None else units.first + units.second
            lines.append(
                f"  {units.count} units {units.family} {units.name}: "
                f"{_side(sources, names)} -> {_side(units.output.T, names)}"
            )
    lines.append(f"output {model.unembedding.kind}: {_side(model.unembedding.matrix, names)}")
    return "\n".join(lines)


def _names(spaces: tuple[Space, ...], width: int) -> list[str]:
    owners: list[list[str]] = [[] for _ in range(width)]
    for space in spaces:
        for slot in space.slots:
            if space.name not in owners[slot]:
                owners[slot].append(space.name)
    return ["/".join(names) or "unnamed" for names in owners]


def _side(matrix: sparse.sparray, names: list[str]) -> str:
    """The names of the spaces that a matrix touches on the side of the stream."""
    slots = np.unique(sparse.coo_array(matrix).coords[0])
    found = list(dict.fromkeys(names[slot] for slot in slots))
    return ", ".join(found[:6]) + (f", … ({len(found)})" if len(found) > 6 else "") or "nothing"
