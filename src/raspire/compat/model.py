"""The compiled model as Tracr's users know it: ``apply`` on a list that begins with BOS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from raspire.compile import Compiled, compile
from raspire.errors import RaspValueError


@dataclass(frozen=True, eq=False)
class AppliedModel:
    """What ``apply`` gives: values, logits, and the residual stream after every sublayer."""

    decoded: list[Any]
    unembedded: NDArray[Any]
    residuals: list[NDArray[Any]]
    attn_logits: list[NDArray[Any]]
    input_embeddings: NDArray[Any]
    transformer_output: NDArray[Any]


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A compiled program with Tracr's calling convention; ``compiled`` is raspire's own."""

    compiled: Compiled
    compiler_bos: str

    @property
    def residual_labels(self) -> list[str]:
        """What each residual slot is first used for."""
        first: dict[int, str] = {}
        for cell, slot in self.compiled.slots.of.items():
            first.setdefault(slot, cell.label)
        return [first[slot] for slot in range(self.compiled.slots.width)]

    def apply(self, tokens: Sequence[Any]) -> AppliedModel:
        """Run on one sequence that begins with the beginning-of-sequence symbol."""
        if not tokens or tokens[0] != self.compiler_bos:
            raise RaspValueError(
                "the input has to begin with the beginning of sequence",
                expected=repr(self.compiler_bos),
                found=repr(list(tokens[:1])),
            )
        model = self.compiled.transformer
        record: dict[str, NDArray[Any]] = {}
        logits = model.logits(model.inputs([list(tokens[1:])]), record=record)[0]
        decoded = [self.compiler_bos, *model.unembedding.decode(logits[1:])]
        after = [record[k][0] for k in record if "hook_resid" in k]
        patterns = [record[k][0] for k in record if "hook_pattern" in k]
        embedded = record["hook_embed"][0]
        last = after[-1] if after else embedded
        return AppliedModel(decoded, logits, after, patterns, embedded, last)


def compile_rasp_to_model(
    program: Any,
    vocab: Iterable[Any],
    max_seq_len: int,
    causal: bool = False,
    compiler_bos: str = "compiler_bos",
    compiler_pad: str = "compiler_pad",
    mlp_exactness: int | None = None,
) -> CompiledModel:
    """Compile a program written with :mod:`raspire.compat.tracr`.

    ``max_seq_len`` does not count the beginning of sequence. ``mlp_exactness`` is accepted and
    not needed: margins are chosen from the values and certified.
    """
    compiled = compile(
        program.program,
        alphabet=vocab if isinstance(vocab, set | frozenset) else tuple(vocab),
        max_length=max_seq_len,
        causal=causal,
        bos=compiler_bos,
        pad=compiler_pad,
    )
    return CompiledModel(compiled, compiler_bos)
