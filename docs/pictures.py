"""Draw the pictures of README and docs again; a test holds that they are up to date."""

from pathlib import Path

from raspire.files import write_whole
from raspire.show.circuit import circuit
from raspire.simulator.networks import long_network
from raspire.simulator.target import Shape

TITLE = "The universal simulator of attention, whole: 80 weights, the same for every shape"
PLACE = Path(__file__).parent / "long.svg"


def long() -> str:
    """U in construction `long`: two rows, two heads, an output map."""
    return circuit(long_network(2, Shape(d=3, heads=2, d_k=2, d_v=1, output=True)), TITLE)


if __name__ == "__main__":
    print(f"wrote {write_whole(PLACE, long())}")
