"""Equality of program graphs, sharing included."""

from __future__ import annotations

from raspire.program.nodes import Constant, Node
from raspire.program.walk import topological


def same_graph(a: Node, b: Node) -> bool:
    """Whether a one-to-one map of nodes takes one program to the other.

    Equal constants are not told apart: text has no identity for them.
    """
    left, right = topological(a), topological(b)
    left_nodes = [node for node in left if not isinstance(node, Constant)]
    right_nodes = [node for node in right if not isinstance(node, Constant)]
    if len(left_nodes) != len(right_nodes):
        return False
    partner: dict[Node, Node] = {}
    waiting = [(a, b)]
    while waiting:
        x, y = waiting.pop()
        if type(x) is not type(y) or x.static() != y.static() or len(x.args) != len(y.args):
            return False
        if isinstance(x, Constant):
            continue
        if x in partner:
            if partner[x] is not y:
                return False
            continue
        partner[x] = y
        waiting += zip(x.args, y.args, strict=True)
    return len(set(partner.values())) == len(partner)
