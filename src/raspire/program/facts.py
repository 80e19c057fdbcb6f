"""Static facts of a program: depth, heads, layers, feed-forward families, longest chain.

Two depths are reported and never mixed. The *attention depth* counts attention alone, as RASP
does (elementwise work is free). *Layers* counts the layers of a transformer in which every layer
holds one attention sublayer and then one feed-forward sublayer of at most one gated unit deep: a
product, a quotient or a named function takes a feed-forward part, sums and constant multiples
take none, and what depends on the position alone is part of the positional embedding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from raspire.program.nodes import (
    Aggregate,
    Apply,
    Constant,
    Indices,
    Node,
    Selector,
    Tokens,
    Width,
)
from raspire.program.walk import merge, topological

# Gated units that multiply a linear form by a function of another one: mul(a, f(b)) is one unit.
GATED = ("exp", "recip", "rsqrt", "sigmoid", "silu", "gelu", "relu", "tanh")
# Comparisons that choose between two linear forms in one unit.
CHOICES = {"eq": "gated:zero", "ne": "gated:zero"} | dict.fromkeys(
    ("lt", "le", "gt", "ge"), "gated:step"
)


@dataclass(frozen=True)
class Cost:
    """What a program costs as a transformer, counted after ``merge``.

    ``heads_per_layer`` has one entry a layer (0: attention idle); ``feed_forward`` names the
    families that the layers need; ``longest_chain`` is the longest path of elementwise and
    attention steps in the graph; ``nodes`` is the size of the merged graph.
    """

    attention_depth: int
    layers: int
    heads_per_layer: tuple[int, ...]
    feed_forward: tuple[str, ...]
    longest_chain: int
    nodes: int

    @property
    def heads(self) -> int:
        """All heads of all layers."""
        return sum(self.heads_per_layer)


def depths(order: list[Node]) -> dict[Node, int]:
    """The attention depth of every node of a topological order.

    A selector lies one deeper than the deepest s-op it compares; an aggregate lies one deeper
    than its value and no higher than its selector; elementwise work is free.
    """
    depth: dict[Node, int] = {}
    for node in order:
        below = [depth[child] for child in node.args]
        if isinstance(node, Aggregate):
            depth[node] = max(below[0], below[1] + 1)
        elif isinstance(node, Width):
            depth[node] = max(1, *below)
        elif isinstance(node, Selector):
            step = (0 if isinstance(child, Selector) else 1 for child in node.args)
            depth[node] = max(d + s for d, s in zip(below, step, strict=True))
        else:
            depth[node] = max(below, default=0)
    return depth


def attention_depth(program: Node) -> int:
    """How many attention layers the program needs when elementwise work is free.

    >>> from raspire import aggregate, indices, length, select, tokens
    >>> attention_depth(aggregate(select(indices, length - 1 - indices, "=="), tokens))
    2
    """
    return depths(topological(program))[program]


def heads_by_depth(program: Node) -> dict[int, list[Selector]]:
    """The distinct selectors that are aggregated at each attention depth, greedily, unmerged.

    This is how the original RASP draws a program: every s-op at its earliest depth, selectors
    told apart by identity; a selector width takes two heads.
    """
    order = topological(program)
    depth = depths(order)
    heads: dict[int, list[Selector]] = {}
    for node in order:
        if isinstance(node, Aggregate):
            row = heads.setdefault(depth[node], [])
            if not any(node.selector is other for other in row):
                row.append(node.selector)
        elif isinstance(node, Width):
            heads.setdefault(depth[node], []).extend([node.selector] * 2)
    return heads


def longest_chain(program: Node) -> int:
    """The longest path from an input to the program, in nodes that compute something."""
    chain: dict[Node, int] = {}
    for node in topological(program):
        own = 0 if isinstance(node, Constant | Indices | Tokens) else 1
        chain[node] = own + max((chain[child] for child in node.args), default=0)
    return chain[program]


# ------------------------------------------------------------------ the schedule in layers
# Time is counted in half layers: 2k-1 is after the attention of layer k, 2k after its
# feed-forward part, 0 is the embedding.


def _attention(time: int) -> int:
    """The first moment after an attention sublayer that reads what was ready at ``time``."""
    return time + 1 if time % 2 == 0 else time + 2


def _gate(time: int) -> int:
    """The first moment after a feed-forward part that reads what was ready at ``time``."""
    return time + 2 if time % 2 == 0 else time + 1


@dataclass(frozen=True)
class Unit:
    """How an elementwise node is realised: the nodes it reads, and the family (None: linear)."""

    reads: tuple[Node, ...]
    family: str | None


def positional(order: list[Node]) -> set[Node]:
    """The s-ops that depend on the position alone: they belong to the positional embedding."""
    found: set[Node] = set()
    for node in order:
        if isinstance(node, Constant | Indices) or (
            isinstance(node, Apply) and all(child in found for child in node.args)
        ):
            found.add(node)
    return found


def constants(order: list[Node]) -> set[Node]:
    """The s-ops that are the same number everywhere, named functions of constants included."""
    found: set[Node] = set()
    for node in order:
        if isinstance(node, Constant) or (
            isinstance(node, Apply) and all(child in found for child in node.args)
        ):
            found.add(node)
    return found


def _units(node: Apply, constant: set[Node]) -> Iterator[Unit]:
    """The ways to realise an elementwise node, one gated unit deep."""
    name, args = node.primitive.name, node.args
    moving = tuple(a for a in args if a not in constant)
    family = node.primitive.family
    if name == "mul":
        yield Unit(moving, None if len(moving) < 2 else "gated:identity")
        for factor, gate in ((args[0], args[1]), (args[1], args[0])):
            if isinstance(gate, Apply) and gate.primitive.name in GATED:
                yield Unit((factor, *gate.args), f"gated:{gate.primitive.name}")
    elif name == "div":
        yield Unit(moving, None if args[1] in constant else family)
    elif name == "where":
        yield Unit(moving, family)
        condition = args[0]
        if isinstance(condition, Apply) and condition.primitive.name in CHOICES:
            # y + (x - y) [c]: a comparison gates a linear form, one unit
            choice = CHOICES[condition.primitive.name]
            yield Unit((*condition.args, *args[1:]), choice)
    else:
        yield Unit(moving, None if family == "linear" else family)


class Schedule:
    """Every node of a merged program at its time: as early as possible, then as late as that
    permits (so that heads of one selector meet), but only in layers that attend anyway."""

    def __init__(self, program: Node) -> None:
        self.order = topological(program)
        self.still = positional(self.order)
        self.constant = constants(self.order)
        self.early: dict[Node, int] = {}
        self.unit: dict[Node, Unit] = {}
        for node in self.order:
            self.early[node] = self._earliest(node)
        self.late = self._latest(program)
        self.layers = self._layers()

    def _earliest(self, node: Node) -> int:
        if node in self.still:
            return 0
        if isinstance(node, Apply):
            return self._place(node)
        ready = max((self.early[child] for child in node.args), default=0)
        return _attention(ready) if isinstance(node, Aggregate | Width) else ready

    def _place(self, node: Apply) -> int:
        def done(unit: Unit) -> int:
            ready = max((self.early[read] for read in unit.reads), default=0)
            return ready if unit.family is None else _gate(ready)

        self.unit[node] = min(_units(node, self.constant), key=done)
        return done(self.unit[node])

    def _latest(self, program: Node) -> dict[Node, int]:
        late = dict.fromkeys(self.order, self.early[program])
        for node in reversed(self.order):
            if node in self.still:
                continue
            reads, bound = node.args, late[node]
            if isinstance(node, Aggregate | Width):
                bound = _before(bound, odd=True)
            elif isinstance(node, Apply):
                reads = self.unit[node].reads
                bound = bound if self.unit[node].family is None else _before(bound, odd=False)
            for child in reads:
                late[child] = min(late[child], bound)
        return late

    def _layers(self) -> dict[Node, int]:
        """The layer whose attention computes each aggregate or width."""
        heads = [n for n in self.order if isinstance(n, Aggregate | Width) and n not in self.still]
        latest: dict[Node, int] = {n: (_before(self.late[n], odd=True) + 2) // 2 for n in heads}
        attending = {latest[n] for n in heads if latest[n] == (self.early[n] + 1) // 2}
        time: dict[Node, int] = {}
        found: dict[Node, int] = {}
        for node in self.order:
            if node in self.still:
                time[node] = 0
            elif isinstance(node, Apply):
                unit = self.unit[node]
                ready = max((time[read] for read in unit.reads), default=0)
                time[node] = ready if unit.family is None else _gate(ready)
            else:
                time[node] = max((time[child] for child in node.args), default=0)
            if node in latest:
                first = (_attention(time[node]) + 1) // 2
                busy = (k for k in range(latest[node], first, -1) if k in attending)
                found[node] = next(busy, first)
                time[node] = 2 * found[node] - 1
        return found

    def live(self, program: Node) -> set[Node]:
        """The nodes that stand as units of their own (a fused function does not)."""
        wanted = {program}
        for node in reversed(self.order):
            if node in wanted:
                wanted.update(self.unit[node].reads if node in self.unit else node.args)
        return wanted


def _before(time: int, *, odd: bool) -> int:
    """The last moment at which a sublayer that ends by ``time`` may read: its own end less one."""
    end = time if (time % 2 == 1) == odd else time - 1
    return end - 1


def cost(program: Node) -> Cost:
    """The cost of a program as a transformer, counted after ``merge``.

    >>> from raspire import indices, select, selector_width, tokens
    >>> cost(selector_width(select(tokens, tokens, "=="))).heads_per_layer
    (2,)
    """
    program = merge(program)
    schedule = Schedule(program)
    live = schedule.live(program)
    layers = (schedule.early[program] + 1) // 2
    heads: list[set[object]] = [set() for _ in range(layers)]
    for node in schedule.order:
        if node in live and isinstance(node, Aggregate):
            heads[schedule.layers[node] - 1].add(node.selector)
        elif node in live and isinstance(node, Width):
            heads[schedule.layers[node] - 1].update(((node, "with"), (node, "without")))
    families = {
        schedule.unit[n].family for n in live if n in schedule.unit and n not in schedule.still
    }
    return Cost(
        attention_depth=attention_depth(program),
        layers=layers,
        heads_per_layer=tuple(map(len, heads)),
        feed_forward=tuple(sorted(f for f in families if f is not None)),
        longest_chain=longest_chain(program),
        nodes=len(schedule.order),
    )
