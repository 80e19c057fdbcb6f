"""From files of a pretrained model to an :class:`EncoderBlock`.

A naming is one record: where the norms and the matrices of the feed-forward part are, beside an
attention layer that the reader of targets found. Families that are not known to have such blocks
are refused by name: a block with another order or another norm is another block.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from raspire.errors import RaspLoadError, UnsupportedError
from raspire.simulator.block import (
    EncoderBlock,
    FeedForward,
    Norm,
    NormKind,
    Order,
    activation,
)
from raspire.simulator.config import ModelConfig
from raspire.simulator.naming import Mask, find_layer
from raspire.simulator.reader import read_state, read_target
from raspire.simulator.target import AttentionTarget
from raspire.simulator.weights import Array, Weights


@dataclass(frozen=True)
class BlockNames:
    """The names of one family's tensors below the name of a block.

    `families` are the `model_type`s whose blocks are of this form; `attention` is what the name
    of the attention layer adds to the name of the block; `eps` and `activation` are what holds
    where the configuration is silent.
    """

    families: tuple[str, ...]
    norm1: str
    norm2: str
    up: str
    down: str
    order: Order
    gate: str = ""
    kind: NormKind = "layer"
    attention: str = ""
    outputs_first: bool = True
    eps: float = 1e-12
    activation: str = "gelu"


BERT = BlockNames(
    ("bert", "roberta", "xlm-roberta", "camembert", "electra"),
    norm1="attention.output.LayerNorm",
    norm2="output.LayerNorm",
    up="intermediate.dense",
    down="output.dense",
    order="post",
)
DISTILBERT = BlockNames(
    ("distilbert",),
    norm1="sa_layer_norm",
    norm2="output_layer_norm",
    up="ffn.lin1",
    down="ffn.lin2",
    order="post",
)
VIT = BlockNames(
    ("vit", "deit"),
    norm1="layernorm_before",
    norm2="layernorm_after",
    up="intermediate.dense",
    down="output.dense",
    order="pre",
)
GPT2 = BlockNames(
    ("gpt2",),
    norm1="ln_1",
    norm2="ln_2",
    up="mlp.c_fc",
    down="mlp.c_proj",
    order="pre",
    outputs_first=False,
    eps=1e-5,
    activation="gelu_new",
)
LLAMA = BlockNames(
    ("llama", "mistral", "qwen2"),
    norm1="input_layernorm",
    norm2="post_attention_layernorm",
    up="mlp.up_proj",
    gate="mlp.gate_proj",
    down="mlp.down_proj",
    order="pre",
    kind="rms",
    attention="self_attn",
    eps=1e-6,
    activation="silu",
)
T5 = BlockNames(
    ("t5", "mt5"),
    norm1="layer.0.layer_norm",
    norm2="layer.1.layer_norm",
    up="layer.1.DenseReluDense.wi",
    down="layer.1.DenseReluDense.wo",
    order="pre",
    kind="rms",
    eps=1e-6,
    activation="relu",
)
T5_GATED = replace(
    T5,
    up="layer.1.DenseReluDense.wi_1",
    gate="layer.1.DenseReluDense.wi_0",
    activation="gelu_new",
)
BART = BlockNames(
    ("bart",),
    norm1="self_attn_layer_norm",
    norm2="final_layer_norm",
    up="fc1",
    down="fc2",
    order="post",
    attention="self_attn",
    eps=1e-5,
)
TORCH = BlockNames(
    (),
    norm1="norm1",
    norm2="norm2",
    up="linear1",
    down="linear2",
    order="post",
    attention="self_attn",
    eps=1e-5,
    activation="relu",
)
"""`torch.nn.TransformerEncoderLayer`, which has no configuration file."""

NAMINGS = (BERT, DISTILBERT, VIT, GPT2, LLAMA, T5_GATED, T5, BART)
FAMILIES = tuple(dict.fromkeys(family for names in NAMINGS for family in names.families))

# Constants that some files hold beside the weights: masks, position numbers, frequencies.
_HARMLESS = re.compile(
    r"(attn|attention)\.(masked_)?bias$|position_ids$|rotary_emb\.inv_freq$"
    r"|relative_attention_bias\.weight$"
)
_EPS = ("layer_norm_eps", "layer_norm_epsilon", "rms_norm_eps")
_ACTIVATION = ("hidden_act", "activation_function", "activation", "dense_act_fn")


def read_block(
    path: str | Path,
    layer: int | str = 0,
    heads: int | None = None,
    *,
    mask: Mask | None = None,
) -> EncoderBlock:
    """Read one block of a model in files, with the `config.json` beside them.

    Raises RaspError for tensors that are not there and, by name, for families not supported.
    """
    weights, config = Weights.open(path), ModelConfig.beside(Path(path))
    return _read(weights, config, read_target(path, layer, heads, mask=mask), layer, None, None)


def read_block_state(
    arrays: Mapping[str, Any],
    layer: int | str = 0,
    heads: int | None = None,
    *,
    order: Order | None = None,
    act: str | None = None,
    mask: Mask | None = None,
    config: ModelConfig | None = None,
) -> EncoderBlock:
    """Read one block of named NumPy arrays.

    Without a configuration the arrays are those of `torch.nn.TransformerEncoderLayer`; `order`
    (`"pre"` for `norm_first=True`) and `act` tell what its state does not.
    """
    weights = Weights.from_arrays({name: np.asarray(value) for name, value in arrays.items()})
    target = read_state(arrays, layer, heads, mask=mask, config=config)
    return _read(weights, config, target, layer, order, act)


def _read(
    weights: Weights,
    config: ModelConfig | None,
    target: AttentionTarget,
    layer: int | str,
    order: Order | None,
    act: str | None,
) -> EncoderBlock:
    place = find_layer(weights, layer, weights.origin)
    config = config.part(place.prefix) if config is not None else None
    names = _naming(config, weights, place.prefix)
    tensors = _Tensors(weights, _below(place.prefix, names), names)
    facts: Mapping[str, Any] = config.facts if config is not None else {}
    eps = float(_said(facts, _EPS, names.eps))
    block = EncoderBlock(
        target,
        tensors.feed_forward(act or str(_said(facts, _ACTIVATION, names.activation))),
        tensors.norm(names.norm1, eps),
        tensors.norm(names.norm2, eps),
        order or names.order,
        target.notes,
    )
    tensors.refuse_unread({read.name for read in target.reads})
    return block


def _naming(config: ModelConfig | None, weights: Weights, prefix: str) -> BlockNames:
    if config is None or not config.model_type:
        return TORCH
    for names in NAMINGS:
        gate = f"{_below(prefix, names)}.{names.gate}.weight"
        if config.model_type in names.families and (not names.gate or gate in weights):
            return names
    raise UnsupportedError(
        f"the blocks of the family {config.model_type!r} are not known here",
        expected="one of " + ", ".join(FAMILIES),
        found=f"model_type {config.model_type!r} in {config.origin}",
        hint=f"without --block the attention of {prefix or weights.origin} can still be run",
    )


def _below(prefix: str, names: BlockNames) -> str:
    """The name of the block, from the name of its attention layer."""
    return prefix.removesuffix(names.attention).rstrip(".") if names.attention else prefix


def _said(facts: Mapping[str, Any], keys: tuple[str, ...], otherwise: Any) -> Any:
    return next((facts[key] for key in keys if facts.get(key) is not None), otherwise)


@dataclass(frozen=True)
class _Tensors:
    weights: Weights
    prefix: str
    names: BlockNames

    def norm(self, stem: str, eps: float) -> Norm:
        weight = self._read(stem, ".weight")
        bias = self._optional(stem, len(weight))
        if self.names.kind == "rms" and bias.any():
            raise UnsupportedError(f"an RMS norm with a bias, at {self._name(stem)}")
        return Norm(weight, bias, eps, self.names.kind)

    def feed_forward(self, act: str) -> FeedForward:
        up, b_up = self._linear(self.names.up)
        down, b_down = self._linear(self.names.down)
        gate, b_gate = self._linear(self.names.gate) if self.names.gate else (None, None)
        return FeedForward(up, b_up, down, b_down, activation(act), gate, b_gate)

    def refuse_unread(self, read: set[str]) -> None:
        """Refuse a block that holds tensors which nothing here read: it computes something else."""
        read = read | {tensor.name for tensor in self.weights.reads}
        own = (name for name in self.weights if name.startswith(self.prefix + "."))
        unread = [name for name in own if name not in read and not _HARMLESS.search(name)]
        if unread:
            raise UnsupportedError(
                f"the block {self.prefix!r} has tensors that are not known here",
                expected="attention, two norms and a feed-forward part, and nothing else",
                found=", ".join(unread[:6]) + (", ..." if len(unread) > 6 else ""),
                hint="without them it would be another block, so nothing was run",
            )

    def _linear(self, stem: str) -> tuple[Array, Array]:
        matrix = self._read(stem, ".weight")
        if self.names.outputs_first:
            matrix = matrix.T
        return matrix, self._optional(stem, matrix.shape[1])

    def _optional(self, stem: str, size: int) -> Array:
        name = self._name(stem) + ".bias"
        return self.weights.read(name) if name in self.weights else np.zeros(size)

    def _read(self, stem: str, ending: str) -> Array:
        name = self._name(stem) + ending
        if name not in self.weights:
            raise RaspLoadError(
                f"the block {self.prefix!r} lacks a tensor",
                expected=name,
                found="no such tensor in " + self.weights.origin,
                hint="a block needs both norms and the feed-forward part",
            )
        return self.weights.read(name)

    def _name(self, stem: str) -> str:
        return f"{self.prefix}.{stem}" if self.prefix else stem
