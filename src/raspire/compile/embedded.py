"""Which functions of the token and of the position the embeddings hold.

Every function of the token is one column of the token embedding. Where more columns are asked for
than there are symbols, the one-hot code of the symbol carries them all; likewise for positions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from raspire.compile.domain import Vector
from raspire.compile.linear import Cell, Form
from raspire.compile.parts import GatePart, HeadPart, StepPart
from raspire.compile.schedule import Plan


def used(plan: Plan) -> list[Cell]:
    """The embedded cells that the plan reads, in order of first use."""
    found: dict[Cell, None] = {}
    for form in [*(f for part in plan.parts() for f in part.reads), *plan.outputs]:
        for cell in form.terms:
            if cell.source is None and cell.kind != "constant":
                found[cell] = None
    return list(found)


def settle(plan: Plan, symbols: tuple[object, ...], length: int) -> list[Cell]:
    """The embedded cells of a plan, after one-hot codes have replaced what they can express."""
    cells = used(plan)
    replaced: dict[Cell, Form] = {}
    kept = [c for c in cells if c.kind == "value"]
    for kind, name, rows in (
        ("token", "tokens", symbols),
        ("position", "indices", tuple(range(length))),
    ):
        mine = [c for c in cells if c.kind == kind]
        if len(mine) > len(rows):
            mine = _one_hot(mine, kind, name, rows, replaced)
        kept += mine
    if replaced:
        _replace(plan, lambda form: _rewritten(form, replaced))
    return kept


def _one_hot(
    cells: list[Cell], kind: str, name: str, rows: tuple[object, ...], replaced: dict[Cell, Form]
) -> list[Cell]:
    hot: list[Cell] = []
    for i, row in enumerate(rows):
        column = np.zeros(len(rows))
        column[i] = 1
        hot.append(Cell(kind, f"{name} == {row!r}", None, None, column))  # type: ignore[arg-type]
    for cell in cells:
        column = column_of(cell)
        replaced[cell] = Form({hot[i]: column[i] for i in np.flatnonzero(column)})
    needed = {c for cell in cells for c in replaced[cell].terms}
    return [c for c in hot if c in needed]


def column_of(cell: Cell) -> Vector:
    """The embedding column of a token or position cell."""
    assert isinstance(cell.column, np.ndarray)
    return cell.column


def _rewritten(form: Form, replaced: dict[Cell, Form]) -> Form:
    if not any(cell in replaced for cell in form.terms):
        return form
    terms: dict[Cell, float] = {}
    for cell, value in form.terms.items():
        for new, factor in replaced[cell].terms.items() if cell in replaced else ((cell, 1.0),):
            terms[new] = terms.get(new, 0.0) + value * factor
    return Form(terms)


def _replace(plan: Plan, rewrite: Callable[[Form], Form]) -> None:
    for part in plan.parts():
        if isinstance(part, HeadPart):
            part.pairs = [(rewrite(q), rewrite(k)) for q, k in part.pairs]
            part.values = {cell: rewrite(form) for cell, form in part.values.items()}
        elif isinstance(part, StepPart):
            part.code = rewrite(part.code)
        else:
            assert isinstance(part, GatePart)
            part.terms = [(f, rewrite(a), rewrite(b), w) for f, a, b, w in part.terms]
    plan.outputs = [rewrite(form) for form in plan.outputs]
