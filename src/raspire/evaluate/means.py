"""From sums to means: the default where nothing is selected, errors where there is no mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from raspire.errors import RaspError
from raspire.evaluate.assembly import assemble
from raspire.evaluate.columns import Column, numbered
from raspire.evaluate.kernels import Totals
from raspire.evaluate.parts import integer_type, looked_up
from raspire.evaluate.payload import Payload
from raspire.evaluate.positions import Array

Explain = Callable[[int], RaspError]


def means(totals: Totals, pay: Payload, count: int, default: Column, explain: Explain) -> Column:
    """The mean of each of ``count`` queries.

    ``default`` is a uniform column; ``explain(query)`` gives the error of a query whose values
    have no mean.
    """
    if totals.row is None and len(totals.counts) == 1 and count != 1:
        return _one(totals, pay, default, explain).stretched(count)
    if totals.row is not None and len(totals.counts) > 2 * count:
        totals = totals.spread()
    some = totals.counts > 0
    filled = bool(some.all())
    if totals.row is None and filled:
        found, bad = pay.finish(totals.counts, totals.sums)
        _refuse(bad, None, None, explain)
        return found
    row = np.arange(count) if totals.row is None else totals.row
    missing = (row < 0) if filled else (row < 0) | ~looked_up(some, row)
    on = np.flatnonzero(~missing) if missing.any() else None
    if on is not None and len(on) == 0:
        return default.stretched(count)
    kept = totals if filled else Totals(totals.counts[some], [s[some] for s in totals.sums])
    found, bad = pay.finish(kept.counts, kept.sums)
    used = row if on is None else row[on]
    used = used if filled else looked_up(numbered(some), used)
    _refuse(bad, used, on, explain)
    return filled_up(found.take(used), on, np.flatnonzero(missing), default)


def filled_up(found: Column, on: Array | None, off: Array, default: Column) -> Column:
    """Values at the queries ``on`` (None: all), the default at the queries ``off``."""
    if on is None:
        return found
    return assemble(len(on) + len(off), [(on, found), (off, default.stretched(len(off)))])


def _one(totals: Totals, pay: Payload, default: Column, explain: Explain) -> Column:
    """The same mean for all queries."""
    if totals.counts[0] == 0:
        return default.stretched(1)
    found, bad = pay.finish(totals.counts, totals.sums)
    _refuse(bad, np.zeros(1, dtype=np.int64), None, explain)
    return found


def _refuse(bad: Array | None, used: Array | None, on: Array | None, explain: Explain) -> None:
    if bad is None or not bad.any():
        return
    bad = bad if used is None else bad[used]
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise explain(first if on is None else int(on[first]))


def counts(totals: Totals, count: int) -> Column:
    """How many keys each query selects."""
    if totals.row is None and len(totals.counts) == 1 and count != 1:
        return Column("i", totals.counts, length=count)
    if totals.row is None:
        return Column("i", totals.counts)
    most = int(totals.counts.max(initial=0))
    narrow = Totals(totals.counts.astype(integer_type(0, most)), [], totals.row)
    return Column("i", narrow.spread().counts, bounds=(0, most))
