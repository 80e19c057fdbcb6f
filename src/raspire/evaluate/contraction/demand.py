"""From a program and the positions wanted to blocks: demand flows backwards as boxes.

Parents come before children. A node that is copied by address is computed on the boxes of
positions that its readers address, each box once, and is then read through strided views. What
is averaged is expressed in place, over the digits of the query and the free digits of the keys,
so that a mean of a product stays visible as a contraction.
"""

from __future__ import annotations

from collections.abc import Callable

from raspire.evaluate.contraction.boxes import Box, image, merged
from raspire.evaluate.contraction.values import (
    Access,
    Best,
    Block,
    Index,
    Literal,
    Map,
    Mean,
    Pieces,
    Read,
    Value,
    apply_kind,
    conjuncts,
    is_equality,
    kinds,
    number,
    total,
)
from raspire.program.index_expressions import (
    Axis,
    Border,
    Form,
    NotProved,
    Preimage,
    Space,
    digit_form,
    index_nodes,
    preimage,
)
from raspire.program.nodes import (
    Aggregate,
    Apply,
    Combine,
    Constant,
    Hardmax,
    Node,
    Select,
    Selector,
    SOp,
    Tokens,
)
from raspire.program.primitives import primitive
from raspire.program.walk import topological

MOST_PIECES = 128
MOST_BLOCKS = 512
MOST_DEPTH = 40


def blocks(program: SOp, length: int, box: Box) -> list[Block]:
    """The blocks that give the program on a box, the program's own last; NotProved if none do."""
    return _Demand(program, length).blocks(box)


class _Demand:
    def __init__(self, program: SOp, length: int) -> None:
        self.program = program
        self.length = length
        self.order = topological(program)
        self.index = index_nodes(self.order)
        self.kinds = kinds(self.order)
        self.total = total(self.order)
        self.accesses: dict[int, list[Access]] = {}
        self.pieces = 0
        self.patience = 4 * len(self.order) + 1000

    def blocks(self, box: Box) -> list[Block]:
        self._check()
        root = self._block(self.program, box)
        found = [root]
        self._express(root)
        for node in reversed(self.order):
            accesses = self.accesses.get(id(node), [])
            images = [image(access.form) for access in accesses]
            for cover, members in merged(images):
                block = self._block(node, cover)
                for access, own in zip(accesses, images, strict=True):
                    if own in members:
                        access.block = block
                self._express(block)
                found.append(block)
                if len(found) > MOST_BLOCKS:
                    raise NotProved
        return found[::-1]

    def _check(self) -> None:
        """Refuse at once what has no aggregate, or one that no equality of digits addresses."""
        if self.kinds[id(self.program)] != "f" or not self.length:
            raise NotProved
        aggregates = [
            node
            for node in self.order
            if isinstance(node, Aggregate) and self.kinds[id(node)] == "f"
        ]
        if not aggregates or not all(self._addressed(node.selector) for node in aggregates):
            raise NotProved

    def _addressed(self, selector: Selector) -> bool:
        for part in conjuncts(selector):
            among = conjuncts(part.among) if isinstance(part, Hardmax) else [part]
            if any(is_equality(s, self.index, self.kinds) for s in among):
                return True
        return False

    def _block(self, node: Node, box: Box) -> Block:
        axes = tuple((Axis(size), stride) for size, stride in box.axes)
        return Block(node, box.base, axes, Space(self.length))

    def _express(self, block: Block) -> None:
        low, high = block.form.range
        if low < 0 or high >= self.length:
            raise NotProved
        block.value = _Expression(self, block.space).value(block.node, block.form)


class _Expression:
    """The value of nodes on one block."""

    def __init__(self, demand: _Demand, space: Space) -> None:
        self.demand, self.space = demand, space
        self.known: dict[tuple[int, Form], Value] = {}
        self.depth = 0
        self.averaging = False

    def value(self, root: Node, form: Form) -> Value:
        """The node at positions given by a form; a walk through everything elementwise."""
        form = self.space.resolve(form)
        stack: list[tuple[Node, bool]] = [(root, False)]
        while stack:
            node, expanded = stack.pop()
            key = id(node), form
            if key in self.known:
                continue
            found = None if expanded else self._leaf(node, form)
            if found is None and not expanded:
                stack.append((node, True))
                stack.extend((arg, False) for arg in node.args)
                continue
            self.known[key] = found or self._map(node, form)
            self.demand.patience -= 1
            if self.demand.patience < 0:
                raise NotProved
        return self.known[id(root), form]

    def _leaf(self, node: Node, form: Form) -> Value | None:
        """The value, unless its arguments are needed first."""
        if id(node) in self.demand.index:
            found = self._index(node, form)
            if found is not None:
                return found
        if isinstance(node, Tokens):
            return self._read(node, form)
        if isinstance(node, Constant):
            return Literal(number(node.value))
        if isinstance(node, Aggregate):
            return self._pieces(node, form, self._aggregate)
        if not isinstance(node, Apply):
            raise NotProved
        if node.primitive.name == "where" and id(node.args[0]) in self.demand.index:
            return self._where(node, form)
        return None

    def _index(self, node: Node, form: Form) -> Value | None:
        try:
            found = self.space.normal(node, form)
        except (Border, NotProved):
            return None
        boolean = self.demand.kinds[id(node)] == "b"
        if found.terms:
            return None if boolean else Index(found)
        return Literal(bool(found.const) if boolean else found.const)

    def _where(self, node: Apply, form: Form) -> Value | None:
        """One branch, where the condition is settled and the other branch cannot fail."""
        condition, yes, no = node.args
        if not (id(yes) in self.demand.total and id(no) in self.demand.total):
            return None

        def branch(node: Node, form: Form) -> Value:
            settled = self.space.normal(condition, form)
            return self.value(yes if settled.const else no, form)

        try:
            return self._pieces(node, form, branch)
        except NotProved:
            return None

    def _map(self, node: Node, form: Form) -> Value:
        if not isinstance(node, Apply):
            raise NotProved
        args = tuple(self.known[id(arg), form] for arg in node.args)
        kind = apply_kind(node.primitive, [arg.kind for arg in args])
        if kind == "?":
            raise NotProved
        return Map(node.primitive, args, kind)

    def _pieces(self, node: Node, form: Form, rule: Callable[..., Value]) -> Value:
        """The rule's value; where it meets a border in a digit, one for each side."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise NotProved
        try:
            return rule(node, form)
        except Border as border:
            axis, at = border.axis, border.at
        finally:
            self.depth -= 1
        form = self.space.resolve(form)
        self.demand.pieces += 1
        if axis not in form.terms or self.demand.pieces > MOST_PIECES:
            raise NotProved
        below, above = Axis(at - axis.low), Axis(axis.high - at)
        first = form.substitute({axis: digit_form(below).plus(axis.low)})
        second = form.substitute({axis: digit_form(above).plus(at)})
        parts = (
            (below, self._pieces(node, first, rule)),
            (above, self._pieces(node, second, rule)),
        )
        kinds = {part.kind for _, part in parts}
        return Pieces(axis, parts, kinds.pop() if len(kinds) == 1 else "f")

    # ---------------------------------------------------------------- reading

    def _read(self, node: Node, form: Form) -> Value:
        """The node's values where it is copied from: a leaf here, a block of its own elsewhere."""
        if id(node) in self.demand.index:
            found = self._index(node, form)
            if found is not None:
                return found
        if isinstance(node, Constant):
            return Literal(number(node.value))
        access = Access(node, self.space.resolve(form), self.space)
        if not isinstance(node, Tokens):
            self.demand.accesses.setdefault(id(node), []).append(access)
        return Read(access, self.demand.kinds[id(node)])

    def _aggregate(self, node: Aggregate, form: Form) -> Value:
        parts = conjuncts(node.selector)
        hardmax = next((part for part in parts if isinstance(part, Hardmax)), None)
        rest = [part for part in parts if part is not hardmax]
        among = rest if hardmax is None else conjuncts(hardmax.among)
        equal = [s for s in among if is_equality(s, self.demand.index, self.demand.kinds)]
        if hardmax is not None and any(isinstance(s, Hardmax) for s in among + rest):
            raise NotProved
        found = self._preimage(equal, form)
        if found is None:
            return Literal(number(node.default))
        weights = [self._mask(s, found.position, form) for s in among if s not in equal]
        if weights and not equal:
            raise NotProved  # a matrix query x key, which the general engine avoids
        if hardmax is not None:
            score = self._averaged(hardmax.score, found.position)
            weights = [Best(score, found.free, tuple(weights))]
            weights += [self._mask(s, found.position, form) for s in rest]
        return self._mean(node, form, found, tuple(w for w in weights if not _is_true(w)))

    def _preimage(self, equal: list[Selector], form: Form) -> Preimage | None:
        pairs: list[tuple[SOp, Form]] = []
        for condition in equal:
            if isinstance(condition, Select):
                pairs.append((condition.keys, self.space.normal(condition.queries, form)))
        return preimage(self.space, pairs)

    def _mean(
        self, node: Aggregate, form: Form, found: Preimage, weights: tuple[Value, ...]
    ) -> Value:
        if not found.free and not weights:
            return self._read(node.value, found.position)
        if self.averaging:  # a mean of means is a block of its own, each position once
            return self._read(node, form)
        value = self._averaged(node.value, found.position)
        if isinstance(value, Literal):
            if not weights:
                return value
        elif value.kind != "f":
            raise NotProved  # an exact mean of integers is not always a float
        default = float(number(node.default)) if weights else 0.0
        return Mean(value, found.free, weights, default, node.label or "", value.kind)

    def _averaged(self, node: Node, form: Form) -> Value:
        """What a mean is taken of, expressed in place."""
        before, self.averaging = self.averaging, True
        try:
            return self.value(node, form)
        finally:
            self.averaging = before

    def _mask(self, selector: Selector, keys: Form, queries: Form) -> Value:
        """The selector as a truth value over the digits of query and key."""
        if isinstance(selector, Combine):
            parts = [part for part in selector.args if isinstance(part, Selector)]
            masks = tuple(self._mask(part, keys, queries) for part in parts)
            return Map(primitive(selector.op), masks, "b")
        if not isinstance(selector, Select) or selector.comparison.symbol is None:
            raise NotProved
        if "?" in (self.demand.kinds[id(arg)] for arg in selector.args):
            raise NotProved
        args = self.value(selector.keys, keys), self.value(selector.queries, queries)
        return Map(primitive(selector.comparison.name), args, "b")


def _is_true(value: Value) -> bool:
    return isinstance(value, Literal) and value.value is True
