"""Matrices as programs: transposition, product, row softmax (Lemmas 3, 4 and 5 of the paper).

A matrix is a row-major block of positions, one scalar a token. `long` gives every product of an
entry with an entry a position of its own, `wide` lets one position copy all factors of its sum:
few heads and a long sequence, or many heads and a short one. The costs are those of
`constructions`, section 4, counted on the programs by `LaidOut.cost`.
"""

from __future__ import annotations

from typing import Literal

from raspire.errors import RaspValueError
from raspire.library.layout import Block, Face, LaidOut, blocks, fetch, mean_over, total
from raspire.program.embedding import aggregate, exp, hardmax, select, tokens


def transpose(rows: int, columns: int) -> LaidOut:
    """The transposition of a rows × columns matrix: one head, one layer (Lemma 3).

    >>> transpose(2, 3)([[1, 2, 3], [4, 5, 6]])
    [[1, 4], [2, 5], [3, 6]]
    """
    _positive(rows=rows, columns=columns)
    source, result = Block(0, (rows, columns)), Block(0, (columns, rows))
    i, j = result.digits()
    program = fetch(tokens, source.address(j, i)).named("transposed")
    return LaidOut("transpose", program, {"A": source}, result, source.size, source="Lemma 3")


def matmul(
    rows: int, inner: int, columns: int, construction: Literal["wide", "long"] = "wide"
) -> LaidOut:
    """The product of a rows × inner and an inner × columns matrix (Lemma 5).

    `wide`: attention depth 1, 2·inner heads. `long`: attention depth 2, heads 2 and 1, and
    rows·inner·columns positions more. Exact over the rationals.

    >>> matmul(2, 2, 2)([[1, 2], [3, 4]], [[5, 6], [7, 8]])
    [[19, 22], [43, 50]]
    >>> matmul(2, 2, 1, "long").cost.heads_per_layer
    (2, 1)
    """
    _positive(rows=rows, inner=inner, columns=columns)
    if construction == "wide":
        return _wide_product(rows, inner, columns)
    if construction == "long":
        return _long_product(rows, inner, columns)
    raise RaspValueError(
        "no such construction", expected="one of wide, long", found=repr(construction)
    )


def row_softmax(rows: int, columns: int, stable: bool = False) -> LaidOut:
    """The softmax of every row of a rows × columns matrix (Lemma 4).

    `exp`, the mean over the row, the quotient. `stable` subtracts the row's maximum first, one
    attention layer deeper; without it entries must lie within [-700, 700].

    >>> row_softmax(1, 2)([[0.0, 0.0]])
    [[0.5, 0.5]]
    """
    _positive(rows=rows, columns=columns)
    block = Block(0, (rows, columns))
    entries = tokens
    if stable:
        key, query = block.groups(0)
        row = select(key, query, "==")
        entries = tokens - aggregate(hardmax(tokens, among=row), tokens).named("row_maximum")
    weights = exp(entries).named("weights")
    # weight / (mean * columns) is the softmax; a row's mean is over all of its columns
    program = (weights / (mean_over(block, (0,), weights) * columns)).named("softmax")
    name = "row_softmax (stable)" if stable else "row_softmax"
    return LaidOut(name, program, {"A": block}, block, block.size, source="Lemma 4")


def _wide_product(rows: int, inner: int, columns: int) -> LaidOut:
    layout = blocks(A=(rows, inner), B=(inner, columns))
    result = Block(0, (rows, columns))
    i, j = result.digits()
    terms = [
        fetch(tokens, layout["A"].address(i, k)) * fetch(tokens, layout["B"].address(k, j))
        for k in range(inner)
    ]
    length = max(layout["B"].end, result.end)
    program = total(terms).named("product")
    return LaidOut("matmul (wide)", program, layout, result, length, source="Lemma 5")


def _long_product(rows: int, inner: int, columns: int) -> LaidOut:
    layout = blocks(A=(rows, inner), B=(inner, columns), products=(rows, inner, columns))
    products = layout.pop("products")
    i, k, j = products.digits()
    product = fetch(tokens, layout["A"].address(i, k)) * fetch(tokens, layout["B"].address(k, j))
    program = (mean_over(products, (0, 2), product) * inner).named("product")
    result = Face(products, {1: 0})
    return LaidOut("matmul (long)", program, layout, result, products.end, source="Lemma 5")


def _positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise RaspValueError(
                f"a matrix needs {name} of 1 or more", expected="1 or more", found=repr(size)
            )
