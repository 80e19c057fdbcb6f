"""U for other attention mechanisms: cross-attention, Linformer, linear attention.

Each is built for a shape alone and receives ⟨T, X⟩ with whatever else the mechanism reads. Causal
and padding masks, windows, biases by distance and rotary positions are part of U itself.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from raspire.errors import RaspValueError
from raspire.evaluate import BUDGET
from raspire.program.facts import Cost, cost
from raspire.program.nodes import SOp
from raspire.simulator.construction import Construction, Softmax
from raspire.simulator.inputs import checked_input, checked_padding
from raspire.simulator.mechanism_layers import (
    FeatureMap,
    cross_long,
    linear_long,
    linformer_long,
)
from raspire.simulator.sequence import computed, written
from raspire.simulator.target import AttentionTarget, Shape
from raspire.simulator.universal import UniversalSimulator
from raspire.simulator.weights import Array


class Mechanism:
    """What the simulators of all mechanisms share: a construction for one shape."""

    def __init__(self, n: int, shape: Shape, construction: Construction) -> None:
        self.n, self.shape, self.construction = n, shape, construction

    @property
    def program(self) -> SOp:
        """U itself; it depends on the shape alone."""
        return self.construction.program

    @property
    def sequence_length(self) -> int:
        """N, the length of the input with its padding."""
        return self.construction.length

    @cached_property
    def cost(self) -> Cost:
        """Depth, layers and heads, counted on the program."""
        return cost(self.program)

    def explain(self) -> str:
        """What U is, where its input is written, and the plan of its evaluation."""
        from raspire.simulator.explanation import explain_construction

        return explain_construction(
            self.construction, f"{type(self).__name__}, n={self.n}, {self.shape}", self.cost
        )

    def _check(self, target: AttentionTarget, rows: Array, n: int) -> None:
        if target.shape != self.shape or len(rows) != n:
            raise RaspValueError(
                "U does not take this target",
                expected=f"{n} rows, {self.shape}",
                found=f"{len(rows)} rows, {target.shape}",
            )

    def _run(self, contents: dict[str, ArrayLike], budget: int) -> Array:
        """The result as rows."""
        found = computed(self.construction, written(self.construction, contents), budget=budget)
        if found.ndim == 3:  # (heads, n, d_v), without output map
            found = found.transpose(1, 0, 2)
        return np.ascontiguousarray(found.reshape(self.n, -1))


def contents_of(target: AttentionTarget, rows: Array) -> dict[str, ArrayLike]:
    """X, W and W_O as U reads them, without a mask."""
    alone = replace(target, mask="none")
    u = UniversalSimulator.for_target(alone, len(rows))
    sequence = u.encode(alone, rows)
    return {
        name: sequence[place.base : place.end].reshape(place.shape)
        for name, place in u.construction.inputs.items()
    }


class CrossAttention(Mechanism):
    """n rows attend to the rows of a memory, as a decoder does to an encoder's output.

    >>> t = AttentionTarget.from_arrays(np.zeros((1, 1)), np.zeros((1, 1)), np.eye(1), heads=1)
    >>> u = CrossAttention(1, 2, t.shape)
    >>> u(t, np.array([[5.0]]), np.array([[1.0], [3.0]])).tolist()
    [[2.0]]
    """

    def __init__(self, n: int, memory: int, shape: Shape, softmax: Softmax = "stable") -> None:
        super().__init__(n, shape, cross_long(n, memory, shape, softmax))
        self.memory = memory

    def __call__(
        self,
        target: AttentionTarget,
        x: ArrayLike,
        memory: ArrayLike,
        padding: ArrayLike | None = None,
        *,
        budget: int = BUDGET,
    ) -> Array:
        """The result, shape (n, d); `padding` tells which rows of the memory are seen."""
        rows, others = checked_input(x, target.d), checked_input(memory, target.d)
        self._check(target, rows, self.n)
        self._check(target, others, self.memory)
        contents = contents_of(target, np.vstack([rows, others]))
        if self.shape.mask == "padding":
            flags = np.ones(self.memory) if padding is None else padding
            contents["seen"] = checked_padding(flags, self.memory)
        elif padding is not None:
            raise RaspValueError(
                "key padding was given for a target without that mask",
                expected="a target with mask 'padding'",
                found=f"mask {target.mask!r}",
            )
        return self._run(contents, budget)


class Linformer(Mechanism):
    """Keys and values reduced along the sequence to `reduced` rows (Linformer)."""

    def __init__(self, n: int, reduced: int, shape: Shape, softmax: Softmax = "stable") -> None:
        super().__init__(n, shape, linformer_long(n, reduced, shape, softmax))
        self.reduced = reduced

    def __call__(
        self,
        target: AttentionTarget,
        x: ArrayLike,
        keys: ArrayLike,
        values: ArrayLike,
        *,
        budget: int = BUDGET,
    ) -> Array:
        """The result; the maps are (reduced, n), shared by all heads, or (heads, reduced, n)."""
        rows = checked_input(x, target.d)
        self._check(target, rows, self.n)
        size = (self.shape.heads, self.reduced, self.n)
        maps = [np.asarray(array, dtype=np.float64) for array in (keys, values)]
        for array in maps:
            if array.shape not in (size, size[1:]):
                raise RaspValueError(
                    "the map along the sequence does not fit",
                    expected=f"shape {size[1:]} or {size}",
                    found=f"shape {array.shape}",
                )
        reduce = np.stack([np.broadcast_to(array, size) for array in maps])
        return self._run({**contents_of(target, rows), "reduce": reduce}, budget)


class LinearAttention(Mechanism):
    """Attention by a feature map instead of a softmax; the target's scale has no part in it.

    >>> t = AttentionTarget.from_arrays(np.zeros((1, 1)), np.zeros((1, 1)), np.eye(1), heads=1)
    >>> LinearAttention(2, t.shape)(t, np.array([[1.0], [3.0]])).tolist()
    [[2.0], [2.0]]
    """

    def __init__(self, n: int, shape: Shape, feature: FeatureMap = "elu") -> None:
        super().__init__(n, shape, linear_long(n, shape, feature))
        self.feature: FeatureMap = feature

    def __call__(
        self,
        target: AttentionTarget,
        x: ArrayLike,
        padding: ArrayLike | None = None,
        *,
        budget: int = BUDGET,
    ) -> Array:
        """The result, shape (n, d), or (n, heads * d_v) for a target without output map."""
        rows = checked_input(x, target.d)
        self._check(target, rows, self.n)
        contents = contents_of(replace(target, scale=None), rows)
        if self.shape.mask == "padding":
            flags = np.ones(self.n) if padding is None else padding
            contents["seen"] = checked_padding(flags, self.n)
        return self._run(contents, budget)
