"""Read and write blocks of a looped transformer: a scratchpad token that holds a pointer.

Reading copies the vector at the pointer into the scratchpad; writing replaces the vector at the
pointer by the scratchpad's. A write needs no second head: the token that is written attends to
itself and to the scratchpad equally, every other token to itself alone, so twice the mean less the
old vector is the new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from raspire.paper.looped_blocks import (
    Array,
    Draft,
    LoopedNetwork,
    bits_for,
    code,
    erase,
    move,
)
from raspire.transformer import LayerBuilder, Space, beside, read, write


@dataclass(frozen=True, eq=False)
class MemoryBlock:
    """One layer, one head, width O(log n + d), n + 1 tokens: token 0 is the scratchpad."""

    kind: Literal["read", "write"]
    n: int
    network: LoopedNetwork

    @classmethod
    def build(
        cls, kind: Literal["read", "write"], n: int, d: int, temperature: float = 20.0
    ) -> MemoryBlock:
        """The block for a memory of n vectors of d numbers."""
        draft = Draft(f"{kind}, {n} vectors of {d}", temperature)
        tokens = draft.tokens(n + 1)
        bits = 1 + bits_for(n)
        vector, buffer = draft.b.space("vector", d), draft.b.space("buffer", d)
        pointer, own = draft.b.space("pointer", bits), draft.b.space("code", bits)
        for place in tokens[1:]:
            draft.set(place, own, code(place - 1, bits - 1))
        draft.b.values(beside(write(vector), write(pointer)))
        layer = draft.b.layer()
        if kind == "read":
            _read(draft, layer, vector, buffer, pointer, own)
        else:
            _write(draft, layer, vector, buffer, pointer, own)
        model = draft.finish(read(vector))
        return cls(kind, n, LoopedNetwork(kind, model, 1, 1))

    def __call__(
        self, memory: ArrayLike, at: int, scratch: ArrayLike, dtype: Any = np.float64
    ) -> tuple[Array, Array]:
        """The memory (n, d) and the scratchpad vector (d,) after the block."""
        rows = np.asarray(memory, dtype=np.float64)
        bits = bits_for(self.n)
        idle = np.zeros(1 + bits)
        inputs: dict[int, Any] = {0: np.concatenate([np.asarray(scratch), code(at, bits)])}
        inputs |= {i + 1: np.concatenate([row, idle]) for i, row in enumerate(rows)}
        out = self.network.run(inputs, dtype)
        return out[1:], out[0]


def _read(
    draft: Draft, layer: LayerBuilder, vector: Space, buffer: Space, pointer: Space, own: Space
) -> None:
    draft.head(layer, "read", read(pointer), read(own), read(vector), write(buffer))
    memory = draft.outside("not scratchpad", range(1))
    move(layer, "take", read(buffer) - read(vector), write(vector), read(memory))
    erase(layer, buffer)


def _write(
    draft: Draft, layer: LayerBuilder, vector: Space, buffer: Space, pointer: Space, own: Space
) -> None:
    key = read(own) + read(pointer)
    draft.head(layer, "write", read(own), key, read(vector), write(buffer))
    scratch = draft.outside("not memory", range(1, len(draft.rows)))
    change = 2 * read(buffer) - 2 * read(vector)
    move(layer, "replace", change, write(vector), read(scratch))
    erase(layer, buffer)
