"""The names a session begins with, those that are reserved, and suggestions for misspelt ones."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from raspire.errors import RaspReservedError, RaspTypeError
from raspire.language.values import Builtin, describe, is_atom
from raspire.program.embedding import full, indices, length, tokens
from raspire.program.nodes import Apply, Selector, SOp, Width
from raspire.program.primitives import primitive

FUNCTIONS = ("exp", "log", "sqrt", "abs", "floor", "ceil", "sin", "cos")

RESERVED = frozenset(
    "tokens_str tokens_int tokens_float tokens_bool tokens_asis indices True False out range zip "
    "len get".split()
)


def base_names() -> dict[str, Any]:
    """The base s-ops and constants: what the original builds in."""
    conversions: dict[str, Any] = {
        name: Apply(primitive(record), tokens).named(name)
        for name, record in (
            ("tokens_str", "to_str"),
            ("tokens_int", "to_int"),
            ("tokens_float", "to_float"),
            ("tokens_bool", "to_bool"),
        )
    }
    return {
        **conversions,
        "tokens_asis": tokens,
        "tokens": conversions["tokens_str"],
        "indices": indices,
        "True": True,
        "False": False,
        "full_s": full,
        "length": length,
        "selector_width": Builtin("selector_width(sel)", (1,), _width),
    }


def added_names() -> dict[str, Any]:
    """Functions that the original does not have; any program may define its own of that name."""
    return {name: Builtin(f"{name}(x)", (1,), _elementwise(name)) for name in FUNCTIONS}


def _width(selector: Any) -> SOp:
    if not isinstance(selector, Selector):
        raise RaspTypeError(
            "selector_width needs a selector", expected="a selector", found=describe(selector)
        )
    return Width(selector)


def _elementwise(name: str) -> Any:
    record = primitive(name)

    def run(value: Any) -> Any:
        if isinstance(value, SOp):
            return Apply(record, value)
        if not is_atom(value):
            raise RaspTypeError(
                f"{name} works on atoms and s-ops", expected="a number", found=describe(value)
            )
        return record.scalar(value)

    return run


def refuse_reserved(name: str, also: frozenset[str] = frozenset()) -> None:
    """Raise RaspReservedError if the name may not be bound."""
    if name in RESERVED or name in also:
        raise RaspReservedError(
            f"the name {name!r} is reserved",
            expected="a name of your own",
            found=name,
            hint=f"for example my_{name}",
        )


def suggestion(name: str, known: set[str]) -> str:
    """``did you mean ...?`` for the known names nearest to a misspelt one, or nothing."""
    near = get_close_matches(name, sorted(known), n=2, cutoff=0.7)
    return f"did you mean {' or '.join(near)}?" if near else ""


