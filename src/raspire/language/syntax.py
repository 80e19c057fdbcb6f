"""The syntax tree: one class for every construct, with its parts in order.

``kind`` says what it is, ``at`` where it begins in the source (an offset), ``parts`` are its
children and ``value`` is whatever else it carries (a literal, an operator, names); ``bracketed``
says that it stands in parentheses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Syntax:
    """A node of the syntax tree.

    ============  =====================================  =========================
    kind          parts                                  value
    ============  =====================================  =========================
    literal                                              the atom
    name                                                 the name
    unary         operand                                ``not``, ``-`` or ``+``
    binary        left, right                            the operator
    ternary       yes, condition, no
    index         object, index
    call          function, *arguments
    form          *arguments                             ``round``, ``len``, ...
    select        keys, queries                          the comparison
    aggregate     selector, value[, default]
    list, dict    elements, or keys and values in turn
    list_for      element, iterated                      names
    dict_for      key, value, iterated                   names
    evaluate      expression
    assign        *expressions                           names
    load                                                 the path
    define        *statements                            name, parameters, returned
    loop          iterated, *statements                  names
    command       [expression]                           its words
    ============  =====================================  =========================
    """

    kind: str
    at: int
    parts: tuple[Syntax, ...] = ()
    value: Any = None
    bracketed: bool = False

    @property
    def start(self) -> int:
        """The offset of the first character (``at`` of a binary operation is its operator)."""
        node = self
        while node.kind in ("binary", "ternary", "index", "call"):
            node = node.parts[0]
        return node.at


Names = tuple[tuple[str, int], ...]
"""Names being bound, each with its offset."""


@dataclass(slots=True, eq=False)
class Definition:
    """What a ``def`` carries beside its body."""

    name: str
    parameters: Names
    returned: tuple[Syntax, ...]
