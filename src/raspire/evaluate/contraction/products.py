"""Sums of products of tensors: which pair to contract first, and each pair as one BLAS call."""

from __future__ import annotations

import math
from itertools import combinations
from math import log2

import numpy as np

from raspire.evaluate.contraction import kernels
from raspire.evaluate.contraction.kernels import Array
from raspire.evaluate.contraction.steps import Emission, Ref, union
from raspire.program.index_expressions import Axis, NotProved

MOST_WORK = 512
"""No contraction multiplies more often than so many times the length of the sequence."""


def product_sum(plan: Emission, factors: list[Ref], summed: set[Axis]) -> Ref:
    """The sum over the axes of the product of the factors, pair by pair, cheapest pair first."""
    shares = _Shares(plan.length, summed, len(factors))
    factors = list(factors)
    if len(factors) > 1:
        factors = [_presummed(plan, f, _only(factors, k, summed)) for k, f in enumerate(factors)]
    while len(factors) > 1:
        first, second = min(
            combinations(range(len(factors)), 2),
            key=lambda pair: _price(factors[pair[0]], factors[pair[1]], factors, summed),
        )
        left, right = factors[first], factors[second]
        rest = [f for k, f in enumerate(factors) if k not in (first, second)]
        factors = [*rest, _pair(plan, left, right, _now(left, right, rest, summed), shares)]
    return _presummed(plan, factors[0], summed & set(factors[0].axes))


class _Shares:
    """How the error that a mean may have is divided between the sums that make it up."""

    def __init__(self, length: int, summed: set[Axis], factors: int) -> None:
        self.bits = sum(log2(axis.size) for axis in summed if axis.size > 1) or 1.0
        self.allowed = 4 * log2(max(length, 2)) - 2 * factors

    def run(self, axes: set[Axis]) -> int:
        terms = math.prod(axis.size for axis in axes)
        return kernels.run_length(terms, self.allowed * log2(max(terms, 1)) / self.bits)


def _only(factors: list[Ref], place: int, summed: set[Axis]) -> set[Axis]:
    others = {axis for k, f in enumerate(factors) if k != place for axis in f.axes}
    return (summed & set(factors[place].axes)) - others


def _now(left: Ref, right: Ref, rest: list[Ref], summed: set[Axis]) -> set[Axis]:
    later = {axis for factor in rest for axis in factor.axes}
    return (summed & (set(left.axes) | set(right.axes))) - later


def _price(left: Ref, right: Ref, factors: list[Ref], summed: set[Axis]) -> int:
    rest = [f for f in factors if f is not left and f is not right]
    axes = set(left.axes) | set(right.axes)
    kept = axes - _now(left, right, rest, summed)
    return math.prod(a.size for a in axes) + 8 * math.prod(a.size for a in kept)


def _presummed(plan: Emission, ref: Ref, axes: set[Axis]) -> Ref:
    if not axes:
        return ref
    kept = tuple(axis for axis in ref.axes if axis not in axes)
    order = kept + tuple(axis for axis in ref.axes if axis in axes)
    return plan.add(
        ("total", kept),
        lambda array: kernels.total(array, len(order) - len(kept)),
        [plan.spread(ref, order)],
        kept,
        rounds=True,
    )


def _pair(plan: Emission, left: Ref, right: Ref, now: set[Axis], shares: _Shares) -> Ref:
    """The product of two tensors, summed over the axes ``now`` (all of them in both)."""
    batch = tuple(a for a in left.axes if a in right.axes and a not in now)
    inner = tuple(a for a in left.axes if a in now)
    rows = tuple(a for a in left.axes if a not in right.axes)
    columns = tuple(a for a in right.axes if a not in left.axes)
    axes = (*batch, *rows, *columns)
    if math.prod(a.size for a in (*axes, *inner)) > MOST_WORK * max(plan.length, 4096):
        raise NotProved
    if not inner:
        return _outer(plan, left, right)
    left, right = (
        plan.spread(left, (*batch, *rows, *inner)),
        plan.spread(right, (*batch, *inner, *columns)),
    )
    size = {group: math.prod(a.size for a in group) for group in (rows, inner, columns)}
    lead, shape = tuple(a.size for a in batch), tuple(a.size for a in axes)
    run = shares.run(now)

    def contract(left: Array, right: Array) -> Array:
        left = left.reshape(*lead, size[rows], size[inner])
        right = right.reshape(*lead, size[inner], size[columns])
        return kernels.dot(left, right, run).reshape(shape)

    return plan.add(("contract", axes, inner, run), contract, [left, right], axes, rounds=True)


def _outer(plan: Emission, left: Ref, right: Ref) -> Ref:
    axes = union([left, right])
    left, right = plan.spread(left, axes), plan.spread(right, axes)
    return plan.add(("outer", axes), np.multiply, [left, right], axes)
