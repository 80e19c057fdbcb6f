"""A transformer as a ``torch.nn.Module`` of stock parts: Embedding, Linear, softmax.

Average-hard heads average over the positions whose score equals the maximum; softmax heads are
``torch.softmax``. The module states which it has (``attention``) and carries its token maps.
Hook points are ``nn.Identity`` modules under the names of TransformerLens, so that
``register_forward_hook`` sees every stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from raspire.export.config import config
from raspire.files import write_whole
from raspire.transformer import Head, Layer, Transformer, Units
from raspire.transformer.families import gate_of
from raspire.transformer.model import BOS_TYPE, PAD_TYPE, TOKEN_TYPE

GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "exp": torch.exp,
    "recip": torch.reciprocal,
    "rsqrt": torch.rsqrt,
    "sqrt": torch.sqrt,
    "log": torch.log,
    "abs": torch.abs,
    "sign": torch.sign,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "step": lambda x: (x > 0).to(x.dtype),
    "zero": lambda x: (x == 0).to(x.dtype),
    "floor": torch.floor,
    "relu": torch.relu,
    "silu": nn.functional.silu,
    "gelu": nn.functional.gelu,
    "gelu_tanh": lambda x: nn.functional.gelu(x, approximate="tanh"),
}

PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda x: x,
    "relu": torch.relu,
    "relu2": lambda x: torch.relu(x).square(),
}


def _linear(matrix: Any, bias: Any = None) -> nn.Linear:
    """``x @ matrix + bias`` as a Linear (whose weight is the transpose)."""
    module = nn.Linear(matrix.shape[0], matrix.shape[1], bias=bias is not None, dtype=torch.float64)
    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(matrix.T.toarray()))
        if bias is not None:
            module.bias.copy_(torch.from_numpy(bias))
    return module


class AttentionHead(nn.Module):  # type: ignore[misc]
    """Scores, weights and output of one head."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.query, self.key = _linear(head.query), _linear(head.key)
        self.value, self.output = _linear(head.value), _linear(head.output)
        self.hard, self.scale = head.kind == "average-hard", float(head.scale)
        self.causal = head.mask.causal

    def pattern(self, stream: Tensor, seen: Tensor) -> Tensor:
        """Attention weights (batch, queries, keys); ``seen`` is the key mask (batch, keys)."""
        scores = self.query(stream) @ self.key(stream).transpose(1, 2)
        allowed = seen[:, None, :].expand_as(scores)
        if self.causal:
            places = torch.arange(scores.shape[1], device=scores.device)
            allowed = allowed & (places[None, :] <= places[:, None])
        masked = scores.masked_fill(~allowed, -torch.inf)
        if self.hard:
            best = (masked == masked.amax(dim=-1, keepdim=True)) & allowed
            weights = best.to(scores.dtype)
            return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1)
        return torch.softmax(masked * self.scale, dim=-1).masked_fill(~allowed, 0)

    def forward(self, pattern: Tensor, stream: Tensor, seen: Tensor) -> Tensor:
        """What the head adds to the stream (batch, length, width)."""
        value = self.value(stream).masked_fill(~seen[:, :, None], 0)
        added: Tensor = self.output(pattern @ value)
        return added


class Attention(nn.Module):  # type: ignore[misc]
    """The heads of a layer."""

    def __init__(self, heads: Sequence[Head], keys: list[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(AttentionHead(head) for head in heads)
        self.keys = keys
        self.hook_pattern = nn.Identity()

    def forward(self, stream: Tensor, seen: list[Tensor]) -> Tensor:
        """The sum of the heads; ``seen[k]`` is the mask of the k-th set of key types."""
        total = torch.zeros_like(stream)
        pairs = list(zip(self.heads, self.keys, strict=True))
        if not pairs or not stream.shape[1]:
            return total
        patterns = self.hook_pattern(torch.stack([h.pattern(stream, seen[k]) for h, k in pairs], 1))
        for j, (head, k) in enumerate(pairs):
            total = total + head(patterns[:, j], stream, seen[k])
        return total


class FeedForward(nn.Module):  # type: ignore[misc]
    """A group of units of one family."""

    def __init__(self, units: Units) -> None:
        super().__init__()
        self.family, self.gate = units.family, gate_of(units.family)
        self.first = _linear(units.first, units.first_bias)
        self.second = None if self.gate is None else _linear(units.second, units.second_bias)
        self.output = _linear(units.output)

    def forward(self, stream: Tensor) -> Tensor:
        """What the units add to the stream."""
        hidden = self.first(stream)
        if self.second is None:
            hidden = PLAIN[self.family](hidden)
        else:
            hidden = hidden * GATES[str(self.gate)](self.second(stream))
        added: Tensor = self.output(hidden)
        return added


class Block(nn.Module):  # type: ignore[misc]
    """Attention, then feed-forward, each added to the stream."""

    def __init__(self, layer: Layer, keys: list[int]) -> None:
        super().__init__()
        self.attn = Attention(layer.heads, keys)
        self.mlp = nn.ModuleList(FeedForward(units) for units in layer.units)
        self.hook_resid_pre, self.hook_resid_mid = nn.Identity(), nn.Identity()
        self.hook_attn_out, self.hook_mlp_out = nn.Identity(), nn.Identity()
        self.hook_resid_post = nn.Identity()

    def forward(self, stream: Tensor, seen: list[Tensor]) -> Tensor:
        """The stream after the block."""
        stream = self.hook_resid_pre(stream)
        middle = self.hook_resid_mid(stream + self.hook_attn_out(self.attn(stream, seen)))
        added = torch.zeros_like(middle)
        for group in self.mlp:
            added = added + group(middle)
        after: Tensor = self.hook_resid_post(middle + self.hook_mlp_out(added))
        return after


class TransformerModule(nn.Module):  # type: ignore[misc]
    """The whole transformer: token ids or values in, logits (batch, length, labels) out.

    Attributes that travel with it: ``vocabulary`` (id to token), ``bos``, ``pad``, ``labels``
    (output index to value), ``kind``, ``attention`` and the full description ``config``.
    """

    positions: Tensor
    types: Tensor
    visible: Tensor

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        embedding = model.embedding
        self.config = config(model, "float64")
        self.model = model
        self.vocabulary, self.bos, self.pad = embedding.vocabulary, embedding.bos, embedding.pad
        self.labels, self.kind = model.unembedding.labels, model.unembedding.kind
        self.attention = tuple(sorted({head.kind for _, _, head in model.heads()}))
        self.embed = self._token_table(model)
        self.embed_values = None if embedding.values is None else _linear(embedding.values)
        table = np.zeros((1, model.width))
        if embedding.positions is not None:
            table = embedding.positions.toarray()
        self.pos_embed = nn.Parameter(torch.from_numpy(table))
        self.max_length = embedding.max_length
        sets = self._type_tables(model)
        self.blocks = nn.ModuleList(
            Block(layer, [sets.index(head.mask.keys) for head in layer.heads])
            for layer in model.layers
        )
        self.unembed = _linear(model.unembedding.matrix)
        self.hook_embed = nn.Identity()

    @staticmethod
    def _token_table(model: Transformer) -> nn.Embedding | None:
        if model.embedding.tokens is None:
            return None
        return nn.Embedding.from_pretrained(
            torch.from_numpy(model.embedding.tokens.toarray()), freeze=False
        )

    def _type_tables(self, model: Transformer) -> list[frozenset[str] | None]:
        """Buffers: the type of every position, and for every set of key types what it sees."""
        given = model.embedding.types or (TOKEN_TYPE,)
        names = list(dict.fromkeys([PAD_TYPE, BOS_TYPE, TOKEN_TYPE, *given]))
        sets = list(dict.fromkeys(head.mask.keys for _, _, head in model.heads()))
        visible = [
            [name != PAD_TYPE and (keys is None or name in keys) for name in names] for keys in sets
        ]
        self.register_buffer("types", torch.tensor([names.index(t) for t in given]))
        self.register_buffer("visible", torch.tensor(visible).reshape(len(sets), len(names)))
        return sets

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits of token ids (batch, length), the beginning of sequence first, or of values."""
        length = inputs.shape[1]
        if self.max_length is not None and length > self.max_length:
            raise ValueError(f"at most {self.max_length} positions, found {length}")
        places = torch.arange(length, device=inputs.device)
        stream = self._embed(inputs) + self.pos_embed[places.clamp(max=len(self.pos_embed) - 1)]
        stream = self.hook_embed(stream)
        types = self._types(inputs, places)
        seen = [row[types] for row in self.visible]
        for block in self.blocks:
            stream = block(stream, seen)
        logits: Tensor = self.unembed(stream)
        return logits

    def outputs(self, inputs: Tensor) -> Tensor:
        """Label indices (batch, length) of a categorical output, the numbers of a numeric one."""
        logits = self(inputs)
        if self.kind == "categorical":
            return logits.argmax(dim=-1)
        return logits.squeeze(-1) if logits.shape[-1] == 1 else logits

    def encode(self, sequences: Sequence[Sequence[Any]]) -> Tensor:
        """Sequences of tokens (or numbers) as one padded input."""
        array = self.model.inputs(sequences)
        if array.dtype.kind == "f":
            return torch.from_numpy(array).to(self.pos_embed.dtype)
        return torch.from_numpy(array)

    def decode(self, logits: Tensor) -> list[list[Any]]:
        """The output values of logits, at every position."""
        return [self.model.unembedding.decode(row) for row in logits.detach().cpu().numpy()]

    def _embed(self, inputs: Tensor) -> Tensor:
        if self.embed is not None:
            tokens: Tensor = self.embed(inputs)
            return tokens
        assert self.embed_values is not None
        values = inputs.masked_fill(inputs.isnan(), 0).to(self.pos_embed.dtype)
        if values.dim() == 2:
            values = values[:, :, None]
        rows: Tensor = self.embed_values(values)
        return rows

    def _types(self, inputs: Tensor, places: Tensor) -> Tensor:
        types = self.types[places.clamp(max=len(self.types) - 1)].expand(inputs.shape[:2])
        if self.embed is None:
            missing = inputs.isnan()
            return types.masked_fill(missing if missing.dim() == 2 else missing.any(dim=2), 0)
        if self.bos is not None:
            types = types.masked_fill(inputs == self.bos, 1)
        if self.pad is not None:
            types = types.masked_fill(inputs == self.pad, 0)
        return types


def save_torch(model: Transformer, path: str | Path, *, precision: str = "float64") -> Path:
    """Write ``config`` (JSON) and ``state_dict`` for ``torch.load(..., weights_only=True)``."""
    import io
    import json

    module = TransformerModule(model).to(getattr(torch, precision))
    content = io.BytesIO()
    text = json.dumps(config(model, precision))
    torch.save({"config": text, "state_dict": module.state_dict()}, content)
    return write_whole(path, content.getvalue())


def load_torch(path: str | Path) -> Transformer:
    """The transformer of a file written by :func:`save_torch`, from its weights alone."""
    import json

    from raspire.errors import RaspLoadError
    from raspire.export.tensors import assemble

    if not Path(path).is_file():
        raise RaspLoadError(f"there is no file {str(path)!r}")
    content = torch.load(path, weights_only=True)
    record, state = json.loads(content["config"]), content["state_dict"]
    embedding = record["embedding"]
    unplaced = embedding["max_length"] is None and not embedding["extend"]

    def matrix(name: str) -> Any:
        key, transposed = _key(name)
        if key not in state or (key == "pos_embed" and unplaced):
            return None
        array = state[key].double().numpy()
        side = sparse.csr_array if name.endswith((".output", *_TABLES)) else sparse.csc_array
        return side(array.T if transposed else array)

    def bias(name: str) -> Any:
        key, _ = _key(name.replace("_bias", ""))
        key = key.replace(".weight", ".bias")
        return state[key].double().numpy() if key in state else None

    return assemble(record, matrix, bias)


_TABLES = ("tokens", "positions", "values")


def _key(name: str) -> tuple[str, bool]:
    """Where the state of a module holds a matrix of ours, and whether transposed."""
    plain = {
        "embedding.tokens": ("embed.weight", False),
        "embedding.positions": ("pos_embed", False),
        "embedding.values": ("embed_values.weight", True),
        "unembedding": ("unembed.weight", True),
    }
    if name in plain:
        return plain[name]
    _, layer, kind, number, part = name.split(".")
    place = "attn.heads" if kind == "heads" else "mlp"
    return f"blocks.{layer}.{place}.{number}.{part}.weight", True
