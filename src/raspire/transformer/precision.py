"""Which integers a precision holds exactly, and heads whose scores need more of them."""

from __future__ import annotations

from raspire.errors import RaspValueError
from raspire.transformer.layer import Head
from raspire.transformer.model import Transformer

PRECISIONS = {"float64": 53, "float32": 24}
"""The precisions, and the bits of their significands."""


def check_exact(head: Head, where: str, precision: str) -> None:
    """Raise if the head's scores may be too large to be exact in the precision."""
    limit = 2.0 ** PRECISIONS[precision]
    if head.bound is not None and head.bound > limit:
        raise RaspValueError(
            f"{where}: its scores are not exact in {precision}",
            expected=f"scores up to {limit:g}",
            found=f"{head.bound:g}",
            hint="take float64, a shorter maximal length, or one-hot addresses",
        )


def check_precision(model: Transformer, precision: str) -> None:
    """Raise at the first head of the model whose scores are not exact in the precision."""
    if precision not in PRECISIONS:
        raise RaspValueError(f"unknown precision {precision!r}", expected=", ".join(PRECISIONS))
    for i, j, head in model.heads():
        check_exact(head, f"layer {i + 1} head {j} ({head.name})", precision)
