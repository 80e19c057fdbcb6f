"""What a transformer costs, counted on its weights and on nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from raspire.transformer.layer import Head, Units
from raspire.transformer.model import Transformer


@dataclass(frozen=True)
class Cost:
    """Counts; ``attention_depth`` is the layers that have a head, ``layers`` is all of them."""

    attention_depth: int
    layers: int
    heads: tuple[int, ...]
    width: int
    units: dict[str, int]
    nonzeros: int
    parameters: int
    embedding_nonzeros: int
    max_length: int | None = None
    kinds: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        units = ", ".join(f"{n} {family}" for family, n in self.units.items()) or "none"
        heads = ", ".join(map(str, self.heads)) or "none"
        length = "any" if self.max_length is None else str(self.max_length)
        return "\n".join(
            [
                f"attention depth {self.attention_depth}, layers {self.layers}",
                f"heads a layer: {heads} ({' and '.join(self.kinds) or 'no'} attention)",
                f"width {self.width}, positions {length}",
                f"feed-forward units: {units}",
                f"non-zero weights {self.nonzeros} of {self.parameters}, "
                f"and {self.embedding_nonzeros} in the embedding",
            ]
        )


def cost(model: Transformer) -> Cost:
    """Count depth, heads, width, units and weights; the unembedding counts as weights.

    ``parameters`` is what the same matrices hold when they are full.
    """
    units: Counter[str] = Counter()
    for layer in model.layers:
        for group in layer.units:
            units[group.family] += group.count
    parts: list[Head | Units] = []
    for layer in model.layers:
        parts += [*layer.heads, *layer.units]
    matrices = [matrix for part in parts for matrix in part.matrices.values()]
    matrices.append(model.unembedding.matrix)
    biases = [
        bias
        for layer in model.layers
        for group in layer.units
        for bias in (group.first_bias, group.second_bias)
        if bias is not None
    ]
    embedding = model.embedding
    tables = [t for t in (embedding.tokens, embedding.positions, embedding.values) if t is not None]
    return Cost(
        sum(bool(layer.heads) for layer in model.layers),
        len(model.layers),
        tuple(len(layer.heads) for layer in model.layers),
        model.width,
        dict(units),
        sum(m.nnz for m in matrices) + sum(int((b != 0).sum()) for b in biases),
        sum(m.shape[0] * m.shape[1] for m in matrices) + sum(b.size for b in biases),
        sum(t.nnz for t in tables),
        embedding.max_length,
        tuple(sorted({head.kind for _, _, head in model.heads()})),
    )
