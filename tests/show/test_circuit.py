"""The picture of U shows every weight once, and the one in the docs is that of today's code."""

import runpy
from pathlib import Path

import pytest

from raspire.show.circuit import circuit
from raspire.simulator.networks import long_network, weights_table
from raspire.simulator.target import Shape

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("output", [True, False])
@pytest.mark.parametrize("heads", [1, 3])
def test_every_weight_is_one_mark(output, heads):
    network = long_network(3, Shape(d=2, heads=heads, d_k=1, d_v=2, output=output))
    weights = [row for row in weights_table(network) if row.matrix != "W_U"]
    assert len(weights) == (80 if output else 61)
    legend = 7
    assert circuit(network).count("<circle cx") - legend == len(weights) + sum(
        row.matrix == "W_V W_O" for row in weights
    )


def test_the_picture_of_the_documents_is_up_to_date():
    drawn = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["long"]()
    assert (ROOT / "docs" / "long.svg").read_text() == drawn
