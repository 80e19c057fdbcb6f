"""From files of a pretrained model to an :class:`AttentionTarget`.

Names say where the tensors are, the configuration says how many heads share them; both are
checked against the shapes before anything is computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from raspire.errors import RaspNameError, RaspValueError, UnsupportedError
from raspire.simulator.config import ModelConfig, agree_on_heads
from raspire.simulator.families import ALIBI, BUCKETS
from raspire.simulator.naming import Family, GivenNames, LayerPlace, Mask, find_layer
from raspire.simulator.positions import Relative
from raspire.simulator.target import AttentionTarget, shared_heads
from raspire.simulator.weights import Array, Weights

_FREQUENCIES = r"rotary_emb\.inv_freq$"
_BUCKETS = r"(^|\.)relative_attention_bias\.weight$"
# Tensors beside a layer that change what it computes, and what they would make of it.
_CHANGES = {
    r"(^|\.)(q_norm\.weight$|q_layernorm\.)": "normalised queries and keys",
    r"attention\.self\.distance_embedding\.weight$": "relative positions",
    r"attention\.self\.query_global\.weight$": "windowed attention",
    r"attention\.self\.sr\.weight$": "keys reduced along the sequence",
    r"attention\.self\.key_conv_attn_layer\.": "convolutions beside its heads",
    r"attention\.self\.layout_query\.weight$": "a second stream of queries",
    r"\.weight_integer$": "quantised weights",
    _FREQUENCIES: "rotary positions",
    _BUCKETS: "relative position biases",
    r"(^|\.)relative_position_bias_table$": "relative position biases",
    r"(^|\.)bias_k$": "an extra learnt key",
    r"\.lora_A\.": "an adapter that is not merged (LoRA)",
}
_ABSENT_NOTE = (
    "no config.json beside the weights: positions, if the model turns queries and keys by them, "
    "are not known here and not applied"
)


def read_target(
    path: str | Path,
    layer: int | str = 0,
    heads: int | None = None,
    *,
    names: GivenNames | None = None,
    mask: Mask | None = None,
) -> AttentionTarget:
    """Read one attention layer of a weights file; see `AttentionTarget.from_safetensors`."""
    weights = Weights.open(path)
    config = ModelConfig.beside(Path(path))
    return _read(weights, config, layer, heads, names, mask)


def read_cross_target(
    path: str | Path,
    layer: int | str = 0,
    heads: int | None = None,
    *,
    names: GivenNames | None = None,
    padding: bool = False,
) -> AttentionTarget:
    """Read a layer of cross-attention; `padding` says that rows of its memory may be hidden."""
    weights = Weights.open(path)
    config = ModelConfig.beside(Path(path))
    mask: Mask = "padding" if padding else "none"
    found = _read(weights, config, layer, heads, names, mask, cross=True)
    return replace(found, rotary=None, window=None, notes=())


def read_state(
    arrays: Mapping[str, Any],
    layer: int | str = 0,
    heads: int | None = None,
    *,
    names: GivenNames | None = None,
    mask: Mask | None = None,
    config: ModelConfig | None = None,
) -> AttentionTarget:
    """Read the attention layer `layer` of named arrays in memory."""
    weights = Weights.from_arrays({name: np.asarray(value) for name, value in arrays.items()})
    return _read(weights, config, layer, heads, names, mask)


def _read(
    weights: Weights,
    config: ModelConfig | None,
    layer: int | str,
    heads: int | None,
    names: GivenNames | None,
    mask: Mask | None,
    cross: bool = False,
) -> AttentionTarget:
    place = find_layer(weights, layer, weights.origin, cross=cross) if names is None else None
    prefix = _prefix(names) if place is None else place.prefix
    config = config.part(prefix) if config is not None else None
    if config is not None:
        config.refuse_other_layers()
    _refuse_changes(weights, prefix, config)
    said = config.heads_of(prefix) if config is not None else None
    agreed = agree_on_heads(heads, said, config.origin if config else weights.origin)
    shared = config.shared_heads if config is not None else None
    if place is None:
        target = _read_given(weights, names, agreed, shared)
    else:
        target = _read_place(weights, place, agreed, shared)
        if config is not None:
            config.refuse_other_width(target.d)
    if config is not None and place is not None:
        target = replace(target, relative=_relative(weights, place, config, target.heads))
    return _with_facts(target, config, place, layer, mask, tuple(weights.reads))


def _relative(
    weights: Weights, place: LayerPlace, config: ModelConfig, heads: int
) -> Relative | None:
    """The biases by distance of a family that has them."""
    if config.model_type in ALIBI:
        return Relative.alibi(heads)
    if config.model_type not in BUCKETS:
        return None
    first = re.sub(r"(^|\.)(\d+)$", r"\g<1>0", place.prefix)  # the first block keeps the table
    table = weights.read(f"{first}.layer.0.SelfAttention.relative_attention_bias.weight")
    with config.reading():
        farthest = int(config.facts.get("relative_attention_max_distance", 128))
    return Relative.buckets(table, bidirectional="decoder." not in place.prefix, farthest=farthest)


def _with_facts(
    target: AttentionTarget,
    config: ModelConfig | None,
    place: LayerPlace | None,
    layer: int | str,
    mask: Mask | None,
    reads: tuple[Any, ...],
) -> AttentionTarget:
    """The target with its scale and mask, from the caller, the configuration or the family."""
    family_mask: Mask = place.family.mask if place is not None else "none"
    prefix = place.prefix if place is not None else ""
    notes = list(target.notes)
    scale, rotary, window = None, None, None
    if config is not None:
        number = place.number if place is not None else layer if isinstance(layer, int) else 0
        family_mask = config.mask(family_mask, prefix)
        notes += config.notes()
        with config.reading():
            scale = config.scale(target.d_k, number)
            rotary, window = config.rotary(target.d_k), config.window(number)
    elif place is not None and place.family.name == "LLaMA":
        notes.append(_ABSENT_NOTE)
    if mask is not None and mask != family_mask:
        notes.append(f"the mask is {mask} as asked; the model's own is {family_mask}")
    return replace(
        target,
        scale=scale,
        mask=mask or family_mask,
        reads=reads,
        notes=tuple(notes),
        rotary=rotary,
        window=window,
    )


def _refuse_changes(weights: Weights, prefix: str, config: ModelConfig | None) -> None:
    known = set()  # what the configuration speaks of too
    if config is not None and config.turned:
        known.add(_FREQUENCIES)
    if config is not None and config.model_type in BUCKETS:
        known.add(_BUCKETS)
    for name in weights:
        if prefix and not name.startswith(prefix + "."):
            continue
        for pattern, thing in _CHANGES.items():
            if pattern in known:
                continue
            if re.search(pattern, name):
                raise UnsupportedError(
                    f"the layer {prefix or name!r} has {thing}, which wait for a later version",
                    expected="dot-product attention over absolute positions",
                    found=f"the tensor {name}",
                    hint="without it it would be another layer, so nothing was run",
                )


def _prefix(names: GivenNames | None) -> str:
    """What the given names have in common, up to a dot: the layer they belong to."""
    if names is None:
        return ""
    parts = [n.split(".") for n in (names.query, names.key, names.value)]
    common = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return ".".join(common)


def _read_place(
    weights: Weights, place: LayerPlace, heads: int, shared: int | None
) -> AttentionTarget:
    family = place.family
    if family.packed:
        q, k, v = _packed(weights, place, heads)
    else:
        q, k, v = (
            _linear(weights, place.tensor(suffix), family.outputs_first)
            for suffix in (family.query, family.key, family.value)
        )
    output = place.tensor(family.output)
    if output + ".weight" not in weights:
        raise RaspNameError(
            f"the layer {place.prefix!r} has no output map",
            expected=f"the tensor {output}.weight",
            found="no such tensor",
            hint="name its tensors with --q --k --v to run it without one",
        )
    return _assemble((q, k, v), _linear(weights, output, family.outputs_first), heads, shared)


def _read_given(
    weights: Weights, names: GivenNames | None, heads: int, shared: int | None
) -> AttentionTarget:
    assert names is not None
    qkv = tuple(
        _linear(weights, _stem(name), True, given=True)
        for name in (names.query, names.key, names.value)
    )
    out = None if not names.output else _linear(weights, _stem(names.output), True, given=True)
    return _assemble(qkv, out, heads, shared)


def _stem(name: str) -> str:
    return name.removesuffix(".weight")


_Linear = tuple[Array, Array | None]


def _linear(weights: Weights, stem: str, outputs_first: bool, *, given: bool = False) -> _Linear:
    """A matrix that multiplies rows from the right, and its bias if the file has one.

    A name that a person gave is said as it was given where it is missing.
    """
    name = stem + ".weight"
    if name not in weights and (stem in weights or given):
        name = stem
    matrix = weights.read(name)
    if matrix.ndim != 2 or not matrix.size:
        raise RaspValueError(
            f"the tensor {name!r} is not a matrix",
            expected="two dimensions, none of them 0",
            found=f"shape {matrix.shape}",
        )
    bias = weights.read(stem + ".bias") if stem + ".bias" in weights else None
    return (matrix.T if outputs_first else matrix), bias


def _packed(weights: Weights, place: LayerPlace, heads: int) -> list[_Linear]:
    """Queries, keys and values that one tensor holds side by side, in that order.

    A family that groups them by head first is put into that order.
    """
    family: Family = place.family
    name = place.tensor(family.packed)
    matrix = weights.read(name)
    axis = 0 if family.outputs_first else 1
    d = matrix.shape[1 - axis] if matrix.ndim == 2 else 0
    if matrix.ndim != 2 or matrix.shape[axis] != 3 * d or not d:
        wanted = f"({3 * d}, {d})" if axis == 0 else f"({d}, {3 * d})"
        raise RaspValueError(
            f"the tensor {name!r} does not hold queries, keys and values of one width",
            expected=f"shape {wanted}",
            found=f"shape {matrix.shape}",
        )
    bias_name = place.tensor(family.packed_bias)
    bias = weights.read(bias_name) if bias_name in weights else None
    if bias is not None and bias.shape != (3 * d,):
        raise RaspValueError(
            f"the tensor {bias_name!r} does not fit its matrix",
            expected=f"shape ({3 * d},)",
            found=f"shape {bias.shape}",
        )
    if family.by_head:
        matrix = _by_kind(matrix, heads, name)
        bias = None if bias is None else _by_kind(bias, heads, bias_name)
    biases = np.split(bias, 3) if bias is not None else [None] * 3
    blocks = np.split(matrix, 3, axis=axis)
    return [(w.T if axis == 0 else w, b) for w, b in zip(blocks, biases, strict=True)]


def _by_kind(packed: Array, heads: int, name: str) -> Array:
    """Outputs in the order head, kind, coordinate, put into the order kind, head, coordinate."""
    if packed.shape[0] % (3 * heads):
        raise RaspValueError(
            f"{heads} heads do not divide the outputs of {name}",
            expected=f"a multiple of {3 * heads}",
            found=str(packed.shape[0]),
        )
    grouped = packed.reshape(heads, 3, -1, *packed.shape[1:])
    return np.ascontiguousarray(grouped.swapaxes(0, 1).reshape(packed.shape))


def _assemble(
    qkv: tuple[_Linear, ...] | list[_Linear], out: _Linear | None, heads: int, shared: int | None
) -> AttentionTarget:
    (w_q, b_q), key, value = qkv
    _divides(heads, w_q, "queries")
    groups = _groups(w_q, key[0], heads, shared)
    w_k, b_k = _shared(key, groups, heads, "keys")
    w_v, b_v = _shared(value, groups, heads, "values")
    _divides(heads, w_v, "values")
    w_o, b_o = out if out is not None else (None, None)
    target = AttentionTarget.from_arrays(
        w_q, w_k, w_v, w_o, heads=heads, b_q=b_q, b_k=b_k, b_v=b_v, b_o=b_o
    )
    if groups == heads:
        return target
    note = f"{heads} heads share {groups} heads of keys and values; U receives them repeated"
    return replace(target, notes=(note,))


def _groups(w_q: Array, w_k: Array, heads: int, shared: int | None) -> int:
    """How many heads of keys and values there are, from the configuration or the shapes."""
    width = w_q.shape[1] // heads
    found = int(w_k.shape[1] // width)
    if found * width != w_k.shape[1] or found > heads:
        found = heads  # the shapes do not fit; the target says so, by name
    if shared is not None and shared != found:
        raise RaspValueError(
            "the keys have another number of heads than the configuration says",
            expected=f"num_key_value_heads {shared}, so {shared * width} columns",
            found=f"{w_k.shape[1]} columns",
        )
    return found


def _shared(linear: _Linear, groups: int, heads: int, name: str) -> _Linear:
    matrix, bias = linear
    if groups == heads:
        return linear
    return (
        shared_heads(matrix, groups, heads, name),
        None if bias is None else shared_heads(bias, groups, heads, name),
    )


def _divides(heads: int, matrix: Array, what: str) -> None:
    d, columns = matrix.shape
    if columns % heads:
        raise RaspValueError(
            f"{heads} heads do not divide the {columns} columns of the {what} (d = {d})",
            expected=f"a divisor of {columns}",
            found=str(heads),
        )
