"""How expressions of a compiled program are called: as their source says it, and briefly."""

from __future__ import annotations

from raspire.compile.lowering import Share, width_of
from raspire.program.nodes import Node
from raspire.program.printing import PRIMARY, Text, expression, node_text

LONGEST = 160


def text_of(node: Node) -> str:
    """The label of a node, or its expression cut to a readable length.

    >>> from raspire import indices, length
    >>> text_of(length - 1 - indices)
    'length - 1 - indices'
    """
    return node.label or expression(node, limit=LONGEST, text_of=_text)


def _text(node: Node, parts: list[Text]) -> Text:
    """As the source has it: a width is a width, not the inverse of a share."""
    if isinstance(node, Share):
        return f"share_of_sink({parts[0][0]})", PRIMARY
    if width_of(node):
        return parts[0][0].replace("share_of_sink", "selector_width", 1), PRIMARY
    return node_text(node, parts)
