"""Norms and pooling of rows as programs: what stands around the blocks of an encoder.

A norm is a row mean, a row mean of squares and one `gated:rsqrt` unit; a sentence embedding is a
mean over rows, brought to length 1 by the same unit.
"""

from __future__ import annotations

from typing import Literal

from raspire.library.layout import Block, LaidOut, blocks, fetch, mean_over
from raspire.program.embedding import aggregate, maximum, rsqrt, select, tokens
from raspire.program.nodes import SOp

NormKind = Literal["layer", "rms"]


def normalised(rows: Block, norm: Block, value: SOp, kind: NormKind, name: str) -> SOp:
    """The norm of `value` over each row of the block `rows`, known at its positions.

    `norm` is a block (3, d) of tokens: the weight, the bias, eps in every column.
    """
    _, g = rows.digits()
    weight, bias, eps = (fetch(tokens, norm.address(k, g)) for k in range(3))
    if kind == "layer":
        value = (value - mean_over(rows, (0,), value)).named(f"{name}_centred")
    squares = mean_over(rows, (0,), value * value).named(f"{name}_variance")
    return ((value * weight) * rsqrt(squares + eps) + bias).named(name)


def norm_rows(n: int, d: int, kind: NormKind = "layer") -> LaidOut:
    """The layer norm or RMS norm of n rows of d numbers, given weight, bias and eps as rows.

    >>> rows = norm_rows(1, 2)([[1.0, 3.0]], [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    >>> rows
    [[-1.0, 1.0]]
    """
    layout = blocks(rows=(n, d), norm=(3, d))
    program = normalised(layout["rows"], layout["norm"], tokens, kind, "norm")
    result = layout["rows"]
    return LaidOut(f"norm_rows ({kind})", program, layout, result, layout["norm"].end)


def pool_rows(n: int, d: int, pooling: Literal["mean", "cls"], unit: bool) -> LaidOut:
    """One row from n: their mean, or the first; brought to length 1 if `unit`.

    >>> [round(x, 9) for x in pool_rows(2, 2, "mean", unit=True)([[6.0, 0.0], [0.0, 8.0]])]
    [0.6, 0.8]
    """
    rows = Block(0, (n, d))
    _, g = rows.digits()
    pooled = fetch(tokens, g) if pooling == "cls" else aggregate(select(g, g, "=="), tokens)
    pooled = pooled.named("pooled")
    if unit:
        square = mean_over(rows, (0,), pooled * pooled) * d
        pooled = (pooled * rsqrt(maximum(square, 1e-24))).named("unit")
    name = f"pool_rows ({pooling}{', unit length' if unit else ''})"
    return LaidOut(name, pooled, {"rows": rows}, Block(0, (d,)), rows.size)
