"""Formal languages and matching problems as programs: k-PARITY, Match2 and their neighbours.

The paper builds k-PARITY and Match2 exactly, where they were known as learnable. Match2 needs no
simulator: one average-hard layer looks for the unique partner value, and that direct construction
is the one here. Match3 stands beside it as a contrast: it takes width that grows with the modulus,
or a sequence that grows with the square of the length.

A program answers at every position, for every length, unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raspire.errors import RaspValueError
from raspire.library.layout import Block, LaidOut, fetch, total
from raspire.program.embedding import (
    aggregate,
    full,
    hardmax,
    indicator,
    indices,
    select,
    selector_width,
    tokens,
    where,
)
from raspire.program.nodes import Selector, SOp

BITS = "Lemma on k-PARITY"
MATCHING = "Match2"


def parity(one: object = 1) -> SOp:
    """Whether the number of ones is odd, as 0 or 1. The count is exact, its parity a table.

    >>> parity()([1, 0, 1, 1])
    [1, 1, 1, 1]
    """
    return selector_width(select(tokens, one, "==")) % 2


def k_parity(subset: Iterable[int], one: object = 1) -> SOp:
    """The parity of the ones at the positions of a subset, as 0 or 1, for every length.

    Positions beyond the input count as zeros. Raises RaspValueError for a negative position.

    >>> k_parity([0, 2])([1, 1, 1, 1]), k_parity([0, 2])([1, 1])
    ([0, 0, 0, 0], [1, 1])
    """
    member = indicator(indices < 0)
    for position in _subset(subset):
        member = member + indicator(indices == position)
    return selector_width(select(tokens, one, "==") & select(member, 1, "==")) % 2


def k_parity_product(subset: Iterable[int]) -> SOp:
    """The same for bits 0 and 1, by products of signs: one layer attends, ceil(log2 k) layers.

    Its k heads copy the k bits; ``1 - 2b`` is a sign, and the signs are multiplied in a tree.

    >>> k_parity_product([0, 2, 3])([1, 1, 0, 0])
    [1.0, 1.0, 1.0, 1.0]
    """
    signs = [1 - 2 * fetch(tokens, position) for position in _subset(subset)]
    if not signs:
        return indicator(indices < 0)
    while len(signs) > 1:
        pairs = zip(signs[::2], signs[1::2], strict=False)
        odd = [signs[-1]] if len(signs) % 2 else []
        signs = [left * right for left, right in pairs] + odd
    return (1 - signs[0]) / 2


def _subset(subset: Iterable[int]) -> list[int]:
    positions = sorted(set(subset))
    if positions and positions[0] < 0:
        raise RaspValueError(
            "a position of the subset is negative", expected="0, 1, 2, ...", found=str(positions[0])
        )
    return positions


def majority(one: object = 1) -> SOp:
    """Whether more than half of the tokens are ones: the sign of one mean.

    >>> majority()([1, 0, 1])
    [True, True, True]
    """
    return 2 * aggregate(full, indicator(tokens == one)) > 1


# ---------------------------------------------------------------------------------- matching


def match2(modulus: int, *, distinct: bool = False) -> SOp:
    """Where ``x_i + x_j = 0 (mod M)`` for some j, as 0 or 1; tokens in 0..M-1 (Match2).

    The partner is M - x, or 0 itself: one head looks it up, for any M, in one layer. Whether j
    may be i is the definition's choice (it may); ``distinct`` forbids it.

    >>> match2(5)([1, 4, 0, 3])
    [1, 1, 1, 0]
    """
    _check_modulus(modulus)
    partner = select(tokens, modulus - tokens, "==") | select(tokens, -tokens, "==")
    if distinct:
        partner = partner & select(indices, indices, "!=")
    return aggregate(partner, 1)


def match3(modulus: int) -> SOp:
    """Where ``x_i + x_j + x_k = 0 (mod M)`` for some j and k, as 0 or 1; tokens in 0..M-1.

    M heads ask which residues occur; the feed-forward part looks for two that complete x_i. One
    layer attends, but its width grows with the modulus.

    >>> match3(6)([1, 2, 3])
    [1, 1, 1]
    """
    _check_modulus(modulus)
    occurs = [aggregate(select(tokens, value, "=="), 1) for value in range(modulus)]
    pairs = {
        rest: total([occurs[a] * occurs[(rest - a) % modulus] for a in range(modulus)])
        for rest in range(modulus)
    }
    found = total([where(tokens == -rest % modulus, pairs[rest], 0) for rest in range(modulus)])
    return indicator(found > 0)


def match3_pairs(modulus: int, n: int) -> LaidOut:
    """The same with constant width and a position for every pair: N = n + n², two layers attend.

    >>> match3_pairs(6, 3)([1, 2, 3])
    [1, 1, 1]
    """
    _check_modulus(modulus)
    values, pairs = Block(0, (n,)), Block(n, (n, n))
    first, second = pairs.digits()
    inside = indicator(pairs.holds())
    copied = fetch(tokens, first) + fetch(tokens, second)
    both = where(inside, copied, -modulus)  # no partner reaches that far down
    partner = _any_of([select(both, times * modulus - tokens, "==") for times in range(3)])
    name = f"match3 mod {modulus}, {n} tokens, pairs"
    return LaidOut(name, aggregate(partner, 1), {"x": values}, values, pairs.end, MATCHING)


def _any_of(selectors: Sequence[Selector]) -> Selector:
    result = selectors[0]
    for other in selectors[1:]:
        result = result | other
    return result


def _check_modulus(modulus: int) -> None:
    if modulus < 1:
        raise RaspValueError(
            "the modulus must be positive", expected="1, 2, 3, ...", found=str(modulus)
        )


# ---------------------------------------------------------------------------------- brackets


def dyck1(opening: str = "(", closing: str = ")") -> SOp:
    """Whether the brackets of one kind are balanced; other tokens are ignored.

    The sign of a prefix mean says whether a prefix closes more than it opens, and is exact.

    >>> dyck1()("(())"), dyck1()("())(")
    ([True, True, True, True], [False, False, False, False])
    """
    step = indicator(tokens == opening) - indicator(tokens == closing)
    below = aggregate(select(indices, indices, "<="), step) < 0
    return (aggregate(full, indicator(below)) == 0) & (aggregate(full, step) == 0)


def dyck(pairs: Sequence[str] = ("()", "[]")) -> SOp:
    """Whether brackets of several kinds are balanced and nested (Dyck-k), at every depth.

    A closing bracket of level h matches the last bracket before it of level h: average-hard
    attention finds it by the greatest index, and its kind is compared.

    >>> dyck()("([])[]")[0], dyck()("([)]")[0], dyck()("][")[0]
    (True, False, False)
    """
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise RaspValueError(
            "a pair of brackets is two characters", expected='such as "()"', found=repr(pairs)
        )
    opens = total([indicator(tokens == pair[0]) for pair in pairs])
    closes = total([indicator(tokens == pair[1]) for pair in pairs])
    so_far = select(indices, indices, "<=")
    height = selector_width(so_far & select(opens, 1, "==")) - selector_width(
        so_far & select(closes, 1, "==")
    )
    level = height + closes
    same = select(level, level, "==") & select(opens + closes, 1, "==")
    last = hardmax(indices, among=same & select(indices, indices, "<"))
    partner = aggregate(last, tokens, default="")
    wrong = total(
        [indicator((tokens == right) & (partner != left)) for left, right in map(tuple, pairs)]
    )
    bad = (wrong > 0) | (height < 0)
    return (aggregate(full, indicator(bad)) == 0) & (aggregate(full, opens - closes) == 0)
