"""Values of the language while a program runs.

Atoms are Python's bool, int, float and str; lists and dictionaries are Python's; s-ops and
selectors are nodes of the program graph; functions and evaluated results are defined here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from raspire.errors import RaspTypeError
from raspire.language.source import Source
from raspire.language.syntax import Names
from raspire.program.nodes import Node, Selector, SOp

if TYPE_CHECKING:
    from raspire.language.code import Code

ATOMS = (int, float, str)  # bool is an int
NUMBERS = frozenset((int, float, bool))


@dataclass(slots=True, eq=False)
class Scope:
    """Names and their values, with the scope around it."""

    names: dict[str, Any] = field(default_factory=dict)
    outer: Scope | None = None

    def find(self, name: str) -> Any:
        """The value of a name here or further out; raises KeyError."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        raise KeyError(name)

    def known(self) -> set[str]:
        """Every name that can be seen from here."""
        found: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            found.update(scope.names)
            scope = scope.outer
        return found


@dataclass(slots=True, eq=False)
class Function:
    """A function of the language: its code and the scope it was defined in."""

    name: str
    parameters: Names
    code: Code
    source: Source
    scope: Scope
    creator: str

    def __str__(self) -> str:
        names = ", ".join(name for name, _ in self.parameters)
        return f"{self.creator} function: {self.name}({names})"


@dataclass(slots=True, eq=False)
class Builtin:
    """A function written in Python; ``arities`` are the numbers of arguments it takes."""

    name: str
    arities: tuple[int, ...]
    run: Callable[..., Any]

    def __str__(self) -> str:
        return f"built-in function: {self.name}"


class Sequence(list[Any]):
    """An s-op's result on an input: an ordinary list that remembers its type."""

    def __init__(self, values: Iterable[Any]) -> None:
        super().__init__(values)
        self.type = sequence_type(self)


class Matrix(list[Any]):
    """A selector's result on an input: a list of rows, one for each output position."""

    def __init__(self, rows: Iterable[list[bool]], tokens: list[Any]) -> None:
        super().__init__(rows)
        self.tokens = tokens


def is_atom(value: object) -> bool:
    """Whether the value may stand at a position of a sequence."""
    return isinstance(value, ATOMS)


def atom_type(value: object) -> str:
    """The language's name for an atom's type."""
    return {bool: "bool", int: "int", float: "float"}.get(type(value), "string")


def sequence_type(values: Iterable[Any]) -> str:
    """The first of string, bool, int, float that fits every value.

    >>> sequence_type([0, 0.5]), sequence_type([0, True])
    ('float', 'int')

    Raises RaspTypeError for a mix, or for values that no sequence holds.
    """
    kinds = set(map(type, values))
    if kinds <= {str}:
        return "string"
    if kinds <= {bool}:
        return "bool"
    if kinds <= {bool, int}:
        return "int"
    if kinds <= NUMBERS:
        return "float"
    if kinds <= NUMBERS | {str}:
        raise RaspTypeError(
            "a sequence cannot mix types",
            expected="all strings, all bools, or all numbers",
            found=" and ".join(sorted(_TYPE_NAMES[kind] for kind in kinds)),
        )
    strange = sorted(kind.__name__ for kind in kinds - NUMBERS - {str})
    raise RaspTypeError(
        "a sequence cannot hold such values",
        expected="strings, bools, ints or floats",
        found=" and ".join(strange),
    )


_TYPE_NAMES: dict[type, str] = {str: "strings", bool: "bools", int: "ints", float: "floats"}


def describe(value: object) -> str:
    """What a value is, for error messages: ``an s-op``, ``a list`` ..."""
    if isinstance(value, SOp):
        return f"an s-op ({value.label})" if value.label else "an s-op"
    if isinstance(value, Selector):
        label = "full_s" if value.label == "full" else value.label
        return f"a selector ({label})" if label else "a selector"
    if isinstance(value, bool | int | float):
        name = type(value).__name__
        return f"{'an' if name == 'int' else 'a'} {name} ({_short(value)})"
    if isinstance(value, str):
        return f"a string ({_short(value)})"
    if isinstance(value, Sequence | Matrix):
        return "an evaluated result"
    if isinstance(value, dict):
        return "a dictionary"
    if isinstance(value, Function | Builtin):
        return f"a function ({value.name})"
    return "a list" if isinstance(value, list) else type(value).__name__


def _short(value: object) -> str:
    if isinstance(value, int) and abs(value) > 10**40:
        return "a very large one"
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) < 40 else text[:36] + "..."


def has_nodes(value: object) -> bool:
    """Whether a value is, or holds anywhere inside, an s-op or selector."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Node):
            return True
        if isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, dict):
            waiting.extend(item.values())
    return False
