"""Walks over the graph, all of them iterative: chains of thousands of terms are ordinary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from raspire.program.nodes import Node, Selector

N = TypeVar("N", bound=Node)


def topological(*roots: Node) -> list[Node]:
    """Every node below the roots once, children before parents, in order of first use."""
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.args) if id(child) not in seen)
    return order


def reached(root: N, children: Callable[[N], Iterable[N]]) -> list[N]:
    """What a walk from a node reaches by its own idea of children, these before their parents."""
    order: list[N] = []
    seen: set[int] = set()
    stack: list[tuple[N, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend([(child, False) for child in children(node)][::-1])
    return order


def selectors_of(selector: Selector) -> list[Selector]:
    """A selector's own parts, children before it; the s-ops that they compare are not entered.

    >>> from raspire import indices, select, tokens
    >>> len(selectors_of(select(tokens, tokens, "==") & ~select(indices, indices + 1, "<")))
    4
    """
    return reached(selector, _parts)


def _parts(selector: Selector) -> list[Selector]:
    return [part for part in selector.args if isinstance(part, Selector)]


def consumers(order: Iterable[Node]) -> dict[Node, list[Node]]:
    """For every node of a topological order, the nodes that read it (once for each argument)."""
    found: dict[Node, list[Node]] = {}
    for node in order:
        found.setdefault(node, [])
        for child in node.args:
            found[child].append(node)
    return found


def rewrite(root: N, rule: Callable[[Node], Node]) -> N:
    """The graph with ``rule`` applied to every node, children first; unchanged parts are shared."""
    return rewrite_all([root], rule)[0]


def rewrite_all(roots: list[N], rule: Callable[[Node], Node]) -> list[N]:
    """Several roots rewritten together, so that what they share stays shared."""
    new: dict[int, Node] = {}
    for node in topological(*roots):
        args = tuple(new[id(child)] for child in node.args)
        same = all(a is b for a, b in zip(args, node.args, strict=True))
        new[id(node)] = rule(node if same else node.with_args(args))
    return [cast(N, new[id(root)]) for root in roots]


def merge(root: N) -> N:
    """Share structurally equal nodes (hash-consing); the first of equal nodes stands for all.

    >>> from raspire import indices
    >>> twice = (indices + 1) * (indices + 1)
    >>> shared = merge(twice)
    >>> twice.args[0] is twice.args[1], shared.args[0] is shared.args[1]
    (False, True)
    """
    return merge_all([root])[0]


def merge_all(roots: list[N]) -> list[N]:
    """Merge several roots together: equal parts are shared between them too."""
    table: dict[tuple[object, ...], Node] = {}

    def share(node: Node) -> Node:
        key = (type(node), node.static(), *map(id, node.args))
        return table.setdefault(key, node)

    return rewrite_all(roots, share)
