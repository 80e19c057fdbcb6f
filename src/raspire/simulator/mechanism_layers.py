"""Other attention mechanisms by the layers of `long`, with one block changed.

Cross-attention has more rows, of which the last are keys; Linformer reduces keys and values along
the sequence before they are scored; linear attention has no scores, but a memory of products of
keys and values. The paper reconstructs the latter two and leaves encoder-decoder attention open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from raspire.errors import UnsupportedError
from raspire.library.layout import Block, fetch, mean_over
from raspire.program.embedding import exp, minimum, relu, tokens
from raspire.program.nodes import SOp
from raspire.simulator.construction import Construction, Softmax, input_shapes, stack
from raspire.simulator.long import LongLayers
from raspire.simulator.target import Shape

FeatureMap = Literal["elu", "relu", "exp"]

# Axes: i a query, j a key, p a reduced key, t a head, a and c columns of a head.


def cross_long(n: int, memory: int, shape: Shape, softmax: Softmax = "stable") -> Construction:
    """n queries from X attend to `memory` rows that stand below them in the block of X.

    >>> cross_long(2, 3, Shape(d=2, heads=1, d_k=2, d_v=2, output=False)).inputs["X"].shape
    (5, 3)
    """
    _refuse("cross-attention", shape, ("none", "padding"))
    shapes = input_shapes(n, shape) | {"X": (n + memory, shape.inputs)}
    if shape.mask == "padding":
        shapes["seen"] = (memory,)
    return _Cross(n, shape, softmax, stack(0, shapes)).build()


class _Cross(LongLayers):
    def key_rows(self) -> tuple[int, int]:
        return self.n, self.inputs["X"].shape[0] - self.n


def linformer_long(n: int, reduced: int, shape: Shape, softmax: Softmax = "stable") -> Construction:
    """Keys and values are first reduced along the sequence, from n rows to `reduced`.

    The input `reduce` is (2, heads, reduced, n): the maps of the keys and of the values.
    """
    _refuse("Linformer", shape, ("none",))
    shapes = input_shapes(n, shape) | {"reduce": (2, shape.heads, reduced, n)}
    return _Linformer(n, shape, softmax, stack(0, shapes)).build()


class _Linformer(LongLayers):
    def key_rows(self) -> tuple[int, int]:
        return 0, self.inputs["reduce"].shape[2]

    def sizes(self) -> dict[str, tuple[int, ...]]:
        shape, n = self.shape, self.n
        reduced = {
            "keys": (self.keys, n, shape.heads * shape.d_k),  # (p, j, column)
            "values": (self.keys, n, shape.heads * shape.d_v),
        }
        return super().sizes() | reduced

    def key(self, projections: SOp, j: SOp, t: SOp, a: SOp) -> SOp:
        first = self.shape.heads * self.shape.d_k
        return self._reduced("keys", projections, j, t * self.shape.d_k + a, first)

    def value(self, projections: SOp, j: SOp, t: SOp, c: SOp) -> SOp:
        first = 2 * self.shape.heads * self.shape.d_k
        return self._reduced("values", projections, j, t * self.shape.d_v + c, first)

    def _reduced(self, name: str, projections: SOp, p: SOp, column: SOp, first: int) -> SOp:
        """Two layers: the products with the map, then their sum over the sequence."""
        block = self.products[name]
        rows, j, own = block.digits()
        kind, width = (0, self.shape.d_k) if name == "keys" else (1, self.shape.d_v)
        head = own // width if width > 1 else own
        weight = fetch(tokens, self.inputs["reduce"].address(kind, head, rows, j))
        entry = fetch(projections, self.products["projections"].address(j, 0, own + first))
        reduced = (mean_over(block, (0, 2), weight * entry) * self.n).named(f"reduced_{name}")
        return fetch(reduced, block.address(p, 0, column))


def linear_long(n: int, shape: Shape, feature: FeatureMap = "elu") -> Construction:
    """Linear attention: `f(Q) (f(K)ᵀ V) / f(Q) (f(K)ᵀ 1)` with a feature map f, no softmax.

    Without a mask N grows linearly with n; under a mask the scores `f(Q) f(K)ᵀ` are formed.
    """
    _refuse("linear attention", shape, ("none", "causal", "padding"))
    layers = _Linear if shape.mask == "none" else _LinearScores
    return layers(n, shape, "plain", stack(0, input_shapes(n, shape)), feature).build()


@dataclass(frozen=True)
class _Feature:
    """A feature map as elementwise functions; elu(x) + 1 is exp(min(x, 0)) + max(x, 0)."""

    name: FeatureMap

    def __call__(self, x: SOp) -> SOp:
        if self.name == "exp":
            return exp(x)
        return relu(x) if self.name == "relu" else exp(minimum(x, 0)) + relu(x)


class _LinearScores(LongLayers):
    """The scores are products of features, and they are the weights."""

    def __init__(
        self,
        n: int,
        shape: Shape,
        softmax: Softmax,
        inputs: dict[str, Block],
        feature: FeatureMap,
    ) -> None:
        super().__init__(n, shape, softmax, inputs)
        self.feature = _Feature(feature)

    def project(self) -> SOp:
        """The features; only those of queries and keys are read."""
        self.projections = super().project()
        return self.feature(self.projections).named("features")

    def value(self, projections: SOp, j: SOp, t: SOp, c: SOp) -> SOp:
        return super().value(self.projections, j, t, c)

    def weigh(self, unscaled: SOp) -> SOp:
        return unscaled


class _Linear(_LinearScores):
    """The memory of a head, `Σ_j f(k_j) v_jᵀ` and `Σ_j f(k_j)`, then what a query reads of it."""

    def sizes(self) -> dict[str, tuple[int, ...]]:
        n, shape = self.n, self.shape
        sizes = super().sizes()
        del sizes["scores"]
        sizes["memory"] = (shape.heads, shape.d_k, n, shape.d_v)  # (t, a, j, c)
        sizes["mixing"] = (shape.heads, n, shape.d_k, shape.d_v)  # (t, i, a, c)
        return sizes

    def build(self) -> Construction:
        features = self.project()
        return self.finish(features, features, {})

    def mix(self, weights: SOp, projections: SOp) -> SOp:
        """Four layers: products, their sums over keys, products, their sums over coordinates.

        `weights` are the features; the counts of the means cancel in the quotient.
        """
        block = self.products["memory"]
        t, a, j, c = block.digits()
        key, value = self.key(projections, j, t, a), self.value(projections, j, t, c)
        memory = mean_over(block, (0, 1, 3), key * value).named("memory")
        mass = mean_over(block, (0, 1, 3), key).named("mass")
        mixing = self.products["mixing"]
        t, i, a, c = mixing.digits()
        source = self.products["projections"]
        query = fetch(weights, source.address(i, 0, self.columns.query(t, a)))
        place = block.address(t, a, 0, c)
        read, norm = query * fetch(memory, place), query * fetch(mass, place)
        return mean_over(mixing, (0, 1, 3), read) / mean_over(mixing, (0, 1, 3), norm)


def _refuse(name: str, shape: Shape, masks: tuple[str, ...]) -> None:
    if shape.positional:
        raise UnsupportedError(
            f"{name} with {shape.positional} waits for a later version",
            expected="a target in which positions enter by the mask alone",
        )
    if shape.mask not in masks:
        raise UnsupportedError(
            f"{name} has no mask {shape.mask}", expected="one of " + ", ".join(masks)
        )
