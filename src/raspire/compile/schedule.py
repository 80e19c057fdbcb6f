"""In which layer each part stands: least depth, then fewest heads, then slots reused when dead.

Time runs in half layers: a head of layer l reads the stream at time 2l - 2 and writes at 2l - 1,
units of layer l read at 2l - 1 and write at 2l. Embeddings are written at time 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

import numpy as np

from raspire.compile.linear import BOS, TOK, Cell, Form
from raspire.compile.parts import HeadPart, Part

Task = tuple[Part, Cell | None]


@dataclass
class Plan:
    """The parts of every layer, and what is read at the end."""

    heads: list[list[HeadPart]]
    units: list[list[Part]]
    outputs: list[Form]

    @property
    def depth(self) -> int:
        return len(self.heads)

    def parts(self) -> list[Part]:
        """Every part in the order of time."""
        return [
            part
            for heads, units in zip(self.heads, self.units, strict=True)
            for part in (*heads, *units)
        ]


@dataclass
class _Scheduler:
    outputs: list[Form]
    tasks: dict[Cell, Task] = field(default_factory=dict)
    early: dict[Task, int] = field(default_factory=dict)
    late: dict[Task, int] = field(default_factory=dict)
    least: dict[Task, int] = field(default_factory=dict)
    most: dict[Task, int] = field(default_factory=dict)
    readers: dict[Task, list[Task]] = field(default_factory=dict)
    order: list[Task] = field(default_factory=list)
    needed: dict[Task, list[Task]] = field(default_factory=dict)
    scored: dict[Part, list[Task]] = field(default_factory=dict)

    def collect(self) -> None:
        """The tasks that the outputs need, those they read before them."""
        seen: set[Task] = set()
        stack: list[tuple[Task, bool]] = [(t, False) for t in self._tasks(self.outputs)]
        while stack:
            task, expanded = stack.pop()
            if expanded:
                self.order.append(task)
            elif task not in seen:
                seen.add(task)
                stack.append((task, True))
                stack += [(t, False) for t in self.needs(task) if t not in seen]
        for task in self.order:
            for needed in self.needs(task):
                self.readers.setdefault(needed, []).append(task)

    def needs(self, task: Task) -> list[Task]:
        """The tasks whose cells a task reads."""
        if task not in self.needed:
            part, cell = task
            if isinstance(part, HeadPart) and cell is not None:
                if part not in self.scored:
                    self.scored[part] = self._tasks(f for pair in part.pairs for f in pair)
                own = self._tasks([part.values[cell]])
                self.needed[task] = list(dict.fromkeys([*self.scored[part], *own]))
            else:
                self.needed[task] = self._tasks(part.reads)
        return self.needed[task]

    def _tasks(self, forms: Iterable[Form]) -> list[Task]:
        found: dict[Task, None] = {}
        for form in forms:
            for cell in form.terms:
                if cell.source is not None:
                    head = isinstance(cell.source, HeadPart)
                    found[cell.source, cell if head else None] = None
        return list(found)

    def times(self) -> int:
        """Earliest and latest layers of every task; the number of layers."""
        for task in self.order:
            least = max((self._after(n, task, self.early[n]) for n in self.needs(task)), default=1)
            self.early[task] = max(least, self.least.get(task, 1))
        depth = max(self.early.values(), default=0)
        for task in reversed(self.order):
            bounds = [self.late[r] - (self._after(task, r, 0)) for r in self.readers.get(task, ())]
            self.late[task] = min([*bounds, self.most.get(task, depth)], default=depth)
        return depth

    def _after(self, needed: Task, task: Task, layer: int) -> int:
        """The first layer in which ``task`` can read what ``needed`` writes in ``layer``."""
        same = isinstance(needed[0], HeadPart) and not isinstance(task[0], HeadPart)
        return layer if same else layer + 1

    def join(self) -> None:
        """Values that one selector carries go through one head where the depth allows it."""
        groups: dict[Part, list[Task]] = {}
        for task in self.order:
            if isinstance(task[0], HeadPart):
                groups.setdefault(task[0], []).append(task)
        for tasks in groups.values():
            if len(tasks) > 1:
                self._join(tasks)

    def _join(self, tasks: list[Task]) -> None:
        rest = sorted(tasks, key=lambda t: -self.early[t])
        while rest:
            layer = self.early[rest[0]]
            here = {task for task in rest if self.late[task] >= layer}
            self.least.update(dict.fromkeys(here, layer))
            self.times()
            rest = sorted((t for t in rest if t not in here), key=lambda t: -self.early[t])

    def settle(self) -> None:
        """Keep joined values where they are; everything else waits until it is needed."""
        self.times()
        self.most = {task: self.early[task] for task in self.least}


def schedule(outputs: list[Form]) -> Plan:
    """The plan of least depth for some output forms.

    A copy stands in the last layer that still serves its readers, which spreads heads evenly.
    """
    scheduler = _Scheduler(outputs)
    scheduler.collect()
    scheduler.times()
    scheduler.join()
    scheduler.settle()
    depth = scheduler.times()
    plan = Plan([[] for _ in range(depth)], [[] for _ in range(depth)], outputs)
    split: dict[tuple[Part, int], HeadPart] = {}
    for task in scheduler.order:
        part, cell = task
        layer = scheduler.late[task]
        if not isinstance(part, HeadPart):
            part.layer = layer
            plan.units[layer - 1].append(part)
            continue
        assert cell is not None
        if (part, layer) not in split:
            split[part, layer] = replace(part, values={}, layer=layer)
            plan.heads[layer - 1].append(split[part, layer])
        head = split[part, layer]
        head.values[cell] = part.values[cell]
        cell.source = head
    return plan


# ---------------------------------------------------------------- slots


@dataclass
class Slots:
    """The slot of every cell, and what each layer's units have to erase before it is reused."""

    of: dict[Cell, int]
    erased: list[list[Cell]]
    width: int


def births(plan: Plan, embedded: Iterable[Cell]) -> dict[Cell, int]:
    """When every cell is written."""
    born = dict.fromkeys(embedded, 0)
    for part in plan.parts():
        for cell in part.writes:
            born[cell] = 2 * part.layer - isinstance(part, HeadPart)
    return born


def deaths(plan: Plan, born: dict[Cell, int]) -> dict[Cell, int]:
    """When every cell is read for the last time."""
    last = dict(born)
    for part in plan.parts():
        at = 2 * part.layer - (2 if isinstance(part, HeadPart) else 1)
        for form in part.reads:
            for cell in form.terms:
                last[cell] = max(last[cell], at)
    for form in plan.outputs:
        for cell in form.terms:
            last[cell] = 2 * plan.depth + 1
    return last


def allocate(plan: Plan, embedded: list[Cell]) -> Slots:
    """Slots by linear scan: a cell takes the lowest slot whose last owner is dead and erased."""
    born = births(plan, embedded)
    last = deaths(plan, born)
    last[TOK] = last[BOS] = 2 * plan.depth + 1
    slots: dict[Cell, int] = {}
    owner: list[Cell] = []
    erased: list[list[Cell]] = [[] for _ in range(plan.depth)]
    occupied: list[tuple[int, int]] = []
    free: list[int] = []
    for cell in sorted(born, key=lambda c: born[c]):
        while occupied and occupied[0][0] <= born[cell]:
            heappush(free, heappop(occupied)[1])
        if born[cell] and free:
            slot = heappop(free)
            erased[_erasing_layer(owner[slot], born, last) - 1].append(owner[slot])
            owner[slot] = cell
        else:
            slot = len(owner)
            owner.append(cell)
        slots[cell] = slot
        heappush(occupied, (_free_from(cell, born, last), slot))
    return Slots(slots, erased, len(owner))


def _erasing_layer(old: Cell, born: dict[Cell, int], last: dict[Cell, int]) -> int:
    """The first layer whose units read the stream after the last reader and the writer."""
    return (max(last[old], born[old]) + 2) // 2


def _free_from(old: Cell, born: dict[Cell, int], last: dict[Cell, int]) -> int:
    """When the slot may be written again: in the layer that erases it if the value is exact."""
    exact = old.noise == 0 and _dyadic(old)
    return 2 * _erasing_layer(old, born, last) + (0 if exact else 1)


def _dyadic(cell: Cell) -> bool:
    table = cell.table if cell.column is None else cell.column
    return table is not None and bool((table * 1024 == np.rint(table * 1024)).all())
