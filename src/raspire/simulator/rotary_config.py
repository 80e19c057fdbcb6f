"""The rotary positions that a model's `config.json` asks for.

The frequencies follow the entries of the file; forms of scaling that are not known here are
refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from raspire.errors import RaspValueError, UnsupportedError
from raspire.simulator.families import ROTARY_INTERLEAVED
from raspire.simulator.positions import Rotary
from raspire.simulator.weights import Array

_BASE = 10000.0


def rotary(facts: Mapping[str, Any], model_type: str, d_k: int, origin: str) -> Rotary:
    """The turns for heads of width `d_k`.

    >>> rotary({"rope_theta": 100.0}, "llama", 4, "config.json").frequencies.tolist()
    [1.0, 0.1]
    """
    rules = facts.get("rope_parameters") or facts.get("rope_scaling") or {}
    if not isinstance(rules, Mapping):
        raise RaspValueError("rope_scaling is not an object", found=repr(rules))
    said = facts.get("rope_theta", facts.get("rotary_emb_base", _BASE))
    base = float(rules.get("rope_theta", said))
    width = _turned_width(facts, rules, model_type, d_k)
    frequencies = base ** -(np.arange(0, width, 2) / width)
    scaled = _scaled(frequencies, rules, facts, origin)
    return Rotary(scaled, interleaved=model_type in ROTARY_INTERLEAVED)


def _turned_width(
    facts: Mapping[str, Any], rules: Mapping[str, Any], model_type: str, d_k: int
) -> int:
    """How many coordinates of a head are turned."""
    if model_type == "gptj":
        return int(facts.get("rotary_dim") or d_k)
    usual = 0.25 if model_type in ("stablelm", "gpt_neox") else 1.0
    usual = float(facts.get("rotary_pct", usual))
    part = rules.get("partial_rotary_factor", facts.get("partial_rotary_factor", usual))
    return int(d_k * float(part))


def _scaled(
    frequencies: Array, rules: Mapping[str, Any], facts: Mapping[str, Any], origin: str
) -> Array:
    kind = rules.get("rope_type", rules.get("type", "default"))
    if kind == "default":
        return frequencies
    if kind == "linear":
        return frequencies / float(rules["factor"])
    if kind == "llama3":
        return _by_wavelength(frequencies, rules)
    raise UnsupportedError(
        f"rotary positions scaled in the form {kind!r} wait for a later version",
        expected="default, linear, llama3",
        found=f"{kind} in {origin}",
        hint="without it it would be another layer, so nothing was run",
    )


def _by_wavelength(frequencies: Array, rules: Mapping[str, Any]) -> Array:
    """Long waves are slowed by a factor, short ones kept, and between them a mixture."""
    factor = float(rules["factor"])
    low, high = float(rules["low_freq_factor"]), float(rules["high_freq_factor"])
    waves = float(rules["original_max_position_embeddings"]) * frequencies / (2 * math.pi)
    kept = np.clip((waves - low) / (high - low), 0.0, 1.0)
    return np.asarray(frequencies * (kept + (1 - kept) / factor))
