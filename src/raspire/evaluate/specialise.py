"""A program for inputs of one length: what is the same at every position becomes a constant.

``length`` is such an s-op: a mean over all keys of a function of the position.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from raspire.arithmetic import Arithmetic
from raspire.errors import RaspError
from raspire.evaluate.demand import BLOCK, index_nodes, index_values
from raspire.evaluate.payload import payload
from raspire.evaluate.positions import Positions, Span, blocks
from raspire.evaluate.reference import guarded
from raspire.evaluate.selectors import clauses
from raspire.program.nodes import Aggregate, Apply, Constant, Node, Selector, SOp, Width
from raspire.program.walk import merge, rewrite, topological


def specialise(program: Node, length: int, arithmetic: Arithmetic) -> Node:
    """The same program on inputs of this length, its equal parts shared."""

    def rule(node: Node) -> Node:
        try:
            if isinstance(node, Apply):
                return _folded(node, arithmetic)
            if isinstance(node, Width) and _everything(node.selector):
                return Constant(length)
            if isinstance(node, Aggregate) and _everything(node.selector):
                return _mean(node, length, arithmetic)
        except RaspError:
            pass  # it is raised again, with its place, when the program runs
        return node

    merged = merge(program)
    return rewrite(merged, rule) if length else merged


def _folded(node: Apply, arithmetic: Arithmetic) -> Node:
    values = [child.value for child in node.args if isinstance(child, Constant)]
    if len(values) < len(node.args) or node.primitive.opaque:
        return node
    form = guarded(arithmetic.form(node.primitive), node.primitive.name)
    value = form(*map(arithmetic.constant, values))
    # A constant enters the arithmetic again when it is read: only what stays itself is folded.
    return Constant(value) if isinstance(value, bool | int | str) or plain(arithmetic) else node


def plain(arithmetic: Arithmetic) -> bool:
    """Whether the values of an arithmetic are Python's own."""
    return arithmetic.name in ("float64", "float32", "exact")


def _everything(selector: Selector) -> bool:
    found = clauses(selector)
    return found is not None and len(found) == 1 and found[0].unconditional


def _mean(node: Aggregate, length: int, arithmetic: Arithmetic) -> SOp:
    value = node.value
    if isinstance(value, Constant) and (node.rule == "exact" or length == 1):
        return value
    order = topological(value)
    if value not in index_nodes(order):
        return node
    sums: list[Any] | None = None
    counts = np.array([length])
    for part in _parts(length):
        (column,) = index_values([value], part, length)
        if column.kind not in "bi":
            return node
        pay = payload(column, node.rule, arithmetic, snap=False)
        totals = [int(channel.sum()) for channel in pay.channels]
        sums = totals if sums is None else [a + b for a, b in zip(sums, totals, strict=True)]
    assert sums is not None
    if any(abs(s) >= 1 << 62 for s in sums):
        return node
    means, bad = pay.finish(counts, [np.array([s], dtype=np.int64) for s in sums])
    if bad is not None and bad.any():
        return node
    value = means.value(0)
    return Constant(value) if isinstance(value, bool | int) or plain(arithmetic) else node


def _parts(length: int) -> list[Positions]:
    size = length if length <= 1 << 20 else BLOCK
    return list(blocks(Span(0, length), size))
