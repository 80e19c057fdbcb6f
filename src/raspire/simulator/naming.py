"""Where the tensors of an attention layer are, by the naming of common model families.

A family is one record: the names of its tensors below the name of a layer, how they are
oriented, how they are packed, and which keys a query may see. Names that belong to no family are
given one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from raspire.errors import RaspLoadError, RaspNameError, RaspValueError, UnsupportedError

Mask = Literal["none", "causal", "padding"]

_CROSS = re.compile(r"cross_?attention|cross_attn|encoder_attn|multihead_attn|EncDecAttention")


@dataclass(frozen=True)
class Family:
    """The names of one family's tensors; `packed` names hold queries, keys and values together.

    `by_head` says that the packed outputs are grouped by head first, not by queries, keys, values.
    `outputs_first` is the orientation of the stored matrices: a linear layer of torch stores
    outputs × inputs, GPT-2's `Conv1D` stores inputs × outputs.
    """

    name: str
    query: str = ""
    key: str = ""
    value: str = ""
    output: str = ""
    packed: str = ""
    packed_bias: str = ""
    outputs_first: bool = True
    by_head: bool = False
    mask: Mask = "none"

    @property
    def probe(self) -> str:
        """The name that shows that a layer of this family is there."""
        return self.packed or self.query + ".weight"


FAMILIES = (
    Family(
        "BERT, RoBERTa",
        query="attention.self.query",
        key="attention.self.key",
        value="attention.self.value",
        output="attention.output.dense",
    ),
    Family(
        "ViT",
        query="attention.attention.query",
        key="attention.attention.key",
        value="attention.attention.value",
        output="attention.output.dense",
    ),
    Family(
        "DistilBERT",
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        output="attention.out_lin",
    ),
    Family(
        "GPT-2",
        packed="attn.c_attn.weight",
        packed_bias="attn.c_attn.bias",
        output="attn.c_proj",
        outputs_first=False,
        mask="causal",
    ),
    Family(
        "nn.MultiheadAttention",
        packed="in_proj_weight",
        packed_bias="in_proj_bias",
        output="out_proj",
    ),
    Family(
        "GPT-NeoX",
        packed="attention.query_key_value.weight",
        packed_bias="attention.query_key_value.bias",
        output="attention.dense",
        by_head=True,
        mask="causal",
    ),
    Family(
        "BLOOM",
        packed="self_attention.query_key_value.weight",
        packed_bias="self_attention.query_key_value.bias",
        output="self_attention.dense",
        by_head=True,
        mask="causal",
    ),
    Family(
        "T5",
        query="layer.0.SelfAttention.q",
        key="layer.0.SelfAttention.k",
        value="layer.0.SelfAttention.v",
        output="layer.0.SelfAttention.o",
    ),
    Family(
        "LLaMA",
        query="q_proj",
        key="k_proj",
        value="v_proj",
        output="o_proj",
        mask="causal",
    ),
    Family(
        "BART, CLIP",
        query="q_proj",
        key="k_proj",
        value="v_proj",
        output="out_proj",
    ),
)


@dataclass(frozen=True)
class LayerPlace:
    """One attention layer that was found: its family, and the name that its tensors begin with."""

    family: Family
    prefix: str

    @property
    def number(self) -> int:
        """The last number in the prefix, 0 if there is none."""
        numbers = re.findall(r"(?:^|\.)(\d+)(?=\.|$)", self.prefix)
        return int(numbers[-1]) if numbers else 0

    def tensor(self, suffix: str) -> str:
        """The full name of the tensor `suffix` of this layer."""
        return f"{self.prefix}.{suffix}" if self.prefix else suffix


@dataclass(frozen=True)
class GivenNames:
    """Tensors named one by one; each name may be given with or without `.weight`."""

    query: str
    key: str
    value: str
    output: str | None = None

    def __post_init__(self) -> None:
        if not (self.query and self.key and self.value):
            raise RaspValueError(
                "tensors named one by one need query, key and value",
                expected="--q, --k and --v together (and --o for the output map)",
                found=f"q={self.query!r}, k={self.key!r}, v={self.value!r}",
            )


def find_layer(
    names: Iterable[str], layer: int | str, origin: str, *, cross: bool = False
) -> LayerPlace:
    """The attention layer with this number, or with this prefix where a number is ambiguous.

    `cross` looks among the layers of cross-attention, and only among them.

    >>> find_layer(["encoder.layer.3.attention.self.query.weight"], 3, "a.safetensors").prefix
    'encoder.layer.3'
    """
    known = list(_layers(set(names)))
    if not known:
        raise RaspLoadError(
            f"{origin} holds no attention layer of a known naming",
            expected="the names of " + "; ".join(f.name for f in FAMILIES),
            hint="name the tensors: --q NAME --k NAME --v NAME --o NAME",
        )
    if isinstance(layer, str):
        return _by_prefix(known, layer, origin, cross)
    own = [place for place in known if bool(_CROSS.search(place.prefix)) == cross]
    hits = [place for place in own if place.number == layer]
    if not hits:
        raise RaspNameError(
            f"{origin} holds no {'cross-' if cross else ''}attention layer {layer}",
            expected=f"one of the layers {_numbers(own)}",
            found=str(layer),
        )
    if len(hits) > 1:
        raise RaspValueError(
            f"{origin} holds several attention layers with the number {layer}",
            expected="one of the prefixes " + ", ".join(p.prefix for p in hits),
            found=str(layer),
            hint="give the prefix instead of the number",
        )
    return hits[0]


def _by_prefix(known: list[LayerPlace], prefix: str, origin: str, cross: bool) -> LayerPlace:
    for place in known:
        if place.prefix == prefix.rstrip("."):
            if cross and not _CROSS.search(prefix):
                raise UnsupportedError(
                    f"{prefix} is a self-attention layer", expected="a cross-attention layer"
                )
            if _CROSS.search(prefix) and not cross:
                raise UnsupportedError(
                    f"{prefix} is a cross-attention layer",
                    expected="self-attention",
                    hint="a cross-attention layer reads a memory: --memory y.npy",
                )
            return place
    raise RaspNameError(
        f"{origin} holds no attention layer at {prefix!r}",
        expected="one of " + ", ".join(sorted(p.prefix for p in known)[:12]),
        found=prefix,
    )


def _layers(names: set[str]) -> Iterable[LayerPlace]:
    """Every place where a family's probe stands and its output map, if it shares the probe."""
    for family in FAMILIES:
        probe = family.probe
        for name in sorted(names):
            if name != probe and not name.endswith("." + probe):
                continue
            place = LayerPlace(family, name[: -len(probe)].rstrip("."))
            if family.query != "q_proj" or place.tensor(family.output + ".weight") in names:
                yield place


def _numbers(places: list[LayerPlace]) -> str:
    numbers = sorted({place.number for place in places})
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers)) or "(none)"
