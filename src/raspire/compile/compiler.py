"""``compile``: a program, an alphabet and a maximal length give a transformer, certified."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from raspire.compile.alphabet import refuse_long, symbols_of
from raspire.compile.certificate import EPSILON, Certificate, certify
from raspire.compile.circuit import circuit_of
from raspire.compile.compiled import Compiled
from raspire.compile.domain import Real
from raspire.compile.embedded import settle
from raspire.compile.emission import Emitter
from raspire.compile.linear import BOS, TOK, Cell
from raspire.compile.lowering import lower
from raspire.compile.naming import text_of
from raspire.compile.output import Output, output_of
from raspire.compile.resolve import Resolver
from raspire.compile.schedule import Plan, allocate, schedule
from raspire.errors import RaspError, RaspTypeError, RaspValueError, UnsupportedError
from raspire.given import one_of, whole
from raspire.program.nodes import SOp
from raspire.transformer import saturated, scale_for

START, PADDING = "bos", "pad"
_PIECES = 20_000
REALS = Real()
"""The alphabet of programs whose tokens are real numbers."""


def compile(
    program: SOp,
    *,
    alphabet: Iterable[Any] | tuple[float, float] | Real,
    max_length: int,
    attention: Literal["hard", "softmax"] = "hard",
    precision: Literal["float64", "float32"] = "float64",
    causal: bool = False,
    relu_error: float | None = None,
    stock: bool = False,
    bos: str = START,
    pad: str = PADDING,
    name: str = "",
) -> Compiled:
    """A transformer that computes the program on every input over the alphabet up to the length.

    ``alphabet`` lists the tokens (a string lists its letters), or is :class:`Real` for numbers.
    ``attention="softmax"`` saturates every head in the given precision. ``causal`` lets every
    selector see no further than its query, as a causal mask does. ``relu_error`` asks for ``relu``
    units alone: products and named functions become broken lines, fine enough for that error,
    which the certificate then states. ``stock`` keeps to what every framework has (softmax, relu
    units, one mask for all heads), so that the network loads in TransformerLens.

    Raises UnsupportedError naming the expression that stops it, its domain and a way out; and
    where a score gap or a margin is too small for the precision.

    >>> from raspire import selector_width, select, tokens
    >>> histogram = compile(selector_width(select(tokens, tokens, "==")), alphabet="abc",
    ...                     max_length=8)
    >>> histogram("abba")
    [2, 2, 2, 2]
    """
    if not isinstance(program, SOp):
        raise RaspTypeError(
            "only an s-op can be compiled",
            expected="an s-op",
            found=type(program).__name__,
            hint="aggregate over the selector",
        )
    symbols = symbols_of(alphabet, bos, pad)
    max_length = whole("max_length", max_length)
    one_of("precision", precision, EPSILON)
    one_of("attention", attention, ("hard", "softmax"))
    if relu_error is not None and not 0 < relu_error < math.inf:
        raise RaspValueError(
            "relu alone cannot be asked for with this error",
            expected="relu_error above 0",
            found=f"{relu_error:g}",
        )
    if stock and attention != "softmax":
        raise RaspValueError(
            "stock parts have softmax attention", expected="attention='softmax'", found="hard"
        )
    refuse_long(max_length, symbols)
    request = _Request(symbols, max_length, precision, relu_error, stock, causal)
    draft = _draft(lower(program, causal=causal), request)
    resolver, output, plan, embedded, certificate = draft
    slots = allocate(plan, embedded)
    emitter = Emitter(
        name or program.label or "program", plan, slots, symbols, max_length, bos, pad
    )
    builder = emitter.build(output.kind, output.labels)
    undefined = tuple(text_of(node) for node in resolver.undefined)
    builder.notes.update(
        program=text_of(program),
        precision=precision,
        causal=causal,
        undefined=list(undefined),
        certificate=certificate.record(),
        circuit=circuit_of(plan, slots).record(),
    )
    model = builder.build()
    if attention == "softmax":
        model = saturated(model, precision)
    return Compiled(program, model, plan, slots, certificate, causal, undefined)


Draft = tuple[Resolver, Output, Plan, list[Cell], Certificate]


@dataclass(frozen=True)
class _Request:
    """What was asked for, beside the program."""

    symbols: tuple[Any, ...] | Real
    length: int
    precision: str
    relu_error: float | None
    stock: bool
    causal: bool


def _draft(program: SOp, request: _Request) -> Draft:
    """A certified plan; broken lines get finer until their error is what was asked for."""
    wanted = request.relu_error
    if wanted is None:
        return _planned(program, request, None)
    pieces = 64
    while True:
        draft = _planned(program, request, pieces)
        error = draft[-1].error
        if error <= wanted:
            return draft
        if not error < float("inf") or pieces > _PIECES:
            raise UnsupportedError(
                f"relu alone does not reach the error {wanted:g}",
                where=program.place,
                found=f"{error:g} with {pieces} pieces a curve",
                hint="ask for less, or compile without relu_error",
            )
        finer = int(pieces * 1.05 * (error / wanted) ** 0.5)
        pieces = max(pieces + 1, min(_PIECES + 1, finer))


def _planned(program: SOp, request: _Request, pieces: int | None) -> Draft:
    symbols, precision = request.symbols, request.precision
    one_mask = "causal" if request.causal else "none" if request.stock else None
    resolver = Resolver(
        symbols, request.length, EPSILON[precision], pieces, request.stock, one_mask
    )
    try:
        output = output_of(program, resolver)
    except RaspError as error:
        raise error.at(program.place) from None
    plan = schedule(output.forms)
    known = () if isinstance(symbols, Real) else symbols
    embedded = [TOK, BOS, *settle(plan, known, request.length)]
    certificate = certify(
        plan,
        embedded,
        precision,
        numeric=output.kind == "numeric",
        decided=output.decided,
        stock=scale_for(1.0, precision) if request.stock else None,
    )
    return resolver, output, plan, embedded, certificate
