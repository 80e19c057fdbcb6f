"""The attention layer that U simulates: its weights as numbers, and nothing else.

`T(X) = concat_t softmax(scale * (X W_Q + b_Q)(X W_K + b_K)^T) (X W_V + b_V) . W_O + b_O`, one
term a head. A target is data: the simulator is built without it and receives it as input.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from raspire.errors import RaspTypeError, RaspValueError
from raspire.given import whole
from raspire.simulator.naming import GivenNames, Mask
from raspire.simulator.positions import Relative, Rotary
from raspire.simulator.weights import Array, TensorRead, check_finite

MASKS: tuple[Mask, ...] = ("none", "causal", "padding")


@dataclass(frozen=True)
class Shape:
    """All that U may know of a target: its dimensions, its mask, whether it has an output map."""

    d: int
    heads: int
    d_k: int
    d_v: int
    output: bool
    mask: Mask = "none"
    rotary: bool = False
    relative: bool = False
    window: int | None = None

    @property
    def positional(self) -> str:
        """What positions do in it beyond the mask, in words; nothing where they do nothing."""
        words = ["rotary positions"] * self.rotary + ["biases by distance"] * self.relative
        return ", ".join(words + [f"window {self.window}"] * (self.window is not None))

    @property
    def inputs(self) -> int:
        """The columns of X with the column of ones that carries the biases."""
        return self.d + 1

    @property
    def columns(self) -> int:
        """The columns of [W_Q | W_K | W_V], all heads side by side."""
        return self.heads * (2 * self.d_k + self.d_v)

    @property
    def merged(self) -> int:
        """The columns of all heads' results side by side."""
        return self.heads * self.d_v

    def __str__(self) -> str:
        tail = ", output map" if self.output else ", no output map"
        return (
            f"d={self.d}, heads={self.heads}, d_k={self.d_k}, d_v={self.d_v}{tail}, "
            f"mask {self.mask}" + (f", {self.positional}" if self.positional else "")
        )


@dataclass(frozen=True, eq=False)
class AttentionTarget:
    """One multi-head attention layer in float64.

    `w_q`, `w_k`: (heads, d, d_k); `w_v`: (heads, d, d_v); `b_q`, `b_k`, `b_v`: (heads, d_k or d_v);
    `w_o`: (heads * d_v, d) or None; `b_o`: (d,). `scale` None is 1/sqrt(d_k). With a `window`
    of w a query sees the keys less than w positions away.

    >>> t = AttentionTarget.from_arrays(np.eye(2), np.eye(2), np.eye(2), heads=1)
    >>> t.d, t.heads, t.d_k, t.d_v, t.mask
    (2, 1, 2, 2, 'none')
    """

    w_q: Array
    w_k: Array
    w_v: Array
    b_q: Array
    b_k: Array
    b_v: Array
    w_o: Array | None = None
    b_o: Array | None = None
    scale: float | None = None
    mask: Mask = "none"
    reads: tuple[TensorRead, ...] = ()
    notes: tuple[str, ...] = field(default=())
    rotary: Rotary | None = None
    relative: Relative | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        _check_shapes(self)
        _check_positions(self)
        for name in ("w_q", "w_k", "w_v", "b_q", "b_k", "b_v", "w_o", "b_o"):
            array = getattr(self, name)
            if array is not None:
                check_finite(array, f"the target's {name}")
        if self.scale is not None and not (math.isfinite(self.scale) and self.scale > 0):
            raise RaspValueError("the scale of the scores must be positive", found=str(self.scale))
        if self.mask not in MASKS:
            raise RaspValueError("no such mask", expected=", ".join(MASKS), found=repr(self.mask))

    @property
    def heads(self) -> int:
        """The number of heads."""
        return int(self.w_q.shape[0])

    @property
    def d(self) -> int:
        """The model dimension: the columns of X."""
        return int(self.w_q.shape[1])

    @property
    def d_k(self) -> int:
        """The dimension of a head's queries and keys."""
        return int(self.w_q.shape[2])

    @property
    def d_v(self) -> int:
        """The dimension of a head's values."""
        return int(self.w_v.shape[2])

    @property
    def shape(self) -> Shape:
        """What a simulator must be built for."""
        return Shape(
            self.d,
            self.heads,
            self.d_k,
            self.d_v,
            self.w_o is not None,
            self.mask,
            self.rotary is not None,
            self.relative is not None,
            self.window,
        )

    @property
    def ratio(self) -> float:
        """The target's scale over 1/sqrt(d_k); it multiplies W_Q when T becomes input of U."""
        if self.scale is None:
            return 1.0
        ratio = self.scale * math.sqrt(self.d_k)
        return 1.0 if abs(ratio - 1.0) < 4e-16 else ratio

    @classmethod
    def from_arrays(
        cls,
        w_q: ArrayLike,
        w_k: ArrayLike,
        w_v: ArrayLike,
        w_o: ArrayLike | None = None,
        *,
        heads: int | None = None,
        b_q: ArrayLike | None = None,
        b_k: ArrayLike | None = None,
        b_v: ArrayLike | None = None,
        b_o: ArrayLike | None = None,
        scale: float | None = None,
        mask: Mask = "none",
        rotary: Rotary | None = None,
        relative: Relative | None = None,
        window: int | None = None,
    ) -> Self:
        """A target from matrices that multiply rows of X from the right.

        `w_q` and the others are (heads, d, d_k), or (d, heads * d_k) with `heads` given (one head,
        if not); biases are flat or (heads, d_k); `w_o` is (heads * d_v, d). A missing bias is
        zero. For grouped queries repeat the keys and values of a group first: `shared_heads`.
        """
        q, k, v = (_per_head(w, heads, n) for w, n in ((w_q, "w_q"), (w_k, "w_k"), (w_v, "w_v")))
        out = None if w_o is None else _floats(w_o, "w_o")
        if out is None and b_o is not None:
            raise RaspValueError("b_o is given without w_o", expected="w_o too, or no b_o")
        return cls(
            q,
            k,
            v,
            _bias(b_q, q, "b_q"),
            _bias(b_k, k, "b_k"),
            _bias(b_v, v, "b_v"),
            out,
            None if out is None else _output_bias(b_o, out),
            scale=scale,
            mask=mask,
            rotary=rotary,
            relative=relative,
            window=window,
        )

    @classmethod
    def from_safetensors(
        cls,
        path: str | Path,
        layer: int | str = 0,
        heads: int | None = None,
        *,
        names: GivenNames | None = None,
        mask: Mask | None = None,
    ) -> AttentionTarget:
        """Read one layer of a `.safetensors` file, a sharded set by its index, or an `.npz` file.

        `layer` is a number, or the prefix of the layer's tensors; `heads` comes from a
        `config.json` beside the file when it is not given; `names` gives tensors of any other
        naming; `mask` overrides the family's. Raises RaspError for what is not there, is not
        finite, or would be another layer.
        """
        from raspire.simulator.reader import read_target

        return read_target(path, layer, heads, names=names, mask=mask)

    @classmethod
    def from_state(
        cls,
        arrays: Mapping[str, Any],
        layer: int | str = 0,
        heads: int | None = None,
        *,
        names: GivenNames | None = None,
        mask: Mask | None = None,
    ) -> AttentionTarget:
        """Read one layer of named NumPy arrays, by the same naming as `from_safetensors`."""
        from raspire.simulator.reader import read_state

        return read_state(arrays, layer, heads, names=names, mask=mask)


def shared_heads(matrix: Array, groups: int, heads: int, name: str) -> Array:
    """Columns of `groups` heads, each repeated for the query heads that share it.

    A matrix (d, groups * width) becomes (d, heads * width), a bias likewise.

    >>> shared_heads(np.array([1.0, 2.0]), 2, 4, "b_k").tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    if groups < 1 or heads % groups or matrix.shape[-1] % groups:
        raise RaspValueError(
            f"{heads} heads do not share {groups} heads of {name}",
            expected=f"a divisor of {heads} and of {matrix.shape[-1]} columns",
            found=str(groups),
        )
    split = matrix.reshape(*matrix.shape[:-1], groups, -1)
    repeated = np.repeat(split, heads // groups, axis=-2)
    return np.ascontiguousarray(repeated.reshape(*matrix.shape[:-1], -1))


def _floats(values: ArrayLike, name: str) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise RaspTypeError(f"{name} does not hold real numbers", found=str(array.dtype))
    return np.ascontiguousarray(array, dtype=np.float64)


def _per_head(values: ArrayLike, heads: int | None, name: str) -> Array:
    array = _floats(values, name)
    if array.ndim == 3:
        if heads is not None and heads != array.shape[0]:
            raise RaspValueError(
                f"{name} has another number of heads", expected=str(heads), found=str(array.shape)
            )
        return array
    if array.ndim != 2:
        raise RaspValueError(
            f"{name} is not a weight matrix",
            expected="(heads, d, d_k), or (d, heads * d_k) with heads given",
            found=f"shape {array.shape}",
        )
    return split_heads(array, heads if heads is not None else 1, name)


def split_heads(matrix: Array, heads: int, name: str) -> Array:
    """A matrix (d, heads * width) as (heads, d, width)."""
    d, columns = matrix.shape
    if heads < 1 or columns % heads:
        raise RaspValueError(
            f"{heads} heads do not divide the {columns} columns of {name}",
            expected=f"a divisor of {columns}",
            found=str(heads),
        )
    return np.ascontiguousarray(matrix.reshape(d, heads, columns // heads).transpose(1, 0, 2))


def _bias(values: ArrayLike | None, weight: Array, name: str) -> Array:
    heads, _, width = weight.shape
    if values is None:
        return np.zeros((heads, width))
    array = _floats(values, name)
    if array.shape not in ((heads * width,), (heads, width)):
        raise RaspValueError(
            f"{name} does not fit its matrix",
            expected=f"shape ({heads * width},) or ({heads}, {width})",
            found=f"shape {array.shape}",
        )
    return array.reshape(heads, width)


def _output_bias(values: ArrayLike | None, w_o: Array) -> Array:
    return np.zeros(w_o.shape[-1]) if values is None else _floats(values, "b_o")


def _check_shapes(target: AttentionTarget) -> None:
    heads, d, d_k = _dims(target.w_q, "w_q")
    d_v = _dims(target.w_v, "w_v")[2]
    wanted: dict[str, tuple[int, ...]] = {
        "w_k": (heads, d, d_k),
        "w_v": (heads, d, d_v),
        "b_q": (heads, d_k),
        "b_k": (heads, d_k),
        "b_v": (heads, d_v),
        "w_o": (heads * d_v, d),
        "b_o": (d,),
    }
    for name, shape in wanted.items():
        array = getattr(target, name)
        if array is None and name in ("w_o", "b_o") and target.w_o is None:
            continue
        found = None if array is None else array.shape
        if found != shape:
            raise RaspValueError(
                f"{name} does not fit the target (heads={heads}, d={d}, d_k={d_k}, d_v={d_v})",
                expected=f"shape {shape}",
                found=f"shape {found}",
            )


def _check_positions(target: AttentionTarget) -> None:
    if target.rotary is not None:
        target.rotary.check(target.d_k)
    if target.relative is not None and target.relative.heads != target.heads:
        raise RaspValueError(
            "the relative biases are of another number of heads",
            expected=str(target.heads),
            found=str(target.relative.heads),
        )
    if target.window is not None:
        whole("window", target.window)  # it holds at least the query's own position


def _dims(array: Array, name: str) -> tuple[int, int, int]:
    if array.ndim != 3 or 0 in array.shape:
        raise RaspValueError(
            f"{name} is not a stack of weight matrices",
            expected="shape (heads, d, width), each at least 1",
            found=f"shape {array.shape}",
        )
    heads, d, width = array.shape
    return heads, d, width
