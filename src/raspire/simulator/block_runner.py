"""One U for encoder blocks, ready to be looped: as the program `long`, or as the weights `native`.

The program is built for one n and has a short list of heads; the explicit weights are one network
for every n, of attention depth 2, as wide as all the numbers of a block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from raspire.errors import BudgetError, RaspValueError
from raspire.simulator.block import BlockShape, EncoderBlock
from raspire.simulator.block_simulator import BlockSimulator
from raspire.simulator.networks.native_block import BlockNetwork, native_block_network
from raspire.simulator.weights import Array

BlockConstruction = Literal["long", "native"]

# What a run of explicit weights was measured to hold: bytes a weight, and bytes a slot and row.
_BYTES_A_WEIGHT = 110
_BYTES_A_SLOT = 24


@dataclass(frozen=True)
class BlockRunner:
    """A U for blocks of one shape and n rows: `run(block, rows, budget)`, and what it costs."""

    construction: BlockConstruction
    shape: BlockShape
    run: Callable[[EncoderBlock, Array, int], Array]
    attention_depth: int
    layers: int
    heads: tuple[int, ...]
    feed_forward: tuple[str, ...]
    sequence_length: int
    width: int | None = None
    nonzero_weights: int | None = None

    def facts(self) -> dict[str, Any]:
        """The cost, ready for JSON."""
        found: dict[str, Any] = {
            "construction": self.construction,
            "block": str(self.shape),
            "attention_depth": self.attention_depth,
            "layers": self.layers,
            "heads_per_layer": list(self.heads),
            "feed_forward": list(self.feed_forward),
            "sequence_length": self.sequence_length,
        }
        if self.width is not None:
            found |= {"width": self.width, "nonzero_weights": self.nonzero_weights}
        return found

    def __str__(self) -> str:
        heads = ", ".join(map(str, self.heads))
        text = (
            f"construction {self.construction}: attention depth {self.attention_depth}, "
            f"layers {self.layers}, heads per layer {heads}, N = {self.sequence_length:,}"
        )
        if self.width is None:
            return text
        return f"{text}, width {self.width:,}, {self.nonzero_weights:,} weights that are not zero"


class Runners:
    """The runners of one construction and shape, built when they are wanted."""

    def __init__(self, construction: BlockConstruction, shape: BlockShape) -> None:
        if construction not in get_args(BlockConstruction):
            raise RaspValueError(
                "no such construction for blocks",
                expected="one of " + ", ".join(get_args(BlockConstruction)),
                found=repr(construction),
            )
        self.construction, self.shape = construction, shape
        self._network: BlockNetwork | None = None
        self._known: dict[int, BlockRunner] = {}

    def __call__(self, n: int) -> BlockRunner:
        """The runner for n rows; `native` is one network for all of them."""
        if n not in self._known:
            build = _by_program if self.construction == "long" else self._by_weights
            self._known[n] = build(self.shape, n)
        return self._known[n]

    def _by_weights(self, shape: BlockShape, n: int) -> BlockRunner:
        if self._network is None:
            self._network = native_block_network(shape)
        network = self._network
        counted = network.cost
        needed = _BYTES_A_WEIGHT * counted.nonzeros + _BYTES_A_SLOT * counted.width * n

        def run(block: EncoderBlock, rows: Array, budget: int) -> Array:
            if needed > budget:
                raise BudgetError(
                    f"U as weights, n={n}, {shape} does not fit the memory budget",
                    expected=f"at most {budget:,} bytes",
                    found=f"about {needed:,} bytes for {counted.nonzeros:,} weights",
                    hint="a larger budget, or the construction long",
                )
            return network(block, rows)

        return BlockRunner(
            "native",
            shape,
            run,
            counted.attention_depth,
            counted.layers,
            counted.heads,
            tuple(sorted(counted.units)),
            network.tokens.count + n,
            counted.width,
            counted.nonzeros,
        )


def _by_program(shape: BlockShape, n: int) -> BlockRunner:
    simulator = BlockSimulator(n, shape)

    def run(block: EncoderBlock, rows: Array, budget: int) -> Array:
        return simulator(block, rows, budget=budget)

    counted = simulator.cost
    return BlockRunner(
        "long",
        shape,
        run,
        counted.attention_depth,
        counted.layers,
        counted.heads_per_layer,
        counted.feed_forward,
        simulator.sequence_length,
    )
