"""A transformer's weights run in an arithmetic that proves something.

The same matrices as in the forward pass, on field elements instead of floats: an identity test
then speaks of the explicit weights, and not of the program that they were made from. Scores of
average-hard heads must be integers, which addresses and groups are; softmax heads are named
functions and a quotient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from scipy import sparse

from raspire.arithmetic.field import PrimeField, Residue
from raspire.errors import RaspTypeError, UnsupportedError
from raspire.program.primitives import PRIMITIVES, primitive
from raspire.transformer.families import gate_of
from raspire.transformer.layer import Head, Layer, Units
from raspire.transformer.model import Transformer
from raspire.verify.degrees import CONSTANT, VARIABLE, Degree

ON_INTEGERS: dict[str, Callable[[Any], int]] = {
    "step": lambda x: int(x > 0),
    "zero": lambda x: int(x == 0),
    "sign": lambda x: int(x > 0) - int(x < 0),
    "floor": lambda x: int(x // 1),
}
Row = dict[int, Any]  # slot -> value; a slot that is not there holds 0
Degrees = dict[int, Degree]


class Forward:
    """One input's residual stream, with upper bounds for the degrees of its slots."""

    def __init__(self, model: Transformer, inputs: Sequence[Sequence[Any]], field: PrimeField):
        self.model, self.field = model, field
        self.arguments = CONSTANT
        self.length = len(inputs)
        self.degrees: Degrees = {}
        self.types = self._types()
        self.stream = [self._embedded(p, values) for p, values in enumerate(inputs)]
        for layer in model.layers:
            self._attend(layer)
            self._feed(layer)

    def result(self, positions: Sequence[int]) -> list[list[Any]]:
        """The outputs at some positions, one row of logits each."""
        columns = self._columns(self.model.unembedding.matrix)
        return [[self._read(self.stream[p], column) for column in columns] for p in positions]

    def degree(self) -> Degree:
        """A bound for the degree of an output."""
        found = CONSTANT
        for column in self._columns(self.model.unembedding.matrix):
            found = found.joined(self._degree(column))
        return found

    # ------------------------------------------------------------------------- embedding

    def _types(self) -> list[str]:
        types = self.model.embedding.types
        if types is None:
            return ["token"] * self.length
        return [types[min(p, len(types) - 1)] for p in range(self.length)]

    def _embedded(self, position: int, values: Sequence[Any]) -> Row:
        embedding = self.model.embedding
        if embedding.tokens is not None or embedding.values is None:
            raise UnsupportedError(
                "a network over a finite alphabet has no identity over a finite field",
                expected="a network whose inputs are numbers",
                found=self.model.name,
                hint="compare it with its program on every input",
            )
        row: Row = {}
        if embedding.positions is not None:
            table = embedding.positions
            place = min(position, table.shape[0] - 1) if embedding.extend else position
            for slot, weight in _row_of(table, place):
                self._add(row, slot, self.field.constant(weight))
        for c, value in enumerate(values):
            for slot, weight in _row_of(embedding.values, c):
                self._add(row, slot, self._times(value, weight))
                self.degrees[slot] = VARIABLE
        return row

    # ------------------------------------------------------------------------- attention

    def _attend(self, layer: Layer) -> None:
        changes: list[Row] = [{} for _ in range(self.length)]
        raised: Degrees = {}
        for head in layer.heads:
            outputs = self._rows(head.output)
            values = [self._columns_read(row, head.value) for row in self.stream]
            many, weighted = 1, head.kind == "softmax"
            for position, found, count in self._found(head, values):
                many = max(many, count)
                for value, entries in zip(found, outputs, strict=True):
                    for slot, weight in entries:
                        self._add(changes[position], slot, self._times(value, weight))
            degrees = [self._degree(column) for column in self._columns(head.value)]
            for degree, entries in zip(degrees, outputs, strict=True):
                result = degree.summed(many)
                if weighted:
                    result = (VARIABLE * degree).summed(many).over(VARIABLE)
                for slot, _ in entries:
                    raised[slot] = raised.get(slot, CONSTANT) + result
        self._change(changes, raised)

    def _found(self, head: Head, values: list[list[Any]]) -> Any:
        """For every position: the head's value there, and how many keys it averages."""
        queries = [self._columns_read(row, head.query) for row in self.stream]
        keys = [self._columns_read(row, head.key) for row in self.stream]
        if head.kind == "softmax":
            self._note_scores(head)
        known: dict[Any, tuple[list[Any], int]] = {}
        for position, query in enumerate(queries):
            hard = head.kind == "average-hard"
            name = (tuple(query) if hard else position, position if head.mask.causal else None)
            if hard:
                _integers(head, query)
            if name not in known:
                seen = [j for j in range(self.length) if self._sees(head, position, j)]
                rule = self._hard if hard else self._soft
                known[name] = rule(head, query, keys, values, seen)
            yield position, *known[name]

    def _sees(self, head: Head, position: int, key: int) -> bool:
        allowed = head.mask.keys is None or self.types[key] in head.mask.keys
        return allowed and not (head.mask.causal and key > position)

    def _hard(
        self, head: Head, query: list[Any], keys: Any, values: Any, seen: list[int]
    ) -> tuple[list[Any], int]:
        scores = {
            j: sum(a * b for a, b in zip(query, _integers(head, keys[j]), strict=True))
            for j in seen
        }
        best = max(scores.values(), default=None)
        chosen = [j for j in seen if scores[j] == best]
        width = head.value.shape[1]
        if not chosen:
            return [0] * width, 1
        return [self.field.mean([values[j][c] for j in chosen]) for c in range(width)], len(chosen)

    def _soft(
        self, head: Head, query: list[Any], keys: Any, values: Any, seen: list[int]
    ) -> tuple[list[Any], int]:
        exp, scale = self.field.form(primitive("exp")), self.field.constant(head.scale)
        weights = [
            exp(sum([a * b for a, b in zip(query, keys[j], strict=True)]) * scale) for j in seen
        ]
        width = head.value.shape[1]
        if not seen:
            return [0] * width, 1
        whole = sum(weights[1:], weights[0])
        mixed = [
            sum([w * values[j][c] for w, j in zip(weights, seen, strict=True)]) / whole
            for c in range(width)
        ]
        return mixed, len(seen)

    def _note_scores(self, head: Head) -> None:
        pairs = zip(self._columns(head.query), self._columns(head.key), strict=True)
        score = CONSTANT
        for query, key in pairs:
            score = score + self._degree(query) * self._degree(key)
        self.arguments = self.arguments.joined(score * VARIABLE)  # the scale is a variable

    # ---------------------------------------------------------------------- feed-forward

    def _feed(self, layer: Layer) -> None:
        changes: list[Row] = [{} for _ in range(self.length)]
        raised: Degrees = {}
        for units in layer.units:
            self._unit(units, changes, raised)
        self._change(changes, raised)

    def _unit(self, units: Units, changes: list[Row], raised: Degrees) -> None:
        outputs = self._rows(units.output)
        first = self._columns(units.first)
        second = [[]] * len(first) if units.second is None else self._columns(units.second)
        gate = gate_of(units.family)
        for k, entries in enumerate(outputs):
            for position, row in enumerate(self.stream):
                value = self._read(row, first[k]) + self._bias(units.first_bias, k)
                if gate is None:
                    value = self._plain(units.family, value)
                else:
                    argument = self._read(row, second[k]) + self._bias(units.second_bias, k)
                    value = self._gated(gate, value, argument)
                for slot, weight in entries:
                    self._add(changes[position], slot, self._times(value, weight))
            degree = self._unit_degree(
                units.family, self._degree(first[k]), self._degree(second[k])
            )
            for slot, _ in entries:
                raised[slot] = raised.get(slot, CONSTANT) + degree

    def _plain(self, family: str, value: Any) -> Any:
        if family == "linear":
            return value
        part = self.field.form(primitive("relu"))(value)
        return part if family == "relu" else part * part

    def _gated(self, gate: str, value: Any, argument: Any) -> Any:
        if gate == "identity":
            return value * argument
        if isinstance(value, int) and value == 0:
            return 0
        return value * self._function(gate, argument)

    def _function(self, gate: str, argument: Any) -> Any:
        if not isinstance(argument, Residue) and gate in ON_INTEGERS:
            return ON_INTEGERS[gate](argument)
        if gate in PRIMITIVES:
            return self.field.form(primitive(gate))(argument)
        if gate in ON_INTEGERS:
            raise RaspTypeError(
                f"the gate {gate} compares a value that depends on the input",
                expected="integers, which addresses and counts are",
                found=repr(argument),
            )
        return self.field.function(gate, argument)

    def _unit_degree(self, family: str, first: Degree, second: Degree) -> Degree:
        gate = gate_of(family)
        if gate is None:
            if family != "linear":
                self.arguments = self.arguments.joined(first)
                first = first + VARIABLE
            return first * first if family == "relu2" else first
        if gate == "identity":
            return first * second
        if gate == "recip":
            return first.over(second)
        self.arguments = self.arguments.joined(second)
        return first * VARIABLE

    def _bias(self, bias: Any, k: int) -> Any:
        return 0 if bias is None else self.field.constant(float(bias[k]))

    # --------------------------------------------------------------------------- algebra

    def _change(self, changes: list[Row], raised: Degrees) -> None:
        for row, change in zip(self.stream, changes, strict=True):
            for slot, value in change.items():
                self._add(row, slot, value)
        for slot, degree in raised.items():
            self.degrees[slot] = self.degrees.get(slot, CONSTANT) + degree

    def _add(self, row: Row, slot: int, value: Any) -> None:
        row[slot] = row[slot] + value if slot in row else value

    def _times(self, value: Any, weight: float) -> Any:
        return value if weight == 1 else value * self.field.constant(weight)

    def _read(self, row: Row, column: list[tuple[int, float]]) -> Any:
        total: Any = 0
        for slot, weight in column:
            if slot in row:
                total = total + self._times(row[slot], weight)
        return total

    def _columns_read(self, row: Row, matrix: Any) -> list[Any]:
        return [self._read(row, column) for column in self._columns(matrix)]

    def _degree(self, column: list[tuple[int, float]]) -> Degree:
        found = CONSTANT
        for slot, weight in column:
            own = self.degrees.get(slot, CONSTANT)
            generic = isinstance(self.field.constant(weight), Residue)
            found = found + (own * VARIABLE if generic else own)
        return found

    def _columns(self, matrix: Any) -> list[list[tuple[int, float]]]:
        return _entries(sparse.csc_array(matrix))

    def _rows(self, matrix: Any) -> list[list[tuple[int, float]]]:
        return _entries(sparse.csr_array(matrix))


class NetworkSide:
    """A network whose inputs are numbers, one a token, read at some positions."""

    def __init__(self, model: Transformer, positions: Sequence[int]) -> None:
        self.model, self.positions = model, positions
        self._last: Forward | None = None

    def run(self, tokens: Sequence[Any], field: PrimeField) -> list[Any]:
        """The outputs on one input; a beginning of sequence is put before it."""
        start = self.model.start
        inputs = [[0]] * start + [[token] for token in tokens]
        self._last = Forward(self.model, inputs, field)
        rows = self._last.result([start + position for position in self.positions])
        return [value for row in rows for value in row]

    def degree(self) -> tuple[Degree, Degree]:
        """By the sparse matrices, after a run."""
        assert self._last is not None
        return self._last.degree(), self._last.arguments


def _entries(matrix: Any) -> list[list[tuple[int, float]]]:
    """The stored entries of every column (or row) of a compressed matrix."""
    starts, places = matrix.indptr.tolist(), matrix.indices.tolist()
    data = matrix.data.tolist()
    return [list(zip(places[a:b], data[a:b], strict=True)) for a, b in pairwise(starts)]


def _row_of(matrix: Any, row: int) -> list[tuple[int, float]]:
    start, end = matrix.indptr[row], matrix.indptr[row + 1]
    return list(
        zip(matrix.indices[start:end].tolist(), matrix.data[start:end].tolist(), strict=True)
    )


def _integers(head: Head, values: list[Any]) -> list[Any]:
    if not all(isinstance(value, int) for value in values):
        raise RaspTypeError(
            f"the average-hard head {head.name!r} compares a value that depends on the input",
            expected="integers, which addresses and groups are",
            found=repr(values),
        )
    return values
