"""The example programs of Tracr's library, by their names, written for ``raspire.compat.tracr``.

``from raspire.compat.tracr import lib`` stands for ``from tracr.compiler import lib``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from raspire.compat.tracr import (
    Aggregate,
    Comparison,
    LinearSequenceMap,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    SOp,
    indices,
    numerical,
    tokens,
)


def make_length() -> SOp:
    """The length of the input.

    >>> make_length()("abc")
    [3, 3, 3]
    """
    return SelectorWidth(Select(tokens, tokens, Comparison.TRUE)).named("length")


def make_reverse(sop: SOp) -> SOp:
    """The values of an s-op backwards.

    >>> make_reverse(tokens)("abc")
    ['c', 'b', 'a']
    """
    opposite = make_length() - indices - 1
    return Aggregate(Select(indices, opposite, Comparison.EQ), sop).named("reverse")


def make_frac_prevs(bools: SOp) -> SOp:
    """The share of the positions up to here where an s-op of truth values holds.

    >>> make_frac_prevs(tokens == "a")("aab")
    [True, True, 0.6666666666666666]
    """
    up_to_here = Select(indices, indices, Comparison.LEQ)
    return numerical(Aggregate(up_to_here, numerical(bools), default=0))


def make_pair_balance(sop: SOp, open_token: Any, close_token: Any) -> SOp:
    """Opening less closing tokens, as a share of the positions up to here.

    >>> make_pair_balance(tokens, "(", ")")("()")
    [1, 0.0]
    """
    opened = make_frac_prevs(numerical(sop == open_token))
    closed = make_frac_prevs(numerical(sop == close_token))
    return numerical(LinearSequenceMap(opened, closed, 1, -1)).named("pair_balance")


def make_shuffle_dyck(pairs: Sequence[str]) -> SOp:
    """Whether every pair of brackets is balanced for itself, at every position.

    >>> make_shuffle_dyck(["()", "{}"])("({)}")
    [True, True, True, True]
    """
    balances = [make_pair_balance(tokens, *pair) for pair in pairs]
    dipped = _fold(lambda a, b: a or b, [balance < 0 for balance in balances])
    settled = _fold(lambda a, b: a and b, [balance == 0 for balance in balances])
    last = Select(indices, make_length() - 1, Comparison.EQ)
    ever = Aggregate(last, make_frac_prevs(dipped) > 0)
    at_end = Aggregate(last, settled)
    return SequenceMap(lambda end, dip: end and not dip, at_end, ever).named("shuffle_dyck")


def make_shuffle_dyck2() -> SOp:
    """Shuffle-Dyck over round and curly brackets."""
    return make_shuffle_dyck(["()", "{}"])


def _fold(join: Callable[[Any, Any], Any], sops: Sequence[SOp]) -> SOp:
    result = sops[0]
    for sop in sops[1:]:
        result = SequenceMap(join, result, sop)
    return result


def make_hist() -> SOp:
    """How often the token here occurs.

    >>> make_hist()("aba")
    [2, 1, 2]
    """
    return SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("hist")


def make_sort_unique(vals: SOp, keys: SOp) -> SOp:
    """Values in ascending order of keys that are all different.

    >>> make_sort_unique(tokens, tokens)([3, 1, 2])
    [1, 2, 3]
    """
    place = SelectorWidth(Select(keys, keys, Comparison.LT))
    return Aggregate(Select(place, indices, Comparison.EQ), vals).named("sort")


def make_sort(vals: SOp, keys: SOp, *, max_seq_len: int, min_key: float) -> SOp:
    """Values in ascending order of numeric keys at least ``min_key`` apart; ties keep their order.

    >>> make_sort(tokens, tokens, max_seq_len=4, min_key=1)([3, 1, 3, 2])
    [1, 2, 3, 3]
    """
    distinct = SequenceMap(lambda key, i: key + min_key * i / max_seq_len, keys, indices)
    return make_sort_unique(vals, distinct)


def make_sort_freq(max_seq_len: int) -> SOp:
    """Tokens by how often they occur, the most frequent first.

    >>> make_sort_freq(4)("abba")
    ['a', 'b', 'b', 'a']
    """
    rarity = Map(lambda count: -count, make_hist())
    return make_sort(tokens, rarity, max_seq_len=max_seq_len, min_key=1)


def shift_by(offset: int, sop: SOp) -> SOp:
    """The value ``offset`` positions before; None where there is none.

    >>> shift_by(1, tokens)("abc")
    [None, 'a', 'b']
    """
    earlier = Select(indices, indices, lambda key, query: query == key + offset)
    return Aggregate(earlier, sop).named(f"shift_by({offset})")


def make_count(sop: SOp, token: Any) -> SOp:
    """How often a value occurs.

    >>> make_count(tokens, "a")("aba")
    [2, 2, 2]
    """
    return SelectorWidth(Select(sop, sop, lambda key, query: key == token)).named(f"count_{token}")


def detect_pattern(sop: SOp, pattern: Sequence[Any]) -> SOp:
    """Whether the pattern ends here; None where it cannot have begun.

    >>> detect_pattern(tokens, "ab")("abb")
    [None, True, False]
    """
    size = len(pattern)
    steps = [shift_by(size - 1 - i, sop) == wanted for i, wanted in enumerate(pattern)]
    return _fold(lambda a, b: a and b, steps).named("detect_pattern")
