"""Corollary 6.2: one U runs every smaller target; what one U does for every n, and for one n."""

import itertools

import numpy as np
import pytest

from raspire import RaspError
from raspire.simulator import AttentionTarget, Shape, UniversalSimulator, attention
from raspire.simulator.networks import native_network
from raspire.simulator.positions import Relative, Rotary


def random_target(rng, d, heads, d_k, d_v, *, output=True, **options):
    def draw(*size):
        return rng.normal(size=size)

    return AttentionTarget.from_arrays(
        draw(heads, d, d_k), draw(heads, d, d_k), draw(heads, d, d_v),
        draw(heads * d_v, d) if output else None,
        b_q=draw(heads, d_k), b_k=draw(heads, d_k), b_v=draw(heads, d_v),
        b_o=draw(d) if output else None, **options,
    )  # fmt: skip


def positions(kind, heads, rng):
    return {
        "none": {},
        "rotary": {"rotary": Rotary.of_base(1, 10.0)},
        "relative": {"relative": Relative.linear(rng.uniform(size=heads))},
        "window": {"window": 2},
    }[kind]


@pytest.mark.parametrize("kind", ["none", "rotary", "relative", "window"])
@pytest.mark.parametrize("softmax", ["plain", "stable"])
def test_every_smaller_causal_target_runs_in_one_u(kind, softmax):
    rng = np.random.default_rng(1)
    largest = random_target(rng, 3, 2, 2, 2, mask="causal", **positions(kind, 2, rng))
    u = UniversalSimulator.for_target(largest, 3, "long", softmax)
    program = u.program
    widths = (2,) if kind == "rotary" else (1, 2)  # pairs of coordinates do not shrink
    for n, d, heads, d_k, d_v in itertools.product((1, 2, 3), (1, 3), (1, 2), widths, (1, 2)):
        target = random_target(
            rng, d, heads, d_k, d_v, mask="causal", **positions(kind, heads, rng)
        )
        x = rng.normal(size=(n, d))
        assert u.accepts(target.shape, n)
        assert np.abs(u(target, x) - attention(target, x)).max() < 1e-12
    assert u.program is program


@pytest.mark.parametrize("construction", ["long", "wide"])
def test_what_does_not_fit_is_refused_by_name(construction):
    u = UniversalSimulator(3, 2, 1, 2, 2, construction)
    masked = UniversalSimulator(3, 2, 1, 2, 2, construction, mask="padding")
    for shape, n, reason in (
        (Shape(3, 1, 2, 2, output=True), 3, "d of 3, and U has room for 2"),
        (Shape(2, 2, 2, 2, output=True), 3, "heads of 2, and U has room for 1"),
        (Shape(2, 1, 3, 2, output=True), 3, "d_k of 3, and U has room for 2"),
        (Shape(2, 1, 2, 3, output=True), 3, "d_v of 3, and U has room for 2"),
        (Shape(2, 1, 2, 2, output=True), 4, "n of 4, and U has room for 3"),
        (Shape(2, 1, 2, 2, output=False), 3, "no output map"),
        (Shape(2, 1, 2, 2, output=True), 2, "n of 2, and U without a mask takes n of 3 only"),
    ):
        assert not u.accepts(shape, n)
        target = random_target(
            np.random.default_rng(0), shape.d, shape.heads, shape.d_k, shape.d_v,
            output=shape.output,
        )  # fmt: skip
        with pytest.raises(RaspError, match=f"U does not take this target: {reason}"):
            u(target, np.ones((n, shape.d)))
    assert masked.accepts(Shape(2, 1, 2, 2, output=True), 2)


def test_native_is_one_network_for_every_n_and_the_others_are_for_one():
    rng = np.random.default_rng(2)
    target = random_target(rng, 2, 2, 2, 1)
    network = native_network(target.shape)
    weights = network.cost.nonzeros
    for n in (1, 2, 5, 9):
        x = rng.normal(size=(n, 2))
        assert np.abs(network(target, x) - attention(target, x)).max() < 1e-12
    assert network.cost.nonzeros == weights
    lengths = {
        construction: [
            UniversalSimulator.for_target(target, n, construction).sequence_length
            for n in (2, 3, 4)
        ]
        for construction in ("long", "wide")
    }
    assert all(len(set(of_n)) == 3 for of_n in lengths.values())
