"""U as explicit weights, in each of its constructions, and the table of what a weight means."""

from raspire.simulator.networks.long import long_network
from raspire.simulator.networks.native import native_network, pair_network
from raspire.simulator.networks.network import Network

__all__ = ["Network", "long_network", "native_network", "pair_network"]
