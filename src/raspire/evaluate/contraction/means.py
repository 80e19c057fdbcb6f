"""Means of products, of all keys or of those of true weights, and the keys of greatest score."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from raspire.evaluate.contraction import kernels
from raspire.evaluate.contraction.kernels import Array
from raspire.evaluate.contraction.products import product_sum
from raspire.evaluate.contraction.steps import Emission, Ref, alignment, union
from raspire.evaluate.contraction.values import Literal, Map, Value
from raspire.program.index_expressions import Axis

Scales = list[tuple[str, float]]


@dataclass(frozen=True)
class Product:
    """A value as factors times numbers: each of ``scales`` is ("mul" or "div", number)."""

    factors: list[Value]
    scales: Scales


def as_product(value: Value) -> Product:
    """The value taken apart at its multiplications, and its divisions by constants."""
    found = Product([], [])
    stack = [value]
    while stack:
        value = stack.pop()
        name = value.record.name if isinstance(value, Map) and value.kind == "f" else ""
        args = value.args if isinstance(value, Map) else ()
        if name == "mul":
            stack.extend(reversed(args))
        elif name == "neg":
            found.scales.append(("mul", -1.0))
            stack.append(args[0])
        elif name == "div" and (number := _scale(args[1])):
            found.scales.append(("div", number))
            stack.append(args[0])
        elif number := _scale(value):
            found.scales.append(("mul", number))
        else:
            found.factors.append(value)
    return found


def _scale(value: Value) -> float:
    """The number that a value is everywhere; 0 where it is none that can be pulled out."""
    if isinstance(value, Literal) and math.isfinite(value.value):
        return float(value.value)
    return 0.0


def mean_of_product(
    plan: Emission,
    factors: list[Ref],
    scales: Scales,
    weights: list[Ref],
    free: set[Axis],
    default: float,
) -> Ref:
    """The mean over the free axes of the factors' product, where all weights are true.

    Axes that nothing depends on do not change a mean, so they are left out.
    """
    summed = free & set(union([*factors, *weights]))
    counted = summed & set(union(weights))
    rest = math.prod(axis.size for axis in summed - counted)
    sums = product_sum(plan, _weighted(plan, factors, weights), summed)
    for name, number in scales:
        scale = partial(_scaled, number=number, divide=name == "div")
        sums = plan.add((name, number), scale, [sums], sums.axes)
    if weights:
        counts = product_sum(plan, [_float(plan, w) for w in weights], counted)
        return _quotient(plan, sums, counts, rest, default)
    if rest == 1:
        return sums
    mean = plan.add(("count", rest), lambda a: kernels.checked(a / rest), [sums], sums.axes)
    if len(factors) == 1 and not scales:
        return _same_if_equal(plan, factors[0], mean)
    return mean


def _same_if_equal(plan: Emission, values: Ref, mean: Ref) -> Ref:
    """The mean, or where all values are equal that value, which rounding could have missed."""
    order = mean.axes + tuple(axis for axis in values.axes if axis not in mean.axes)
    count = len(order) - len(mean.axes)

    def run(mean: Array, values: Array) -> Array:
        return kernels.mean_or_value(mean, values, count)

    return plan.add(("equal", order), run, [mean, plan.spread(values, order)], mean.axes)


def _scaled(array: Array, number: float, divide: bool) -> Array:
    return array / number if divide else array * number


def _quotient(plan: Emission, sums: Ref, counts: Ref, rest: int, default: float) -> Ref:
    axes = union([sums, counts])
    places = alignment(sums.axes, axes), alignment(counts.axes, axes)

    def run(sums: Array, counts: Array) -> Array:
        top, bottom = kernels.aligned(sums, *places[0]), kernels.aligned(counts, *places[1])
        return kernels.quotient(top, bottom * rest, default)

    return plan.add(("quotient", rest, default, axes), run, [sums, counts], axes)


def _weighted(plan: Emission, factors: list[Ref], weights: list[Ref]) -> list[Ref]:
    """Factors whose product is 0 where a weight is false.

    A weight goes into the smallest factor that has its axes, else it is a factor of its own.
    """
    found = list(factors)
    for weight in weights:
        able = [k for k, factor in enumerate(found) if set(weight.axes) <= set(factor.axes)]
        if able:
            place = min(able, key=lambda k: found[k].size)
            found[place] = _masked(plan, found[place], weight)
        else:
            found.append(_float(plan, weight))
    return found or [plan.constant(1.0, (), "f", (1.0, 1.0))]


def _masked(plan: Emission, factor: Ref, weight: Ref) -> Ref:
    order, fill = alignment(weight.axes, factor.axes)

    def run(factor: Array, weight: Array) -> Array:
        return np.where(kernels.aligned(weight, order, fill), factor, 0.0)

    return plan.add("masked", run, [factor, weight], factor.axes)


def _float(plan: Emission, ref: Ref) -> Ref:
    if ref.kind == "f":
        return ref
    return plan.add("float", lambda array: array.astype(np.float64), [ref], ref.axes)


# ---------------------------------------------------------------- greatest scores


def greatest_among(
    plan: Emission, score: Ref, weights: list[Ref], free: set[Axis]
) -> tuple[Ref, Ref]:
    """Whether a key of true weights has the greatest score along the free axes; that score."""
    axes = union([score, *weights])
    kept = tuple(axis for axis in axes if axis not in free)
    axes = kept + tuple(axis for axis in axes if axis in free)
    count = len(axes) - len(kept)
    parts = _score_and_mask([alignment(ref.axes, axes) for ref in (score, *weights)])

    def greatest(*arrays: Array) -> Array:
        values, mask = parts(*arrays)
        return kernels.greatest(values, count, mask)

    def attained(peak: Array, *arrays: Array) -> Array:
        values, mask = parts(*arrays)
        attains: Array = values == peak[(..., *(None,) * count)]
        return attains if mask is None else attains & mask

    peak = plan.add(("greatest", axes), greatest, [score, *weights], kept)
    found = plan.add(("best", axes), attained, [peak, score, *weights], axes, "b", (0, 1))
    return found, peak


def _score_and_mask(
    places: list[tuple[tuple[int, ...], tuple[slice | None, ...]]],
) -> Callable[..., tuple[Array, Array | None]]:
    def parts(*arrays: Array) -> tuple[Array, Array | None]:
        score, *weights = (
            kernels.aligned(array, *place) for array, place in zip(arrays, places, strict=True)
        )
        mask = np.logical_and.reduce(np.broadcast_arrays(*weights)) if weights else None
        return score, mask

    return parts


def or_default(plan: Emission, peak: Ref, default: float) -> Ref:
    """The greatest scores; the default where no key had true weights."""

    def run(peak: Array) -> Array:
        return np.where(np.isneginf(peak), default, peak)

    return plan.add(("default", default), run, [peak], peak.axes)
