"""A whole pretrained encoder looped through U, from a sentence to its embedding.

One U for blocks runs every layer: only the numbers it is given change from layer to layer. The
norm of the embeddings and the pooling are programs too; a table of words is read, not computed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from raspire.errors import RaspLoadError, UnsupportedError
from raspire.evaluate import BUDGET
from raspire.library.norms import norm_rows, pool_rows
from raspire.simulator.block_reader import read_block
from raspire.simulator.block_simulator import BlockSimulator
from raspire.simulator.encoder import Encoder
from raspire.simulator.run import peak_bytes
from raspire.simulator.weights import Array

Pooling = Literal["mean", "cls"]


@dataclass(frozen=True)
class Pool:
    """How rows become one: their mean or the first of them, brought to length 1 or not."""

    pooling: Pooling = "mean"
    unit: bool = False

    @classmethod
    def of(cls, folder: Path) -> Pool:
        """What the files of a sentence encoder say; the plain mean, where they say nothing.

        Raises UnsupportedError, by name, for modules that are neither pooling nor normalisation.
        """
        path = folder / "modules.json"
        if not path.exists():
            return cls()
        pooling, unit = "mean", False
        for module in _json(path):
            kind = str(module.get("type", "")).rsplit(".", 1)[-1]
            if kind == "Pooling":
                pooling = _pooling(folder / str(module.get("path", "")) / "config.json")
            elif kind == "Normalize":
                unit = True
            elif kind != "Transformer":
                raise UnsupportedError(
                    f"the sentence encoder has a module {kind!r}",
                    expected="Transformer, Pooling, Normalize",
                    found=f"{kind} in {path}",
                )
        return cls(pooling, unit)  # type: ignore[arg-type]

    def __call__(self, rows: Array) -> Array:
        """The embedding, by a program."""
        return np.asarray(pool_rows(len(rows), rows.shape[1], self.pooling, self.unit)(rows))

    def direct(self, rows: Array) -> Array:
        """The embedding, directly."""
        row = rows.mean(axis=0) if self.pooling == "mean" else rows[0]
        return np.asarray(row / max(float(np.linalg.norm(row)), 1e-12) if self.unit else row)

    def __str__(self) -> str:
        words = {"mean": "the mean over tokens", "cls": "the first token"}[self.pooling]
        return words + (", brought to length 1" if self.unit else "")


@dataclass(frozen=True)
class SentenceRun:
    """The embedding of a sentence through U and directly; `differences` after every layer."""

    tokens: tuple[str, ...]
    simulator: BlockSimulator
    pool: Pool
    rows: Array
    embedding: Array
    direct: Array
    differences: tuple[float, ...]
    seconds: float
    seconds_direct: float
    peak_bytes: int

    @property
    def max_abs_error(self) -> float:
        """The largest difference between the two embeddings."""
        return float(np.abs(self.embedding - self.direct).max())

    def report(self) -> dict[str, Any]:
        """What was run and what came out, ready for JSON."""
        cost = self.simulator.cost
        return {
            "tokens": list(self.tokens),
            "block": str(self.simulator.shape),
            "attention_depth": cost.attention_depth,
            "layers": cost.layers,
            "heads_per_layer": list(cost.heads_per_layer),
            "feed_forward": list(cost.feed_forward),
            "sequence_length": self.simulator.sequence_length,
            "pooling": str(self.pool),
            "largest_difference_after_layer": list(self.differences),
            "max_abs_error": self.max_abs_error,
            "evidence": "measured against the direct computation in float64",
            "seconds": self.seconds,
            "seconds_direct": self.seconds_direct,
            "peak_bytes": self.peak_bytes,
            "embedding": self.embedding.tolist(),
        }


def embed_sentence(
    path: str | Path,
    text: str,
    *,
    budget: int = BUDGET,
    progress: Callable[[int, int], None] = lambda layer, layers: None,
) -> SentenceRun:
    """Run every layer of a pretrained encoder through U, beside the direct computation.

    `path` is a weights file or its folder with `config.json` and `tokenizer.json`; `progress` is
    told the number of layers done. Raises RaspError for what is not there or not supported.
    """
    encoder = Encoder.open(path)
    pool = Pool.of(encoder.folder)
    ids, names = encoder.tokens(text)
    x, direct = _embedded(encoder, ids), encoder.embed(ids)
    simulator = BlockSimulator.for_block(read_block(path, 0), len(ids))
    differences, spent, spent_direct = [], 0.0, 0.0
    for layer in range(encoder.layers):
        block = read_block(path, layer)
        start = time.perf_counter()
        x = simulator(block, x, budget=budget)
        middle = time.perf_counter()
        direct = encoder.block(direct, layer)
        spent, spent_direct = spent + middle - start, spent_direct + time.perf_counter() - middle
        differences.append(float(np.abs(x - direct).max()))
        progress(layer + 1, encoder.layers)
    return SentenceRun(
        tuple(names),
        simulator,
        pool,
        x,
        pool(x),
        pool.direct(direct),
        tuple(differences),
        spent,
        spent_direct,
        peak_bytes(),
    )


def _embedded(encoder: Encoder, ids: list[int]) -> Array:
    """The embeddings of the tokens, their layer norm computed by a program."""
    rows = encoder.summed(ids)
    weight, bias, eps = encoder.embedding_norm()
    table = np.stack([weight, bias, np.full(weight.shape, eps)])
    return np.asarray(norm_rows(len(rows), rows.shape[1])(rows, table))


def _pooling(path: Path) -> Pooling:
    facts = _json(path)
    wanted = [k for k, v in facts.items() if k.startswith("pooling_mode_") and v is True]
    known: dict[str, Pooling] = {
        "pooling_mode_mean_tokens": "mean",
        "pooling_mode_cls_token": "cls",
    }
    if len(wanted) != 1 or wanted[0] not in known:
        raise UnsupportedError(
            "the sentence encoder pools in another way",
            expected="one of " + ", ".join(known),
            found=", ".join(wanted) or f"no pooling mode in {path}",
        )
    return known[wanted[0]]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RaspLoadError(f"{path} cannot be read as JSON", found=str(error)) from error
