"""Elementwise functions, each declared once: one primitive, one record.

Language, evaluator, compiler and proofs read the record; adding a function is adding a record
(CONTRIBUTING tells how). A value is a bool, an int, a float, a string or a rational.

*Forms.* ``scalar`` is the meaning on Python values; ``numpy`` the same on arrays of one kind
(``None``: the scalar form on every distinct value); ``exact`` the meaning over the rationals
(``None``: there is none, and a run in exact arithmetic says so); ``ball`` and ``field`` likewise
for enclosures and finite fields. ``kind`` gives the kind of the result (``b`` bool, ``i`` int,
``f`` float, ``s`` string) from the kinds of the arguments. ``range`` gives an interval around the
results from intervals around the arguments. ``family`` is the feed-forward part that realises it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from raspire.errors import RaspOverflowError, RaspTypeError, RaspValueError, RaspZeroDivisionError

Interval: TypeAlias = tuple[float, float]
REALS: Interval = (-math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class Primitive:
    """One elementwise function; see the module's text for the fields."""

    name: str
    arity: int
    scalar: Callable[..., Any]
    numpy: Callable[..., Any] | None = None
    exact: Callable[..., Any] | None = None
    ball: Callable[..., Any] | None = None
    field: Callable[..., Any] | None = None
    kind: Callable[..., str] = dataclasses.field(default=lambda *kinds: "f")
    range: Callable[..., Interval] | None = None
    family: str = "table"
    symbol: str | None = None
    data: Any = None

    @property
    def key(self) -> object:
        """Two records with equal keys are the same function (used by ``merge``)."""
        if self.name == "lookup":
            items = self.data.items() if isinstance(self.data, Mapping) else enumerate(self.data)
            kind = type(self.data).__name__
            return ("lookup", kind, tuple((repr(k), type(v), repr(v)) for k, v in items))
        return self.name if self.name in PRIMITIVES else id(self)

    @property
    def opaque(self) -> bool:
        """Whether nothing is known of the function but how to call it."""
        return self.family == "opaque"


PRIMITIVES: dict[str, Primitive] = {}


def primitive(name: str) -> Primitive:
    """The record of that name.

    Raises RaspValueError when there is none, with the names there are.
    """
    if name not in PRIMITIVES:
        raise RaspValueError(
            f"there is no primitive {name!r}", expected="one of " + ", ".join(sorted(PRIMITIVES))
        )
    return PRIMITIVES[name]


def _declare(name: str, arity: int, scalar: Callable[..., Any], **fields: Any) -> None:
    PRIMITIVES[name] = Primitive(name, arity, scalar, **fields)


def lookup_primitive(table: Mapping[Any, Any] | Sequence[Any]) -> Primitive:
    """The look-up in a dictionary (by Python equality) or a list (by int, from either end)."""
    if isinstance(table, Mapping):
        data: Any = dict(table)
        return Primitive("lookup", 1, lambda key: _find(data, key), exact=lambda k: _find(data, k),
                         kind=lambda *_: "?", data=data)  # fmt: skip
    data = tuple(table)
    return Primitive("lookup", 1, lambda i: _item(data, i), exact=lambda i: _item(data, i),
                     kind=lambda *_: "?", data=data)  # fmt: skip


def opaque(function: Callable[..., Any], arity: int, name: str = "") -> Primitive:
    """A record around any Python function, of which nothing else is known."""
    name = name or getattr(function, "__name__", "function")
    return Primitive(name, arity, function, exact=function, kind=lambda *_: "?", family="opaque")


def _find(table: dict[Any, Any], key: Any) -> Any:
    if key not in table:
        raise RaspValueError(
            f"{key!r} is not in the dictionary", expected="one of " + ", ".join(map(repr, table))
        )
    return table[key]


def _item(table: tuple[Any, ...], index: Any) -> Any:
    if not isinstance(index, int):
        raise RaspTypeError("a list is indexed by integers", expected="an int", found=repr(index))
    if not -len(table) <= index < len(table):
        raise RaspValueError(
            f"index {index} is out of range for a list of length {len(table)}",
            expected=f"{-len(table)} to {len(table) - 1}",
            found=str(index),
        )
    return table[index]


# ---------------------------------------------------------------- meanings on Python values


def _type_error(symbol: str, *values: Any) -> RaspTypeError:
    kinds = " and ".join(type(v).__name__ for v in values)
    return RaspTypeError(
        f"{symbol} cannot be applied to {kinds}", found=", ".join(map(repr, values))
    )


def _python(symbol: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Python's own meaning, with raspire's errors."""

    def scalar(*values: Any) -> Any:
        try:
            result = function(*values)
        except ZeroDivisionError:
            raise RaspZeroDivisionError(
                f"{symbol} divides by zero", found=", ".join(map(repr, values))
            ) from None
        except OverflowError:
            raise RaspOverflowError(
                f"{symbol} gives a number too large for a float",
                found=", ".join(map(repr, values)),
            ) from None
        except (TypeError, AttributeError):
            raise _type_error(symbol, *values) from None
        except ValueError:
            raise RaspValueError(
                f"{symbol} is not defined there", found=", ".join(map(repr, values))
            ) from None
        if isinstance(result, complex):
            raise RaspValueError(
                f"{symbol} has no real value there", found=", ".join(map(repr, values))
            )
        return result

    return scalar


def rational(value: Any) -> Any:
    """An exact number: ints and fractions as they are, floats by their exact value."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RaspValueError("there is no rational for this float", found=repr(value))
        return simplest(Fraction(value))
    return value


def simplest(value: Any) -> Any:
    """A whole fraction becomes an int."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    return value


def _ring(symbol: str, function: Callable[..., Any]) -> Callable[..., Any]:
    inner = _python(symbol, function)
    return lambda *values: simplest(inner(*values))


def _exact_div(a: Any, b: Any) -> Any:
    return Fraction(a) / Fraction(b)


def _exact_pow(a: Any, b: Any) -> Any:
    if isinstance(b, Fraction):
        raise RaspValueError(
            "a power with a fraction as exponent is not rational", found=f"{a}^{b}"
        )
    return Fraction(a) ** b if not isinstance(a, str) else a**b


def _numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse strings where Python's own operator would accept them by another meaning."""

    def strict(*values: Any) -> Any:
        if any(isinstance(v, str) for v in values):
            raise TypeError
        return function(*values)

    return strict


def _ordered(function: Callable[..., Any]) -> Callable[..., Any]:
    def scalar(a: Any, b: Any) -> Any:
        if a is None or b is None:
            raise TypeError
        return function(a, b)

    return scalar


def _round(x: Any) -> int:
    whole: int = round(x)
    return whole


def _arithmetic_kind(*kinds: str) -> str:
    return "f" if "f" in kinds else "i"


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


# ---------------------------------------------------------------- NumPy forms
# NumPy is imported when a form first runs, so that the command line starts without it.


def _np(name: str) -> Callable[..., Any]:
    def run(*arrays: Any) -> Any:
        import numpy

        return getattr(numpy, name)(*arrays)

    return run


def _sp(name: str) -> Callable[..., Any]:
    def run(*arrays: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*arrays)

    return run


def _np_gelu(x: Any) -> Any:
    return x * _sp("ndtr")(x)


def _np_round(x: Any) -> Any:
    return _np("rint")(x).astype("int64") if x.dtype.kind == "f" else x.astype("int64")


def _np_whole(name: str) -> Callable[..., Any]:
    return lambda x: _np(name)(x).astype("int64") if x.dtype.kind == "f" else x.astype("int64")


def _np_truth(x: Any) -> Any:
    return x if x.dtype.kind == "b" else x != 0


# ---------------------------------------------------------------- ranges


def _hull(*values: float) -> Interval:
    known = [0.0 if math.isnan(v) else v for v in values]
    return min(known), max(known)


def _times(a: Interval, b: Interval) -> Interval:
    return _hull(*(x * y for x in a for y in b))


def _over(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 <= b[1]:
        return REALS
    return _times(a, (1 / b[1], 1 / b[0]))


def _monotone(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    def bounds(a: Interval) -> Interval:
        return _bounded(function, a[0]), _bounded(function, a[1])

    return bounds


def _bounded(function: Callable[[float], float], x: float) -> float:
    try:
        return function(x)
    except (OverflowError, ValueError):
        return math.inf if x > 0 else -math.inf


def _abs_range(a: Interval) -> Interval:
    low = 0.0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return low, max(abs(a[0]), abs(a[1]))


def _union(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def _exp(x: Interval) -> Interval:
    return (
        0.0 if x[0] == -math.inf else _bounded(math.exp, x[0]),
        math.inf if x[1] > 709 else math.exp(x[1]),
    )


TRUTH: Interval = (0.0, 1.0)


# ---------------------------------------------------------------- the records

for _name, _symbol, _function, _numpy, _range, _family in (
    ("add", "+", lambda a, b: a + b, "add", lambda a, b: (a[0] + b[0], a[1] + b[1]), "linear"),
    ("sub", "-", lambda a, b: a - b, "subtract", lambda a, b: (a[0] - b[1], a[1] - b[0]), "linear"),
    ("mul", "*", lambda a, b: a * b, "multiply", _times, "gated:identity"),
):
    _declare(
        _name,
        2,
        _python(_symbol, _function),
        numpy=_np(_numpy),
        exact=_ring(_symbol, _function),
        kind=_arithmetic_kind,
        range=_range,
        family=_family,
        symbol=_symbol,
    )

_declare("div", 2, _python("/", lambda a, b: a / b), numpy=_np("true_divide"),
         exact=_ring("/", _exact_div), range=_over, family="gated:recip", symbol="/")  # fmt: skip
_declare("floordiv", 2, _python("//", lambda a, b: a // b), numpy=_np("floor_divide"),
         exact=_ring("//", lambda a, b: a // b), kind=_arithmetic_kind,
         range=lambda a, b: (_over(a, b)[0] - 1, _over(a, b)[1]), symbol="//")  # fmt: skip
_declare("mod", 2, _python("%", _numbers(lambda a, b: a % b)), numpy=_np("mod"),
         exact=_ring("%", _numbers(lambda a, b: a % b)), kind=_arithmetic_kind,
         range=lambda a, b: (min(b[0], 0.0), max(b[1], 0.0)), symbol="%")  # fmt: skip
_declare("pow", 2, _python("^", lambda a, b: a**b), exact=_ring("^", _exact_pow),
         kind=lambda *_: "?", symbol="^")  # fmt: skip
_declare("neg", 1, _python("-", lambda a: -a), numpy=_np("negative"), exact=lambda a: -a,
         kind=_arithmetic_kind, range=lambda a: (-a[1], -a[0]), family="linear",
         symbol="-")  # fmt: skip
_declare("pos", 1, _python("+", lambda a: +a), numpy=_np("positive"), exact=lambda a: +a,
         kind=_arithmetic_kind, range=lambda a: a, family="linear", symbol="+")  # fmt: skip
_declare("abs", 1, _python("abs", abs), numpy=_np("abs"), exact=abs, kind=_arithmetic_kind,
         range=_abs_range, family="relu")  # fmt: skip

for _name, _symbol, _function, _numpy in (
    ("eq", "==", lambda a, b: a == b, "equal"),
    ("ne", "!=", lambda a, b: a != b, "not_equal"),
    ("lt", "<", _ordered(lambda a, b: a < b), "less"),
    ("le", "<=", _ordered(lambda a, b: a <= b), "less_equal"),
    ("gt", ">", _ordered(lambda a, b: a > b), "greater"),
    ("ge", ">=", _ordered(lambda a, b: a >= b), "greater_equal"),
):
    _declare(
        _name,
        2,
        _python(_symbol, _function),
        numpy=_np(_numpy),
        exact=_python(_symbol, _function),
        kind=lambda *_: "b",
        range=lambda *_: TRUTH,
        family="gated:step",
        symbol=_symbol,
    )

for _name, _arity, _truth, _numpy in (
    ("and", 2, lambda a, b: bool(a) and bool(b), "logical_and"),
    ("or", 2, lambda a, b: bool(a) or bool(b), "logical_or"),
    ("not", 1, lambda a: not a, "logical_not"),
):
    _declare(
        _name,
        _arity,
        _truth,
        numpy=_np(_numpy),
        exact=_truth,
        kind=lambda *_: "b",
        range=lambda *_: TRUTH,
        family="linear" if _arity == 1 else "relu",
        symbol=_name,
    )

_declare("where", 3, lambda c, x, y: x if c else y,
         numpy=lambda c, x, y: _np("where")(_np_truth(c), x, y),
         exact=lambda c, x, y: x if c else y,
         kind=lambda c, x, y: x if x == y else "?", range=lambda c, x, y: _union(x, y),
         family="gated:identity")  # fmt: skip
_declare("round", 1, _python("round", _round), numpy=_np_round, exact=_round,
         kind=lambda *_: "i", range=lambda a: (a[0] - 0.5, a[1] + 0.5))  # fmt: skip
_declare("floor", 1, _python("floor", math.floor), numpy=_np_whole("floor"), exact=math.floor,
         kind=lambda *_: "i", range=lambda a: (a[0] - 1, a[1]))  # fmt: skip
_declare("ceil", 1, _python("ceil", math.ceil), numpy=_np_whole("ceil"), exact=math.ceil,
         kind=lambda *_: "i", range=lambda a: (a[0], a[1] + 1))  # fmt: skip
_declare("indicator", 1, lambda a: 1 if a else 0,
         numpy=lambda a: _np_truth(a).astype("int64"), exact=lambda a: 1 if a else 0,
         kind=lambda *_: "i", range=lambda *_: TRUTH, family="linear")  # fmt: skip
_declare("maximum", 2, _python("max", _ordered(lambda a, b: a if a > b else b)),
         exact=_python("max", _ordered(lambda a, b: a if a > b else b)),
         numpy=lambda a, b: _np("where")(a > b, a, b),
         kind=lambda a, b: a if a == b else "?",
         range=lambda a, b: (max(a[0], b[0]), max(a[1], b[1])), family="relu")  # fmt: skip
_declare("minimum", 2, _python("min", _ordered(lambda a, b: a if a < b else b)),
         exact=_python("min", _ordered(lambda a, b: a if a < b else b)),
         numpy=lambda a, b: _np("where")(a < b, a, b),
         kind=lambda a, b: a if a == b else "?",
         range=lambda a, b: (min(a[0], b[0]), min(a[1], b[1])), family="relu")  # fmt: skip

for _name, _real, _numpy_form, _bounds in (
    ("exp", math.exp, _np("exp"), _exp),
    ("log", math.log, _np("log"), _monotone(lambda x: math.log(x) if x > 0 else -math.inf)),
    ("sqrt", math.sqrt, _np("sqrt"), _monotone(lambda x: math.sqrt(max(x, 0.0)))),
    ("sin", math.sin, _np("sin"), lambda a: (-1.0, 1.0)),
    ("cos", math.cos, _np("cos"), lambda a: (-1.0, 1.0)),
    ("tanh", math.tanh, _np("tanh"), _monotone(math.tanh)),
    ("erf", math.erf, _sp("erf"), _monotone(math.erf)),
    ("sigmoid", _logistic, _sp("expit"), _monotone(_logistic)),
    ("silu", lambda x: x * _logistic(x), lambda x: x * _sp("expit")(x),
     lambda a: (-0.2785, max(a[1], 0.0))),
    ("gelu", lambda x: x * math.erfc(-x / math.sqrt(2)) / 2, _np_gelu,
     lambda a: (-0.17, max(a[1], 0.0))),
):  # fmt: skip
    _declare(
        _name,
        1,
        _python(_name, _real),
        numpy=_numpy_form,
        range=_bounds,
        family=f"gated:{_name}",
    )

_declare("recip", 1, _python("recip", lambda a: 1 / a), numpy=_np("reciprocal"),
         exact=_ring("recip", lambda a: Fraction(1) / a), range=lambda a: _over((1.0, 1.0), a),
         family="gated:recip")  # fmt: skip
_declare("rsqrt", 1, _python("rsqrt", lambda a: 1 / math.sqrt(a)),
         numpy=lambda a: 1 / _np("sqrt")(a),
         range=lambda a: (0.0 if a[1] == math.inf else a[1] ** -0.5 if a[1] > 0 else 0.0,
                          a[0] ** -0.5 if a[0] > 0 else math.inf),
         family="gated:rsqrt")  # fmt: skip
_declare("relu", 1, _python("relu", _numbers(lambda a: +a if a > 0 else a * 0)),
         numpy=lambda a: _np("where")(a > 0, a, a * 0),
         exact=lambda a: +a if a > 0 else 0, kind=_arithmetic_kind,
         range=lambda a: (max(a[0], 0.0), max(a[1], 0.0)), family="relu")  # fmt: skip

_declare("to_str", 1, str, exact=str, kind=lambda *_: "s")
_declare("to_int", 1, _python("int", int), exact=_python("int", int), kind=lambda *_: "i",
         numpy=lambda a: _np("trunc")(a).astype("int64"))  # fmt: skip
_declare("to_float", 1, _python("float", float), exact=lambda a: rational(float(a)),
         numpy=lambda a: a.astype("float64"), family="linear")  # fmt: skip
_declare("to_bool", 1, bool, exact=bool, kind=lambda *_: "b", numpy=_np_truth,
         family="gated:step")  # fmt: skip
