"""Encoder blocks as data: attention, feed-forward part, two norms, and the order of them.

The paper extends Theorem 9 to the whole encoder with its feed-forward part. A block is a target
like an attention layer: U is built for its shape alone and receives its numbers as input.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from raspire.errors import RaspValueError, UnsupportedError
from raspire.simulator.target import AttentionTarget, Shape
from raspire.simulator.weights import Array, check_finite

NormKind = Literal["layer", "rms"]
Order = Literal["post", "pre"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]

ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)
SPELLINGS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
"""Activations by the names that configurations give them."""


def activation(spelling: str) -> Activation:
    """The activation of that name in a configuration; others are refused by name.

    >>> activation("gelu_new")
    'gelu_tanh'
    """
    if spelling not in SPELLINGS:
        raise UnsupportedError(
            f"no activation {spelling!r}", expected="one of " + ", ".join(SPELLINGS)
        )
    return SPELLINGS[spelling]


@dataclass(frozen=True, eq=False)
class Norm:
    """A layer norm, or an RMS norm, of rows of d numbers: `weight` and `bias` are (d,)."""

    weight: Array
    bias: Array
    eps: float
    kind: NormKind = "layer"

    def __post_init__(self) -> None:
        for name in ("weight", "bias"):
            check_finite(getattr(self, name), f"the norm's {name}")
        if not (math.isfinite(self.eps) and self.eps > 0):
            raise RaspValueError("a norm's eps must be positive", found=repr(self.eps))


@dataclass(frozen=True, eq=False)
class FeedForward:
    """`f(X up + b_up) down + b_down`, or with a gate `f(X gate + b_gate) * (X up + b_up)` inside.

    `up`, `gate`: (d, hidden); `down`: (hidden, d); biases flat. SwiGLU is a gate with silu.
    """

    up: Array
    b_up: Array
    down: Array
    b_down: Array
    activation: Activation = "gelu"
    gate: Array | None = None
    b_gate: Array | None = None

    @property
    def hidden(self) -> int:
        """The number of hidden units."""
        return int(self.up.shape[1])

    def __post_init__(self) -> None:
        for name in ("up", "b_up", "down", "b_down", "gate", "b_gate"):
            array = getattr(self, name)
            if array is not None:
                check_finite(array, f"the feed-forward part's {name}")
        if self.activation not in ACTIVATIONS:
            raise RaspValueError(
                "no such activation",
                expected=", ".join(ACTIVATIONS),
                found=repr(self.activation),
            )


@dataclass(frozen=True)
class BlockShape:
    """All that U may know of a block: dimensions, activation, norms, and their order."""

    attention: Shape
    hidden: int
    activation: Activation
    gated: bool
    norm: NormKind
    order: Order

    def __str__(self) -> str:
        gate = "gated " if self.gated else ""
        return (
            f"{self.attention}, hidden={self.hidden}, {gate}{self.activation}, "
            f"{self.norm} norm, {self.order}-norm"
        )


@dataclass(frozen=True, eq=False)
class EncoderBlock:
    """One block. Post-norm: `y = norm1(x + T(x)); z = norm2(y + F(y))`, as in BERT.

    Pre-norm: `y = x + T(norm1(x)); z = y + F(norm2(y))`, as in GPT-2 and LLaMA.
    """

    attention: AttentionTarget
    feed_forward: FeedForward
    norm1: Norm
    norm2: Norm
    order: Order = "post"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        d, part = self.attention.d, self.feed_forward
        if self.attention.w_o is None:
            raise RaspValueError(
                "the attention of a block needs an output map",
                expected=f"w_o, shape ({self.attention.shape.merged}, {d})",
                found="none",
            )
        if self.norm1.kind != self.norm2.kind:
            raise RaspValueError(
                "the two norms of a block differ",
                expected="two layer norms or two RMS norms",
                found=f"{self.norm1.kind} and {self.norm2.kind}",
            )
        wanted: dict[str, tuple[Array | None, tuple[int, ...]]] = {
            "up": (part.up, (d, part.hidden)),
            "b_up": (part.b_up, (part.hidden,)),
            "down": (part.down, (part.hidden, d)),
            "b_down": (part.b_down, (d,)),
            "norm1.weight": (self.norm1.weight, (d,)),
            "norm1.bias": (self.norm1.bias, (d,)),
            "norm2.weight": (self.norm2.weight, (d,)),
            "norm2.bias": (self.norm2.bias, (d,)),
        }
        if part.gate is not None:
            wanted["gate"] = (part.gate, (d, part.hidden))
            wanted["b_gate"] = (part.b_gate, (part.hidden,))
        for name, (array, shape) in wanted.items():
            if array is None or array.shape != shape:
                raise RaspValueError(
                    f"{name} does not fit the block (d={d}, hidden={part.hidden})",
                    expected=f"shape {shape}",
                    found="none" if array is None else f"shape {array.shape}",
                )

    @property
    def shape(self) -> BlockShape:
        """What a simulator must be built for."""
        part = self.feed_forward
        return BlockShape(
            self.attention.shape,
            part.hidden,
            part.activation,
            part.gate is not None,
            self.norm1.kind,
            self.order,
        )


def no_bias(size: int) -> Array:
    """The bias of a part that has none."""
    return np.zeros(size)
