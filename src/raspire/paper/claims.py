"""The paper's results as data: the program, what it costs, what the claim rests on, how to redo it.

Costs are counted on the programs (or on the weights) whenever they are asked for; nothing here
repeats a number that a program can tell. ``paper_layers`` is what the paper reports, where we know
it: 2 layers for transposition, 3 for the product, 5 for the inverse of 3×3 matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from raspire.errors import RaspNameError
from raspire.library.approximation import Approximation
from raspire.library.layout import LaidOut
from raspire.program.facts import cost
from raspire.program.nodes import SOp
from raspire.verify.certificate import Certificate

if TYPE_CHECKING:
    from raspire.compile import Compiled
    from raspire.simulator.block_simulator import BlockSimulator
    from raspire.simulator.mechanisms import Mechanism
    from raspire.simulator.networks import Network
    from raspire.simulator.networks.native_block import BlockNetwork
    from raspire.simulator.universal import UniversalSimulator

    Subject = (
        LaidOut
        | SOp
        | Approximation
        | UniversalSimulator
        | BlockSimulator
        | Mechanism
        | Network
        | BlockNetwork
        | Compiled
    )
else:
    Subject = Any


@dataclass(frozen=True)
class Row:
    """A claim's cost, as a line of the table; ``length`` is N, or None for every length."""

    attention_depth: int
    layers: int
    heads: tuple[int, ...]
    length: int | None
    feed_forward: tuple[str, ...]
    weights: int | None = None


@dataclass(frozen=True)
class Claim:
    """One result: where it is stated, in our words, and what shows that it holds here.

    ``program`` builds it; ``kind`` says whether depth and heads are counted on a program or on the
    weights of a network; ``expected`` are the attention depth and the layers that it must not
    exceed; ``check`` redoes the verification.
    """

    key: str
    result: str
    statement: str
    layout: str
    program: Callable[[], Subject]
    expected: tuple[int, int]
    rests_on: str
    check: Callable[[], Certificate]
    paper_layers: int | None = None
    kind: str = "program"

    @property
    def command(self) -> str:
        """The command that reproduces the claim."""
        return f"raspire theorems {self.key}"

    def row(self) -> Row:
        """The cost, counted now."""
        return row(self.program())


def row(subject: Subject) -> Row:
    """The cost of a program, a simulator or a network as a line of the table."""
    if isinstance(subject, SOp):
        counted, length = cost(subject), None
    elif isinstance(subject, LaidOut | Approximation):
        counted, length = subject.cost, subject.length
    elif hasattr(subject, "sequence_length"):
        simulator = cast("UniversalSimulator", subject)
        counted, length = cost(simulator.program), simulator.sequence_length
    else:
        return _network_row(subject)
    return Row(
        counted.attention_depth,
        counted.layers,
        counted.heads_per_layer,
        length,
        counted.feed_forward,
    )


def _network_row(network: Network | BlockNetwork | Compiled) -> Row:
    counted = network.cost
    return Row(
        counted.attention_depth,
        counted.layers,
        counted.heads,
        counted.max_length,
        tuple(sorted(counted.units)),
        counted.nonzeros,
    )


def claims() -> Mapping[str, Claim]:
    """Every claim by its key, in the paper's order."""
    from raspire.paper.claims_algebra import ALGEBRA, COMPILED
    from raspire.paper.claims_languages import APPROXIMATIONS, LANGUAGES, NETWORKS
    from raspire.paper.claims_mechanisms import MECHANISMS
    from raspire.paper.claims_simulator import SIMULATORS

    every = (*ALGEBRA, *COMPILED, *SIMULATORS, *MECHANISMS, *LANGUAGES, *NETWORKS, *APPROXIMATIONS)
    return {claim.key: claim for claim in every}


def claim(key: str) -> Claim:
    """The claim of that key.

    Raises RaspNameError with the keys there are.

    >>> claim("transposition").result
    'Lemma 3'
    """
    known = claims()
    if key not in known:
        raise RaspNameError(
            f"there is no claim {key!r}", expected="one of " + ", ".join(known), found=key
        )
    return known[key]
