"""Programs written for Tracr: its classes and names over raspire's program graph.

A program runs after changing one import, and compiles where Tracr refuses (Lindner et al. 2023,
"Tracr: Compiled Transformers as a Laboratory for Interpretability")::

    from raspire.compat.tracr import rasp       # was: from tracr.rasp import rasp
    from raspire.compat.tracr import compiling  # was: from tracr.compiler import compiling
    from raspire.compat.tracr import lib        # was: from tracr.compiler import lib

An empty selection is None, and None passes through maps, in the interpreter and in the compiled
model alike. Encodings are accepted and kept as annotations; the compiler chooses its own.
"""

from __future__ import annotations

import copy
import enum
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from raspire.compat.model import CompiledModel, compile_rasp_to_model
from raspire.errors import RaspTypeError
from raspire.program import embedding, nodes
from raspire.program.nodes import COMPARISONS, Combine, Constant
from raspire.program.primitives import lookup_primitive, opaque, primitive

E = TypeVar("E", bound="RASPExpr")

__all__ = [
    "Aggregate", "Comparison", "CompiledModel", "ConstantSOp", "ConstantSelector", "Encoding",
    "Full", "LinearSequenceMap", "Map", "RASPExpr", "SOp", "Select", "Selector", "SelectorAnd",
    "SelectorNot", "SelectorOr", "SelectorWidth", "SequenceMap", "annotate", "categorical",
    "compile_rasp_to_model", "compiling", "evaluate", "indices", "is_categorical", "is_numerical",
    "length", "numerical", "rasp", "tokens",
]  # fmt: skip

rasp = compiling = sys.modules[__name__]


def __getattr__(name: str) -> Any:
    if name == "lib":
        return import_module("raspire.compat.lib")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def evaluate(expr: RASPExpr, xs: Sequence[Any]) -> list[Any]:
    """The values of an expression on one input."""
    return expr(xs)


class Encoding(enum.Enum):
    """How Tracr would hold a value; raspire decides by itself."""

    CATEGORICAL = "categorical"
    NUMERICAL = "numerical"


class Comparison(enum.Enum):
    """The predicates of ``Select``, called with a key and a query."""

    EQ = "=="
    LT = "<"
    LEQ = "<="
    GT = ">"
    GEQ = ">="
    NEQ = "!="
    TRUE = "true"
    FALSE = "false"

    def __call__(self, key: Any, query: Any) -> bool:
        """Whether the key stands so to the query; None on either side is a ValueError."""
        if key is None or query is None:
            raise ValueError(f"{'key' if key is None else 'query'} is None!")
        if self in (Comparison.TRUE, Comparison.FALSE):
            return self is Comparison.TRUE
        return bool(COMPARISONS[self.value].scalar(key, query))


class RASPExpr:
    """An s-op or a selector of Tracr; ``program`` is raspire's node."""

    program: Any
    name: str = ""

    def __init__(self, program: Any) -> None:
        self.program = program
        self.annotations: dict[str, Any] = {}

    def __call__(self, xs: Sequence[Any]) -> list[Any]:
        """The values on one input."""
        from raspire.evaluate.reference import reference

        return reference(self.program, list(xs))

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value before it is given an input")

    def named(self: E, name: str) -> E:
        """The expression under a name."""
        self.name = name
        self.program.named(name)
        return self

    def annotated(self: E, **annotations: Any) -> E:
        """A copy with further annotations."""
        new = self.copy()
        new.annotations = {**self.annotations, **annotations}
        return new

    def copy(self: E) -> E:
        """Another expression over the same node."""
        return copy.copy(self)

    @property
    def label(self) -> str:
        """The name, or the expression as text: the same in every process."""
        return self.name or repr(self.program)

    def __repr__(self) -> str:
        return self.label


def annotate(expr: E, **annotations: Any) -> E:
    """A copy of the expression with further annotations."""
    return expr.annotated(**annotations)


class SOp(RASPExpr):
    """A sequence operation; ``optional`` says whether None may be among its values."""

    program: nodes.SOp
    optional = True
    __hash__ = object.__hash__

    def __lt__(self, other: Any) -> SOp:
        return _compared("lt", self, other)

    def __le__(self, other: Any) -> SOp:
        return _compared("le", self, other)

    def __gt__(self, other: Any) -> SOp:
        return _compared("gt", self, other)

    def __ge__(self, other: Any) -> SOp:
        return _compared("ge", self, other)

    def __eq__(self, other: object) -> SOp:  # type: ignore[override]
        return _compared("eq", self, other)

    def __ne__(self, other: object) -> SOp:  # type: ignore[override]
        return _compared("ne", self, other)

    def __add__(self, other: Any) -> SOp:
        return _combined("add", self, other)

    def __radd__(self, other: Any) -> SOp:
        return _combined("add", other, self)

    def __sub__(self, other: Any) -> SOp:
        return _combined("sub", self, other)

    def __rsub__(self, other: Any) -> SOp:
        return _combined("sub", other, self)

    def __mul__(self, other: Any) -> SOp:
        return _combined("mul", self, other)

    def __rmul__(self, other: Any) -> SOp:
        return _combined("mul", other, self)

    def __truediv__(self, other: Any) -> SOp:
        return _combined("div", self, other)

    def __rtruediv__(self, other: Any) -> SOp:
        return _combined("div", other, self)

    def __and__(self, other: Any) -> SOp:
        return _python(lambda a, b: a and b, self, other)

    def __rand__(self, other: Any) -> SOp:
        return _python(lambda a, b: a and b, other, self)

    def __or__(self, other: Any) -> SOp:
        return _python(lambda a, b: a or b, self, other)

    def __ror__(self, other: Any) -> SOp:
        return _python(lambda a, b: a or b, other, self)

    def __invert__(self) -> SOp:
        return Map(lambda x: not x, self)


def _sop(program: nodes.SOp, optional: bool) -> SOp:
    new = SOp(program)
    new.optional = optional
    return new


def _lift(value: Any) -> SOp:
    if isinstance(value, SOp):
        return value
    if isinstance(value, RASPExpr):
        raise RaspTypeError("an s-op is needed", expected="an s-op", found="a selector")
    return _sop(Constant(value), value is None)


def _skipping_none(function: Callable[..., Any]) -> Callable[..., Any]:
    """Tracr's rule: where an argument is None so is the result, and the function is not called."""

    def call(*values: Any) -> Any:
        return None if any(v is None for v in values) else function(*values)

    call.__name__ = getattr(function, "__name__", "function")
    return call


def _python(function: Callable[..., Any], *args: Any) -> SOp:
    lifted = [_lift(a) for a in args]
    record = opaque(_skipping_none(function), len(lifted))
    return _sop(nodes.Apply(record, *(a.program for a in lifted)), True)


def _combined(name: str, *args: Any) -> SOp:
    """Arithmetic by the primitive itself, or where None may arise by one that passes it on."""
    lifted = [_lift(a) for a in args]
    record = primitive(name)
    if any(a.optional for a in lifted):
        return _python(record.scalar, *lifted)
    return _sop(nodes.Apply(record, *(a.program for a in lifted)), False)


def _compared(name: str, *args: Any) -> SOp:
    return _combined(name, *args)


class Map(SOp):
    """``f`` at every position; a Map of a Map becomes one feed-forward layer in any case."""

    def __init__(self, f: Callable[[Any], Any], inner: SOp, simplify: bool = True) -> None:
        _check(inner, SOp, "Map", "an s-op")
        super().__init__(nodes.Apply(opaque(_skipping_none(f), 1), inner.program))
        self.f, self.inner, self.simplify = f, inner, simplify


class SequenceMap(SOp):
    """``f`` of two s-ops at every position."""

    def __init__(self, f: Callable[[Any, Any], Any], fst: SOp, snd: SOp) -> None:
        for part in (fst, snd):
            _check(part, SOp, "SequenceMap", "an s-op")
        record = opaque(_skipping_none(f), 2)
        super().__init__(nodes.Apply(record, fst.program, snd.program))
        self.f, self.fst, self.snd = f, fst, snd


class LinearSequenceMap(SOp):
    """``fst_fac * fst + snd_fac * snd``."""

    def __init__(self, fst: SOp, snd: SOp, fst_fac: float, snd_fac: float) -> None:
        for part in (fst, snd):
            _check(part, SOp, "LinearSequenceMap", "an s-op")
        whole = _combined("add", _times(fst_fac, fst), _times(snd_fac, snd))
        super().__init__(whole.program)
        self.optional = whole.optional
        self.fst, self.snd, self.fst_fac, self.snd_fac = fst, snd, fst_fac, snd_fac


def _times(factor: float, sop: SOp) -> SOp:
    return sop if factor == 1 else _combined("mul", sop, factor)


class Full(SOp):
    """The same value everywhere."""

    def __init__(self, fill: Any) -> None:
        super().__init__(Constant(fill))
        self.fill, self.optional = fill, fill is None


class ConstantSOp(SOp):
    """A literal: the value of position i is ``value[i]``."""

    def __init__(self, value: Sequence[Any], check_length: bool = True) -> None:
        record = lookup_primitive(tuple(value))
        super().__init__(nodes.Apply(record, embedding.indices))
        self.value, self.check_length = value, check_length


class Selector(RASPExpr):
    """A selector; ``& | ~`` combine them, and every combination compiles."""

    program: nodes.Selector

    def __and__(self, other: Selector) -> SelectorAnd:
        return SelectorAnd(self, other)

    def __or__(self, other: Selector) -> SelectorOr:
        return SelectorOr(self, other)

    def __invert__(self) -> SelectorNot:
        return SelectorNot(self)


class Select(Selector):
    """Selects key j for query i where ``predicate(keys[j], queries[i])`` holds."""

    def __init__(self, keys: SOp, queries: SOp, predicate: Callable[[Any, Any], Any]) -> None:
        for part in (keys, queries):
            _check(part, SOp, "Select", "an s-op")
        comparison = _comparison(predicate, keys.optional or queries.optional)
        super().__init__(nodes.Select(keys.program, queries.program, comparison))
        self.keys, self.queries, self.predicate = keys, queries, predicate


def _comparison(predicate: Callable[[Any, Any], Any], optional: bool) -> nodes.Comparison:
    plain = isinstance(predicate, Comparison) and predicate.value in COMPARISONS
    if plain and not optional:
        return COMPARISONS[predicate.value]  # type: ignore[attr-defined]
    name = getattr(predicate, "name", None) or getattr(predicate, "__name__", "predicate")
    return nodes.Comparison(str(name), predicate)


class ConstantSelector(Selector):
    """A literal matrix: position j is selected for query i where ``value[i][j]``."""

    def __init__(self, value: Sequence[Sequence[bool]], check_length: bool = True) -> None:
        def holds(key: int, query: int) -> bool:
            return bool(value[query][key])

        literal = nodes.Comparison("literal", holds)
        super().__init__(nodes.Select(embedding.indices, embedding.indices, literal))
        self.value, self.check_length = value, check_length


class SelectorAnd(Selector):
    """Where both select."""

    def __init__(self, fst: Selector, snd: Selector) -> None:
        super().__init__(Combine("and", *_selectors(fst, snd)))
        self.fst, self.snd = fst, snd


class SelectorOr(Selector):
    """Where either selects."""

    def __init__(self, fst: Selector, snd: Selector) -> None:
        super().__init__(Combine("or", *_selectors(fst, snd)))
        self.fst, self.snd = fst, snd


class SelectorNot(Selector):
    """Where the inner one does not select."""

    def __init__(self, inner: Selector) -> None:
        super().__init__(Combine("not", *_selectors(inner)))
        self.inner = inner


def _selectors(*parts: Selector) -> list[nodes.Selector]:
    for part in parts:
        _check(part, Selector, "a combination of selectors", "a selector")
    return [part.program for part in parts]


class SelectorWidth(SOp):
    """How many keys each query selects."""

    def __init__(self, selector: Selector) -> None:
        _check(selector, Selector, "SelectorWidth", "a selector")
        super().__init__(nodes.Width(selector.program))
        self.selector, self.optional = selector, False


class Aggregate(SOp):
    """The mean of the selected values, or ``default`` where nothing is selected."""

    def __init__(self, selector: Selector, sop: SOp, default: Any = None) -> None:
        _check(selector, Selector, "Aggregate", "a selector")
        _check(sop, SOp, "Aggregate", "an s-op")
        super().__init__(nodes.Aggregate(selector.program, sop.program, default))
        self.selector, self.sop, self.default = selector, sop, default
        self.optional = default is None or sop.optional


def _check(value: Any, kind: type, user: str, expected: str) -> None:
    if not isinstance(value, kind):
        raise RaspTypeError(
            f"{user} was given something else", expected=expected, found=type(value).__name__
        )


def numerical(sop: SOp) -> SOp:
    """The s-op, annotated as numerical."""
    return sop.annotated(encoding=Encoding.NUMERICAL)


def categorical(sop: SOp) -> SOp:
    """The s-op, annotated as categorical."""
    return sop.annotated(encoding=Encoding.CATEGORICAL)


def is_numerical(sop: SOp) -> bool:
    """Whether the s-op is annotated as numerical."""
    return sop.annotations.get("encoding") is Encoding.NUMERICAL


def is_categorical(sop: SOp) -> bool:
    """Whether the s-op is not annotated as numerical."""
    return not is_numerical(sop)


tokens: SOp = _sop(embedding.tokens, False)
indices: SOp = _sop(embedding.indices, False)
length: SOp = _sop(embedding.length, False)
DEFAULT_ANNOTATORS: Mapping[str, Any] = {}
