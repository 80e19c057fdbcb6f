"""A looped transformer that runs programs of matrix products: one whole attention layer in it.

Memory holds k × k matrices, one column a token; a program is a list of instructions
``(left, right, out)``, data like the matrices. Every loop of the same seven layers, one head each,
fetches an instruction, reads both operands, transposes the left one, multiplies (linearised
softmax) and writes the result back. ReLU cannot give a softmax its exponential, so in the best
case for this machine the softmax is done outside, between two runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raspire.paper.looped_blocks import (
    Array,
    Draft,
    Linearised,
    LoopedNetwork,
    Transposition,
    bits_for,
    code,
    erase,
    move,
    repeat,
)
from raspire.transformer import LayerBuilder, Space, Transformer, beside, read, write


@dataclass(frozen=True)
class Instruction:
    """``out := left · right``, or ``leftᵀ · right`` when ``skip`` leaves out the transposition."""

    left: str
    right: str
    out: str
    skip: bool = False


class MatrixMachine:
    """The machine for k × k matrices under the given names and programs up to a length.

    >>> machine = MatrixMachine(2, ["A", "B", "C"], steps=1)
    >>> a, b = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[0.5, 0.0], [1.0, 1.0]])
    >>> out = machine.run({"A": a, "B": b}, [Instruction("A", "B", "C")])["C"]
    >>> bool(np.abs(out - a @ b).max() < 1e-6)
    True
    """

    def __init__(
        self,
        k: int,
        names: Sequence[str],
        steps: int,
        constants: Linearised | None = None,
        temperature: float = 20.0,
    ) -> None:
        self.k, self.names, self.steps = k, tuple(names), steps
        self.block_bits, self.step_bits = bits_for(len(names)), bits_for(steps + 1)
        self.constants = constants or Linearised()
        self.draft = Draft(f"matrix machine, {k}×{k}", temperature)
        self._tokens()
        self._spaces()
        self._positions()
        self.body = self._write_body()

    def network(self, loops: int) -> LoopedNetwork:
        """The body applied ``loops`` times."""
        model = repeat(self.body, loops)
        return LoopedNetwork("matrix machine", model, len(self.body.layers), loops)

    def run(
        self,
        memory: Mapping[str, ArrayLike],
        program: Sequence[Instruction],
        dtype: Any = np.float64,
    ) -> dict[str, Array]:
        """All matrices after the program, from those given (others are 0), smaller ones padded."""
        k = self.k
        inputs: dict[int, ArrayLike] = {}
        fields = np.zeros(self._field_size)
        for b, name in enumerate(self.names):
            matrix = np.zeros((k, k))
            given = np.asarray(memory.get(name, matrix), dtype=np.float64)
            matrix[: given.shape[0], : given.shape[1]] = given
            for j in range(k):
                inputs[self.memory[b * k + j]] = np.concatenate([matrix[:, j], fields])
        for step, instruction in enumerate(program):
            inputs[self.program[step]] = np.concatenate(
                [np.zeros(k), self._encode(instruction, step)]
            )
        out = self.network(len(program)).run(inputs, dtype)
        blocks = out[self.memory.start : self.memory.stop].reshape(len(self.names), k, k)
        return {name: block.T for name, block in zip(self.names, blocks, strict=True)}

    @property
    def _field_size(self) -> int:
        return 3 * (1 + self.block_bits) + (1 + self.step_bits) + 1

    def _encode(self, instruction: Instruction, step: int) -> Array:
        names = (instruction.left, instruction.right, instruction.out)
        blocks = [code(self.names.index(name), self.block_bits) for name in names]
        following = code(step + 1, self.step_bits)
        return np.concatenate([*blocks, following, [float(instruction.skip)]])

    def _tokens(self) -> None:
        draft, k = self.draft, self.k
        self.memory = draft.tokens(len(self.names) * k)
        self.left, self.right = draft.tokens(k), draft.tokens(k)
        self.diluting, self.program = draft.tokens(1), draft.tokens(self.steps)

    def _spaces(self) -> None:
        b, k = self.draft.b, self.k
        block, step = 1 + self.block_bits, 1 + self.step_bits
        self.vector = b.space("matrix column", k)
        self.field = {
            name: b.space(name, size)
            for name, size in (
                ("left", block),
                ("right", block),
                ("out", block),
                ("next", step),
                ("skip", 1),
            )
        }
        inputs = [write(self.vector), *(write(space) for space in self.field.values())]
        b.values(beside(*inputs))
        self.got = {name: b.space(f"fetched {name}", s.size) for name, s in self.field.items()}
        self.pc, self.step = b.space("counter", step), b.space("step code", step)
        self.block = b.space("block code", block)
        self.column = b.space("column code", bits_for(k))
        self.scratch_column = b.space("column asked", bits_for(k))
        self.address, self.goal = b.space("address", block), b.space("goal", block)
        self.skip = b.space("no transposition")
        self.l, self.r = b.space("left column", k), b.space("right column", k)
        self.operand, self.buffer = b.space("operand", k), b.space("result", k)
        self.label, self.diluter = b.space("label", k), b.space("diluter")

    def _positions(self) -> None:
        put, k, bits = self.draft.set, self.k, bits_for(self.k)
        for place in self.memory:
            b, j = divmod(place - self.memory.start, k)
            put(place, self.block, code(b, self.block_bits))
            put(place, self.column, code(j, bits)[1:])
        for j in range(k):
            put(self.left[j], self.label, np.eye(k)[j])
            for token in (self.left[j], self.right[j]):
                put(token, self.scratch_column, code(j, bits)[1:])
                put(token, self.pc, code(0, self.step_bits))
        put(self.diluting[0], self.diluter, 1.0)
        for step, place in enumerate(self.program):
            put(place, self.step, code(step, self.step_bits))
        outside = self.draft.outside
        self.not_left, self.not_right = outside("not L", self.left), outside("not R", self.right)
        both = range(self.left.start, self.right.stop)
        self.not_scratch = outside("not L or R", both)
        self.not_memory = outside("not memory", self.memory)

    def _write_body(self) -> Transformer:
        transposition = Transposition(self.draft, self.k, self.left, self.left)
        self._fetch(self.draft.b.layer())
        self._read(self.draft.b.layer())
        skip, one = read(self.skip), read(self.draft.one)
        layer = transposition.write(self.l, write(self.operand), skip)
        guard = read(self.not_left) + one - skip
        move(layer, "operand as it is", read(self.l), write(self.operand), guard)
        self._multiply(self.draft.b.layer())
        self._write(self.draft.b.layer())
        return self.draft.finish(read(self.vector))

    def _fetch(self, layer: LayerBuilder) -> None:
        source = beside(*(read(space) for space in self.field.values()))
        target = beside(*(write(space) for space in self.got.values()))
        self.draft.head(layer, "fetch", read(self.pc), read(self.step), source, target)
        got = {name: read(space) for name, space in self.got.items()}
        left, right = read(self.not_left), read(self.not_right)
        move(layer, "left address", got["left"], write(self.address), left)
        move(layer, "right address", got["right"], write(self.address), right)
        move(layer, "goal", got["out"], write(self.goal), right)
        move(layer, "skip", got["skip"], write(self.skip), left)
        following = got["next"] - read(self.pc)
        move(layer, "next", following, write(self.pc), read(self.not_scratch))
        for space in self.got.values():
            erase(layer, space)

    def _read(self, layer: LayerBuilder) -> None:
        query = beside(read(self.address), read(self.scratch_column))
        key = beside(read(self.block), read(self.column))
        self.draft.head(layer, "read", query, key, read(self.vector), write(self.buffer))
        move(layer, "left", read(self.buffer), write(self.l), read(self.not_left))
        move(layer, "right", read(self.buffer), write(self.r), read(self.not_right))
        erase(layer, self.buffer)

    def _multiply(self, layer: LayerBuilder) -> None:
        self.constants.head(
            layer,
            "product",
            read(self.r),
            read(self.operand),
            read(self.label),
            read(self.draft.one),
            read(self.diluter),
            write(self.buffer),
        )
        change = read(self.buffer) - read(self.r)
        move(layer, "result", change, write(self.r), read(self.not_right))
        erase(layer, self.buffer)

    def _write(self, layer: LayerBuilder) -> None:
        """A memory token attends to itself and, if it is the goal, to the result as well."""
        query = beside(read(self.block), read(self.column))
        key = query + beside(read(self.goal), read(self.scratch_column))
        value = read(self.vector) + read(self.r)
        self.draft.head(layer, "write", query, key, value, write(self.buffer))
        change = 2 * read(self.buffer) - 2 * read(self.vector)
        move(layer, "replace", change, write(self.vector), read(self.not_memory))
        spent: list[Space] = [self.buffer, self.l, self.r, self.operand, self.address]
        for space in (*spent, self.goal, self.skip):
            erase(layer, space)


PROJECT = (
    Instruction("X", "W_Q", "Q"),
    Instruction("X", "W_K", "K"),
    Instruction("X", "W_V", "V"),
    Instruction("K", "I", "T", skip=True),
    Instruction("Q", "T", "S"),
)
COMBINE = (Instruction("P", "V", "H"), Instruction("H", "W_O", "Y"))
MATRICES = ("X", "W_Q", "W_K", "W_V", "W_O", "I", "Q", "K", "V", "T", "S", "P", "H", "Y")


@dataclass(frozen=True, eq=False)
class LoopedAttention:
    """One softmax attention head with its output map on the matrix machine, without biases."""

    machine: MatrixMachine

    @classmethod
    def build(cls, k: int, constants: Linearised | None = None) -> LoopedAttention:
        """For n and d up to k."""
        return cls(MatrixMachine(k, MATRICES, len(PROJECT), constants))

    @property
    def applications(self) -> int:
        """Layer applications of both runs."""
        return len(self.machine.body.layers) * (len(PROJECT) + len(COMBINE))

    def __call__(
        self,
        x: ArrayLike,
        w_q: ArrayLike,
        w_k: ArrayLike,
        w_v: ArrayLike,
        w_o: ArrayLike,
        dtype: Any = np.float64,
    ) -> Array:
        """The layer's output (n, d); the row softmax is taken outside, in the same precision."""
        rows = np.asarray(x, dtype=np.float64)
        n, k = len(rows), self.machine.k
        given = dict(zip(("X", "W_Q", "W_K", "W_V", "W_O"), (x, w_q, w_k, w_v, w_o), strict=True))
        state = self.machine.run({**given, "I": np.eye(k)}, PROJECT, dtype)
        scores = state["S"][:n, :n].astype(dtype) / np.sqrt(np.asarray(w_q).shape[1]).astype(dtype)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        state["P"] = np.zeros((k, k), dtype=dtype)
        state["P"][:n, :n] = weights / weights.sum(axis=1, keepdims=True)
        result = self.machine.run(state, COMBINE, dtype)["Y"]
        return result[:n, : np.asarray(w_o).shape[1]]
