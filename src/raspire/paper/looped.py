"""Ours beside the looped transformers of Giannou et al. (2023), both run here, in one table.

Every row is counted on weights and measured on random matrices with entries in [-1, 1]. The
looped blocks are ours, from the equations of arXiv 2301.13196, and shorter than the published
ones wherever we found a shorter form; what their paper spends is in ``PUBLISHED``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raspire.paper.looped_blocks import Linearised, LoopedNetwork, ProductBlock, TransposeBlock
from raspire.paper.looped_inverse import InverseBlock
from raspire.paper.looped_machine import COMBINE, PROJECT, LoopedAttention
from raspire.paper.looped_memory import MemoryBlock
from raspire.simulator.direct import attention
from raspire.simulator.networks import Network, long_network, native_network, wide_network
from raspire.simulator.target import AttentionTarget
from raspire.transformer import Transformer, cost

Array = NDArray[np.float64]

FLOAT32 = Linearised(2.0**-10, 10.0)
"""The constants of a product at which binary32 does best."""

PUBLISHED = {
    "layers of the machine, without function blocks": 9,
    "layers of the longest function block (transposition)": 4,
    "instructions of one attention layer": len(PROJECT) + len(COMBINE),
}
"""Their machine applies 9 + 4 layers an instruction: 91 for one attention layer."""


@dataclass(frozen=True)
class Other:
    """A machine in transformer weights by other authors, with the sizes that they publish."""

    name: str
    size: str
    simulates: str
    not_simulated: str


OTHERS = (
    Other(
        "transformer-vm (Percepta, 2026)",
        "7 layers, width 38, 19 heads, 147 478 parameters; hard attention by a scale of 1e10",
        "a WebAssembly interpreter, one token a step",
        "attention layers: its authors do not claim it, and its values are integers",
    ),
    Other(
        "Loom (2026)",
        "8 layers, 21 opcodes; top-2 argmax attention",
        "a computer with 21 instructions",
        "attention layers: its authors do not claim it",
    ),
)


@dataclass(frozen=True)
class Row:
    """One network: its size, counted, and its largest error in both precisions, measured."""

    task: str
    network: str
    applications: int
    attention_depth: int
    heads: int
    width: int
    length: int
    families: tuple[str, ...]
    error64: float
    error32: float

    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        return (
            self.task,
            self.network,
            str(self.applications),
            str(self.attention_depth),
            str(self.heads),
            str(self.width),
            str(self.length),
            ", ".join(self.families),
            f"{self.error64:.1e}",
            f"{self.error32:.1e}",
        )


HEADINGS = (
    "task", "network", "layers applied", "attention depth", "most heads", "width", "tokens",
    "feed-forward", "error float64", "error float32",
)  # fmt: skip


def compare(k: int = 4, seeds: Iterable[int] = range(3), loops: int = 24) -> list[Row]:
    """All rows for k × k matrices: looped blocks, then one attention layer by both.

    >>> [row.network for row in compare(2, [0], loops=2)][-4:]
    ['looped', 'native', 'long', 'wide']
    """
    draws = list(seeds)
    blocks = [
        transposition(k, draws),
        product(k, draws),
        inverse(k, draws, loops),
        *memory(k, draws),
    ]
    return [*blocks, looped_attention(k, draws), *ours(k, draws)]


def transposition(k: int, seeds: Iterable[int]) -> Row:
    """The transposition block at temperature 20, in binary32 at 12."""
    precise, coarse = TransposeBlock.build(k), TransposeBlock.build(k, 12.0)
    errors = _errors(
        seeds,
        lambda rng: (_uniform(rng, k),),
        lambda a: a.T,
        lambda a: precise(a),
        lambda a: coarse(a, np.float32),
    )
    return _row("transpose", "looped", precise.network, errors)


def product(k: int, seeds: Iterable[int]) -> Row:
    """The product block at its best constants for either precision."""
    precise, coarse = ProductBlock.build(k, k, k), ProductBlock.build(k, k, k, FLOAT32)
    errors = _errors(
        seeds,
        lambda rng: (_uniform(rng, k), _uniform(rng, k)),
        lambda a, b: a.T @ b,
        lambda a, b: precise(a, b),
        lambda a, b: coarse(a, b, np.float32),
    )
    return _row("product", "looped", precise.network, errors)


def inverse(k: int, seeds: Iterable[int], loops: int = 24) -> Row:
    """Newton's iteration on well-conditioned matrices (2 I plus entries in [-1, 1] / k)."""
    precise, coarse = InverseBlock.build(k, loops), InverseBlock.build(k, loops, FLOAT32, 12.0)
    errors = _errors(
        seeds,
        lambda rng: (2 * np.eye(k) + _uniform(rng, k) / k,),
        np.linalg.inv,
        lambda a: precise(a),
        lambda a: coarse(a, np.float32),
    )
    return _row(f"inverse, {loops} loops", "looped", precise.network, errors)


def memory(k: int, seeds: Iterable[int]) -> list[Row]:
    """The read and the write block, for k vectors of k numbers."""
    rows = []
    for kind in ("read", "write"):
        precise = MemoryBlock.build(kind, k, k)
        coarse = MemoryBlock.build(kind, k, k, 12.0)
        errors = _errors(
            seeds,
            lambda rng: (_uniform(rng, k), int(rng.integers(k)), _uniform(rng, k)[0]),
            _read_by_hand if kind == "read" else _write_by_hand,
            lambda m, at, v, block=precise: np.vstack(block(m, at, v)),
            lambda m, at, v, block=coarse: np.vstack(block(m, at, v, np.float32)),
        )
        rows.append(_row(kind, "looped", precise.network, errors))
    return rows


def _read_by_hand(rows: Array, at: int, _: Array) -> Array:
    return np.vstack([rows, rows[at]])


def _write_by_hand(rows: Array, at: int, vector: Array) -> Array:
    new = rows.copy()
    new[at] = vector
    return np.vstack([new, vector])


def looped_attention(k: int, seeds: Iterable[int]) -> Row:
    """One attention layer on the matrix machine, the softmax done outside."""
    precise, coarse = LoopedAttention.build(k), LoopedAttention.build(k, FLOAT32)
    errors = _errors(
        seeds,
        lambda rng: tuple(_uniform(rng, k) for _ in range(5)),
        lambda *arrays: attention(*_target(*arrays)),
        lambda *arrays: precise(*arrays),
        lambda x, q, w, v, o: coarse(x, q, w, v, o, np.float32),
    )
    row = _row("attention", "looped", precise.machine.network(7), errors)
    assert row.applications == precise.applications
    return row


def ours(k: int, seeds: Iterable[int]) -> list[Row]:
    """The same attention layer by `native`, `long` and `wide`."""
    draws = list(seeds)
    shape = _target(*(np.eye(k) for _ in range(5)))[0].shape
    networks = (native_network(shape), long_network(k, shape), wide_network(k, shape))
    return [_ours(network, k, draws) for network in networks]


def _ours(network: Network, k: int, seeds: Iterable[int]) -> Row:
    errors = _errors(
        seeds,
        lambda rng: tuple(_uniform(rng, k) for _ in range(5)),
        lambda *arrays: attention(*_target(*arrays)),
        lambda *arrays: network(*_target(*arrays)),
        lambda *arrays: network(*_target(*arrays), dtype=np.float32),
    )
    target, x = _target(*(np.eye(k) for _ in range(5)))
    length = len(network.encode(target, x, None))
    return _counted("attention", network.name, network.model, length, errors)


def product_error(scale: float, constant: float, k: int = 8, seed: int = 0) -> tuple[float, float]:
    """The error of a product at these constants, and its estimate: Taylor plus cancellation.

    The estimate is ``k² s / 2`` (entries of the product are below k) plus ``ulp(C) / s``; its
    minimum over s is what no choice of constants gets below.
    """
    rng = np.random.default_rng(seed)
    a, b = _uniform(rng, k), _uniform(rng, k)
    block = ProductBlock.build(k, k, k, Linearised(scale, constant))
    measured = float(np.abs(block(a, b) - a.T @ b).max())
    return measured, k * k * scale / 2 + float(np.spacing(constant)) / scale


def transposition_error(temperature: float, k: int = 4, seed: int = 0) -> tuple[float, float]:
    """The error of a transposition at a temperature, and its bound from the saturated softmax.

    Each of three heads leaks at most ``2 N exp(-2 temperature)`` of the largest entry, and the
    last one multiplies by k.
    """
    block = TransposeBlock.build(k, temperature)
    a = _uniform(np.random.default_rng(seed), k)
    measured = float(np.abs(block(a) - a.T).max())
    bound = 3 * k * 2 * block.network.length * exp(-2 * temperature) * float(np.abs(a).max())
    return measured, bound + 1e-15


def render(rows: Iterable[Row]) -> str:
    """The table as Markdown."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join(lines)


def aligned(rows: Iterable[Row]) -> str:
    """The table in columns."""
    table = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[c]) for line in table) for c in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(t, widths, strict=True)) for t in table]
    return "\n".join(line.rstrip() for line in lines)


def remarks(k: int) -> str:
    """What the table does not show: what is granted, what is published, who else there is."""
    machine, block, count = PUBLISHED.values()
    lines = [
        f"looped: Giannou et al. 2023, rebuilt for {k} × {k} matrices; entries in [-1, 1].",
        "  Its softmax is done outside the network, between two runs: ReLU has no exponential.",
        f"  Published layers an instruction: {machine} + {block}, so {count} instructions apply "
        f"{count * (machine + block)}.",
        "  A product by linearised softmax has an error floor: Taylor against cancellation.",
        "native, long, wide: U with its softmax inside; entries and weights are input.",
        "Others, by their published sizes:",
    ]
    for other in OTHERS:
        lines += [
            f"  {other.name}: {other.size}.",
            f"    simulates {other.simulates}; not {other.not_simulated}.",
        ]
    return "\n".join(lines)


def _uniform(rng: np.random.Generator, k: int) -> Array:
    return rng.uniform(-1, 1, size=(k, k))


def _target(
    x: Array, w_q: Array, w_k: Array, w_v: Array, w_o: Array
) -> tuple[AttentionTarget, Array]:
    return AttentionTarget.from_arrays(w_q, w_k, w_v, w_o, heads=1), x


def _errors(
    seeds: Iterable[int],
    draw: Callable[[np.random.Generator], tuple[Any, ...]],
    truth: Callable[..., Any],
    precise: Callable[..., Any],
    coarse: Callable[..., Any],
) -> tuple[float, float]:
    worst = [0.0, 0.0]
    for seed in seeds:
        arrays = draw(np.random.default_rng(seed))
        expected = truth(*arrays)
        for i, run in enumerate((precise, coarse)):
            worst[i] = max(worst[i], float(np.abs(run(*arrays) - expected).max()))
    return worst[0], worst[1]


def _row(task: str, name: str, network: LoopedNetwork, errors: tuple[float, float]) -> Row:
    return _counted(task, name, network.model, network.length, errors)


def _counted(
    task: str, name: str, model: Transformer, length: int, errors: tuple[float, float]
) -> Row:
    found = cost(model)
    return Row(
        task,
        name,
        found.layers,
        found.attention_depth,
        max(found.heads),
        found.width,
        length,
        tuple(found.units),
        *errors,
    )
