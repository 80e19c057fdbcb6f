"""The families of feed-forward units, each declared once.

A unit is ``first(h) * gate(second(h))`` or ``gate(first(h))``; what ``gate`` is, is the family.
In real arithmetic every family is exact by definition; in floating point ``exp``, ``recip``, ...
carry the error of their library (about 1 ulp).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from raspire.errors import RaspValueError

Array = NDArray[Any]


def _relu2(x: Array) -> Array:
    return np.square(np.maximum(x, 0))


def _gelu_tanh(x: Array) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _cast(function: Callable[[Array], Any]) -> Callable[[Array], Array]:
    return lambda x: np.asarray(function(x), dtype=x.dtype)


PLAIN: dict[str, Callable[[Array], Array]] = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu2": _relu2,
}

GATES: dict[str, Callable[[Array], Array]] = {
    "identity": lambda x: x,
    "exp": np.exp,
    "recip": np.reciprocal,
    "rsqrt": lambda x: np.reciprocal(np.sqrt(x)),
    "sqrt": np.sqrt,
    "log": np.log,
    "abs": np.abs,
    "sign": np.sign,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": _cast(special.erf),
    "sigmoid": _cast(special.expit),
    "step": lambda x: (x > 0).astype(x.dtype),
    "zero": lambda x: (x == 0).astype(x.dtype),
    "floor": np.floor,
    "relu": lambda x: np.maximum(x, 0),
    "silu": _cast(lambda x: x * special.expit(x)),
    "gelu": _cast(lambda x: x * special.ndtr(x)),
    "gelu_tanh": _cast(_gelu_tanh),
}


def gate_of(family: str) -> str | None:
    """The gate of a gated family, or None for a plain one; an unknown family is an error.

    >>> gate_of("gated:exp"), gate_of("relu")
    ('exp', None)
    """
    if family in PLAIN:
        return None
    gate = "identity" if family == "bilinear" else family.removeprefix("gated:")
    if gate not in GATES or family == gate:
        raise RaspValueError(
            f"unknown feed-forward family {family!r}",
            expected=", ".join([*PLAIN, "bilinear", *(f"gated:{g}" for g in GATES)]),
        )
    return gate


def activate(family: str, first: Array, second: Array | None) -> Array:
    """The hidden activations of a group of units from the branches, elementwise."""
    gate = gate_of(family)
    if gate is None:
        return PLAIN[family](first)
    assert second is not None
    with np.errstate(all="ignore"):
        return first * GATES[gate](second)
