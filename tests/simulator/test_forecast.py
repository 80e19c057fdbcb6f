"""The cost of a large shape is what its program would count, in the time of a small one."""

from time import perf_counter

import pytest
from click.testing import CliRunner

from raspire.cli.simulate import cost
from raspire.simulator import forecast as module
from raspire.simulator.estimate import estimate
from raspire.simulator.forecast import forecast
from raspire.simulator.universal import UniversalSimulator

SHAPES = [(1, 1, 1, 1, 1), (2, 3, 1, 2, 2), (5, 6, 3, 4, 2), (9, 12, 3, 4, 4), (30, 7, 2, 11, 5)]


@pytest.mark.parametrize("output", [True, False])
@pytest.mark.parametrize("mask", ["none", "causal", "padding"])
@pytest.mark.parametrize("softmax", ["plain", "stable"])
def test_both_ways_of_counting_agree(monkeypatch, softmax, mask, output):
    monkeypatch.setattr(module, "BUILT", 0)
    for shape in SHAPES:
        arguments = (*shape, "wide", softmax, mask, output)
        u, found = UniversalSimulator(*arguments), forecast(*arguments)
        assert found.cost.nodes is None
        for name in ("construction", "attention_depth", "layers", "heads_per_layer",
                     "feed_forward", "sequence_length"):  # fmt: skip
            assert getattr(found.cost, name) == getattr(u.cost, name), (shape, name)
        assert found.estimate == estimate(u.construction)
        assert found.shape == u.shape


def test_small_shapes_and_long_are_counted_on_their_own_program():
    for name in ("long", "wide"):
        u = UniversalSimulator(4, 6, 2, construction=name)
        assert forecast(4, 6, 2, construction=name).cost == u.cost


@pytest.mark.parametrize("n", [1_000_000, 10**12])
def test_a_huge_shape_is_told_at_once_and_readably(n):
    start = perf_counter()
    result = CliRunner().invoke(cost, ["--n", str(n), "--d", "12288", "--heads", "96"],
                                catch_exceptions=False)  # fmt: skip
    assert perf_counter() - start < 10
    assert f"24578, 256, {2 * n}, 0, 24577" in result.output
    assert "years" in result.output
    assert max(len(word) for word in result.output.split()) < 24
