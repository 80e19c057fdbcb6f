"""What is held against the precision before any weight exists: gaps of heads, margins of steps.

Noise is the distance of a computed number from the exact one. Integers and dyadic fractions pass
heads that copy, sums and steps without any; a mean or a share is rounded once; a step whose code is
noisy gives exact values again if it is a hard step, else a few units in the last place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from raspire.compile.domain import Vector
from raspire.compile.linear import Cell, Form
from raspire.compile.parts import GatePart, HeadPart, Part, StepPart
from raspire.compile.schedule import Plan
from raspire.errors import UnsupportedError

JUMPS = ("gated:step", "gated:zero")
EXACT = ("bilinear", "linear", "relu")
DECISION = 0.2
"""What is read as a whole number or a flag may be so far from it."""
ROUGH = 256
"""Numeric outputs may be so many units in the last place away from the exact value."""
EPSILON = {"float64": 2.0**-53, "float32": 2.0**-24}


@dataclass(frozen=True)
class Check:
    """One head or group of units: what separates its cases, and what noise may take of it."""

    kind: str
    layer: int
    label: str
    gap: float
    noise: float

    @property
    def holds(self) -> bool:
        """Whether the noise leaves at least half of the gap."""
        return self.gap > 2 * self.noise

    def __str__(self) -> str:
        what = "score gap" if self.kind == "head" else "margin"
        where = f"layer {self.layer} {self.kind} {self.label}"
        return f"{where}: {what} {self.gap:g}, noise {self.noise:.2g}"


@dataclass(frozen=True)
class Certificate:
    """The precision, and every head and table unit with its gap and its noise.

    ``error`` bounds the distance of numeric outputs from the exact values, where it is known.
    """

    precision: str
    checks: tuple[Check, ...]
    error: float = 0.0

    @property
    def smallest_gap(self) -> float:
        """The least score gap of a head."""
        return min((c.gap for c in self.checks if c.kind == "head"), default=np.inf)

    @property
    def smallest_margin(self) -> float:
        """The least margin of a group of steps."""
        return min((c.gap for c in self.checks if c.kind == "steps"), default=np.inf)

    def record(self) -> dict[str, Any]:
        """The same as plain data; a group of units without steps has no margin."""
        checks = [asdict(c) for c in self.checks if np.isfinite(c.gap)]
        error = self.error if np.isfinite(self.error) else None
        return {"precision": self.precision, "error": error, "checks": checks}

    def __str__(self) -> str:
        return "\n".join([f"certified for {self.precision}", *map(str, self.checks)])


def certify(
    plan: Plan,
    embedded: list[Cell],
    precision: str,
    *,
    numeric: bool = False,
    decided: Sequence[Form] = (),
    stock: float | None = None,
) -> Certificate:
    """Set the noise of every cell, harden steps that must be exact, and hold all gaps against it.

    Steps are hardened too where they would make ``numeric`` outputs rougher than rounding does.
    ``stock`` is the scale of a softmax network without hard steps: there ties may be noisy, and
    the noise that the softmax makes of it is counted.

    Raises UnsupportedError where a gap or margin is too small for the precision.
    """
    epsilon = EPSILON[precision]
    for cell in embedded:
        cell.noise = _embedding_noise(cell, epsilon)
    checks = _checks(plan, epsilon, stock)
    for part, check in checks.items():
        if not check.holds and isinstance(part, HeadPart):
            _harden(form for pair in part.pairs for form in pair)
    if any(form.noise > DECISION for form in decided):
        _harden(decided)
    if numeric and any(f.noise > ROUGH * epsilon * (1 + f.bound) for f in plan.outputs):
        _harden(plan.outputs)
    checks = _checks(plan, epsilon, stock)
    for check in checks.values():
        if not check.holds:
            raise _too_small(check, precision)
    rough = max((form.noise for form in decided), default=0.0)
    if rough > DECISION:
        raise _too_small(Check("output", len(plan.heads), "the output", DECISION, rough), precision)
    error = max((form.noise for form in plan.outputs), default=0.0) if numeric else 0.0
    return Certificate(precision, tuple(checks.values()), error)


def _checks(plan: Plan, epsilon: float, stock: float | None) -> dict[Part, Check]:
    checks: dict[Part, Check] = {}
    for part in plan.parts():
        if isinstance(part, StepPart):
            checks[part] = _steps(part, epsilon, stock is None)
        elif isinstance(part, HeadPart):
            checks[part] = _head(part, epsilon, stock)
        else:
            _gate(part, epsilon)
    return checks


def _harden(forms: Iterable[Form]) -> None:
    """Ask for exact values of the steps that some forms read, through heads that copy them."""
    stack = [cell for form in forms for cell in form.terms]
    seen: set[Cell] = set()
    while stack:
        cell = stack.pop()
        if cell in seen:
            continue
        seen.add(cell)
        if isinstance(cell.source, StepPart):
            cell.source.exact = True
        elif isinstance(cell.source, HeadPart):
            stack.extend(cell.source.values[cell].terms)
        elif cell.source is not None:
            stack.extend(c for form in cell.source.reads for c in form.terms)


def _too_small(check: Check, precision: str) -> UnsupportedError:
    what = "the score gap" if check.kind == "head" else "the margin"
    return UnsupportedError(
        f"{what} of {check.label} (layer {check.layer}) is too small for {precision}",
        expected=f"more than {2 * check.noise:g}",
        found=f"{check.gap:g}",
        hint="take a shorter maximal length" + (
            "" if precision == "float64" else ", or precision='float64'"
        ),
    )  # fmt: skip


def _exactly(values: Vector, epsilon: float) -> bool:
    """Whether sums of such numbers are exact in the precision: multiples of 1 or 1/256."""
    for unit in (1.0, 256.0):
        scaled = values * unit
        if (scaled == np.rint(scaled)).all():
            return float(np.abs(scaled).max()) < 0.25 / epsilon
    return False


def _embedding_noise(cell: Cell, epsilon: float) -> float:
    if cell.column is None or _exactly(cell.column, epsilon):
        return 0.0
    return epsilon * float(np.abs(cell.column).max())


def _head(part: HeadPart, epsilon: float, stock: float | None) -> Check:
    rounding = 0.0
    for query, key in part.pairs:
        rounding += query.bound * key.noise + key.bound * query.noise
    if rounding or part.bound * epsilon > 0.1:
        rounding += 8 * epsilon * part.bound
    for cell, value in part.values.items():
        size = max(cell.bound, value.bound)
        copied = value.noise + (0.0 if _plain(value.terms.values()) else epsilon * size)
        cell.noise = copied if part.copies else value.noise + 4 * epsilon * size
        if stock is not None and part.ties:
            cell.noise += 4 * stock * rounding * size
        if part.outright:
            cell.noise += 2 * rounding  # a neighbour of the maximum may be taken for it
    gap = part.gap or np.inf
    broken = part.ties and rounding > 0 and stock is None
    return Check("head", part.layer, part.label, gap, gap if broken else 2 * rounding)


def _plain(factors: Iterable[float]) -> bool:
    values = np.array(list(factors)) * 256
    return bool((values == np.rint(values)).all())


def _steps(part: StepPart, epsilon: float, hard: bool) -> Check:
    noise = part.code.noise
    if noise or not _plain(part.code.terms.values()):
        noise += 4 * epsilon * part.code.bound
    part.hard = hard and part.exact and noise > 0
    reach = float(np.abs(part.points).max()) + 1
    for cell, values in part.outputs.items():
        jumps = np.abs(np.diff(values)).sum()
        rough = 0.0 if noise == 0 or part.hard else 4 * epsilon * jumps * (reach / part.gap + 2)
        cell.noise = float(rough) + (0.0 if _exactly(values, epsilon) else epsilon * float(jumps))
    return Check("steps", part.layer, part.label, part.margin, noise)


def _gate(part: GatePart, epsilon: float) -> None:
    exact = all(
        first.noise == 0 and (family in JUMPS or (family in EXACT and second.noise == 0))
        for family, first, second, _ in part.terms
    )
    whole = part.cell.table is not None and _exactly(part.cell.table, epsilon)
    if exact and whole:
        return
    noise = 4 * epsilon * part.cell.bound
    if part.slopes is not None:
        part.cell.noise = noise + part.error + sum(s * form.noise for form, s in part.slopes)
        return
    for family, first, second, weight in part.terms:
        if family == "bilinear":
            slope = first.bound * second.noise + second.bound * first.noise
        elif family in ("linear", "relu"):
            slope = first.noise
        else:
            slope = np.inf if first.noise + second.noise else 0.0
        noise += abs(weight) * slope
    part.cell.noise = noise
