"""Error against NumPy (the paper's Figure 2): every construction, sizes, seeds, two precisions.

The paper finds errors close to zero, and says that what remains comes from the fixed precision of
the exponential. Here every non-zero entry has its cause and an a priori bound: a copy has no error,
a product rounds, a softmax also inherits the error of ``exp``. The bound counts both sides, since
NumPy rounds too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raspire.library.inverse import faddeev_leverrier, inverse_3x3
from raspire.library.linear_algebra import matmul, row_softmax, transpose
from raspire.library.rounding import UNITS
from raspire.paper.measures import random_target
from raspire.simulator.direct import attention
from raspire.simulator.target import AttentionTarget, Shape
from raspire.simulator.universal import UniversalSimulator

Array: TypeAlias = NDArray[np.float64]
Precision: TypeAlias = Literal["float64", "float32"]
PRECISIONS: tuple[Precision, ...] = ("float64", "float32")
EXP_ULPS = 2  # the libraries' exp errs by less than one unit in the last place, on either side


@dataclass(frozen=True)
class Case:
    """One operation at one size: program, NumPy, bound on the difference, and the cause."""

    operation: str
    size: int
    cause: str
    run: Callable[[np.random.Generator, Precision], tuple[Array, Array, float]]


@dataclass(frozen=True)
class Entry:
    """The largest difference of an operation from NumPy over the seeds, with its largest bound."""

    operation: str
    size: int
    precision: Precision
    seeds: int
    error: float
    bound: float
    cause: str

    @property
    def holds(self) -> bool:
        """Whether the difference stays within the bound."""
        return self.error <= self.bound


# ---------------------------------------------------------------------------- the operations


def _given(values: Any, precision: Precision) -> Array:
    """Values that both precisions hold exactly as the run sees them."""
    return np.asarray(values, dtype=precision).astype(np.float64)


def _transposition(size: int) -> Case:
    program = transpose(size, size)

    def run(rng: np.random.Generator, precision: Precision) -> tuple[Array, Array, float]:
        a = _given(rng.normal(size=(size, size)), precision)
        return program(a, arithmetic=precision), a.T, 0.0

    return Case("transposition", size, "copies only", run)


def _product(size: int) -> Case:
    program = matmul(size, size, size, "long")

    def run(rng: np.random.Generator, precision: Precision) -> tuple[Array, Array, float]:
        a, b = (_given(rng.normal(size=(size, size)), precision) for _ in range(2))
        mass = float(np.max(np.abs(a) @ np.abs(b)))
        # ours: a product, a mean and a scaling; NumPy in binary64: a sum of products
        bound = (size + 4) * UNITS[precision] * mass + (size + 1) * UNITS["float64"] * mass
        return program(a, b, arithmetic=precision), a @ b, bound

    return Case("product", size, "rounding", run)


def _softmax(size: int) -> Case:
    program = row_softmax(size, size)

    def run(rng: np.random.Generator, precision: Precision) -> tuple[Array, Array, float]:
        a = _given(rng.normal(size=(size, size)), precision)
        weights: Array = np.exp(a)
        truth: Array = weights / weights.sum(axis=1, keepdims=True)
        relative = 2 * EXP_ULPS * 2 + size + 8
        bound = relative * (UNITS[precision] + UNITS["float64"]) * float(truth.max())
        return program(a, arithmetic=precision), truth, bound

    return Case("softmax", size, "exponential, rounding", run)


def _inverse(size: int) -> Case:
    build = inverse_3x3 if size == 3 else partial(faddeev_leverrier, size)
    program = build(tolerance=np.inf)

    def run(rng: np.random.Generator, precision: Precision) -> tuple[Array, Array, float]:
        a = _given(rng.normal(size=(size, size)) + size * np.eye(size), precision)
        truth: Array = np.linalg.inv(a).astype(np.float64)
        assert program.bound is not None
        ours = program.bound(a, arithmetic=precision)
        condition = float(np.linalg.cond(a, np.inf))
        numpy_s = 8 * size**2 * UNITS["float64"] * condition * float(np.abs(truth).max())
        return program(a, arithmetic=precision), truth, ours + numpy_s

    return Case("inverse", size, "rounding, quotient", run)


def _attention(size: int) -> Case:
    shape = Shape(d=size, heads=1, d_k=size, d_v=size, output=False)
    simulator = UniversalSimulator(size, size, 1, construction="long", output=False)

    def run(rng: np.random.Generator, precision: Precision) -> tuple[Array, Array, float]:
        target = random_target(shape, int(rng.integers(2**31)), size**-0.5)
        target = _rounded(target, precision)
        x = _given(rng.normal(size=(size, size)), precision)
        values = simulator.run(simulator.encode(target, x), arithmetic=precision)
        return (
            simulator.decode(values),
            attention(target, x),
            _attention_bound(target, x, precision),
        )

    return Case("attention", size, "exponential, rounding", run)


def _rounded(target: AttentionTarget, precision: Precision) -> AttentionTarget:
    q, k, v = (_given(w, precision) for w in (target.w_q, target.w_k, target.w_v))
    b_q, b_k, b_v = (_given(b, precision) for b in (target.b_q, target.b_k, target.b_v))
    return AttentionTarget(q, k, v, b_q, b_k, b_v)


def _attention_bound(target: AttentionTarget, x: Array, precision: Precision) -> float:
    """First order in the unit roundoff, doubled: projections, scores, exponentials, quotient."""
    size, d_k = x.shape[1] + 1, target.d_k
    ones = np.hstack([np.abs(x), np.ones((len(x), 1))])
    mass = [
        ones @ np.vstack([np.abs(w[0]), np.abs(b[0])])
        for w, b in ((target.w_q, target.b_q), (target.w_k, target.b_k), (target.w_v, target.b_v))
    ]
    # |dS| <= (terms of both projections and of the dot product) · |Q||K|ᵀ / sqrt(d_k)
    scores = (2 * (size + 4) + d_k + 6) * float((mass[0] @ mass[1].T).max()) / np.sqrt(d_k)
    largest = float(mass[2].max())
    relative = 2 * (scores + EXP_ULPS) + len(x) + 10
    first_order = (relative + size + 4) * largest
    return float(2 * first_order * (UNITS[precision] + UNITS["float64"]))


BUILDERS: dict[str, Callable[[int], Case]] = {
    "transposition": _transposition,
    "product": _product,
    "softmax": _softmax,
    "inverse": _inverse,
    "attention": _attention,
}
SIZES: dict[str, tuple[int, ...]] = {
    "transposition": (2, 4, 8, 16, 32),
    "product": (2, 4, 8, 16, 32),
    "softmax": (2, 4, 8, 16, 32),
    "inverse": (2, 3, 4, 6),
    "attention": (2, 4, 8, 16),
}


# -------------------------------------------------------------------------------- the report


def entries(
    operations: Sequence[str] = tuple(BUILDERS), seeds: int = 5, largest: int = 32
) -> Iterator[Entry]:
    """Measure every operation at its sizes up to ``largest``, over seeds, in both precisions.

    >>> [e.error for e in entries(["transposition"], seeds=1, largest=2)]
    [0.0, 0.0]
    """
    for operation in operations:
        for size in SIZES[operation]:
            if size > largest:
                continue
            case = BUILDERS[operation](size)
            for precision in PRECISIONS:
                yield measured(case, precision, seeds)


def measured(case: Case, precision: Precision, seeds: int) -> Entry:
    """The largest difference and the largest bound of one case over the seeds."""
    worst = bound = 0.0
    for seed in range(seeds):
        found, truth, allowed = case.run(np.random.default_rng((case.size, seed)), precision)
        worst = max(worst, float(np.max(np.abs(found - truth))))
        bound = max(bound, allowed)
    return Entry(case.operation, case.size, precision, seeds, worst, bound, case.cause)


def table(found: Sequence[Entry]) -> str:
    """The entries as text, columns aligned."""
    head = ("operation", "size", "precision", "largest error", "bound", "cause")
    rows = [head] + [
        (e.operation, str(e.size), e.precision, f"{e.error:.1e}", f"{e.bound:.1e}", e.cause)
        if e.error or e.bound
        else (e.operation, str(e.size), e.precision, "0", "0", e.cause)
        for e in found
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def data(found: Sequence[Entry]) -> list[dict[str, Any]]:
    """The entries as plain data."""
    return [{**e.__dict__, "holds": e.holds} for e in found]
