"""The names a session begins with, those that are reserved, and suggestions for misspelt ones."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from raspire.errors import RaspReservedError, RaspTypeError
from raspire.language import forms
from raspire.language.values import Builtin, describe, is_atom
from raspire.program.embedding import full, indices, length, tokens
from raspire.program.nodes import Aggregate, Apply, Hardmax, Selector, SOp, Width, lift
from raspire.program.primitives import PRIMITIVES, Primitive, primitive

# Elementwise functions that are written as calls; the others have operators or forms.
_WRITTEN_OTHERWISE = ("where", "round", "indicator")

RESERVED = frozenset(
    (
        *("tokens_str", "tokens_int", "tokens_float", "tokens_bool", "tokens_asis"),
        *("indices", "True", "False", "out", "range", "zip", "len", "get"),
    )
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
    functions: dict[str, Any] = {
        name: Builtin(f"{name}({', '.join('xyz'[: record.arity])})", (record.arity,), _call(record))
        for name, record in PRIMITIVES.items()
        if record.symbol is None and name not in _WRITTEN_OTHERWISE
    }
    return {
        **functions,
        "exact_aggregate": Builtin("exact_aggregate(selector, value, default)", (2, 3), _exact),
        "hardmax": Builtin("hardmax(score, among)", (1, 2), _hardmax),
    }


def _width(selector: Any) -> SOp:
    if not isinstance(selector, Selector):
        raise RaspTypeError(
            "selector_width needs a selector", expected="a selector", found=describe(selector)
        )
    return Width(selector)


def _call(record: Primitive) -> Any:
    def run(*values: Any) -> Any:
        for value in values:
            if not isinstance(value, SOp) and not is_atom(value):
                raise RaspTypeError(
                    f"{record.name} works on atoms and s-ops",
                    expected="an atom or an s-op",
                    found=describe(value),
                )
        if any(isinstance(value, SOp) for value in values):
            return Apply(record, *map(lift, values))
        return record.scalar(*values)

    return run


def _exact(selector: Any, value: Any, default: Any = 0) -> SOp:
    """The mean of the Python embedding: exact, and equal values of any type stay that value."""
    aggregate = forms.aggregate(selector, value, default)
    return Aggregate(aggregate.selector, aggregate.value, default, "exact")


def _hardmax(score: Any, among: Any = full) -> Selector:
    """Of the selected positions those of greatest score."""
    if not isinstance(among, Selector):
        raise RaspTypeError("hardmax needs a selector", expected="a selector",
                            found=describe(among))  # fmt: skip
    if not isinstance(score, SOp) and not is_atom(score):
        raise RaspTypeError("hardmax needs a score", expected="an s-op", found=describe(score))
    return Hardmax(among, lift(score))


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
