"""Named tensors as float64 arrays, read from safetensors files or from NumPy.

A target is only as trustworthy as the reading of its numbers, so every stored type is widened
exactly (bfloat16 included, which NumPy does not know) and every value is checked to be finite.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from raspire.errors import RaspLoadError, RaspTypeError, RaspValueError

Array = NDArray[np.float64]

_STORED = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}


@dataclass(frozen=True)
class TensorRead:
    """One tensor that went into a target: its name, shape and stored type, for the report."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass
class Weights:
    """A read-only collection of named tensors; a tensor is read when it is asked for.

    >>> w = Weights.from_arrays({"q": np.eye(2, dtype=np.float32)})
    >>> w.read("q").dtype, w.shape("q"), "k" in w
    (dtype('float64'), (2, 2), False)
    """

    origin: str
    places: Mapping[str, Path | NDArray[Any]]
    reads: list[TensorRead] = field(default_factory=list)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Weights:
        """Tensors that are already in memory, by name."""
        return cls("arrays", {name: np.asarray(value) for name, value in arrays.items()})

    @classmethod
    def open(cls, path: str | Path) -> Weights:
        """Open a `.safetensors` file, a sharded set by its `.index.json`, or an `.npz` file.

        A folder stands for the `model.safetensors` or `model.safetensors.index.json` in it.
        """
        path = _resolve(Path(path))
        if path.name.endswith(".index.json"):
            return cls(str(path), _read_index(path))
        if path.suffix == ".npz":
            return cls(str(path), _read_npz(path))
        return cls(str(path), dict.fromkeys(_names_in(path), path))

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, without reading it."""
        place = self._place(name)
        if isinstance(place, Path):
            with _opened(place) as file:
                return tuple(file.get_slice(name).get_shape())
        return tuple(place.shape)

    def read(self, name: str) -> Array:
        """The tensor `name` in float64, widened exactly; NaN and infinity are refused."""
        place = self._place(name)
        if isinstance(place, Path):
            raw, kind = _read_tensor(place, name)
        else:
            raw, kind = place, str(place.dtype)
            if raw.dtype.kind not in "f" or raw.dtype.itemsize > 8:
                raise _type_error(name, kind)
        array: Array = np.ascontiguousarray(raw, dtype=np.float64)
        check_finite(array, f"the tensor {name!r}")
        self.reads.append(TensorRead(name, tuple(array.shape), kind))
        return array

    def _place(self, name: str) -> Path | NDArray[Any]:
        if name not in self.places:
            raise RaspLoadError(
                f"{self.origin} holds no tensor {name!r}",
                expected="a name that is there",
                found=_some(sorted(self.places)),
            )
        return self.places[name]


def check_finite(array: Array, what: str) -> None:
    """Refuse an array with NaN or infinity, naming the first place where one stands."""
    bad = ~np.isfinite(array)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise RaspValueError(
            f"{what} holds a value that is not finite",
            expected="finite numbers",
            found=f"{array[first]} at {list(first)}, {int(bad.sum())} in all",
        )


def _resolve(path: Path) -> Path:
    if path.is_dir():
        for name in ("model.safetensors", "model.safetensors.index.json"):
            if (path / name).exists():
                return path / name
        raise RaspLoadError(
            f"{path} holds no weights",
            expected="model.safetensors or model.safetensors.index.json",
            found=_some(sorted(p.name for p in path.iterdir())),
        )
    if not path.exists():
        raise RaspLoadError(f"no such file: {path}", expected="a safetensors file")
    return path


def _opened(path: Path) -> Any:
    try:
        return safe_open(str(path), framework="numpy")
    except (SafetensorError, OSError) as error:
        raise RaspLoadError(
            f"{path} is not a safetensors file",
            expected="a header of named tensors, then their bytes",
            found=str(error),
        ) from error


def _names_in(path: Path) -> list[str]:
    with _opened(path) as file:
        return list(file.keys())


def _read_index(path: Path) -> dict[str, Path]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
        shards = {name: path.parent / file for name, file in table.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RaspLoadError(
            f"{path} is not an index of safetensors files",
            expected='{"weight_map": {tensor name: file name}}',
            found=str(error),
        ) from error
    missing = sorted({str(s) for s in shards.values() if not s.exists()})
    if missing:
        raise RaspLoadError(f"{path} names files that are not there", found=_some(missing))
    return shards


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as stream:
            file = np.load(stream, allow_pickle=False)
            if isinstance(file, np.ndarray):  # an .npy file by another name
                raise ValueError("one array without a name")
            return {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, BadZipFile, zlib.error) as error:
        raise RaspLoadError(f"{path} is not an .npz file of arrays", found=str(error)) from error


def _read_tensor(path: Path, name: str) -> tuple[NDArray[Any], str]:
    with _opened(path) as file:
        kind = file.get_slice(name).get_dtype()
        if kind not in _STORED:
            raise _type_error(name, kind)
        if kind != "BF16":
            return file.get_tensor(name), kind
    return _read_bfloat16(path, name), kind


def _read_bfloat16(path: Path, name: str) -> NDArray[np.float32]:
    """A bfloat16 is the upper half of a binary32, so shifting its bits up widens it exactly."""
    with path.open("rb") as file:
        header_size = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(header_size))[name]
        start, end = entry["data_offsets"]
        file.seek(8 + header_size + start)
        bits = np.frombuffer(file.read(end - start), dtype="<u2")
    wide = bits.astype(np.uint32) << np.uint32(16)
    return wide.view(np.float32).reshape(entry["shape"])


def _type_error(name: str, kind: str) -> RaspTypeError:
    return RaspTypeError(
        f"the tensor {name!r} does not hold floating-point weights",
        expected="float64, float32, float16 or bfloat16",
        found=kind,
        hint="dequantise the file first; a quantised layer is another layer",
    )


def _some(names: list[str], limit: int = 12) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more if names else "nothing"
