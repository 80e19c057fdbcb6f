"""U runs a layer of U, which runs a target: the three results agree."""

from dataclasses import replace

import numpy as np
import pytest

from raspire import RaspError
from raspire.simulator import AttentionTarget, UniversalSimulator, attention
from raspire.simulator.networks import (
    long_network,
    native_network,
    pair_network,
    wide_network,
)
from raspire.simulator.self_simulation import layer_target, self_simulate


def small_target(seed, *, output, d=2, heads=2, d_k=1, d_v=1):
    rng = np.random.default_rng(seed)

    def draw(*size):
        return rng.normal(size=size)

    return AttentionTarget.from_arrays(
        draw(heads, d, d_k), draw(heads, d, d_k), draw(heads, d, d_v),
        draw(heads * d_v, d) if output else None, b_q=draw(heads, d_k), b_k=draw(heads, d_k),
        b_v=draw(heads, d_v), b_o=draw(d) if output else None,
    )  # fmt: skip


NETWORKS = {
    "native": lambda n, shape: native_network(shape),
    "pair": pair_network,
    "wide": wide_network,
    "long": long_network,
}


@pytest.mark.parametrize("output", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_u_runs_every_layer_of_u_which_runs_a_target(name, output):
    target = small_target(1, output=output)
    x = np.random.default_rng(2).normal(size=(2, 2))
    network = NETWORKS[name](2, target.shape)
    run = self_simulate(network, target, x)
    assert run.max_abs_error < 1e-12
    assert len(run.differences) == network.cost.layers
    # the stream of `long` holds squares of positions, up to 1e4
    assert max(run.differences) < 1e-11
    assert np.abs(run.direct - attention(target, x)).max() == 0


def test_the_outer_u_may_be_of_another_construction():
    def by_wide(target, x, seen):
        u = UniversalSimulator.for_target(target, len(x), "wide", "stable")
        return u(target, x, seen)

    target = small_target(3, output=True, heads=1)
    x = np.random.default_rng(4).normal(size=(3, 2))
    run = self_simulate(native_network(target.shape), target, x, by_wide)
    assert run.max_abs_error < 1e-12


def test_layers_that_are_no_target_are_refused_by_name():
    network = native_network(small_target(0, output=False).shape)
    layer = network.model.layers[0]
    with pytest.raises(RaspError, match="heads that are average-hard"):
        layer_target(layer, ["weight"])
    first, second = network.saturated().model.layers
    mixed = replace(first, heads=(first.heads[0], second.heads[0]))
    with pytest.raises(RaspError, match="do not share one mask of keys"):
        layer_target(mixed, ["weight"])
