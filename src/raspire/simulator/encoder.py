"""A pretrained encoder computed directly, to know the true input of each attention layer.

It is the model reader's own: plain float64 NumPy for encoders of the BERT family (BERT, RoBERTa,
DistilBERT), sharing nothing with U but the reading of weights and the direct attention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.special import erf

from raspire.errors import MissingExtraError, RaspLoadError, RaspValueError, UnsupportedError
from raspire.simulator.config import ModelConfig
from raspire.simulator.direct import attention
from raspire.simulator.reader import read_target
from raspire.simulator.target import AttentionTarget
from raspire.simulator.weights import Array, Weights

_INNER = {
    "bert": "encoder.layer.{}.",
    "roberta": "encoder.layer.{}.",
    "distilbert": "transformer.layer.{}.",
}
_FAMILIES = {"xlm-roberta": "roberta", "camembert": "roberta"} | {name: name for name in _INNER}
_NAMES: Mapping[str, Mapping[str, str]] = {
    "bert": {
        "norm1": "attention.output.LayerNorm",
        "up": "intermediate.dense",
        "down": "output.dense",
        "norm2": "output.LayerNorm",
    },
    "distilbert": {
        "norm1": "sa_layer_norm",
        "up": "ffn.lin1",
        "down": "ffn.lin2",
        "norm2": "output_layer_norm",
    },
}


def gelu(x: Array) -> Array:
    """The exact Gaussian error linear unit."""
    return np.asarray(x * 0.5 * (1.0 + erf(x / np.sqrt(2.0))))


def gelu_tanh(x: Array) -> Array:
    """The tanh form of the Gaussian error linear unit."""
    inner = np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)
    return np.asarray(0.5 * x * (1.0 + np.tanh(inner)))


_ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": lambda x: np.maximum(x, 0.0),
}


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> Array:
    """Each row to mean 0 and variance 1, then scaled and shifted."""
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + eps) * weight + bias)


@dataclass(frozen=True)
class Encoder:
    """A pretrained encoder in a folder with `config.json` and weights, read when needed."""

    folder: Path
    path: Path
    weights: Weights
    config: ModelConfig
    family: str
    prefix: str

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open the encoder that a weights file or its folder belongs to.

        Raises RaspError for a folder without `config.json` and for families not supported.
        """
        path = Path(path)
        weights = Weights.open(path)
        config = ModelConfig.beside(path)
        folder = path if path.is_dir() else path.parent
        if config is None:
            raise RaspLoadError(
                f"{folder} holds no config.json",
                expected="the model's configuration beside its weights",
                hint="give the input of the layer itself: --input x.npy",
            )
        config.refuse_other_layers()
        family = _FAMILIES.get(config.model_type, "")
        if not family:
            raise UnsupportedError(
                f"no direct encoder for the family {config.model_type!r}",
                expected="one of " + ", ".join(sorted(_FAMILIES)),
                hint="give the input of the layer itself: --input x.npy",
            )
        word = next((n for n in weights if n.endswith("embeddings.word_embeddings.weight")), "")
        if not word:
            raise RaspLoadError(f"{weights.origin} holds no word embeddings")
        prefix = word.removesuffix("embeddings.word_embeddings.weight")
        return cls(folder, path, weights, config, family, prefix)

    @property
    def layers(self) -> int:
        """The number of layers."""
        facts = self.config.facts
        return int(facts.get("num_hidden_layers", facts.get("n_layers", 0)))

    def tokens(self, text: str) -> tuple[list[int], list[str]]:
        """The numbers and the names of the tokens of a text, special ones included, unpadded."""
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise MissingExtraError("tokenizers", "models") from None
        path = self.folder / "tokenizer.json"
        if not path.exists():
            raise RaspLoadError(f"no such file: {path}", expected="the model's tokenizer")
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        encoding = tokenizer.encode(text)
        if len(encoding.ids) > self.longest:
            raise RaspValueError(
                "the text is too long for the model",
                expected=f"at most {self.longest} tokens",
                found=str(len(encoding.ids)),
            )
        return list(encoding.ids), list(encoding.tokens)

    @property
    def longest(self) -> int:
        """The greatest number of tokens that the position embeddings allow."""
        rows = self.weights.shape(self.prefix + "embeddings.position_embeddings.weight")[0]
        return rows - self._first_position()

    def target(self, layer: int) -> AttentionTarget:
        """The attention of one layer."""
        return read_target(self.path, layer)

    def input(self, text: str, layer: int) -> Array:
        """The true input X of the attention of layer `layer`, shape (n, d)."""
        if not 0 <= layer < self.layers:
            raise RaspValueError(
                f"the encoder has no layer {layer}",
                expected=f"0 to {self.layers - 1}",
                found=str(layer),
            )
        x = self.embed(self.tokens(text)[0])
        for k in range(layer):
            x = self.block(x, k)
        return x

    def embed(self, ids: list[int]) -> Array:
        """The sum of the embeddings of words, positions and types, normalised."""
        return self._norm(self.summed(ids), self.prefix + "embeddings.LayerNorm")

    def embedding_norm(self) -> tuple[Array, Array, float]:
        """Weight, bias and eps of the norm of the embeddings."""
        stem = self.prefix + "embeddings.LayerNorm"
        weight, bias = self.weights.read(stem + ".weight"), self.weights.read(stem + ".bias")
        return weight, bias, self._eps

    def summed(self, ids: list[int]) -> Array:
        """The sum of the embeddings of words, positions and types."""
        first = self._first_position()
        x = self._row("word_embeddings", np.asarray(ids))
        x = x + self._row("position_embeddings", np.arange(first, first + len(ids)))
        if self.family != "distilbert":
            x = x + self._row("token_type_embeddings", np.zeros(len(ids), dtype=np.int64))
        return x

    def block(self, x: Array, layer: int) -> Array:
        """One encoder block: attention, residual, norm, feed-forward, residual, norm."""
        at = self.prefix + _INNER[self.family].format(layer)
        names = _NAMES["distilbert" if self.family == "distilbert" else "bert"]
        x = self._norm(x + attention(self.target(layer), x), at + names["norm1"])
        hidden = self._activation()(self._linear(x, at + names["up"]))
        return self._norm(x + self._linear(hidden, at + names["down"]), at + names["norm2"])

    def _first_position(self) -> int:
        if self.family != "roberta":
            return 0
        return int(self.config.facts.get("pad_token_id", 1)) + 1

    def _row(self, table: str, rows: Any) -> Array:
        return np.asarray(self.weights.read(f"{self.prefix}embeddings.{table}.weight")[rows])

    def _linear(self, x: Array, stem: str) -> Array:
        weight, bias = self.weights.read(stem + ".weight"), self.weights.read(stem + ".bias")
        return np.asarray(x @ weight.T + bias)

    def _norm(self, x: Array, stem: str) -> Array:
        weight, bias = self.weights.read(stem + ".weight"), self.weights.read(stem + ".bias")
        return layer_norm(x, weight, bias, self._eps)

    @property
    def _eps(self) -> float:
        return float(self.config.facts.get("layer_norm_eps", 1e-12))

    def _activation(self) -> Callable[[Array], Array]:
        facts = self.config.facts
        name = str(facts.get("hidden_act", facts.get("activation", "gelu")))
        if name not in _ACTIVATIONS:
            raise UnsupportedError(
                f"no activation {name!r}", expected="one of " + ", ".join(_ACTIVATIONS)
            )
        return _ACTIVATIONS[name]
