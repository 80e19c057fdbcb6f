"""What goes in and what comes out: text, lists and arrays; an array in gives an array out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from raspire.errors import RaspTypeError, RaspValueError


def is_array(value: Any) -> bool:
    """Whether the value is a NumPy array (NumPy is not imported to find out)."""
    return type(value).__module__ == "numpy" and hasattr(value, "dtype")


def sequence_of(tokens: Any) -> Sequence[Any]:
    """The input as a sequence of tokens.

    Raises RaspTypeError for what is no sequence, RaspValueError for an array that is not flat.
    """
    if is_array(tokens):
        if tokens.ndim != 1:
            raise RaspValueError(
                "one input is a flat array",
                expected="an array of shape (N,)",
                found=f"shape {tokens.shape}",
                hint="give program.batch(...) an array of shape (B, N)",
            )
        return tokens  # type: ignore[no-any-return]
    if isinstance(tokens, str | list | tuple):
        return tokens
    if isinstance(tokens, Iterable):
        return list(tokens)
    raise RaspTypeError(
        "an input is a sequence",
        expected="text, a list or an array",
        found=f"{type(tokens).__name__}: {tokens!r}",
    )


def positions_of(positions: Any, length: int) -> Any:
    """Positions to read, as an int64 array; each must be in 0..N-1."""
    import numpy as np

    where = np.asarray(positions)
    if where.size == 0:
        where = where.astype(np.int64)
    if where.ndim != 1 or where.dtype.kind not in "iu":
        raise RaspTypeError(
            "positions are a flat sequence of integers",
            expected="integers",
            found=f"{where.dtype} of shape {where.shape}",
        )
    if where.size and (where.min() < 0 or where.max() >= length):
        raise RaspValueError(
            "a position is outside the input",
            expected=f"0 to {length - 1}",
            found=f"{where.min()} to {where.max()}",
        )
    return where.astype(np.int64, copy=False)


def array_of(values: Sequence[Any]) -> Any:
    """Python values as an array: numeric where all are numbers, text where all are strings."""
    import numpy as np

    kinds = {type(value) for value in values}
    if kinds <= {bool} or kinds <= {str} or kinds <= {int, float}:
        try:
            return np.array(values, dtype=np.float64 if float in kinds or not kinds else None)
        except OverflowError:
            pass
    result = np.empty(len(values), dtype=object)
    result[:] = list(values)
    return result
