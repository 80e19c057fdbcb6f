"""What goes into a layer beside its weights, X and the key padding, checked before it runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from raspire.errors import RaspTypeError, RaspValueError
from raspire.simulator.weights import Array, check_finite


def checked_input(x: ArrayLike, d: int) -> Array:
    """X as finite float64 of shape (n, d), n at least 1; anything else is refused by name."""
    array = np.asarray(x)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise RaspTypeError(
            "X does not hold floating-point numbers",
            expected="float64, float32 or float16",
            found=str(array.dtype),
            hint="X is the input of the layer, one row a token; token numbers are not",
        )
    if array.ndim != 2:
        raise RaspValueError(
            "X is not a matrix", expected=f"shape (n, {d})", found=f"shape {array.shape}"
        )
    if array.shape[1] != d:
        raise RaspValueError(
            "X has the wrong width",
            expected=f"{d} columns, the d of the target",
            found=f"{array.shape[1]} (shape {array.shape})",
        )
    if array.shape[0] == 0:
        raise RaspValueError("X has no rows", expected="n of 1 or more", found="n = 0")
    checked = array.astype(np.float64)
    check_finite(checked, "X")
    return checked


def checked_padding(padding: ArrayLike, n: int) -> Array:
    """Key padding as n numbers, 1 for a key that is seen and 0 for one that is not."""
    flags = np.asarray(padding)
    if flags.shape != (n,) or not np.isin(flags, (0, 1)).all():
        raise RaspValueError(
            "the key padding does not fit",
            expected=f"{n} flags, 1 for a key that is seen, 0 for padding",
            found=f"shape {flags.shape}, values {np.unique(flags)[:5].tolist()}",
        )
    if not flags.any():
        raise RaspValueError(
            "the key padding hides every key",
            expected="at least one key that is seen",
            found="all flags 0",
            hint="a softmax over no keys is not defined",
        )
    return flags.astype(np.float64)


def refuse_blind_rows(flags: Array, window: int | None) -> None:
    """Refuse a key padding that leaves a row nothing to see within its window."""
    if window is None:
        return
    places = np.arange(len(flags))
    near = np.abs(np.subtract.outer(places, places)) < window
    blind = np.flatnonzero((near & (flags == 1)).sum(axis=1) == 0)
    if len(blind):
        raise RaspValueError(
            "the key padding hides every key in the window of a row",
            expected="at least one key that is seen in every window",
            found=f"none for row {blind[0]}, window {window}",
            hint="a softmax over no keys is not defined",
        )
