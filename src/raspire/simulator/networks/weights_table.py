"""Every weight of a network with its meaning: what it reads, what it writes, and why.

W_V and W_O act only together, so a row counts their product; the positional embedding is not a
weight but the positions' knowledge of themselves, and is described apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scipy import sparse

from raspire.simulator.networks.network import Network
from raspire.transformer import Head, Transformer, Units


@dataclass(frozen=True)
class Weight:
    """One non-zero weight: layer (from 1), head or units, matrix, from, to, value, meaning."""

    layer: int
    part: str
    matrix: str
    source: str
    target: str
    value: float
    meaning: str


_SLOTS = {
    "one": "1 at every position",
    "here": "the position's own number p",
    "here²": "p²",
    "left": "the address of the first factor (in O: of the head's result, or of a 1)",
    "right": "the address of the second factor",
    "group": "the number of the group in which the position is averaged",
    "group²": "its square",
    "row": "the number of the row of scores to which the position belongs",
    "row²": "its square",
    "flag address": "the address of the flag of the position's key",
}


def weights_table(network: Network) -> list[Weight]:
    """The weights of a network, in the order in which they act, the output last."""
    model = network.model
    names = slot_names(model)
    rows: list[Weight] = []
    for i, layer in enumerate(model.layers, 1):
        for head in layer.heads:
            rows += _head(i, head, names)
        for units in layer.units:
            rows += _units(i, units, names)
    for slot, column, value in _entries(model.unembedding.matrix):
        target = str(model.unembedding.labels[column])
        text = "the output is read here"
        rows.append(Weight(len(model.layers), "output", "W_U", names[slot], target, value, text))
    return rows


def slot_names(model: Transformer) -> list[str]:
    """A name for every slot: its space, and its label where the space has several."""
    names = ["unnamed"] * model.width
    for space in model.spaces:
        for label, slot in zip(space.labels, space.slots, strict=True):
            names[slot] = space.name if space.size == 1 else f"{space.name}[{label}]"
    return names


def _entries(matrix: Any) -> Iterator[tuple[int, int, float]]:
    entries = sparse.coo_array(matrix)
    order = sorted(zip(*entries.coords, entries.data, strict=True), key=lambda e: (e[1], e[0]))
    for row, column, value in order:
        yield int(row), int(column), float(value)


def _head(layer: int, head: Head, names: list[str]) -> Iterator[Weight]:
    for slot, column, value in _entries(head.query):
        text = _query_meaning(head, column)
        yield Weight(layer, head.name, "W_Q", names[slot], f"q{column}", value, text)
    for slot, column, value in _entries(head.key):
        text = _key_meaning(head, column)
        yield Weight(layer, head.name, "W_K", names[slot], f"k{column}", value, text)
    for slot, target, value in _entries(head.value @ head.output):
        verb = "averages" if "sum" in head.name or "mean" in head.name else "copies"
        text = f"{verb} {names[slot]} into {names[target]}"
        if value != 1:
            text += f", times {value:g} (the shape's count or scale)"
        yield Weight(layer, head.name, "W_V W_O", names[slot], names[target], value, text)


def _query_meaning(head: Head, column: int) -> str:
    if not head.address and column == 2:
        return "then of all these the one with the largest score"
    if column == 0:
        return "2a: score 2a·j − j² is largest at j = a"
    return "the −j² of the score"


def _key_meaning(head: Head, column: int) -> str:
    return ("j: the key's number", "j²: its square", "its score")[column]


def _units(layer: int, units: Units, names: list[str]) -> Iterator[Weight]:
    gate = units.family.removeprefix("gated:")
    for k, bias in enumerate(units.first_bias):
        if bias:
            yield Weight(layer, units.name, "b_1", "1", f"u{k}", float(bias), "first branch: 1")
    for slot, k, value in _entries(units.first):
        text = f"first branch: {names[slot]}"
        yield Weight(layer, units.name, "W_1", names[slot], f"u{k}", value, text)
    for slot, k, value in _entries(units.second) if units.second is not None else ():
        inner = names[slot] if gate == "bilinear" else f"{gate} of {names[slot]}"
        yield Weight(layer, units.name, "W_2", names[slot], f"u{k}", value, f"second: {inner}")
    for k, slot, value in _entries(units.output):
        text = f"their product into {names[slot]}"
        yield Weight(layer, units.name, "W_3", f"u{k}", names[slot], value, text)


def render(network: Network) -> str:
    """The table as text, with the cost and what every positional slot knows."""
    rows, cost = weights_table(network), network.cost
    heads = ", ".join(map(str, cost.heads))
    lines = [
        f"U, construction {network.name}: {len(rows) - _outputs(rows)} weights and "
        f"{_outputs(rows)} of the output; layers {cost.layers}, heads {heads}, width {cost.width}",
        "",
        f"{'layer':>5}  {'part':<28} {'matrix':<8} {'from':<24} {'to':<24} {'value':>10}  meaning",
    ]
    for r in rows:
        place = f"{r.layer:>5}  {r.part:<28} {r.matrix:<8} {r.source:<24} {r.target:<24}"
        lines.append(f"{place} {r.value:>10.6g}  {r.meaning}")
    used = [s.name for s in network.model.spaces if s.name in _SLOTS]
    lines += ["", "what the positional embedding writes at every position:"]
    lines += [f"  {name:<14} {_SLOTS[name]}" for name in used]
    return "\n".join(lines)


def _outputs(rows: list[Weight]) -> int:
    return sum(row.matrix == "W_U" for row in rows)
