"""U runs a layer of U, which runs a target.

A layer of an explicit network of U is an attention layer with weights, so it is itself a target.
Its average-hard heads run as saturated softmax (constructions, section 2); heads narrower than
others are padded with zeros, and head dimensions to a power of 4, so that 1/sqrt(d_k) rounds
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from raspire.errors import UnsupportedError
from raspire.simulator.direct import attention
from raspire.simulator.networks import Network
from raspire.simulator.target import AttentionTarget
from raspire.simulator.universal import UniversalSimulator
from raspire.simulator.weights import Array
from raspire.transformer import Head, Layer, Transformer, Unembedding, forward
from raspire.transformer.forward import position_types
from raspire.transformer.model import Embedding

Simulate = Callable[[AttentionTarget, Array, Array], Array]
"""A universal simulator: target, X and key padding in, T(X) out."""


@dataclass(frozen=True)
class SelfSimulation:
    """Three results for one target: directly, by a network of U, and by U running that network.

    `differences[k]` is how far the stream after the attention of layer k, as U computed it, is
    from the network's own at most.
    """

    direct: Array
    network: Array
    simulated: Array
    differences: tuple[float, ...]

    @property
    def max_abs_error(self) -> float:
        """The largest difference between any two of the three results."""
        pairs = (
            (self.direct, self.network),
            (self.direct, self.simulated),
            (self.network, self.simulated),
        )
        return max(float(np.abs(a - b).max()) for a, b in pairs)


def self_simulate(
    network: Network, target: AttentionTarget, x: ArrayLike, simulate: Simulate | None = None
) -> SelfSimulation:
    """Run a target by a network of U, and the attention of each of its layers by U once more.

    The feed-forward parts between the layers are the network's own. `simulate` is the outer U,
    the program `long` if not given.

    >>> from raspire.simulator.networks import native_network
    >>> t = AttentionTarget.from_arrays(np.eye(1), np.eye(1), np.eye(1), heads=1)
    >>> run = self_simulate(native_network(t.shape), t, np.array([[0.5], [1.0]]))
    >>> run.max_abs_error < 1e-12, len(run.differences)
    (True, 2)
    """
    outer = by_program if simulate is None else simulate
    model = network.saturated().model
    sequence = network.encode(target, x, None)[None]
    record: dict[str, Array] = {}
    forward(model, sequence, record=record)
    names, types = position_types(model.embedding, sequence)
    kinds = [names[kind] for kind in types[0]]
    stream, differences = record["hook_embed"][0], []
    for number, layer in enumerate(model.layers):
        if layer.heads:
            inner, seen = layer_target(layer, kinds)
            stream = stream + outer(inner, stream, seen)
        expected = record[f"blocks.{number}.hook_resid_mid"][0]
        differences.append(float(np.abs(stream - expected).max()))
        stream = fed_forward(layer, stream)
    n = len(np.asarray(x))
    values = stream @ model.unembedding.matrix
    simulated = network.decode(np.asarray(values)[network.sorted_positions(n)], n)
    return SelfSimulation(attention(target, x), network(target, x), simulated, tuple(differences))


def inner_layers(network: Network, n: int) -> list[tuple[AttentionTarget, Array]]:
    """The attention of every layer of a network of U as a target, and what its keys are."""
    shape, model = network.shape, network.saturated().model
    zeros = AttentionTarget.from_arrays(
        np.zeros((shape.heads, shape.d, shape.d_k)),
        np.zeros((shape.heads, shape.d, shape.d_k)),
        np.zeros((shape.heads, shape.d, shape.d_v)),
        np.zeros((shape.merged, shape.d)) if shape.output else None,
        mask=shape.mask,
    )
    sequence = network.encode(zeros, np.zeros((n, shape.d)), None)[None]
    names, types = position_types(model.embedding, sequence)
    kinds = [names[kind] for kind in types[0]]
    return [layer_target(layer, kinds) for layer in model.layers if layer.heads]


def by_program(target: AttentionTarget, x: Array, seen: Array) -> Array:
    """The outer U as the program `long` with the stable softmax."""
    return UniversalSimulator.for_target(target, len(x), "long", "stable")(target, x, seen)


def layer_target(layer: Layer, types: list[str]) -> tuple[AttentionTarget, Array]:
    """The attention of one layer as a target, and which of its positions are seen.

    Raises UnsupportedError for heads that are not softmax heads, and for heads whose masks differ
    or are causal.
    """
    masks = {head.mask for head in layer.heads}
    if len(masks) != 1 or any(mask.causal for mask in masks):
        raise UnsupportedError(
            "the heads of the layer do not share one mask of keys",
            expected="one set of key types for all heads, none of them causal",
            found="; ".join(sorted(map(str, masks))),
        )
    hard = [head.name for head in layer.heads if head.kind != "softmax"]
    if hard:
        raise UnsupportedError(
            "the layer has heads that are average-hard",
            expected="softmax heads; `saturated` makes them so",
            found=", ".join(hard),
        )
    keys = next(iter(masks)).keys
    seen = np.array([keys is None or kind in keys for kind in types], dtype=np.float64)
    d_k = _power_of_four(max(head.query.shape[1] for head in layer.heads))
    d_v = max(head.value.shape[1] for head in layer.heads)
    target = AttentionTarget.from_arrays(
        np.stack([_grown(head.query * head.scale, d_k) for head in layer.heads]),
        np.stack([_grown(head.key, d_k) for head in layer.heads]),
        np.stack([_grown(head.value, d_v) for head in layer.heads]),
        np.vstack([_output(head, d_v) for head in layer.heads]),
        scale=1.0,
        mask="padding",
    )
    return target, seen


def fed_forward(layer: Layer, stream: Array) -> Array:
    """The stream after the layer's feed-forward part, by the one forward pass."""
    width = stream.shape[1]
    eye = sparse.eye_array(width, format="csr")
    read = Unembedding(eye.tocsc(), "numeric", tuple(range(width)))
    model = Transformer("", width, Embedding(values=eye), (Layer((), layer.units),), read)
    return np.asarray(forward(model, stream[None])[0])


def _power_of_four(size: int) -> int:
    width = 1
    while width < size:
        width *= 4
    return width


def _grown(matrix: Any, columns: int) -> Array:
    dense = np.asarray(matrix.toarray(), dtype=np.float64)
    return np.pad(dense, ((0, 0), (0, columns - dense.shape[1])))


def _output(head: Head, d_v: int) -> Array:
    dense = np.asarray(head.output.toarray(), dtype=np.float64)
    return np.pad(dense, ((0, d_v - dense.shape[0]), (0, 0)))
