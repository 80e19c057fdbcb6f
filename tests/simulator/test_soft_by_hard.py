"""Softmax attention by average-hard heads: the statement is read from the weights, and holds."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from raspire import RaspError
from raspire.cli.theorems import theorems
from raspire.simulator import AttentionTarget, Shape
from raspire.simulator.soft_by_hard import _role, soft_by_hard


@pytest.mark.parametrize("softmax", ["plain", "stable"])
@pytest.mark.parametrize("output", [False, True])
def test_average_hard_heads_compute_softmax_attention(softmax, output):
    rng = np.random.default_rng(3)
    w_q, w_k, w_v, w_o = rng.normal(size=(4, 4, 4))
    target = AttentionTarget.from_arrays(w_q, w_k, w_v, w_o if output else None, heads=2)
    shown = soft_by_hard(3, target.shape, softmax)
    assert shown.difference(target, rng.normal(size=(3, 4))) < 1e-12
    kinds = {head.kind for _, _, head in shown.network.model.heads()}
    assert kinds == {"average-hard"}
    assert len(shown.layers) == 6 + (softmax == "stable") + 2 * output


def test_each_feed_forward_part_multiplies_exponentiates_divides_or_rests():
    shown = soft_by_hard(2, Shape(d=2, heads=1, d_k=2, d_v=1, output=False), "plain")
    families = ["bilinear", "", "bilinear", "gated:exp", "bilinear", "gated:recip"]
    for role, family in zip(shown.layers, families, strict=True):
        assert f"({family}: " in role.unit or (role.unit, family) == ("", "")
    assert str(shown).startswith("For every T of the shape and every X of n rows")
    assert "layer 2: average-hard: sum x · w; feed-forward: idle" in str(shown)


def test_a_softmax_head_would_be_found():
    network = soft_by_hard(2, Shape(d=1, heads=1, d_k=1, d_v=1, output=False)).network
    layer = network.model.layers[4]
    soft = replace(layer, heads=(replace(layer.heads[0], kind="softmax"),))
    with pytest.raises(RaspError, match="layer 5 is not what soft by hard claims"):
        _role(5, soft)


def test_the_command_prints_the_statement_with_its_proof():
    run = CliRunner().invoke(theorems, ["soft-by-hard"])
    assert run.exit_code == 0
    assert "layer 7: average-hard: mean over keys; feed-forward: quotient" in run.output
    assert "checked now" in run.output
    assert "holds (identity over a finite field" in run.output
