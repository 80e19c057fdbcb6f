"""The circuit as data: every head and unit group, what it computes, and who reads whom."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from raspire.compile.linear import Cell, Form
from raspire.compile.parts import HeadPart, Part, StepPart
from raspire.compile.schedule import Plan, Slots
from raspire.errors import MissingExtraError, RaspValueError


@dataclass(frozen=True)
class Carried:
    """One slot and the expression that a node writes into it, with its line if it has one."""

    slot: int
    expression: str
    place: str = ""


@dataclass(frozen=True)
class Component:
    """A node of the circuit: the embedding, a head, a group of units, or the output.

    ``name`` counts layers from 1, as a person does; ``layer`` is the index of the layer in the
    transformer, from 0.
    """

    name: str
    kind: str
    layer: int
    index: int
    computes: str
    writes: tuple[Carried, ...]


@dataclass(frozen=True)
class Edge:
    """One component reads what another has written, through these slots and for this side."""

    source: str
    target: str
    slots: tuple[int, ...]
    use: str


@dataclass(frozen=True)
class Circuit:
    """All components in the order of time, and the edges between them."""

    nodes: tuple[Component, ...]
    edges: tuple[Edge, ...]

    @cached_property
    def by_name(self) -> dict[str, Component]:
        return {node.name: node for node in self.nodes}

    def upstream(self, name: str) -> set[str]:
        """Every component that a component depends on, itself included."""
        if not any(node.name == name for node in self.nodes):
            raise RaspValueError(
                f"the circuit has no component {name!r}",
                expected=f"one of its {len(self.nodes)} components",
                found=repr(name),
            )
        found, stack = {name}, [name]
        while stack:
            here = stack.pop()
            for edge in self.edges:
                if edge.target == here and edge.source not in found:
                    found.add(edge.source)
                    stack.append(edge.source)
        return found

    def record(self) -> dict[str, Any]:
        """Nodes and edges as plain data."""
        return {"nodes": [asdict(n) for n in self.nodes], "edges": [asdict(e) for e in self.edges]}

    def to_json(self) -> str:
        """Nodes and edges as a JSON object."""
        return json.dumps(self.record(), indent=1, ensure_ascii=False)

    def to_networkx(self) -> Any:
        """The circuit as a ``networkx.MultiDiGraph``."""
        try:
            import networkx
        except ModuleNotFoundError:
            raise MissingExtraError("networkx", "dev") from None
        graph = networkx.MultiDiGraph()
        for node in self.nodes:
            graph.add_node(node.name, **asdict(node))
        for edge in self.edges:
            graph.add_edge(edge.source, edge.target, **asdict(edge))
        return graph


def circuit_of(plan: Plan, slots: Slots) -> Circuit:
    """The circuit of a plan whose cells have slots."""
    names = _names(plan)
    writer: dict[Cell, str] = {}
    embedded = [c for c in slots.of if c.source is None]
    nodes = [Component("embedding", "embedding", 0, 0, "embedding", _carried(embedded, slots))]
    writer.update(dict.fromkeys(embedded, "embedding"))
    for part, (name, index) in names.items():
        writer.update(dict.fromkeys(part.writes, name))
        kind = "head" if isinstance(part, HeadPart) else "units"
        carried = _carried(part.writes, slots)
        nodes.append(Component(name, kind, part.layer - 1, index, part.label, carried))
    nodes.append(Component("output", "output", plan.depth, 0, "output", ()))
    edges: list[Edge] = []
    for part, (name, _) in names.items():
        for use, forms in _uses(part).items():
            edges += _edges(forms, name, use, writer, slots)
    edges += _edges(plan.outputs, "output", "output", writer, slots)
    return Circuit(tuple(nodes), tuple(edges))


def _names(plan: Plan) -> dict[Part, tuple[str, int]]:
    found: dict[Part, tuple[str, int]] = {}
    for layer in range(plan.depth):
        for j, head in enumerate(plan.heads[layer]):
            found[head] = (f"layer {layer + 1} head {j}", j)
        for j, part in enumerate(plan.units[layer]):
            found[part] = (f"layer {layer + 1} units {j}", j)
    return found


def _uses(part: Part) -> dict[str, list[Form]]:
    if isinstance(part, HeadPart):
        return {
            "query": [q for q, _ in part.pairs],
            "key": [k for _, k in part.pairs],
            "value": list(part.values.values()),
        }
    return {"code" if isinstance(part, StepPart) else "number": part.reads}


def _carried(cells: list[Cell], slots: Slots) -> tuple[Carried, ...]:
    return tuple(
        Carried(slots.of[c], c.label, "" if c.node is None else str(c.node.place or ""))
        for c in cells
    )


def _edges(
    forms: list[Form], target: str, use: str, writer: dict[Cell, str], slots: Slots
) -> list[Edge]:
    found: dict[str, set[int]] = {}
    for form in forms:
        for cell in form.terms:
            found.setdefault(writer[cell], set()).add(slots.of[cell])
    return [Edge(source, target, tuple(sorted(s)), use) for source, s in found.items()]
