"""U as explicit weights, in each of its constructions, and the table of what a weight means."""

from raspire.simulator.networks.long import long_network
from raspire.simulator.networks.native import native_network, pair_network
from raspire.simulator.networks.native_block import BlockNetwork, native_block_network
from raspire.simulator.networks.network import Network
from raspire.simulator.networks.weights_table import Weight, render, weights_table
from raspire.simulator.networks.wide import wide_network

__all__ = [
    "BlockNetwork",
    "Network",
    "Weight",
    "long_network",
    "native_block_network",
    "native_network",
    "pair_network",
    "render",
    "weights_table",
    "wide_network",
]
