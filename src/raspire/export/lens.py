"""A transformer in TransformerLens 4: a ``TransformerBridge`` of its native model, float64.

The native model has one softmax scale, one mask for all heads and ReLU units. A saturated
transformer of ``relu`` and ``linear`` units fits exactly (a linear unit is two ReLU units); what
does not fit is refused by name. Padding is passed by the caller:
``bridge(ids, attention_mask=(ids != pad).long())``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.model_bridge import TransformerBridge

from raspire.errors import UnsupportedError
from raspire.export.config import config
from raspire.transformer import Layer, Transformer
from raspire.transformer.model import BOS_TYPE, PAD_TYPE, TOKEN_TYPE

Weights = dict[str, NDArray[np.float64]]

_SCALE = 2.0  # what the native model divides scores by; a power of two rounds nothing


def to_lens(model: Transformer) -> TransformerBridge:
    """The bridge; ``bridge.raspire`` is the description, token maps included.

    Raises UnsupportedError for average-hard heads (saturate first), for masks that differ between
    heads, for key types, for real-valued inputs, and for other families than relu and linear.
    """
    causal = _refuse_what_does_not_fit(model)
    sizes = _sizes(model)
    embedding = model.embedding
    assert embedding.tokens is not None
    settings = TransformerBridgeConfig(
        d_model=model.width,
        d_head=sizes["d_head"],
        n_heads=sizes["n_heads"],
        n_layers=len(model.layers),
        n_ctx=sizes["n_ctx"],
        d_mlp=sizes["d_mlp"],
        d_vocab=len(embedding.vocabulary),
        d_vocab_out=len(model.unembedding.labels),
        act_fn="relu",
        normalization_type=None,
        attention_dir="causal" if causal else "bidirectional",
        attn_scale=_SCALE,
        init_weights=False,
    )
    bridge = TransformerBridge.boot_native(settings, dtype=torch.float64)
    _load(bridge, _weights(model, sizes))
    bridge.raspire = config(model, "float64")
    return bridge


def _refuse_what_does_not_fit(model: Transformer) -> bool:
    """Whether all heads are causal; an error for what the native model does not have."""
    if model.embedding.tokens is None:
        raise UnsupportedError("TransformerLens takes token ids; this model takes real values")
    causal = {head.mask.causal for _, _, head in model.heads()}
    if len(causal) > 1:
        raise UnsupportedError("TransformerLens has one mask for all heads; here some are causal")
    given = set(model.embedding.types or (TOKEN_TYPE,))
    present = given | ({BOS_TYPE} if model.embedding.bos is not None else set())
    for i, j, head in model.heads():
        where = f"layer {i + 1} head {j} ({head.name})"
        if head.kind != "softmax":
            raise UnsupportedError(
                f"{where} is average-hard; TransformerLens has softmax attention",
                hint="saturated(model) is the same network on softmax attention",
            )
        if head.mask.keys is not None and present - {PAD_TYPE} - head.mask.keys:
            raise UnsupportedError(f"{where} sees some types of positions only")
    for i, layer in enumerate(model.layers):
        for units in layer.units:
            if units.family not in ("relu", "linear"):
                raise UnsupportedError(
                    f"layer {i + 1} has units of family {units.family}",
                    expected="relu or linear, which the native model has",
                    hint="the torch and ONNX exports have every family",
                )
    return causal == {True}


def _sizes(model: Transformer) -> dict[str, int]:
    heads = [head for _, _, head in model.heads()]
    dims = [m for h in heads for m in (h.query.shape[1], h.value.shape[1])]
    positions = model.embedding.positions
    return {
        "d_head": max([2, *dims]),
        "n_heads": max([1, *(len(layer.heads) for layer in model.layers)]),
        "d_mlp": max([1, *(_hidden(layer) for layer in model.layers)]),
        "n_ctx": 1024 if positions is None else int(positions.shape[0]),
    }


def _hidden(layer: Layer) -> int:
    return sum(units.count * (2 if units.family == "linear" else 1) for units in layer.units)


def _weights(model: Transformer, sizes: dict[str, int]) -> Weights:
    embedding, width = model.embedding, model.width
    assert embedding.tokens is not None
    positions = np.zeros((sizes["n_ctx"], width))
    if embedding.positions is not None:
        positions = embedding.positions.toarray()
    weights = {
        "tok_embed.weight": embedding.tokens.toarray(),
        "pos.weight": positions,
        "head.weight": model.unembedding.matrix.toarray().T,
    }
    for i, layer in enumerate(model.layers):
        weights |= {f"layers.{i}.attn.{k}": v for k, v in _attention(layer, width, sizes)}
        weights |= {f"layers.{i}.mlp.{k}": v for k, v in _feed_forward(layer, width, sizes)}
    return weights


def _attention(
    layer: Layer, width: int, sizes: dict[str, int]
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    d_head, total = sizes["d_head"], sizes["d_head"] * sizes["n_heads"]
    matrices = {name: np.zeros((total, width)) for name in "qkvo"}
    for j, head in enumerate(layer.heads):
        dk, dv, start = head.query.shape[1], head.value.shape[1], j * d_head
        matrices["q"][start : start + dk] = head.query.toarray().T * (head.scale * _SCALE)
        matrices["k"][start : start + dk] = head.key.toarray().T
        matrices["v"][start : start + dv] = head.value.toarray().T
        matrices["o"][start : start + dv] = head.output.toarray()
    for name in "qkv":
        yield f"{name}.weight", matrices[name]
        yield f"{name}.bias", np.zeros(total)
    yield "o.weight", matrices["o"].T
    yield "o.bias", np.zeros(width)


def _feed_forward(
    layer: Layer, width: int, sizes: dict[str, int]
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Linear units as pairs of ReLU units: ``x = relu(x) - relu(-x)``."""
    first, bias, output = [np.zeros((0, width))], [np.zeros(0)], [np.zeros((0, width))]
    for units in layer.units:
        for sign in (1.0, -1.0) if units.family == "linear" else (1.0,):
            first.append(sign * units.first.toarray().T)
            bias.append(sign * units.first_bias)
            output.append(sign * units.output.toarray())
    rest = sizes["d_mlp"] - _hidden(layer)
    yield "fc_in.weight", np.vstack([*first, np.zeros((rest, width))])
    yield "fc_in.bias", np.concatenate([*bias, np.zeros(rest)])
    yield "fc_out.weight", np.vstack([*output, np.zeros((rest, width))]).T
    yield "fc_out.bias", np.zeros(width)


def _load(bridge: Any, weights: Weights) -> None:
    parameters = {
        name.replace("_original_component.", ""): parameter
        for name, parameter in bridge.original_model.named_parameters()
    }
    assert set(parameters) == set(weights), "the native model has other parameters than expected"
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(weights[name])))
