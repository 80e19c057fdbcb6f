"""Bracket languages by counting: pair balance and shuffle-Dyck (see ``formal_languages`` for
Dyck-k with nesting).

The balance of a prefix is one mean of +1 and -1 over it: exact, with a sign that no rounding can
touch. Shuffle-Dyck-k asks that every kind of bracket is balanced by itself, kinds may cross.
"""

from __future__ import annotations

from collections.abc import Sequence

from raspire.library.layout import total
from raspire.program.embedding import aggregate, full, indicator, indices, select, tokens
from raspire.program.nodes import SOp

UP_TO_HERE = select(indices, indices, "<=")


def pair_balance(opening: str = "(", closing: str = ")") -> SOp:
    """Opening less closing brackets up to here, as a share of the positions up to here.

    >>> pair_balance()("())")
    [1, 0, -0.3333333333333333]
    """
    step = indicator(tokens == opening) - indicator(tokens == closing)
    return aggregate(UP_TO_HERE, step)


def shuffle_dyck(pairs: Sequence[str] = ("()", "[]", "{}")) -> SOp:
    """Whether every kind of bracket is balanced by itself, at every position: two layers.

    >>> shuffle_dyck()("([)]")[0], shuffle_dyck()("(]")[0]
    (True, False)
    """
    steps = [indicator(tokens == a) - indicator(tokens == b) for a, b in map(tuple, pairs)]
    dips = total([indicator(aggregate(UP_TO_HERE, step) < 0) for step in steps])
    left = total([indicator(aggregate(full, step) != 0) for step in steps])
    return aggregate(full, dips) + left == 0
