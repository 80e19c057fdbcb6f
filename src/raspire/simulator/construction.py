"""What a construction of U is: a program, where ⟨T, X⟩ is written, where T(X) is read.

Everything here follows from the shape (n, d, heads, d_k, d_v, output map, mask); no number of a
target is known when a program is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from raspire.library.layout import Block, Face
from raspire.program.nodes import SOp
from raspire.simulator.target import Shape

Softmax = Literal["plain", "stable"]
SOFTMAXES: tuple[Softmax, ...] = ("plain", "stable")


@dataclass(frozen=True)
class Part:
    """An intermediate result: an s-op, and the positions that hold it in row-major order."""

    sop: SOp
    place: Block | Face

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions of the result."""
        return self.place.shape


@dataclass(frozen=True)
class Construction:
    """One way of building U for one shape.

    `parts` has `projections` (n, columns: queries, keys, values, head after head), `unscaled`
    (heads, n, n: the scores before the factor 1/sqrt(d_k)), `heads` (the results of all heads)
    and `result`, the part that is read.
    """

    name: str
    n: int
    shape: Shape
    softmax: Softmax
    inputs: Mapping[str, Block]
    length: int
    parts: Mapping[str, Part]

    @property
    def program(self) -> SOp:
        """The whole of U."""
        return self.parts["result"].sop


Builder = Callable[[int, Shape, Softmax], Construction]


@dataclass(frozen=True)
class Columns:
    """Which column of [W_Q | W_K | W_V] belongs to coordinate `a` of head `t`."""

    shape: Shape

    def query(self, t: int | SOp, a: int | SOp) -> int | SOp:
        """A column of the queries."""
        head = t * self.shape.d_k
        return head if isinstance(a, int) and a == 0 else head + a

    def key(self, t: int | SOp, a: int | SOp) -> int | SOp:
        """A column of the keys."""
        return self.query(t, a) + self.shape.heads * self.shape.d_k

    def value(self, merged: int | SOp) -> int | SOp:
        """A column of the values, by its number among all heads' values."""
        return merged + 2 * self.shape.heads * self.shape.d_k


def input_blocks(n: int, shape: Shape) -> dict[str, Block]:
    """Where ⟨T, X⟩ is written: X with its column of ones, W with its row of biases, W_O likewise.

    A key padding is n more tokens, 1 for a key that is seen and 0 for one that is not.
    """
    return stack(0, input_shapes(n, shape))


def input_shapes(n: int, shape: Shape) -> dict[str, tuple[int, ...]]:
    """The sizes of the blocks of ⟨T, X⟩, in their order."""
    shapes: dict[str, tuple[int, ...]] = {
        "X": (n, shape.inputs),
        "W": (shape.inputs, shape.columns),
    }
    if shape.output:
        shapes["WO"] = (shape.merged + 1, shape.d)
    if shape.mask == "padding":
        shapes["seen"] = (n,)
    if shape.rotary:
        shapes["turns"] = (n, shape.d_k, 2)  # a cosine, a signed sine
    if shape.relative:
        shapes["relative"] = (shape.heads, 2 * n - 1)  # query position minus key position
    return shapes


def stack(base: int, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Block]:
    """Blocks one after the other from a base."""
    placed: dict[str, Block] = {}
    for name, sizes in shapes.items():
        placed[name] = Block(base, sizes)
        base = placed[name].end
    return placed
