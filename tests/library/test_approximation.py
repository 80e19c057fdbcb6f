"""Universal approximation: the bound is asserted, the size is known before, refusals are clear."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raspire.errors import BudgetError, RaspValueError
from raspire.library.approximation import Approximation, approximate, covering


def worst(program: Approximation, function: Callable[..., Any], points: int = 25) -> float:
    """The largest error over random points, corners and grid points of the box."""
    rng = np.random.default_rng(1)
    low, high = np.array(program.grid.box).T
    some = list(low + (high - low) * rng.random((points, len(low))))
    some += [low, high, np.array(next(iter(program.grid)))]
    errors = [
        np.max(np.abs(np.array(program(*map(float, x))) - np.array(function(*x)))) for x in some
    ]
    return float(max(errors))


def check(
    function: Callable[..., Any], box: list[tuple[float, float]], eps: float, **options: Any
) -> Approximation:
    program = approximate(function, box, eps=eps, **options)
    assert program.bound <= eps * (1 + 1e-9)
    assert program.rounding < 1e-6
    assert worst(program, function) <= program.bound + program.rounding
    return program


def test_one_variable() -> None:
    program = check(math.sin, [(0, 2 * math.pi)], 0.05, lipschitz=1)
    assert program.grid.points == math.ceil(2 * math.pi / 0.1)
    assert program.length == program.grid.points
    assert (program.cost.attention_depth, program.cost.layers) == (2, 2)
    assert program.cost.heads_per_layer == (1, 2)


def test_two_variables() -> None:
    program = check(lambda x, y: math.hypot(x, y), [(-1, 1), (0, 1)], 0.2, lipschitz=math.sqrt(2))
    assert program.grid.counts == (8, 4)
    assert program.cost.attention_depth == 2
    assert sum(program.cost.heads_per_layer) == 4


def test_three_variables() -> None:
    program = check(lambda x, y, z: max(x, y) - abs(z) / 2, [(0, 1)] * 3, 0.3, lipschitz=1.5)
    assert program.grid.counts == (3, 3, 3)
    assert program.cost.attention_depth == 2


@pytest.mark.parametrize("alpha", [0.5, 0.75])
def test_holder_functions(alpha: float) -> None:
    program = check(lambda x: abs(x) ** alpha, [(-1, 1)], 0.2, lipschitz=1, alpha=alpha)
    assert program.grid.points == covering([(-1, 1)], lipschitz=1, eps=0.2, alpha=alpha).points


def test_a_sequence_to_sequence_map() -> None:
    def smoothed(*x: float) -> list[float]:
        return [(x[max(i - 1, 0)] + x[i] + x[min(i + 1, 2)]) / 3 for i in range(3)]

    program = check(smoothed, [(0, 1)] * 3, 0.2, lipschitz=1, outputs=3)
    assert program.outputs == 3
    assert len(program(0.1, 0.5, 0.9)) == 3
    assert program.cost.attention_depth == 2
    assert sum(program.cost.heads_per_layer) == 3 + 6


@given(
    st.floats(0.05, 3), st.floats(0.05, 1), st.floats(-2, 2), st.floats(0.1, 3), st.floats(0.3, 1)
)
@settings(max_examples=40, deadline=None)
def test_the_covering_is_the_least_that_keeps_the_promise(
    lipschitz: float, eps: float, low: float, side: float, alpha: float
) -> None:
    grid = covering([(low, low + side)], lipschitz=lipschitz, eps=eps, alpha=alpha)
    assert lipschitz * grid.radius**alpha <= eps * (1 + 1e-9)
    if grid.points > 1:
        coarser = side / (2 * (grid.points - 1))
        assert lipschitz * coarser**alpha > eps * (1 - 1e-6)


def test_a_constant_needs_one_point() -> None:
    program = check(lambda x: 4.0, [(0, 1)], 0.1, lipschitz=0)
    assert program.grid.points == 1
    assert program(0.5) == 4


def test_refusals() -> None:
    with pytest.raises(BudgetError, match="more grid points than the budget") as error:
        approximate(max, [(0, 1)] * 6, lipschitz=1, eps=0.01)
    assert "50 x 50 x 50 x 50 x 50 x 50 = 15625000000 points" in str(error.value)
    with pytest.raises(RaspValueError, match="faster than its constant permits"):
        approximate(lambda x: 5 * x, [(0, 1)], lipschitz=1, eps=0.1)
    with pytest.raises(RaspValueError, match="these constants promise nothing"):
        covering([(0, 1)], lipschitz=1, eps=0)
    with pytest.raises(RaspValueError, match="one bounded side per variable"):
        covering([(1, 0)], lipschitz=1, eps=1)
    with pytest.raises(RaspValueError, match="outside the box"):
        approximate(abs, [(0, 1)], lipschitz=1, eps=0.1)(2.0)
    with pytest.raises(RaspValueError, match="another number of values"):
        approximate(lambda x: [x, x], [(0, 1)], lipschitz=1, eps=0.1, outputs=3)
