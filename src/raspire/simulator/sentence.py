"""A whole pretrained encoder looped through U, from a sentence to its embedding.

One U for blocks runs every layer: only the numbers it is given change from layer to layer. The
norm of the embeddings and the pooling are programs too; a table of words is read, not computed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from raspire.errors import RaspLoadError, RaspValueError, UnsupportedError
from raspire.evaluate import BUDGET
from raspire.library.norms import norm_rows, pool_rows
from raspire.simulator.block import EncoderBlock
from raspire.simulator.block_reader import read_block
from raspire.simulator.block_runner import BlockConstruction, BlockRunner, Runners
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
    u: BlockRunner
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
        return {
            "tokens": list(self.tokens),
            **self.u.facts(),
            "pooling": str(self.pool),
            "largest_difference_after_layer": list(self.differences),
            "max_abs_error": self.max_abs_error,
            "evidence": "measured against the direct computation in float64",
            "seconds": self.seconds,
            "seconds_direct": self.seconds_direct,
            "peak_bytes": self.peak_bytes,
            "embedding": self.embedding.tolist(),
        }


class SentenceEncoder:
    """A pretrained sentence encoder whose every layer is run by one U for blocks.

    `path` is a weights file or its folder with `config.json` and `tokenizer.json`;
    `construction` says whether U is the program `long` or the explicit weights `native`. Raises
    RaspError for what is not there or not supported.
    """

    def __init__(self, path: str | Path, construction: BlockConstruction = "long") -> None:
        self.encoder = Encoder.open(path)
        self.pool = Pool.of(self.encoder.folder)
        self.longest = _longest(self.encoder.folder)
        self.construction = construction

    @cached_property
    def blocks(self) -> list[EncoderBlock]:
        """Every layer, read once."""
        return [read_block(self.encoder.path, layer) for layer in range(self.encoder.layers)]

    @cached_property
    def runners(self) -> Runners:
        """The U for sentences of n tokens, for every n."""
        return Runners(self.construction, self.blocks[0].shape)

    def __call__(
        self,
        text: str,
        *,
        budget: int = BUDGET,
        progress: Callable[[int, int], None] = lambda layer, layers: None,
    ) -> SentenceRun:
        """The embedding of a text; `progress` is told the number of layers done."""
        ids, names = self.encoder.tokens(text)
        if self.longest is not None and len(ids) > self.longest:
            raise RaspValueError(
                "the text is too long for the sentence encoder",
                expected=f"at most {self.longest} tokens",
                found=str(len(ids)),
                hint="its own pipeline would cut the text off there",
            )
        x, direct = self._embedded(ids), self.encoder.embed(ids)
        u = self.runners(len(ids))
        differences, spent, spent_direct = [], 0.0, 0.0
        for layer, block in enumerate(self.blocks):
            start = time.perf_counter()
            x = u.run(block, x, budget)
            middle = time.perf_counter()
            direct = self.encoder.block(direct, layer)
            end = time.perf_counter()
            spent, spent_direct = spent + middle - start, spent_direct + end - middle
            differences.append(float(np.abs(x - direct).max()))
            progress(layer + 1, len(self.blocks))
        return SentenceRun(
            tuple(names),
            u,
            self.pool,
            x,
            self.pool(x),
            self.pool.direct(direct),
            tuple(differences),
            spent,
            spent_direct,
            peak_bytes(),
        )

    def _embedded(self, ids: list[int]) -> Array:
        """The embeddings of the tokens, their layer norm computed by a program."""
        rows = self.encoder.summed(ids)
        weight, bias, eps = self.encoder.embedding_norm()
        table = np.stack([weight, bias, np.full(weight.shape, eps)])
        return np.asarray(norm_rows(len(rows), rows.shape[1])(rows, table))


def embed_sentence(path: str | Path, text: str) -> SentenceRun:
    """Run every layer of a pretrained encoder through U, beside the direct computation."""
    return SentenceEncoder(path)(text)


def cosines(runs: Sequence[SentenceRun]) -> Array:
    """The cosine of the angle between every two embeddings."""
    rows = np.stack([run.embedding for run in runs])
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows @ rows.T)


def _longest(folder: Path) -> int | None:
    """How many tokens the encoder's own pipeline keeps, if it says so."""
    path = folder / "sentence_bert_config.json"
    longest = _json(path).get("max_seq_length") if path.exists() else None
    return longest if isinstance(longest, int) else None


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
