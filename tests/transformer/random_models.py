"""Random small transformers with every family, both kinds of attention and every mask."""

from __future__ import annotations

from itertools import cycle

import numpy as np
from scipy import sparse

from raspire.transformer import Builder, Form, Transformer, beside, read, write
from raspire.transformer.families import GATES

TOKENS = ("start", "fill", "a", "b", "c")
SAFE = [
    g for g in GATES if g not in ("recip", "rsqrt", "sqrt", "log", "step", "zero", "floor", "sign")
]
FAMILIES = ["linear", "relu", "relu2", "bilinear", *(f"gated:{g}" for g in SAFE)]


def random_transformer(
    seed: int, layers: int = 2, length: int = 9, hard: bool = True, values: bool = False
) -> Transformer:
    """Token or value input, positions with types, look-up heads, real heads, all families."""
    rng = np.random.default_rng(seed)
    b = Builder(f"random {seed}")
    one, here, square = b.space("one"), b.space("here"), b.space("square")
    mixed, found = b.space("mixed", 6), b.space("found", 4)
    b.positions(
        [{here: i, square: i * i} for i in range(length)],
        ["bos" if i == 0 else ("token", "odd")[i % 2] for i in range(length)],
    )
    if values:
        b.values(write(one, [[0.0]]) + write(mixed, rng.normal(size=(1, 6))))
    else:
        rows = {t: {one: 1.0, mixed: rng.normal(size=6)} for t in TOKENS}
        b.tokens(rows, bos="start", pad="fill")

    def form(space: object, size: int) -> Form:
        return read(space, rng.normal(size=(6, size)) / 4)  # type: ignore[arg-type]

    families = cycle(FAMILIES)
    for _ in range(layers):
        layer = b.layer()
        shift = int(rng.integers(-1, 3))
        if not values:
            layer.head(
                "shift",
                query=beside(2 * (read(here) + shift * read(one)), -read(one)),
                key=beside(read(here), read(square)),
                value=form(mixed, 3),
                output=write(found, rng.normal(size=(3, 4))),
                gap=1.0,
                bound=2.0 * length * length,
                address=True,
            )
            layer.head(
                "even or odd",
                query=read(one),
                key=read(one),
                value=form(mixed, 1),
                output=write(found[0]),
                keys=["odd"],
                gap=1.0,
            )
        kinds = ("average-hard", "softmax") if hard else ("softmax",)
        for kind in kinds:
            layer.head(
                f"real {kind}",
                query=form(mixed, 3),
                key=form(mixed, 3),
                value=form(mixed, 2),
                output=write(mixed, rng.normal(size=(2, 6)) / 4),
                kind=kind,  # type: ignore[arg-type]
                scale=1.5 if kind == "softmax" else 1.0,
                causal=bool(rng.integers(2)),
            )
        for _ in range(len(FAMILIES) // 2 + 1):
            family = next(families)
            gated = family.startswith("gated") or family == "bilinear"
            layer.units(
                family,
                family,
                form(mixed, 2),
                write(mixed, rng.normal(size=(2, 6)) / 8),
                bias=rng.normal(size=2) / 4,
                second=form(mixed, 2) if gated else None,
                second_bias=rng.normal(size=2) / 4,
            )
    b.categorical(
        read(mixed, rng.normal(size=(6, 3))) + read(found, rng.normal(size=(4, 3))), "xyz"
    )
    return b.build()


def random_inputs(model: Transformer, seed: int, count: int = 4, length: int = 9) -> np.ndarray:
    """A batch of unequal lengths: ids with the beginning of sequence first, or values with NaN."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, length + 1, size=count)
    lengths[0] = length
    padded = np.arange(length) >= lengths[:, None]
    if model.embedding.tokens is None:
        return np.where(padded, np.nan, rng.normal(size=(count, length)))
    ids = rng.integers(2, len(TOKENS), size=(count, length))
    ids[:, 0] = 0
    return np.where(padded, 1, ids)


def by_hand(model: Transformer, row: np.ndarray, types: list[str]) -> np.ndarray:
    """One unpadded sequence through the definition: full matrices and loops over positions."""
    import scipy.special as sp

    gates = {
        "identity": lambda x: x, "exp": np.exp, "abs": abs, "sin": np.sin, "cos": np.cos,
        "tanh": np.tanh, "erf": sp.erf, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "relu": lambda x: max(x, 0.0), "silu": lambda x: x / (1 + np.exp(-x)),
        "gelu": lambda x: x * (1 + sp.erf(x / np.sqrt(2))) / 2,
        "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    }  # fmt: skip
    e = model.embedding
    n = len(row)
    h = np.zeros((n, model.width))
    for p in range(n):
        h[p] += full(e.positions)[p]
        h[p] += full(e.tokens)[row[p]] if e.tokens is not None else row[p] * full(e.values)[0]
    for layer in model.layers:
        out = h.copy()
        for head in layer.heads:
            q, k, v, o = (full(m) for m in head.matrices.values())
            for i in range(n):
                seen = [
                    j
                    for j in range(n)
                    if (not head.mask.causal or j <= i)
                    and (head.mask.keys is None or types[j] in head.mask.keys)
                ]
                s = np.array(
                    [sum((h[i] @ q)[c] * (h[j] @ k)[c] for c in range(q.shape[1])) for j in seen]
                )
                if not seen:
                    continue
                if head.kind == "average-hard":
                    w = (s == s.max()) / np.sum(s == s.max())
                else:
                    w = sp.softmax(head.scale * s)
                out[i] += sum(wj * (h[j] @ v @ o) for wj, j in zip(w, seen, strict=True))
        h, out = out, out.copy()
        for u in layer.units:
            for i in range(n):
                for c in range(u.count):
                    a = h[i] @ full(u.first)[:, c] + u.first_bias[c]
                    if u.second is not None:
                        gate = u.family.removeprefix("gated:")
                        gate = "identity" if gate == "bilinear" else gate
                        a *= gates[gate](h[i] @ full(u.second)[:, c] + u.second_bias[c])
                    elif u.family != "linear":
                        a = max(a, 0.0) ** (2 if u.family == "relu2" else 1)
                    out[i] += a * full(u.output)[c]
        h = out
    return h @ full(model.unembedding.matrix)


def full(matrix: sparse.sparray) -> np.ndarray:
    return np.asarray(matrix.toarray())
