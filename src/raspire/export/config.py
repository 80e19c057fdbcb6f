"""What is not a matrix: names, kinds, masks, token maps, cost, certificates, as JSON and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from raspire.export.labels import from_json, to_json, writable
from raspire.transformer import Head, Mask, Space, Transformer, Units, cost

FORMAT = 1


def config(model: Transformer, precision: str) -> dict[str, Any]:
    """The JSON description of a transformer; with its matrices it is the whole transformer."""
    embedding, unembedding = model.embedding, model.unembedding
    return {
        "format": FORMAT,
        "name": model.name,
        "width": model.width,
        "precision": precision,
        "embedding": {
            "input": "tokens" if embedding.tokens is not None else "values",
            "vocabulary": [to_json(token) for token in embedding.vocabulary],
            "bos": embedding.bos,
            "pad": embedding.pad,
            "types": None if embedding.types is None else list(embedding.types),
            "extend": embedding.extend,
            "max_length": embedding.max_length,
        },
        "layers": [
            {"heads": [_head(h) for h in layer.heads], "units": [_units(u) for u in layer.units]}
            for layer in model.layers
        ],
        "unembedding": {
            "kind": unembedding.kind,
            "labels": [to_json(label) for label in unembedding.labels],
        },
        "spaces": [
            {"name": s.name, "labels": [to_json(x) for x in s.labels], "slots": list(s.slots)}
            for s in model.spaces
        ],
        "cost": asdict(cost(model)),
        "notes": writable(model.notes),
    }


def _head(head: Head) -> dict[str, Any]:
    keys = head.mask.keys
    return {
        "name": head.name,
        "kind": head.kind,
        "scale": head.scale,
        "causal": head.mask.causal,
        "keys": None if keys is None else sorted(keys),
        "gap": head.gap,
        "bound": head.bound,
        "address": head.address,
    }


def _units(units: Units) -> dict[str, Any]:
    return {"name": units.name, "family": units.family}


def head_options(record: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a head that are not matrices, from its record."""
    rest = {k: v for k, v in record.items() if k not in ("causal", "keys")}
    keys = record["keys"]
    return {**rest, "mask": Mask(record["causal"], None if keys is None else frozenset(keys))}


def spaces(record: dict[str, Any]) -> tuple[Space, ...]:
    """The named spaces of a description."""
    return tuple(
        Space(s["name"], tuple(from_json(x) for x in s["labels"]), tuple(s["slots"]))
        for s in record["spaces"]
    )
