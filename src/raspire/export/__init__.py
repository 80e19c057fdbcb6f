"""A transformer in somebody else's framework: torch, ONNX, safetensors, TransformerLens.

Nothing here is imported before it is asked for; a missing framework is an error that names the
extra which brings it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from raspire.compile.compiled import Compiled
from raspire.errors import MissingExtraError, RaspValueError
from raspire.transformer import Transformer, check_precision

_EXTRAS = {"torch": "torch", "onnx": "onnx", "onnxruntime": "onnx", "transformer_lens": "lens"}

SUFFIXES = {".safetensors": "tensors", ".onnx": "onnx_model", ".pt": "pytorch"}


def _module(name: str) -> Any:
    try:
        return import_module(f"raspire.export.{name}")
    except ModuleNotFoundError as error:
        if error.name in _EXTRAS:
            raise MissingExtraError(error.name, _EXTRAS[error.name]) from None
        raise


def _network(model: Transformer | Compiled) -> Transformer:
    return model.transformer if isinstance(model, Compiled) else model


def to_torch(model: Transformer | Compiled, precision: str = "float64") -> Any:
    """A ``torch.nn.Module`` of stock parts; see :mod:`raspire.export.pytorch`."""
    model = _network(model)
    check_precision(model, precision)
    module = _module("pytorch")
    torch = import_module("torch")
    return module.TransformerModule(model).to(getattr(torch, precision))


def to_onnx(model: Transformer | Compiled, precision: str = "float64") -> Any:
    """The transformer as an ``onnx.ModelProto``; see :mod:`raspire.export.onnx_model`."""
    model = _network(model)
    check_precision(model, precision)
    return _module("onnx_model").to_onnx(model, precision)


def to_lens(model: Transformer | Compiled) -> Any:
    """The transformer as a ``TransformerBridge`` of TransformerLens 4."""
    return _module("lens").to_lens(_network(model))


def save(model: Transformer | Compiled, path: str | Path, precision: str = "float64") -> Path:
    """Write a file whose kind its suffix says: ``.safetensors``, ``.onnx`` or ``.pt``."""
    model, write = _network(model), writer_of(path)
    check_precision(model, precision)
    return write(model, path, precision=precision)


def writer_of(path: str | Path) -> Callable[..., Path]:
    """The function that writes a file of the path's suffix.

    Raises RaspValueError for another suffix, MissingExtraError where its framework is missing.
    """
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise RaspValueError(
            f"a transformer cannot be written to {str(path)!r}",
            expected=f"a suffix among {', '.join(SUFFIXES)}",
            found=suffix or "none",
        )
    names = {".safetensors": "save_safetensors", ".onnx": "save_onnx", ".pt": "save_torch"}
    write: Callable[..., Path] = getattr(_module(SUFFIXES[suffix]), names[suffix])
    return write


def load(path: str | Path) -> Transformer:
    """The transformer of a ``.safetensors`` or ``.pt`` file written by :func:`save`."""
    if Path(path).suffix == ".pt":
        model: Transformer = _module("pytorch").load_torch(path)
    else:
        model = _module("tensors").load_safetensors(path)
    return model


__all__ = ["load", "save", "to_lens", "to_onnx", "to_torch"]
