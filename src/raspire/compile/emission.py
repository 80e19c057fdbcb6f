"""Writing the plan down as a transformer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from raspire.compile.domain import Real, Vector
from raspire.compile.embedded import column_of
from raspire.compile.linear import BOS, TOK, Cell, Form
from raspire.compile.parts import GatePart, HeadPart, StepPart
from raspire.compile.schedule import Plan, Slots
from raspire.transformer import Builder, Space
from raspire.transformer import Form as Map
from raspire.transformer.builder import LayerBuilder


@dataclass
class Emitter:
    """The builder of one transformer, and where every cell lives in it."""

    name: str
    plan: Plan
    slots: Slots
    alphabet: tuple[Any, ...] | Real
    length: int
    bos: str
    pad: str

    def build(self, kind: str, labels: tuple[Any, ...]) -> Builder:
        """All of it; ``labels`` name the columns of the output."""
        self.builder = Builder(self.name)
        for cell, slot in self.slots.of.items():
            self.builder.stream.place(Space(cell.label, (cell.label,), (slot,)))
        self._embedding()
        for i in range(self.plan.depth):
            layer = self.builder.layer()
            for head in self.plan.heads[i]:
                self._head(layer, head)
            for part in self.plan.units[i]:
                if isinstance(part, StepPart):
                    self._steps(layer, part)
                else:
                    assert isinstance(part, GatePart)
                    self._gates(layer, part)
            if self.slots.erased[i]:
                self._erase(layer, self.slots.erased[i])
        output = self.map(self.plan.outputs)
        if kind == "categorical":
            self.builder.categorical(output, labels)
        else:
            self.builder.numeric(output, labels)
        return self.builder

    def map(self, forms: Sequence[Form]) -> Map:
        """Some forms as one sparse map from the stream, a column each."""
        entries = [
            (self.slots.of[cell], column, value)
            for column, form in enumerate(forms)
            for cell, value in form.terms.items()
        ]
        slots, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
        return Map(
            np.array(slots, dtype=np.int64),
            np.array(columns, dtype=np.int64),
            np.array(values, dtype=np.float64),
            len(forms),
        )

    def _writer(self, cells: Iterable[Cell]) -> Map:
        return self.map([Form({cell: 1.0}) for cell in cells])

    # ------------------------------------------------------------ embeddings

    def _embedding(self) -> None:
        cells = [c for c in self.slots.of if c.kind in ("token", "position", "value")]
        rows = np.zeros((self.length + 1, self.slots.width))
        for cell in cells:
            if cell.kind == "position":
                rows[1:, self.slots.of[cell]] = column_of(cell)
        if isinstance(self.alphabet, Real):
            rows[0, self.slots.of[BOS]] = 1
            rows[1:, self.slots.of[TOK]] = 1
            read = [Form({cell: 1.0}) for cell in cells if cell.kind == "value"]
            # A program that reads no token still gets one number a position, written nowhere.
            self.builder.values(self.map(read or [Form({})]))
            types = ["bos", *["token"] * self.length]
            self.builder.positions(sparse.csr_array(rows), types=types)
            return
        self.builder.tokens(self._symbols(cells), bos=self.bos, pad=self.pad)
        self.builder.positions(sparse.csr_array(rows))

    def _symbols(self, cells: list[Cell]) -> list[tuple[Any, dict[Space, float]]]:
        assert isinstance(self.alphabet, tuple)
        one, start = self._space(TOK), self._space(BOS)
        rows: list[tuple[Any, dict[Space, float]]] = [(a, {one: 1.0}) for a in self.alphabet]
        for cell in cells:
            if cell.kind == "token":
                space = self._space(cell)
                column = column_of(cell)
                for i in np.flatnonzero(column):
                    rows[i][1][space] = float(column[i])
        return [(self.pad, {start: 1.0}), (self.bos, {start: 1.0}), *rows]

    def _space(self, cell: Cell) -> Space:
        return Space(cell.label, (cell.label,), (self.slots.of[cell],))

    # ------------------------------------------------------------ layers

    def _head(self, layer: LayerBuilder, part: HeadPart) -> None:
        queries, keys = zip(*part.pairs, strict=True)
        layer.head(
            part.label,
            query=self.map(queries),
            key=self.map(keys),
            value=self.map(list(part.values.values())),
            output=self._writer(part.values),
            causal=part.causal,
            keys={"token"} if part.sink == "none" else None,
            gap=part.gap,
            bound=part.bound,
            address=part.address,
        )

    def _steps(self, layer: LayerBuilder, part: StepPart) -> None:
        at = part.changes()
        gaps = part.points[at + 1] - part.points[at]
        middle = (part.points[at + 1] + part.points[at]) / 2
        jumps = np.array([np.diff(values)[at] for values in part.outputs.values()])
        if part.hard:
            self._hard(layer, part, middle, jumps)
            return
        slope = 2.0 ** np.ceil(np.log2(2 / gaps))
        first = self._repeated(part.code, slope)
        bias = 0.5 - slope * middle
        off = _power(np.abs(bias + slope * part.code.at_bos).max() + 2)
        both = beside_twice(self._with_bos(first, -off))
        layer.units(
            part.label,
            "relu",
            both,
            self._weighted(part.outputs, np.hstack([jumps, -jumps])),
            bias=np.concatenate([bias, bias - 1]),
        )

    def _hard(self, layer: LayerBuilder, part: StepPart, middle: Vector, jumps: Vector) -> None:
        off = _power(np.abs(middle).max() + abs(part.code.at_bos) + 2)
        second = self._with_bos(self._repeated(part.code, np.ones(len(middle))), -off)
        output = self._weighted(part.outputs, jumps)
        layer.units(part.label, "gated:step", None, output, second=second, second_bias=-middle)

    def _repeated(self, form: Form, slopes: Vector) -> Map:
        """The form once for every slope, times it."""
        entries = [(self.slots.of[c], v) for c, v in form.terms.items()]
        count = len(slopes)
        return Map(
            np.repeat([slot for slot, _ in entries], count).astype(np.int64),
            np.tile(np.arange(count), len(entries)),
            np.concatenate([value * slopes for _, value in entries]),
            count,
        )

    def _with_bos(self, first: Map, value: float) -> Map:
        count = first.size
        slots = np.full(count, self.slots.of[BOS], dtype=np.int64)
        return first + Map(slots, np.arange(count), np.full(count, value), count)

    def _weighted(self, outputs: Iterable[Cell], weights: Vector) -> Map:
        """Unit u adds ``weights[c, u]`` to cell c."""
        places = np.array([self.slots.of[cell] for cell in outputs], dtype=np.int64)
        cells, units = np.nonzero(weights)
        return Map(places[cells], units, weights[cells, units], weights.shape[1])

    def _gates(self, layer: LayerBuilder, part: GatePart) -> None:
        for family in dict.fromkeys(term[0] for term in part.terms):
            _, first, second, weights = zip(
                *(term for term in part.terms if term[0] == family), strict=True
            )
            output = self._weighted([part.cell], np.array([weights]))
            gate = None if family in ("linear", "relu") else self.map(second)
            layer.units(part.label, family, self.map(first), output, second=gate)

    def _erase(self, layer: LayerBuilder, cells: list[Cell]) -> None:
        """``h - relu(h) + relu(-h)`` is 0, exactly."""
        space = self._writer(cells)
        both = Map(
            np.concatenate([space.slots, space.slots]),
            np.concatenate([space.columns, space.columns + space.size]),
            np.concatenate([space.values, -space.values]),
            2 * space.size,
        )
        layer.units("erase", "relu", both, -1.0 * both)


def beside_twice(form: Map) -> Map:
    """The form next to itself."""
    return Map(
        np.concatenate([form.slots, form.slots]),
        np.concatenate([form.columns, form.columns + form.size]),
        np.concatenate([form.values, form.values]),
        2 * form.size,
    )


def _power(value: float) -> float:
    """The least power of two above a number."""
    return float(2.0 ** np.ceil(np.log2(value)))
