"""U, the universal simulator of attention (Theorem 6, Theorem 9 of the paper).

A target (another attention layer, as data) and an input become one sequence, ⟨T, X⟩; one fixed
program, which depends on the shape alone, turns that sequence into T(X).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raspire.simulator.block import EncoderBlock as EncoderBlock
    from raspire.simulator.block import FeedForward as FeedForward
    from raspire.simulator.block import Norm as Norm
    from raspire.simulator.block_simulator import BlockSimulator as BlockSimulator
    from raspire.simulator.direct import attention as attention
    from raspire.simulator.encoder import Encoder as Encoder
    from raspire.simulator.mechanisms import CrossAttention as CrossAttention
    from raspire.simulator.mechanisms import LinearAttention as LinearAttention
    from raspire.simulator.mechanisms import Linformer as Linformer
    from raspire.simulator.naming import GivenNames as GivenNames
    from raspire.simulator.positions import Relative as Relative
    from raspire.simulator.positions import Rotary as Rotary
    from raspire.simulator.sentence import SentenceEncoder as SentenceEncoder
    from raspire.simulator.target import AttentionTarget as AttentionTarget
    from raspire.simulator.target import Shape as Shape
    from raspire.simulator.universal import UniversalSimulator as UniversalSimulator
    from raspire.simulator.universal import encode as encode

_HOMES = {
    "AttentionTarget": "target",
    "Shape": "target",
    "GivenNames": "naming",
    "UniversalSimulator": "universal",
    "encode": "universal",
    "attention": "direct",
    "Encoder": "encoder",
    "EncoderBlock": "block",
    "FeedForward": "block",
    "Norm": "block",
    "BlockSimulator": "block_simulator",
    "SentenceEncoder": "sentence",
    "CrossAttention": "mechanisms",
    "LinearAttention": "mechanisms",
    "Linformer": "mechanisms",
    "Relative": "positions",
    "Rotary": "positions",
}

__all__ = [
    "AttentionTarget",
    "BlockSimulator",
    "CrossAttention",
    "Encoder",
    "EncoderBlock",
    "FeedForward",
    "GivenNames",
    "LinearAttention",
    "Linformer",
    "Norm",
    "Relative",
    "Rotary",
    "SentenceEncoder",
    "Shape",
    "UniversalSimulator",
    "attention",
    "encode",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'raspire.simulator' has no attribute {name!r}")
    return getattr(import_module(f"raspire.simulator.{_HOMES[name]}"), name)
