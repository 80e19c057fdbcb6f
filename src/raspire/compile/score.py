"""A condition as an attention score: integers whose greatest value is attained where it holds.

Two kinds of score, both with a constant top value, so that scores of a conjunction add up:

* *parabola*: keys and queries get integer codes, the score is ``-2 (k - q)^2``: 0 where the codes
  are equal, at most -2 elsewhere. It serves every condition by which a query asks for one class
  of keys (``==``, ``k == q - 1``, look-ups), at constant width.
* *one-hot*: one slot per class; the score is 2 where the condition holds, else 0. It serves every
  condition whatever, and is exact in every precision.

The beginning of sequence scores one less than the top, and so takes the rows that select nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from raspire.compile.domain import Vector
from raspire.compile.linear import TOK, Cell, Form, constant, of
from raspire.compile.parts import Pair
from raspire.compile.predicate import Clause
from raspire.program.nodes import Indices, SOp

if TYPE_CHECKING:
    from raspire.compile.facts import Facts
    from raspire.compile.workshop import Workshop

_ONE_HOT = 4
"""Up to so many classes a one-hot code is no wider than a parabola."""
_BLOCKS = 64
"""From so many ordered classes on, an order is compared by two digits."""


@dataclass(frozen=True)
class Score:
    """Pairs of forms whose products add up to the score, and the score where all holds."""

    pairs: list[Pair]
    top: float


def is_causal(clause: Clause) -> bool:
    """Whether the condition is "at or before the query's position", which is a mask."""
    both = isinstance(clause.keys, Indices) and isinstance(clause.queries, Indices)
    return both and bool((clause.table == np.triu(np.ones_like(clause.table))).all())


def one_key(clause: Clause, shop: Facts) -> bool:
    """Whether a query selects at most one position, whatever the input."""
    singles = shop.positional(clause.keys) and bool((clause.table.sum(axis=0) <= 1).all())
    if not singles:
        return False
    values = shop.on_positions(clause.keys)
    return len(set(values)) == len(values)


def score_of(clause: Clause, shop: Workshop, exact: bool) -> Score:
    """The score of a condition; ``exact`` asks for codes without rounding (ties must be ties)."""
    symbols = shop.symbolic(clause.keys) and shop.symbolic(clause.queries)
    natural = None if symbols else _natural(clause)
    if natural is not None and len(clause.table) > _BLOCKS:
        return _parabola(clause, *natural, shop, exact)
    rows, _ = clause.key_classes
    columns, _ = clause.query_classes
    asked = rows.any(axis=1)
    if (rows.sum(axis=0) <= 1).all() or (columns.sum(axis=0) <= 1).all():
        codes = _codes(clause)
        small = int(asked.sum()) <= _ONE_HOT
        if not (small or symbols):
            return _parabola(clause, *codes, shop, exact)
        return _matched(clause, *codes, shop, exact)
    nested = _nested(rows)
    if nested is not None and len(rows) > _BLOCKS:
        return _ordered(clause, nested, shop, exact)
    return _one_hot(clause, shop, exact)


# ---------------------------------------------------------------- codes of matching classes


def _codes(clause: Clause) -> tuple[Vector, Vector]:
    """Integers for key and query values that are equal exactly where the condition holds."""
    natural = _natural(clause)
    if natural is not None:
        return natural
    rows, key_class = clause.key_classes
    columns, query_class = clause.query_classes
    if (rows.sum(axis=0) <= 1).all():
        number = np.where(rows.any(axis=1), np.cumsum(rows.any(axis=1)) - 1, -1)
        match = np.where(rows.any(axis=0), number[rows.argmax(axis=0)], -2)
        return number[key_class].astype(float), match.astype(float)
    number = np.where(columns.any(axis=1), np.cumsum(columns.any(axis=1)) - 1, -2)
    match = np.where(columns.any(axis=0), number[columns.argmax(axis=0)], -1)
    return match.astype(float), number[query_class].astype(float)


def _natural(clause: Clause) -> tuple[Vector, Vector] | None:
    """The key values themselves, and an affine function of the query values, where that fits."""
    keys, queries = clause.key_numbers, clause.query_numbers
    if keys is None or queries is None or not (clause.table.sum(axis=0) <= 1).all():
        return None
    if (clause.table.sum(axis=1) > 1).any() or (keys != np.rint(keys)).any():
        return None
    hit = np.flatnonzero(clause.table.any(axis=0))
    if len(hit) == 0:
        return None
    found = keys[clause.table[:, hit].argmax(axis=0)]
    slopes = (1.0, -1.0) if len(hit) < 2 else (_slope(queries[hit], found),)
    for slope in slopes:
        code = slope * queries + (found[0] - slope * queries[hit[0]])
        if (code == np.rint(code)).all() and ((code[None] == keys[:, None]) == clause.table).all():
            return keys, code
    return None


def _slope(x: Vector, y: Vector) -> float:
    return float((y[-1] - y[0]) / (x[-1] - x[0]))


def _parabola(clause: Clause, key: Vector, query: Vector, shop: Workshop, exact: bool) -> Score:
    k = shop.form(clause.keys, key, exact)
    q = shop.form(clause.queries, query, exact)
    pairs: list[Pair] = [(q * 4, k)]
    for own, other in _square(clause.keys, key, k, shop, exact):
        pairs.append((other * -2, own))
    for own, other in _square(clause.queries, query, q, shop, exact):
        pairs.append((own * -2, other))
    return Score(pairs, 0.0)


def _square(
    node: SOp, table: Vector, form: Form, shop: Workshop, exact: bool
) -> list[tuple[Form, Form]]:
    """The square of a code as a sum of products: own forms times forms of the other side.

    The other side knows only constants and what is the same at every position (a length, say).
    """
    cells = [c for c in form.cells if c is not TOK]
    if len(cells) > 1 and all(c.node is not None and c.table is not None for c in cells):
        uniform = {c: shop.uniform(c.node) for c in cells if c.node is not None}
        if all(uniform[a] or uniform[b] for a, b in combinations(cells, 2)):
            return _expanded(form, uniform, shop, exact)
    return [(shop.form(node, np.square(table), exact), constant(1))]


def _expanded(
    form: Form, uniform: dict[Any, bool], shop: Workshop, exact: bool
) -> list[tuple[Form, Form]]:
    base = form.terms.get(TOK, 0.0)
    own = Form({c: 2 * base * v for c, v in form.terms.items() if c is not TOK})
    own = own + constant(base * base)
    pairs: list[tuple[Form, Form]] = []
    for cell in uniform:
        assert cell.node is not None
        assert cell.table is not None
        square = shop.form(cell.node, np.square(cell.table), exact)
        own = own + square * form.terms[cell] ** 2
    for a, b in combinations(uniform, 2):
        here, there = (a, b) if uniform[b] else (b, a)
        pairs.append((of(here, 2 * form.terms[a] * form.terms[b]), of(there)))
    return [(own, constant(1)), *pairs]


def _matched(clause: Clause, key: Vector, query: Vector, shop: Workshop, exact: bool) -> Score:
    pairs = [
        (
            shop.form(clause.queries, (query == code).astype(float), exact) * 2,
            shop.form(clause.keys, (key == code).astype(float), exact),
        )
        for code in sorted(set(key) & set(query))
    ]
    return Score(pairs, 2.0)


# ---------------------------------------------------------------- any condition


def _one_hot(clause: Clause, shop: Workshop, exact: bool) -> Score:
    rows, key_class = clause.key_classes
    columns, query_class = clause.query_classes
    by_key, by_query = int(rows.any(axis=1).sum()), int(columns.any(axis=1).sum())
    key_form, query_form = _sides(clause, min(by_key, by_query), shop, exact)
    if by_key <= by_query:
        return Score(
            [
                (query_form(rows[c].astype(float)) * 2, key_form(_same(key_class, float(c))))
                for c in np.flatnonzero(rows.any(axis=1))
            ],
            2.0,
        )
    return Score(
        [
            (query_form(_same(query_class, float(c))) * 2, key_form(columns[c].astype(float)))
            for c in np.flatnonzero(columns.any(axis=1))
        ],
        2.0,
    )


def _sides(
    clause: Clause, features: int, shop: Workshop, exact: bool
) -> tuple[Callable[[Vector], Form], Callable[[Vector], Form]]:
    """How functions of the key and of the query are formed.

    Where both are one computed node, all of them are read from its one-hot code, if that is
    narrower than a slot for every function of either side.
    """
    node = clause.keys
    alone = shop.symbolic(node) or shop.positional(node)
    if node is not clause.queries or alone:
        return (
            lambda table: shop.form(clause.keys, table, exact),
            lambda table: shop.form(clause.queries, table, exact),
        )
    pairs = np.stack([clause.key_classes[1], clause.query_classes[1]])
    _, kind = np.unique(pairs, axis=1, return_inverse=True)
    kind = kind.reshape(-1)
    if kind.max() >= 2 * features:
        both = lambda table: shop.form(node, table, exact)  # noqa: E731
        return both, both
    first = [int(np.flatnonzero(kind == c)[0]) for c in range(kind.max() + 1)]
    hot = {c: shop.form(node, _same(kind, c), exact) for c in range(1, kind.max() + 1)}

    def form(table: Vector) -> Form:
        base = float(table[first[0]])
        terms: dict[Cell, float] = {TOK: base}
        for c, code in hot.items():
            weight = float(table[first[c]]) - base
            if weight:
                for cell, value in code.terms.items():
                    terms[cell] = terms.get(cell, 0.0) + weight * value
        return Form(terms)

    return form, form


def _nested(rows: Any) -> Vector | None:
    """The rank of every row, where each row contains the next (an order condition)."""
    count = rows.sum(axis=1)
    order = np.argsort(-count, kind="stable")
    chain = rows[order]
    if not (chain[1:] <= chain[:-1]).all():
        return None
    rank = np.empty(len(rows))
    rank[order] = np.arange(len(rows))
    return rank


def _ordered(clause: Clause, rank: Vector, shop: Workshop, exact: bool) -> Score:
    """Key rank below query threshold, compared by a leading and a trailing digit.

    With r ranks the weights have order ``r sqrt(r)`` non-zeros instead of ``r^2``.
    """
    _, key_class = clause.key_classes
    key = rank[key_class]
    threshold = np.array(
        [_threshold(clause.table[:, q], key) for q in range(clause.table.shape[1])]
    )
    block = int(np.ceil(np.sqrt(len(rank))))
    key_form, query_form = _sides(clause, len(rank), shop, exact)
    pairs: list[Pair] = []
    for lead in range(int(max(key.max(), threshold.max())) // block + 1):
        query = query_form((threshold // block > lead).astype(float))
        pairs.append((query * 2, key_form(_same(key // block, lead))))
        inside = threshold // block == lead
        for trail in range(block):
            rest = (inside & (threshold % block > trail)).astype(float)
            mine = _same(key, lead * block + trail)
            if rest.any() and mine.any():
                pairs.append((query_form(rest) * 2, key_form(mine)))
    return Score(pairs, 2.0)


def _threshold(selected: Any, key: Vector) -> float:
    return float(key[selected].max()) + 1 if selected.any() else 0.0


def _same(values: Any, wanted: float) -> Vector:
    same: Vector = (values == wanted).astype(float)
    return same
