"""Formal languages and approximation: checked on every input, or by a proved bound."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from raspire.library import formal_languages as languages
from raspire.library.approximation import Approximation, approximate
from raspire.library.layout import LaidOut
from raspire.library.sequences import sort
from raspire.paper.claims import Claim
from raspire.program.nodes import SOp
from raspire.verify.certificate import Certificate
from raspire.verify.exhaustive import exhaustive

if TYPE_CHECKING:
    from raspire.compile import Compiled

TOKENS = "one token a position; the answer at every position"
SUBSET = (0, 2, 3)


def _everywhere(
    claim: str,
    program: SOp,
    truth: Callable[[list[Any]], Any],
    alphabet: Sequence[Any],
    longest: int,
) -> Certificate:
    """A program that gives one answer at every position."""
    return exhaustive(claim, program, lambda w: [truth(w)] * len(w), alphabet, longest)


def _k_parity(word: list[int]) -> int:
    return sum(word[i] for i in SUBSET if i < len(word)) % 2


def _match(word: list[int], modulus: int, terms: int) -> list[int]:
    sums = {0}
    for _ in range(terms - 1):
        sums = {(s + x) % modulus for s in sums for x in word}
    return [int(-x % modulus in sums) for x in word]


def _balanced(word: list[str], pairs: Sequence[str]) -> bool:
    stack: list[str] = []
    partner = {pair[1]: pair[0] for pair in pairs}
    for letter in word:
        if letter not in partner:
            stack.append(letter)
        elif not stack or stack.pop() != partner[letter]:
            return False
    return not stack


LANGUAGES: tuple[Claim, ...] = (
    Claim(
        "k-parity",
        "k-PARITY",
        f"the parity of the bits at positions {SUBSET}, for every length",
        TOKENS,
        lambda: languages.k_parity(SUBSET),
        (1, 1),
        "exhaustive up to length 8",
        lambda: _everywhere(
            "k-PARITY by a count", languages.k_parity(SUBSET), _k_parity, (0, 1), 8
        ),
    ),
    Claim(
        "k-parity-product",
        "k-PARITY",
        "the same by products of signs: k heads, ceil(log2 k) layers",
        TOKENS,
        lambda: languages.k_parity_product(SUBSET),
        (1, 2),
        "exhaustive up to length 8",
        lambda: _everywhere(
            "k-PARITY by products", languages.k_parity_product(SUBSET), _k_parity, (0, 1), 8
        ),
    ),
    Claim(
        "parity",
        "past k-PARITY",
        "the parity of the whole string",
        TOKENS,
        languages.parity,
        (1, 1),
        "exhaustive up to length 10",
        lambda: _everywhere("PARITY", languages.parity(), lambda w: sum(w) % 2, (0, 1), 10),
    ),
    Claim(
        "match2",
        "Match2",
        "is there a partner with x + y = 0 (mod 5)? One head looks for it, no simulator needed",
        TOKENS,
        lambda: languages.match2(5),
        (1, 1),
        "exhaustive up to length 4",
        lambda: exhaustive(
            "Match2 mod 5", languages.match2(5), lambda w: _match(w, 5, 2), range(5), 4
        ),
    ),
    Claim(
        "match3",
        "contrast to Match2",
        "are there two with x + y + z = 0 (mod 5)? The width grows with the modulus",
        TOKENS,
        lambda: languages.match3(5),
        (1, 3),
        "exhaustive up to length 4",
        lambda: exhaustive(
            "Match3 mod 5", languages.match3(5), lambda w: _match(w, 5, 3), range(5), 4
        ),
    ),
    Claim(
        "match3-pairs",
        "contrast to Match2",
        "the same with constant width and a position for every pair",
        "n tokens, then n² positions for pairs; the answer at the tokens",
        lambda: languages.match3_pairs(5, 4),
        (2, 2),
        "exhaustive at length 4",
        lambda: _pairs(languages.match3_pairs(5, 4)),
    ),
    Claim(
        "majority",
        "past the paper",
        "are more than half of the tokens ones?",
        TOKENS,
        languages.majority,
        (1, 2),
        "exhaustive up to length 9",
        lambda: _everywhere(
            "majority", languages.majority(), lambda w: 2 * sum(w) > len(w), (0, 1), 9
        ),
    ),
    Claim(
        "dyck-1",
        "past the paper",
        "are brackets of one kind balanced?",
        TOKENS,
        languages.dyck1,
        (2, 4),
        "exhaustive up to length 9",
        lambda: _everywhere("Dyck-1", languages.dyck1(), lambda w: _balanced(w, ["()"]), "()", 9),
    ),
    Claim(
        "dyck-2",
        "past the paper",
        "are brackets of two kinds balanced and nested?",
        TOKENS,
        languages.dyck,
        (3, 8),
        "exhaustive up to length 5",
        lambda: _everywhere(
            "Dyck-2", languages.dyck(), lambda w: _balanced(w, ["()", "[]"]), "()[]", 5
        ),
    ),
)


def _pairs(program: LaidOut) -> Certificate:
    return exhaustive(program.name, program, lambda w: _match(w, 5, 3), range(5), 4, shortest=4)


# ---------------------------------------------------------------------------- approximation


def _wave(x: float) -> float:
    return math.sin(3 * x)


def _cone(x: float, y: float) -> float:
    return math.hypot(x, y)


def _ridge(x: float, y: float, z: float) -> float:
    return max(x, y) - abs(z) / 2


def _smoothed(*x: float) -> list[float]:
    last = len(x) - 1
    return [(x[max(i - 1, 0)] + x[i] + x[min(i + 1, last)]) / 3 for i in range(len(x))]


def _within(program: Approximation, function: Callable[..., Any], points: int = 40) -> Certificate:
    """The bound is a theorem; that the program keeps it is also seen at random points."""
    rng = random.Random(0)
    worst = 0.0
    for _ in range(points):
        point = [rng.uniform(low, high) for low, high in program.grid.box]
        found, truth = program(*point), function(*point)
        pairs = zip(found, truth, strict=True) if program.outputs > 1 else [(found, truth)]
        worst = max([worst, *(abs(a - b) for a, b in pairs)])
    details = {
        "grid points": program.grid.points,
        "bound in real arithmetic": program.bound,
        "added by rounding, at most": program.rounding,
        "points tried": points,
        "largest error seen": worst,
    }
    return Certificate(
        f"an approximation with {program.grid.points} grid points keeps its bound",
        "proved bound",
        worst <= program.bound + program.rounding,
        0.0,
        details,
    )


def _approximation(
    key: str,
    statement: str,
    function: Callable[..., Any],
    layers: int,
    build: Callable[[], Approximation],
) -> Claim:
    return Claim(
        key,
        "approximation",
        statement,
        "the point in the first positions, a grid point at every position",
        build,
        (2, layers),
        "proved bound",
        lambda: _within(build(), function),
    )


# ------------------------------------------------------------------ the same, as networks


def _network(
    key: str, program: Callable[[], SOp], alphabet: Sequence[Any], longest: int, layers: int
) -> Claim:
    """A claim's program compiled, and compared with it on every input up to a length."""
    depth = min(layers, 3)

    def build() -> Compiled:
        from raspire.compile import compile

        return compile(program(), alphabet=alphabet, max_length=longest)

    return Claim(
        f"{key}-network",
        key,
        f"the compiled transformer of {key}, for lengths up to {longest}",
        "a beginning of sequence, then one token a position",
        build,
        (depth, layers),
        f"exhaustive up to length {longest}",
        lambda: exhaustive(f"the network of {key}", build(), program(), alphabet, longest),
        kind="network",
    )


BITS = (0, 1)
NETWORKS: tuple[Claim, ...] = (
    _network("k-parity", lambda: languages.k_parity(SUBSET), BITS, 8, 1),
    _network("parity", languages.parity, BITS, 8, 1),
    _network("match2", lambda: languages.match2(5), range(5), 4, 1),
    _network("match3", lambda: languages.match3(5), range(5), 4, 1),
    _network("majority", languages.majority, BITS, 8, 1),
    _network("dyck-1", languages.dyck1, "()", 8, 2),
    _network("dyck-2", languages.dyck, "()[]", 5, 3),
    _network("sort-alphabet", sort, range(3), 5, 2),
)


APPROXIMATIONS: tuple[Claim, ...] = (
    _approximation(
        "lipschitz-1",
        "sin 3x on [0, 1] within 0.05 (L = 3)",
        _wave,
        2,
        lambda: approximate(_wave, [(0, 1)], lipschitz=3, eps=0.05),
    ),
    _approximation(
        "lipschitz-2",
        "the distance to the origin on [0, 1]² within 0.2 (L = √2)",
        _cone,
        3,
        lambda: _distance(),
    ),
    _approximation(
        "lipschitz-3",
        "max(x, y) - |z|/2 on [0, 1]³ within 0.3 (L = 3/2)",
        _ridge,
        4,
        lambda: approximate(_ridge, [(0, 1)] * 3, lipschitz=1.5, eps=0.3),
    ),
    _approximation(
        "hoelder",
        "√|x| on [-1, 1] within 0.2 (α = 1/2, L = 1)",
        lambda x: math.sqrt(abs(x)),
        3,
        lambda: approximate(
            lambda x: math.sqrt(abs(x)), [(-1, 1)], lipschitz=1, eps=0.2, alpha=0.5
        ),
    ),
    _approximation(
        "sequence-to-sequence",
        "a moving average of three tokens in [0, 1] within 0.2 (L = 1)",
        _smoothed,
        4,
        lambda: approximate(_smoothed, [(0, 1)] * 3, lipschitz=1, eps=0.2, outputs=3),
    ),
)


def _compiled_approximation() -> Compiled:
    from raspire.compile import Real, compile

    made = _distance()
    return compile(made.program, alphabet=Real(0.0, 1.0), max_length=made.length)


def _distance() -> Approximation:
    return approximate(_cone, [(0, 1)] * 2, lipschitz=math.sqrt(2), eps=0.2)


def _network_within(points: int = 40) -> Certificate:
    """The network at random points: within the program's bound of the function."""
    program, network = _distance(), _compiled_approximation()
    rng = random.Random(1)
    worst = apart = 0.0
    for _ in range(points):
        point = [rng.uniform(0, 1) for _ in range(2)]
        found = float(network(program.encode(point))[0])
        worst = max(worst, abs(found - _cone(*point)))
        apart = max(apart, abs(found - program(*point)))
    details = {
        "bound in real arithmetic": program.bound,
        "points tried": points,
        "largest error seen": worst,
        "largest difference from the program": apart,
    }
    holds = worst <= program.bound + program.rounding and apart <= program.rounding
    return Certificate(
        "a compiled approximation keeps its bound", "measurement", holds, 0.0, details
    )


APPROXIMATIONS += (
    Claim(
        "lipschitz-2-network",
        "approximation",
        "the compiled transformer of lipschitz-2",
        "a beginning of sequence, the point, then padding",
        _compiled_approximation,
        (2, 3),
        "proved bound; network measured",
        _network_within,
        kind="network",
    ),
)
