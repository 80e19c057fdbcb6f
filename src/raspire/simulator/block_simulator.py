"""U for encoder blocks: built from a block's shape, given ⟨block, X⟩ as its input."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from raspire.errors import RaspValueError
from raspire.evaluate import BUDGET
from raspire.program.facts import Cost, cost
from raspire.program.nodes import SOp
from raspire.simulator.block import BlockShape, EncoderBlock, Norm
from raspire.simulator.block_layers import block_long
from raspire.simulator.construction import Construction, Softmax
from raspire.simulator.inputs import checked_input
from raspire.simulator.sequence import computed, with_bias, written
from raspire.simulator.universal import UniversalSimulator
from raspire.simulator.weights import Array

if TYPE_CHECKING:
    from raspire.compile import Compiled


class BlockSimulator:
    """One fixed program for every encoder block of one shape and n rows (Theorem 9, extended).

    The softmax is the stable one, unless asked otherwise: it needs no bound on the scores.
    """

    def __init__(self, n: int, shape: BlockShape, softmax: Softmax = "stable") -> None:
        self.n, self.shape = n, shape
        self.construction: Construction = block_long(n, shape, softmax)

    @classmethod
    def for_block(cls, block: EncoderBlock, n: int, softmax: Softmax = "stable") -> BlockSimulator:
        """The simulator of the block's shape, for sequences of n rows."""
        return cls(n, block.shape, softmax)

    @property
    def program(self) -> SOp:
        """U itself; it depends on the shape alone."""
        return self.construction.program

    @property
    def sequence_length(self) -> int:
        """N, the length of ⟨block, X⟩ with its padding."""
        return self.construction.length

    @cached_property
    def cost(self) -> Cost:
        """Depth, layers and heads, counted on the program."""
        return cost(self.program)

    def explain(self) -> str:
        """What U is, where its input is written, and the plan of its evaluation."""
        from raspire.simulator.explanation import explain_construction

        return explain_construction(
            self.construction, f"U for blocks, n={self.n}, {self.shape}", self.cost
        )

    def encode(self, block: EncoderBlock, x: ArrayLike, padding: ArrayLike | None = None) -> Array:
        """⟨block, X⟩ as one sequence of N numbers.

        Raises RaspValueError where the block or X do not fit.
        """
        rows = checked_input(x, block.attention.d)
        if block.shape != self.shape or len(rows) != self.n:
            raise RaspValueError(
                "U for blocks does not take this block",
                expected=f"n={self.n}, {self.shape}",
                found=f"n={len(rows)}, {block.shape}",
            )
        contents = self._attention(block, rows, padding)
        part = block.feed_forward
        contents["norm1"], contents["norm2"] = _norm(block.norm1), _norm(block.norm2)
        contents["up"] = with_bias(part.up, part.b_up)
        contents["down"] = with_bias(part.down, part.b_down)
        if part.gate is not None and part.b_gate is not None:
            contents["gate"] = with_bias(part.gate, part.b_gate)
        return written(self.construction, contents)

    def _attention(
        self, block: EncoderBlock, rows: Array, padding: ArrayLike | None
    ) -> dict[str, ArrayLike]:
        """The blocks of the attention layer, as U for attention alone writes them."""
        alone = UniversalSimulator.for_target(block.attention, self.n, softmax="stable")
        sequence = alone.encode(block.attention, rows, padding)
        return {
            name: sequence[place.base : place.end].reshape(place.shape)
            for name, place in alone.construction.inputs.items()
        }

    def compile(self, **options: Any) -> Compiled:
        """U for blocks as explicit weights, by the compiler; `options` are those of `compile`.

        The network maps ⟨block, X⟩ to N values, of which `read` takes the block's output.
        """
        from raspire.compile import REALS, compile

        options = {"name": "U for blocks", **options}
        return compile(self.program, alphabet=REALS, max_length=self.sequence_length, **options)

    def read(self, values: ArrayLike) -> Array:
        """The block's output from the values of U at all N positions."""
        place = self.construction.parts["result"].place
        found = np.asarray(values, dtype=np.float64)[np.asarray(place.positions())]
        return np.asarray(found.reshape(place.shape))

    def __call__(
        self,
        block: EncoderBlock,
        x: ArrayLike,
        padding: ArrayLike | None = None,
        *,
        budget: int = BUDGET,
    ) -> Array:
        """The block's output, shape (n, d)."""
        sequence = self.encode(block, x, padding)
        return computed(self.construction, sequence, budget=budget)


def _norm(norm: Norm) -> Array:
    return np.stack([norm.weight, norm.bias, np.full(norm.weight.shape, norm.eps)])
