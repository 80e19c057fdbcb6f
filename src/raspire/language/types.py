"""Which types an s-op's values can have, known without running it.

The types are those of language values: string, bool, int, float. An s-op gets the set of types
that its values may have on some input; where no type is left, the program is wrong on every input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from raspire.errors import RaspTypeError
from raspire.language.interpreter import Interpreter
from raspire.language.values import atom_type
from raspire.program.nodes import (
    Aggregate,
    Apply,
    Constant,
    Indices,
    Node,
    Select,
    Selector,
    SOp,
    Width,
)

Types = frozenset[str]
ALL: Types = frozenset(("string", "bool", "int", "float"))
NUMBERS: Types = ALL - {"string"}
WHOLE: Types = frozenset(("bool", "int"))
BOOL: Types = frozenset(("bool",))
INT: Types = frozenset(("int",))
FLOAT: Types = frozenset(("float",))


def _arithmetic(a: str, b: str) -> Iterable[str]:
    if "string" in (a, b):
        return ()
    return ("float",) if "float" in (a, b) else ("int",)


def _add(a: str, b: str) -> Iterable[str]:
    return ("string",) if a == b == "string" else _arithmetic(a, b)


def _mul(a: str, b: str) -> Iterable[str]:
    if (a == "string" and b in WHOLE) or (b == "string" and a in WHOLE):
        return ("string",)
    return _arithmetic(a, b)


def _div(a: str, b: str) -> Iterable[str]:
    return () if "string" in (a, b) else ("float",)


def _pow(a: str, b: str) -> Iterable[str]:
    return () if "string" in (a, b) else ("int", "float")


def _order(a: str, b: str) -> Iterable[str]:
    return ("bool",) if (a == "string") == (b == "string") else ()


def _any_bool(*_: str) -> Iterable[str]:
    return ("bool",)


def _sign(a: str) -> Iterable[str]:
    return {"string": (), "float": ("float",)}.get(a, ("int",))


def _whole(a: str) -> Iterable[str]:
    return () if a == "string" else ("int",)


def _greater(a: str, b: str) -> Iterable[str]:
    return (a, b) if (a == "string") == (b == "string") else ()


_RULES: dict[str, Callable[..., Iterable[str]]] = {
    "add": _add, "sub": _arithmetic, "mul": _mul, "div": _div, "floordiv": _arithmetic,
    "mod": _arithmetic, "pow": _pow, "lt": _order, "le": _order, "gt": _order, "ge": _order,
    "eq": _any_bool, "ne": _any_bool, "and": _any_bool, "or": _any_bool, "not": _any_bool,
    "neg": _sign, "pos": _sign, "abs": _sign, "relu": _sign, "round": _whole, "floor": _whole,
    "ceil": _whole, "indicator": lambda a: ("int",), "to_str": lambda a: ("string",),
    "to_int": lambda a: ("int",), "to_float": lambda a: ("float",), "to_bool": _any_bool,
    "maximum": _greater, "minimum": _greater,
}  # fmt: skip
_FUNCTIONS = {
    *("exp", "log", "sqrt", "sin", "cos", "tanh", "erf"),
    *("sigmoid", "silu", "gelu", "recip", "rsqrt"),
}


def type_of(program: SOp) -> Types:
    """The types that the program's values may have.

    >>> from raspire import indices, tokens
    >>> sorted(type_of(indices / 2)), sorted(type_of(tokens + tokens))
    (['float'], ['float', 'int', 'string'])

    Raises RaspTypeError where a node has no type on any input.
    """
    return Typing().of(program)


class Typing:
    """The types of nodes seen so far; a node costs only what is new below it."""

    def __init__(self) -> None:
        self._known: dict[Node, Types] = {}

    def of(self, root: Node) -> Types:
        """The possible types of a node, none for a selector; what lies below is checked too."""
        known = self._known
        waiting = [root]
        while waiting:
            node = waiting.pop()
            missing = [child for child in node.args if child not in known]
            if missing:
                waiting += [node, *missing]
            elif node not in known:
                known[node] = _checked(node, [known[child] for child in node.args])
        return known[root]


def _checked(node: Node, below: list[Types]) -> Types:
    if isinstance(node, Select):
        _check_order(node, below)
    if isinstance(node, Selector):
        return frozenset()
    found = _types(node, below)
    if not found:
        raise _untyped(node, below)
    return found


def _types(node: Node, below: list[Types]) -> Types:
    if isinstance(node, Indices | Width):
        return INT
    if isinstance(node, Constant):
        return frozenset((atom_type(node.value),))
    if isinstance(node, Aggregate):
        return _aggregate(node, below[1])
    if isinstance(node, Apply):
        return _apply(node, below)
    return ALL


def _aggregate(node: Aggregate, payload: Types) -> Types:
    mean = FLOAT if payload & NUMBERS else frozenset()
    return payload | mean | {atom_type(node.default)}


def _apply(node: Apply, below: list[Types]) -> Types:
    record = node.primitive
    if record.name == "where":
        return below[1] | below[2]  # one branch may be taken at every position
    if record.name == "lookup":
        values = record.data.values() if isinstance(record.data, dict) else record.data
        return frozenset(map(atom_type, values))
    if record.name in _FUNCTIONS:
        return FLOAT if below[0] & NUMBERS else frozenset()
    rule = _RULES.get(record.name)
    if rule is None:
        return ALL
    return frozenset(kind for kinds in product(*below) for kind in rule(*kinds))


def _check_order(node: Select, below: list[Types]) -> None:
    keys, queries = below
    ordered = node.comparison.symbol in ("<", "<=", ">", ">=")
    if ordered and not any(_order(a, b) for a, b in product(keys, queries)):
        raise _untyped(node, below)


def _untyped(node: Node, below: list[Types]) -> RaspTypeError:
    name = node.primitive.symbol or node.primitive.name if isinstance(node, Apply) else "select"
    found = " and ".join("/".join(sorted(kinds)) or "a selector" for kinds in below)
    return RaspTypeError(
        f"{name} has no value for these types on any input", found=found, where=node.place
    )


class TypedInterpreter(Interpreter):
    """Builds programs and checks their types; nothing is run on an example.

    >>> [outcome.kind for outcome in TypedInterpreter().run("a = tokens_str - 3; b = tokens_int;")]
    ['error', 'assigned']
    """

    def __init__(self) -> None:
        self._typing = Typing()
        super().__init__(checking=False)

    def check(self, node: Node) -> None:
        """Check the types of a new node."""
        self._typing.of(node)
