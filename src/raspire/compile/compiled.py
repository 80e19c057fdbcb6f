"""What ``compile`` returns: the transformer, what it costs, what it is made of, and its proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from raspire.compile.certificate import Certificate
from raspire.compile.circuit import Circuit, circuit_of
from raspire.compile.lowering import restricted
from raspire.compile.schedule import Plan, Slots
from raspire.compile.verification import Verification, verify
from raspire.program.nodes import SOp
from raspire.transformer import Cost, Transformer, cost, rotated, saturated


@dataclass(frozen=True, eq=False)
class Compiled:
    """A compiled program.

    ``transformer`` is the network as data; ``certificate`` holds its gaps and margins;
    ``undefined`` names expressions without a value somewhere on the alphabet (no input reaches
    such a case without the program itself failing).
    """

    program: SOp
    transformer: Transformer
    plan: Plan
    slots: Slots
    certificate: Certificate
    causal: bool = False
    undefined: tuple[str, ...] = ()

    def __call__(self, tokens: Sequence[Any]) -> list[Any]:
        """The network's output on one input."""
        return self.transformer.run(tokens)

    def batch(self, inputs: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The network's outputs on inputs of any lengths, padded and masked."""
        return self.transformer.batch(inputs)

    @property
    def cost(self) -> Cost:
        """Depth, heads, width, units and non-zero weights, counted on the network."""
        return cost(self.transformer)

    @cached_property
    def circuit(self) -> Circuit:
        """Which head, unit group and slot carries which expression, and who reads whom."""
        return circuit_of(self.plan, self.slots)

    def softmax(self, precision: str = "float64") -> Transformer:
        """The transformer with saturated softmax attention."""
        return saturated(self.transformer, precision)

    def rotate(self, seed: int = 0) -> tuple[Transformer, Any]:
        """The softmax transformer in a random basis of its stream, and the orthogonal map."""
        kinds = {head.kind for _, _, head in self.transformer.heads()}
        model = self.transformer if kinds <= {"softmax"} else self.softmax()
        return rotated(model, seed)

    def verify(self, *, network: Any = None, **options: Any) -> Verification:
        """The network against the evaluator; see :func:`raspire.compile.verification.verify`.

        ``network`` is another runner of many inputs (a softmax transformer's ``batch``, an
        exported model); this transformer if none is given.
        """
        meaning = restricted(self.program) if self.causal else self.program
        embedding = self.transformer.embedding
        special = {embedding.bos, embedding.pad}
        symbols = [s for i, s in enumerate(embedding.vocabulary) if i not in special]
        return verify(
            meaning, network or self.batch, symbols, (embedding.max_length or 1) - 1, **options
        )

    def __str__(self) -> str:
        return f"{self.transformer.name}: {self.cost}"
