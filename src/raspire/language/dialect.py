"""Which dialect a text is written in: the original's, or with our additions; and what it selects.

An addition is something that the original implementation does not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from raspire.language.names import added_names
from raspire.language.source import Source
from raspire.language.syntax import Definition, Syntax
from raspire.program.nodes import Aggregate, Hardmax, Indices, Node, Select
from raspire.program.walk import topological


def additions(trees: list[Syntax], source: Source) -> dict[str, int]:
    """What the original would not read, each with the first line that uses it.

    >>> from raspire.language.statements import parse
    >>> source = Source("a = 'x';\\nb = exp(indices);")
    >>> additions(list(parse(source)), source)
    {'single-quoted string': 1, 'the function exp': 2}
    """
    bound = {name for tree in every(trees) for name in _bound(tree)}
    found: dict[str, int] = {}
    for tree in every(trees):
        what = _addition(tree, source, bound)
        if what:
            found.setdefault(what, source.place(tree.at).line)
    return found


def every(trees: list[Syntax]) -> Iterator[Syntax]:
    """Every node of the trees, parents first."""
    waiting = list(reversed(trees))
    while waiting:
        tree = waiting.pop()
        yield tree
        waiting.extend(reversed(tree.parts))
        if isinstance(tree.value, Definition):
            waiting.extend(tree.value.returned)


def _bound(tree: Syntax) -> Iterator[str]:
    if isinstance(tree.value, Definition):
        yield tree.value.name
        yield from (name for name, _ in tree.value.parameters)
    elif tree.kind in ("assign", "loop", "list_for", "dict_for"):
        yield from (name for name, _ in tree.value)


_ADDED = frozenset(added_names())


def _addition(tree: Syntax, source: Source, bound: set[str]) -> str | None:
    foreign = next((name for name in _bound(tree) if not name.isascii()), None)
    if foreign is not None:
        return f"the Unicode name {foreign}"
    if tree.kind == "binary" and tree.value in ("!=", "//"):
        return f"the operator {tree.value}"
    if tree.kind == "literal" and source.text[tree.at : tree.at + 1] == "'":
        return "single-quoted string"
    if tree.kind == "name":
        if not tree.value.isascii():
            return f"the Unicode name {tree.value}"
        if tree.value in _ADDED and tree.value not in bound:
            return f"the function {tree.value}"
    return None


def attention(program: Node) -> dict[str, object]:
    """What kind of attention a program asks for: its comparisons, its means, its reach.

    ``causal`` is true when every selector that is read compares positions with ``<`` or ``<=``.
    """
    order = topological(program)
    selects = [node for node in order if isinstance(node, Select)]
    comparisons = sorted({s.comparison.symbol or s.comparison.name for s in selects})
    return {
        "comparisons": comparisons,
        "averages": any(isinstance(node, Aggregate) for node in order),
        "hardmax": any(isinstance(node, Hardmax) for node in order),
        "causal": _causal(order),
    }


def _causal(order: list[Node]) -> bool:
    """Whether every selector that is read lies under the diagonal, as far as its form shows."""
    known: dict[Node, bool] = {}
    for node in order:
        below = [known.get(child, False) for child in node.args]
        if isinstance(node, Select):
            positions = isinstance(node.args[0], Indices) and isinstance(node.args[1], Indices)
            known[node] = positions and node.comparison.symbol in ("<", "<=", "==")
        else:
            op = getattr(node, "op", None)
            known[node] = any(below) if op == "and" else op == "or" and all(below)
    read = [node.args[0] for node in order if type(node).__name__ in ("Aggregate", "Width")]
    return all(known[selector] for selector in read)
