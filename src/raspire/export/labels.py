"""Tokens, output labels and notes as JSON, and back without loss.

JSON has no tuples, fractions or truth values as keys, so these are written as one-entry objects;
maps are written as lists of pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from raspire.errors import UnsupportedError


def to_json(value: Any) -> Any:
    """A JSON form of a token, a label or a note; what has none is an error.

    >>> to_json((1, Fraction(1, 3), "a"))
    {'tuple': [1, {'fraction': '1/3'}, 'a']}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, tuple):
        return {"tuple": [to_json(v) for v in value]}
    if isinstance(value, list):
        return [to_json(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return {"set": sorted((to_json(v) for v in value), key=repr)}
    if is_dataclass(value) and not isinstance(value, type):
        return to_json(asdict(value))
    if isinstance(value, Mapping):
        return {"map": [[to_json(k), to_json(v)] for k, v in value.items()]}
    raise UnsupportedError(
        f"a value of type {type(value).__name__} cannot be written to a file",
        expected="text, numbers, truth values, None, or tuples, lists and maps of them",
    )


def from_json(form: Any) -> Any:
    """The value of a JSON form.

    >>> from_json(to_json({"a": (True, 0.5)}))
    {'a': (True, 0.5)}
    """
    if isinstance(form, list):
        return [from_json(v) for v in form]
    if not isinstance(form, dict):
        return form
    ((kind, content),) = form.items()
    if kind == "map":
        return {from_json(k): from_json(v) for k, v in content}
    if kind == "float":
        return float(content)
    if kind == "fraction":
        return Fraction(content)
    inner = [from_json(v) for v in content]
    return tuple(inner) if kind == "tuple" else frozenset(inner)


def writable(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The notes that have a JSON form; the others stay behind."""
    kept = {}
    for name, value in notes.items():
        try:
            kept[name] = to_json(value)
        except UnsupportedError:
            continue
    return kept
