"""The plan of a program, as a database would show it."""

from __future__ import annotations

from typing import Any

from raspire.program.nodes import Node


def explain(program: Node, tokens: Any) -> str:
    """The plan, one line a selector."""
    return ""
