"""A transformer as a safetensors file: sparse matrices as they are, everything else as JSON.

The JSON description is in the file's metadata under ``config`` and, for readers without the
format, in a ``.json`` file beside it. A matrix ``x`` is three tensors, ``x.indptr``,
``x.indices`` and ``x.data``; ``config["shapes"]`` has its shape and whether rows ("csr") or
columns ("csc") are compressed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from raspire.errors import RaspLoadError
from raspire.export.config import FORMAT, config, head_options, spaces
from raspire.export.labels import from_json
from raspire.files import write_whole
from raspire.transformer import Embedding, Head, Layer, Transformer, Unembedding, Units, check

Tensors = dict[str, NDArray[Any]]
Get = Callable[[str], Any]


def save_safetensors(model: Transformer, path: str | Path, *, precision: str = "float64") -> Path:
    """Write ``path`` and, beside it, the description as ``.json``; returns the path."""
    from safetensors.numpy import save

    tensors: Tensors = {}
    shapes: dict[str, list[Any]] = {}
    for name, matrix in _matrices(model):
        tensors[f"{name}.indptr"] = matrix.indptr.astype(np.int64)
        tensors[f"{name}.indices"] = matrix.indices.astype(np.int64)
        tensors[f"{name}.data"] = matrix.data.astype(precision)
        shapes[name] = [*matrix.shape, matrix.format]
    for name, bias in _biases(model):
        tensors[name] = bias.astype(precision)
    description = json.dumps({**config(model, precision), "shapes": shapes})
    target = write_whole(path, save(tensors, {"config": description, "format": "np"}))
    pretty = json.dumps(json.loads(description), indent=1)
    write_whole(target.with_suffix(".json"), pretty.encode())
    return target


def load_safetensors(path: str | Path) -> Transformer:
    """The transformer of a file written by :func:`save_safetensors`."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise RaspLoadError(f"there is no file {str(path)!r}")
    try:
        with safe_open(str(path), framework="np") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise RaspLoadError(f"{str(path)!r} is not a safetensors file: {error}") from None
    if "config" not in metadata:
        raise RaspLoadError(
            f"{str(path)!r} holds no transformer of raspire",
            expected="a description under 'config' in its metadata",
        )
    record = json.loads(metadata["config"])
    if record["format"] != FORMAT:
        raise RaspLoadError(
            f"{str(path)!r} is of another format",
            expected=str(FORMAT),
            found=str(record["format"]),
        )
    return assemble(record, *_stored(record["shapes"], tensors))


def _matrices(model: Transformer) -> Iterator[tuple[str, Any]]:
    for name in ("tokens", "positions", "values"):
        table = getattr(model.embedding, name)
        if table is not None:
            yield f"embedding.{name}", table
    for i, layer in enumerate(model.layers):
        for j, head in enumerate(layer.heads):
            for name in ("query", "key", "value", "output"):
                yield f"layers.{i}.heads.{j}.{name}", getattr(head, name)
        for j, units in enumerate(layer.units):
            for name, matrix in units.matrices.items():
                yield f"layers.{i}.units.{j}.{name}", matrix
    yield "unembedding", model.unembedding.matrix


def _biases(model: Transformer) -> Iterator[tuple[str, NDArray[np.float64]]]:
    for i, layer in enumerate(model.layers):
        for j, units in enumerate(layer.units):
            yield f"layers.{i}.units.{j}.first_bias", units.first_bias
            if units.second_bias is not None:
                yield f"layers.{i}.units.{j}.second_bias", units.second_bias


def _stored(shapes: dict[str, list[Any]], tensors: Tensors) -> tuple[Get, Get]:
    """How to get a matrix, and a bias, by name; None where there is none."""

    def matrix(name: str) -> Any:
        if name not in shapes:
            return None
        parts = [tensors[f"{name}.{part}"] for part in ("data", "indices", "indptr")]
        parts[0] = parts[0].astype(np.float64)
        rows, columns, kind = shapes[name]
        make = sparse.csr_array if kind == "csr" else sparse.csc_array
        return make(tuple(parts), shape=(rows, columns))

    def bias(name: str) -> NDArray[np.float64] | None:
        return tensors[name].astype(np.float64) if name in tensors else None

    return matrix, bias


def assemble(record: dict[str, Any], matrix: Get, bias: Get) -> Transformer:
    """The transformer of a description, given its matrices and biases by name; checked."""

    def head(place: str, options: dict[str, Any]) -> Head:
        names = ("query", "key", "value", "output")
        arrays: dict[str, Any] = {n: matrix(f"{place}.{n}") for n in names}
        return Head(**arrays, **head_options(options))

    def units(place: str, options: dict[str, Any]) -> Units:
        arrays = {n: matrix(f"{place}.{n}") for n in ("first", "second", "output")}
        biases = {n: bias(f"{place}.{n}") for n in ("first_bias", "second_bias")}
        return Units(**options, **arrays, **biases)

    layers = tuple(
        Layer(
            tuple(head(f"layers.{i}.heads.{j}", h) for j, h in enumerate(layer["heads"])),
            tuple(units(f"layers.{i}.units.{j}", u) for j, u in enumerate(layer["units"])),
        )
        for i, layer in enumerate(record["layers"])
    )
    out, unembedding = record["unembedding"], matrix("unembedding")
    assert unembedding is not None
    model = Transformer(
        record["name"],
        record["width"],
        _embedding(record["embedding"], *(matrix(f"embedding.{n}") for n in _TABLES)),
        layers,
        Unembedding(unembedding, out["kind"], tuple(from_json(x) for x in out["labels"])),
        spaces(record),
        {name: from_json(note) for name, note in record["notes"].items()},
    )
    check(model)
    return model


_TABLES = ("tokens", "positions", "values")


def _embedding(record: dict[str, Any], *tables: sparse.csr_array | None) -> Embedding:
    tokens, positions, values = tables
    return Embedding(
        tokens,
        tuple(from_json(token) for token in record["vocabulary"]),
        record["bos"],
        record["pad"],
        positions,
        None if record["types"] is None else tuple(record["types"]),
        record["extend"],
        values,
    )
