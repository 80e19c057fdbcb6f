"""The universal simulator U: built from a shape, given ⟨T, X⟩ as its input, it returns T(X)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from raspire.errors import RaspTypeError, RaspValueError
from raspire.evaluate import BUDGET, evaluate
from raspire.given import one_of, whole
from raspire.program.facts import cost
from raspire.program.nodes import SOp
from raspire.simulator.construction import (
    SOFTMAXES,
    Builder,
    Construction,
    Part,
    Softmax,
)
from raspire.simulator.estimate import refuse_beyond
from raspire.simulator.hierarchy import (
    cropped,
    enlarged,
    enlarged_padding,
    enlarged_rows,
    misfit,
)
from raspire.simulator.inputs import checked_input, refuse_blind_rows
from raspire.simulator.long import long
from raspire.simulator.naming import Mask
from raspire.simulator.target import MASKS, AttentionTarget, Shape
from raspire.simulator.weights import Array
from raspire.simulator.wide import wide

if TYPE_CHECKING:
    from raspire.compile import Compiled

ConstructionName = Literal["long", "wide"]
CONSTRUCTIONS: Mapping[ConstructionName, Builder] = {"long": long, "wide": wide}

SCORE_LIMIT = 700.0
"""The plain softmax is allowed while every score lies in [-700, 700]."""

_EXP_LIMIT = 709.0


@dataclass(frozen=True)
class SimulatorCost:
    """What U costs as a transformer, counted on its program; see `raspire.program.facts.Cost`."""

    construction: str
    attention_depth: int
    layers: int
    heads_per_layer: tuple[int, ...]
    feed_forward: tuple[str, ...]
    sequence_length: int
    nodes: int | None

    def __str__(self) -> str:
        heads = ", ".join(map(str, self.heads_per_layer))
        return (
            f"construction {self.construction}: attention depth {self.attention_depth}, "
            f"layers {self.layers}, heads per layer {heads}, "
            f"feed-forward {', '.join(self.feed_forward)}, N = {self.sequence_length:,}"
        )


class UniversalSimulator:
    """One fixed program for every target of one shape (Theorem 6; several heads: Theorem 9).

    Targets of smaller shapes run in it too, see `accepts`.

    `softmax="plain"` exponentiates the scores as they are and refuses targets whose scores may
    leave [-700, 700]; `"stable"` subtracts the maximum of each row first, one layer deeper.

    >>> t = AttentionTarget.from_arrays(np.zeros((1, 1)), np.zeros((1, 1)), np.eye(1), heads=1)
    >>> u = UniversalSimulator(n=2, d=1, heads=1, d_k=1, d_v=1, output=False)
    >>> u(t, np.array([[1.0], [3.0]])).tolist()
    [[2.0], [2.0]]
    """

    def __init__(
        self,
        n: int,
        d: int,
        heads: int = 1,
        d_k: int | None = None,
        d_v: int | None = None,
        construction: ConstructionName = "long",
        softmax: Softmax = "plain",
        mask: Mask = "none",
        output: bool = True,
        *,
        rotary: bool = False,
        relative: bool = False,
        window: int | None = None,
    ) -> None:
        one_of("construction", construction, CONSTRUCTIONS)
        one_of("softmax", softmax, SOFTMAXES)
        one_of("mask", mask, MASKS)
        n, d, heads = whole("n", n), whole("d", d), whole("heads", heads)
        window = None if window is None else whole("window", window)
        d_k = _head_width("d_k", d_k, d, heads)
        d_v = _head_width("d_v", d_v, d, heads)
        self.n = n
        self.shape = Shape(d, heads, d_k, d_v, output, mask, rotary, relative, window)
        self.construction: Construction = CONSTRUCTIONS[construction](n, self.shape, softmax)

    @classmethod
    def for_target(
        cls,
        target: AttentionTarget,
        n: int,
        construction: ConstructionName = "long",
        softmax: Softmax = "plain",
    ) -> UniversalSimulator:
        """The simulator of the target's shape, for sequences of n rows."""
        s = target.shape
        return cls(
            n,
            s.d,
            s.heads,
            s.d_k,
            s.d_v,
            construction,
            softmax,
            s.mask,
            s.output,
            rotary=s.rotary,
            relative=s.relative,
            window=s.window,
        )

    @property
    def program(self) -> SOp:
        """U itself; it depends on the shape alone."""
        return self.construction.program

    @property
    def parts(self) -> Mapping[str, Part]:
        """Intermediate results by name; see `Construction`."""
        return self.construction.parts

    @property
    def sequence_length(self) -> int:
        """N, the length of ⟨T, X⟩ with its padding."""
        return self.construction.length

    @cached_property
    def cost(self) -> SimulatorCost:
        """Depth, layers, heads and sequence length, counted on the program."""
        counted = cost(self.program)
        return SimulatorCost(
            construction=self.construction.name,
            attention_depth=counted.attention_depth,
            layers=counted.layers,
            heads_per_layer=counted.heads_per_layer,
            feed_forward=counted.feed_forward,
            sequence_length=self.sequence_length,
            nodes=counted.nodes,
        )

    def explain(self) -> str:
        """What U is, where ⟨T, X⟩ lies in its input, and the plan of its evaluation."""
        from raspire.simulator.explanation import explain

        return explain(self)

    def accepts(self, shape: Shape, n: int | None = None) -> bool:
        """Whether U runs targets of this shape on n rows (its own n, if not given).

        Its own shape always; smaller ones padded with zeros (Corollary 6.2). Fewer rows than U's
        need a mask that hides the rest: `"causal"` takes causal targets, `"padding"` takes
        targets with and without a key padding.
        """
        return not misfit(shape, self.n if n is None else n, self.shape, self.n)

    def encode(
        self, target: AttentionTarget, x: ArrayLike, padding: ArrayLike | None = None
    ) -> Array:
        """⟨T, X⟩: the target's weights and the input as one sequence of N numbers.

        The target's scale over 1/sqrt(d_k) multiplies W_Q and its bias; 1, the usual ratio,
        touches nothing. Raises RaspValueError where the target or X do not fit U.
        """
        rows = self._fitting(target, x)
        if padding is not None and target.mask != "padding":
            raise RaspValueError(
                "key padding was given for a target without that mask",
                expected="a target with mask 'padding'",
                found=f"mask {target.mask!r}",
            )
        sequence = np.zeros(self.sequence_length)
        pages = {
            name: sequence[block.base : block.end].reshape(block.shape)
            for name, block in self.construction.inputs.items()
        }
        _write(enlarged(target, self.shape), rows, pages)
        if "seen" in pages:
            pages["seen"][:] = enlarged_padding(padding, len(rows), self.n)
            refuse_blind_rows(pages["seen"], self.shape.window)
        return sequence

    def __call__(
        self,
        target: AttentionTarget,
        x: ArrayLike,
        padding: ArrayLike | None = None,
        *,
        budget: int = BUDGET,
    ) -> Array:
        """T(X), shape (n, d), or (n, heads * d_v) for a target without output map.

        `budget` is in bytes. Raises BudgetError for a shape that does not fit it, and
        RaspValueError for scores that the plain softmax, or float64, cannot take.
        """
        self.check(target, x)
        refuse_beyond(whole("budget", budget), self.construction)
        sequence = self.encode(target, x, padding)
        result = self.decode(self.run(sequence, "result", budget=budget))
        if not np.isfinite(result).all():
            raise RaspValueError(
                "the values of this target on this X leave the range of float64",
                expected="scores and sums that float64 holds",
                found=f"{np.count_nonzero(~np.isfinite(result))} results that are no numbers",
                hint="smaller entries of X or of the weights",
            )
        return cropped(result, np.shape(x)[0], target.shape, self.shape)

    def compile(self, **options: Any) -> Compiled:
        """U as explicit weights, by the compiler; `options` are those of `compile`.

        The network maps ⟨T, X⟩ to N values, of which `read` takes T(X).

        >>> u = UniversalSimulator(n=1, d=1)
        >>> t = AttentionTarget.from_arrays(np.eye(1), np.eye(1), np.eye(1), np.eye(1), heads=1)
        >>> u.read(u.compile()(u.encode(t, np.array([[3.0]])).tolist())).tolist()
        [[3.0]]
        """
        from raspire.compile import REALS, compile

        options = {"name": f"U {self.construction.name}", **options}
        return compile(self.program, alphabet=REALS, max_length=self.sequence_length, **options)

    def read(self, values: ArrayLike) -> Array:
        """T(X) from the values of U at all N positions."""
        result = self.parts["result"].place.positions()
        return self.decode(np.asarray(values, dtype=np.float64)[np.asarray(result)])

    def run(
        self, sequence: Any, part: str = "result", *, budget: int = BUDGET, **options: Any
    ) -> Any:
        """The values of one part of U on an encoded input, in the row-major order of its shape."""
        piece = self.parts[part]
        positions = np.asarray(piece.place.positions(), dtype=np.int64)
        return evaluate(piece.sop, sequence, positions=positions, budget=budget, **options)

    def decode(self, values: ArrayLike) -> Array:
        """The values of the result as rows."""
        result = np.asarray(values, dtype=np.float64).reshape(self.parts["result"].shape)
        if result.ndim == 3:  # (heads, n, d_v), from `long` without output map
            result = result.transpose(1, 0, 2)
        return np.ascontiguousarray(result.reshape(self.n, -1))

    def check(self, target: AttentionTarget, x: ArrayLike) -> None:
        """Refuse a target that does not fit U, and scores that the plain softmax cannot take."""
        rows = self._fitting(target, x)
        if self.construction.softmax != "plain":
            return
        whole = enlarged(target, self.shape)
        fits, bound = plain_fits(whole, enlarged_rows(rows, self.n, self.shape.d))
        if not fits:
            raise RaspValueError(
                "the plain softmax cannot take these scores",
                expected="scores in [-700, 700], and their exponentials times the values finite",
                found=f"|score| up to {bound:.6g} (a bound computed from T and X)",
                hint='softmax="stable" subtracts the maximum of each row, one layer deeper',
            )

    def _fitting(self, target: AttentionTarget, x: ArrayLike) -> Array:
        """X as checked rows of a target that U accepts."""
        if not isinstance(target, AttentionTarget):
            raise RaspTypeError(
                "U simulates attention",
                expected="an AttentionTarget",
                found=type(target).__name__,
            )
        rows = checked_input(x, target.d)
        reason = misfit(target.shape, len(rows), self.shape, self.n)
        if reason:
            raise RaspValueError(
                f"U does not take this target: {reason}",
                expected=f"at most n={self.n}, {self.shape}",
                found=f"n={len(rows)}, {target.shape}",
                hint="a mask hides rows of padding; without one n must be U's own",
            )
        return rows


def encode(
    target: AttentionTarget,
    x: ArrayLike,
    construction: ConstructionName = "long",
    padding: ArrayLike | None = None,
) -> Array:
    """⟨T, X⟩ as the sequence that the simulator of the target's shape receives."""
    rows = checked_input(x, target.d)
    return UniversalSimulator.for_target(target, len(rows), construction).encode(
        target, rows, padding
    )


def score_bound(target: AttentionTarget, x: ArrayLike) -> float:
    """A bound on every |score|: per head, the longest query times the longest key, scaled."""
    rows = checked_input(x, target.d)
    queries = rows @ target.w_q + target.b_q[:, None]
    keys = rows @ target.w_k + target.b_k[:, None]
    longest = (np.einsum("hnk,hnk->hn", a, a).max(axis=1) for a in (queries, keys))
    product = math.sqrt(max(q * k for q, k in zip(*longest, strict=True)))
    bound = product * target.ratio / math.sqrt(target.d_k)
    if target.rotary is not None:
        bound *= max(1.0, target.rotary.factor**2)
    if target.relative is not None:
        bound += float(np.abs(target.relative.table(len(rows))).max())
    return bound


def plain_fits(target: AttentionTarget, x: ArrayLike) -> tuple[bool, float]:
    """Whether the plain softmax can take T and X, and the bound on |score| that tells."""
    rows = checked_input(x, target.d)
    bound = score_bound(target, rows)
    return bound <= SCORE_LIMIT and bound + _mass(target, rows) <= _EXP_LIMIT, bound


def _mass(target: AttentionTarget, rows: Array) -> float:
    """The logarithm of n times the greatest |value|: what a sum of weights times values adds."""
    values = rows @ target.w_v + target.b_v[:, None]
    return math.log(len(rows) * max(1.0, float(np.abs(values).max())))


def _write(target: AttentionTarget, rows: Array, pages: Mapping[str, Array]) -> None:
    """Write T and X into the blocks of the input, each seen as a matrix."""
    pages["X"][: len(rows), : rows.shape[1]] = rows
    pages["X"][:, -1] = 1.0
    start, ratio = 0, target.ratio
    layers = ((target.w_q, target.b_q), (target.w_k, target.b_k), (target.w_v, target.b_v))
    for weight, bias in layers:
        columns = pages["W"][:, start : start + bias.size]
        by_head = columns[:-1].reshape(target.d, *bias.shape)  # a view: only an axis is split
        by_head[:] = weight.transpose(1, 0, 2)
        columns[-1] = bias.ravel()
        if start == 0 and ratio != 1.0:
            columns *= ratio
        if target.rotary is not None and start < 2 * target.b_q.size:
            order = target.rotary.order(target.d_k)
            in_heads = columns.reshape(target.d + 1, target.heads, target.d_k)
            columns[:] = in_heads[:, :, order].reshape(columns.shape)
        start += bias.size
    if target.w_o is not None and target.b_o is not None:
        pages["WO"][:-1] = target.w_o
        pages["WO"][-1] = target.b_o
    n = len(pages["X"])
    if target.rotary is not None:
        pages["turns"][:] = target.rotary.table(n, target.d_k)
    if target.relative is not None:
        pages["relative"][:] = target.relative.table(n)


def _head_width(name: str, value: int | None, d: int, heads: int) -> int:
    if value is not None:
        return whole(name, value)
    if d % heads:
        raise RaspValueError(
            f"{heads} heads do not divide d = {d}",
            expected=f"a divisor of {d}, or {name} given",
            found=str(heads),
        )
    return d // heads


assert set(CONSTRUCTIONS) == set(get_args(ConstructionName))
