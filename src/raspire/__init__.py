"""raspire: transformer algorithms as programs, run, compiled, simulated and proved.

Everything public is imported when it is first used, so that ``import raspire`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from raspire.program import hook

__version__ = "0.1.0"

_HOMES = {
    "raspire.program.embedding": (
        "tokens indices length full select aggregate selector_width hardmax where lookup "
        "elementwise exp log sqrt recip rsqrt sin cos tanh erf relu sigmoid silu gelu floor ceil "
        "indicator maximum minimum"
    ),
    "raspire.program.nodes": "SOp Selector",
    "raspire.program.walk": "merge",
    "raspire.program.facts": "cost",
    "raspire.evaluate": "explain",
    "raspire.language": "from_rasp to_rasp",
    "raspire.show.flow": "draw",
    "raspire.simulator": "AttentionTarget UniversalSimulator encode",
    "raspire.compile.sampling": "sample",
    "raspire.errors": "RaspError",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'raspire' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _evaluate(*args: Any, **options: Any) -> Any:
    return import_module("raspire.evaluate").evaluate(*args, **options)


def _batch(*args: Any, **options: Any) -> Any:
    return import_module("raspire.evaluate").batch(*args, **options)


hook.register(_evaluate, _batch)
