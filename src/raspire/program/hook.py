"""The one late-bound hook: ``program("hello")`` runs through an evaluator that registers itself.

The program knows nothing of evaluation; the package's front door registers it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_registered: dict[str, Callable[..., Any]] = {}


def register(evaluate: Callable[..., Any], batch: Callable[..., Any]) -> None:
    """Register what ``program(tokens)`` and ``program.batch(tokens)`` call."""
    _registered.update(one=evaluate, batch=batch)


def evaluator() -> Callable[..., Any]:
    """The evaluator of one input."""
    return _registered["one"]


def batch_evaluator() -> Callable[..., Any]:
    """The evaluator of a batch."""
    return _registered["batch"]
