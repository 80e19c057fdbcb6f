"""What a model's `config.json` says about its attention layers.

The names of tensors do not tell how many heads share them, nor whether positions turn the queries
and keys. The file beside the weights does; what it asks for and U does not yet offer is refused
by name, because a layer without it is another layer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raspire.errors import RaspError, RaspLoadError, RaspValueError, UnsupportedError
from raspire.simulator.families import (
    ALIBI,
    BUCKETS,
    CAUSAL,
    OTHER_ATTENTION,
    PLAIN,
    ROTARY,
    ROTARY_KEYS,
    ROTARY_KNOWN,
    WINDOWED,
)
from raspire.simulator.naming import Mask
from raspire.simulator.positions import Rotary
from raspire.simulator.rotary_config import rotary

_HEADS = ("num_attention_heads", "n_heads", "n_head", "num_heads", "attention_heads")


_WIDTHS = ("hidden_size", "d_model", "n_embd", "dim")


@dataclass(frozen=True)
class ModelConfig:
    """The facts of a `config.json` that decide which layer the weights are.

    >>> ModelConfig({"model_type": "gpt2", "n_head": 12}).heads
    12
    """

    facts: Mapping[str, Any]
    origin: str = "config.json"

    @classmethod
    def beside(cls, weights: Path) -> ModelConfig | None:
        """The configuration in the folder of a weights file, if there is one."""
        folder = weights if weights.is_dir() else weights.parent
        path = folder / "config.json"
        if not path.exists():
            return None
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise RaspLoadError(f"{path} is not JSON", found=str(error)) from error
        if not isinstance(facts, dict):
            raise RaspLoadError(f"{path} is not a JSON object", found=type(facts).__name__)
        return cls(facts, str(path))

    def part(self, prefix: str) -> ModelConfig:
        """The nested configuration that governs tensors named `prefix...` (CLIP has two)."""
        for word in ("vision", "text"):
            nested = self.facts.get(f"{word}_config")
            if prefix.startswith(word) and isinstance(nested, dict):
                return ModelConfig(nested, f"{self.origin} ({word}_config)")
        return self

    @property
    def model_type(self) -> str:
        """The family as the file names it."""
        return str(self.facts.get("model_type", ""))

    @property
    def heads(self) -> int | None:
        """The number of heads, under any of the names in use."""
        for key in _HEADS:
            value = self.facts.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None

    def heads_of(self, prefix: str) -> int | None:
        """The number of heads of the layer at `prefix` (encoder and decoder may differ)."""
        side = "decoder" if "decoder." in prefix else "encoder"
        value = self.facts.get(f"{side}_attention_heads")
        return value if isinstance(value, int) else self.heads

    def refuse_other_width(self, d: int) -> None:
        """Refuse tensors of another model than the one that the file describes."""
        for key in _WIDTHS:
            said = self.facts.get(key)
            if isinstance(said, int) and said != d:
                raise RaspValueError(
                    f"the tensors have another width than {self.origin} says",
                    expected=f"{key} {said}",
                    found=f"d = {d}",
                    hint="weights and config.json of one model belong together",
                )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Where facts are read: one that is missing or of the wrong kind is the file's fault."""
        try:
            with np.errstate(divide="raise", over="raise", invalid="raise"):
                yield
        except RaspError:
            raise
        except (KeyError, TypeError, ValueError, ArithmeticError) as problem:
            missing = isinstance(problem, KeyError)
            raise RaspValueError(
                f"{self.origin} {'lacks a value' if missing else 'holds a value of no use'}",
                expected=str(problem) if missing else "numbers that the attention can use",
                found="" if missing else str(problem),
            ) from None

    def scale(self, d_k: int, layer: int) -> float | None:
        """The factor of the scores where the file names one; None is the usual 1/sqrt(d_k)."""
        unscaled = self.facts.get("scale_attn_weights") is False or self.model_type in BUCKETS
        by_layer = self.facts.get("scale_attn_by_inverse_layer_idx") is True
        wanted = self.facts.get("query_pre_attn_scalar")
        if not (unscaled or by_layer or wanted):
            return None
        width = float(wanted or d_k)
        if not width > 0:
            raise RaspValueError(
                "query_pre_attn_scalar must be positive", found=f"{wanted} in {self.origin}"
            )
        base = 1.0 if unscaled else width**-0.5
        return base / (layer + 1) if by_layer else base

    def mask(self, family: Mask, prefix: str) -> Mask:
        """Which keys a query sees: causal where the family, the model or the side is."""
        if self.model_type in CAUSAL or self.facts.get("is_decoder") is True:
            return "causal"
        if "decoder." in prefix or "text_model." in prefix or prefix.startswith("text"):
            return "causal"
        return family

    def notes(self) -> list[str]:
        """What a reader must know of the model's family: nothing, where its attention is known."""
        if not self.model_type or self.model_type in PLAIN | CAUSAL | BUCKETS:
            return []
        return [
            f"the attention of the family {self.model_type!r} is not known here; "
            "it is taken as dot-product attention over absolute positions"
        ]

    @property
    def turned(self) -> bool:
        """Whether positions turn queries and keys in a way that is known here."""
        return self.model_type in ROTARY_KNOWN

    @property
    def shared_heads(self) -> int | None:
        """How many heads of keys and values the query heads share, if the file says so."""
        shared = 1 if self.facts.get("multi_query") is True else None
        value = self.facts.get("num_key_value_heads", shared)
        return value if isinstance(value, int) else None

    def rotary(self, d_k: int) -> Rotary | None:
        """The turns of queries and keys, for a family that has them."""
        return rotary(self.facts, self.model_type, d_k, self.origin) if self.turned else None

    def window(self, layer: int) -> int | None:
        """How many positions back a query of this layer sees, itself included."""
        window = self.facts.get("sliding_window")
        asked = self.facts.get("use_sliding_window", not self.model_type.startswith("qwen"))
        if not isinstance(window, int) or not asked:
            return None
        kinds, first = self.facts.get("layer_types"), self.facts.get("max_window_layers")
        if isinstance(kinds, list) and layer < len(kinds):
            return window if kinds[layer] == "sliding_attention" else None
        if isinstance(first, int) and layer < first:
            return None
        return window

    def refuse_other_layers(self) -> None:
        """Refuse, by name, whatever would silently be another layer."""
        self._refuse_positions()
        if self.facts.get("attn_logit_softcapping"):
            raise self._refusal("capped scores", "attn_logit_softcapping")
        window = self.facts.get("sliding_window")
        known = self.model_type in WINDOWED
        if window is not None and not known and self.facts.get("use_sliding_window") is not False:
            raise self._refusal("a sliding window", f"sliding_window {window}")
        if self.facts.get("attention_type", "original_full") != "original_full":
            raise self._refusal("sparse attention", f"{self.facts['attention_type']}")

    def _refuse_positions(self) -> None:
        positions = self.facts.get("position_embedding_type", "absolute")
        if positions not in ("absolute", None):
            raise self._refusal(f"{positions} positions", f"position_embedding_type {positions!r}")
        for key in () if self.turned else ROTARY_KEYS:
            if self.facts.get(key) is not None:
                raise self._refusal("rotary positions", f"{key} {self.facts[key]!r}")
        if self.facts.get("alibi") and self.model_type not in ALIBI:
            raise self._refusal("position biases (ALiBi)", "alibi")
        buckets = self.facts.get("relative_attention_num_buckets")
        if buckets and self.model_type not in BUCKETS:
            raise self._refusal("relative position biases", "relative_attention_num_buckets")
        if self.model_type in ROTARY - ROTARY_KNOWN:
            raise self._refusal("rotary positions", f"model_type {self.model_type!r}")
        if self.model_type in OTHER_ATTENTION:
            found = f"model_type {self.model_type!r}"
            raise self._refusal(OTHER_ATTENTION[self.model_type], found)

    def _refusal(self, thing: str, found: str) -> UnsupportedError:
        return UnsupportedError(
            f"this model's attention has {thing}, which wait for a later version",
            expected="dot-product attention over absolute positions, or a known family's own",
            found=f"{found} in {self.origin}",
            hint="without them it would be another layer, so nothing was run",
        )


def agree_on_heads(given: int | None, said: int | None, origin: str) -> int:
    """The number of heads, from the caller or the configuration; they must not contradict."""
    for number, place in ((given, ""), (said, f" in {origin}")):
        if number is not None and number < 1:
            raise RaspValueError(
                "a layer needs at least one head", expected="1 or more", found=f"{number}{place}"
            )
    if given is None and said is None:
        raise RaspValueError(
            "the number of heads is not known",
            expected="a config.json beside the weights, or heads given",
            found=f"no number of heads in {origin}",
            hint="give --heads (heads= in Python)",
        )
    if given is not None and said is not None and given != said:
        raise RaspValueError(
            "the number of heads contradicts the model's configuration",
            expected=f"{said}, as {origin} says",
            found=str(given),
        )
    return given if given is not None else said or 0
