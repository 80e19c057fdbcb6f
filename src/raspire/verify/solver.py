"""Equivalence decided by a solver: two programs on every real (or integer) input of one length.

The programs are run on variables (extra ``proof``, z3): a selector becomes a matrix of conditions,
an aggregate a mean with a condition for every key, and the solver is asked for an input on which
the two differ. Unlike an identity over a field this covers comparisons, so programs that sort or
match real values; named functions are left uninterpreted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from time import monotonic
from typing import Any, Literal

from raspire.arithmetic import EXACT
from raspire.errors import BudgetError, MissingExtraError, RaspZeroDivisionError, UnsupportedError
from raspire.evaluate.reference import exact_rule
from raspire.program.nodes import (
    Aggregate,
    Apply,
    Combine,
    Constant,
    Hardmax,
    Indices,
    Node,
    Select,
    SOp,
    Tokens,
    Width,
)
from raspire.program.walk import merge, topological
from raspire.verify.certificate import Certificate

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
RING: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "pos": lambda a: a,
    "to_float": lambda a: a,
}
NAMED = ("exp", "log", "sqrt", "sin", "cos", "tanh", "erf", "sigmoid", "silu", "gelu", "rsqrt")
FALLIBLE = ("log", "sqrt", "rsqrt")  # not defined everywhere: never left uninterpreted


def z3() -> Any:
    """The package z3; MissingExtraError names the extra if it is not there."""
    try:
        import z3 as package
    except ImportError:
        raise MissingExtraError("z3-solver", "proof") from None
    return package


@dataclass(frozen=True)
class Placed:
    """A program on N positions, of which the first hold the variables and the rest 0."""

    program: SOp
    length: int
    positions: Sequence[int] | None = None


def solve(
    claim: str,
    left: SOp | Placed,
    right: SOp | Placed,
    variables: int,
    *,
    kind: Literal["real", "int"] = "real",
    alphabet: Sequence[int | Fraction] | None = None,
    seconds: float = 60.0,
) -> Certificate:
    """Whether two programs agree on every input of ``variables`` numbers, decided by a solver.

    ``alphabet`` restricts the numbers. The certificate holds a counterexample if there is one.
    Raises BudgetError when the solver does not decide in time, UnsupportedError for a primitive
    without a meaning on variables, RaspZeroDivisionError when some input divides by zero.

    >>> from raspire import aggregate, hardmax, tokens
    >>> greatest = aggregate(hardmax(tokens), tokens)
    >>> bool(solve("shift", greatest + 1, aggregate(hardmax(tokens), tokens + 1), 3).holds)
    True
    """
    package = z3()
    make = package.Real if kind == "real" else package.Int
    names = [make(f"x{k}") for k in range(variables)]
    sides = [_placed(side, variables) for side in (left, right)]
    runs = [Symbolic([*names, *[0] * (s.length - variables)], package) for s in sides]
    results = [run.results(side) for run, side in zip(runs, sides, strict=True)]
    within = [package.Or([x == _number(a) for a in alphabet]) for x in names] if alphabet else []
    start = monotonic()
    zero = [divisor == 0 for run in runs for divisor in run.divisors]
    if zero and _ask(package, [*within, package.Or(zero)], seconds) is not None:
        raise RaspZeroDivisionError(
            "some input makes a program divide by zero",
            expected="programs that are defined on every input",
        )
    apart = [runs[0].differ(a, b) for a, b in zip(*results, strict=True)]
    model = _ask(package, [*within, package.Or(apart)], seconds)
    details: dict[str, Any] = {
        "variables": variables,
        "kind": kind,
        "results compared": len(results[0]),
        "seconds": round(monotonic() - start, 2),
    }
    if model is not None:
        details["counterexample"] = [str(model.eval(x, model_completion=True)) for x in names]
    return Certificate(claim, "decided by a solver", model is None, 0.0, details)


def _placed(side: SOp | Placed, variables: int) -> Placed:
    return Placed(side, variables) if isinstance(side, SOp) else side


def _ask(package: Any, conditions: list[Any], seconds: float) -> Any:
    """A model of the conditions, or None where there is none."""
    solver = package.Solver()
    solver.set("timeout", int(1000 * seconds))
    solver.add(*conditions)
    answer = solver.check()
    if answer == package.unknown:
        raise BudgetError(
            "the solver did not decide in time",
            expected=f"an answer within {seconds:g} s",
            found=solver.reason_unknown(),
            hint="fewer variables, or more seconds",
        )
    return solver.model() if answer == package.sat else None


def _number(value: Any) -> Any:
    return z3().Q(value.numerator, value.denominator) if isinstance(value, Fraction) else value


class Symbolic:
    """A program's values on variables: exact Python values where nothing depends on them."""

    def __init__(self, tokens: list[Any], package: Any) -> None:
        self.tokens, self.z3 = tokens, package
        self.divisors: list[Any] = []
        self.known: dict[Node, Any] = {}

    def results(self, side: Placed) -> list[Any]:
        """The values at the positions that are read."""
        program = merge(side.program)
        for node in topological(program):
            if node not in self.known:
                self.known[node] = RULES[type(node)](self, node)
        values: list[Any] = self.known[program]
        return values if side.positions is None else [values[p] for p in side.positions]

    def differ(self, a: Any, b: Any) -> Any:
        """The condition that two results differ; truth values count as 0 and 1."""
        if not self.symbolic(a) and not self.symbolic(b):
            return self.z3.BoolVal(bool(a != b))
        return self.number(a) != self.number(b)

    def symbolic(self, value: Any) -> bool:
        """Whether a value depends on the variables."""
        return isinstance(value, self.z3.ExprRef)

    def number(self, value: Any) -> Any:
        """A value as a number of the solver."""
        if isinstance(value, self.z3.BoolRef):
            return self.z3.If(value, 1, 0)
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, int | Fraction | self.z3.ArithRef):
            return _number(value)
        raise UnsupportedError(
            "a value that is no number meets a condition on the variables",
            expected="numbers and truth values",
            found=repr(value),
        )

    def truth(self, value: Any) -> Any:
        """A value as a condition."""
        if isinstance(value, self.z3.ArithRef):
            return value != 0
        return value if self.symbolic(value) else bool(value)

    def choose(self, condition: Any, yes: Any, no: Any) -> Any:
        """One of two values by a condition."""
        if not self.symbolic(condition):
            return yes if condition else no
        return self.z3.If(condition, self.number(yes), self.number(no))

    # ----------------------------------------------------------------------------- s-ops

    def _tokens(self, node: Tokens) -> list[Any]:
        return self.tokens

    def _indices(self, node: Indices) -> list[Any]:
        return list(range(len(self.tokens)))

    def _constant(self, node: Constant) -> list[Any]:
        return [EXACT.lift(node.value)] * len(self.tokens)

    def _apply(self, node: Apply) -> list[Any]:
        columns = (self.known[child] for child in node.args)
        return [self.applied(node, values) for values in zip(*columns, strict=True)]

    def applied(self, node: Apply, values: tuple[Any, ...]) -> Any:
        """A primitive on single values."""
        name = node.primitive.name
        if not any(map(self.symbolic, values)) and node.primitive.exact is not None:
            return EXACT.form(node.primitive)(*values)
        if name in ("where", "not", "and", "or", "indicator", "to_bool"):
            return self._logical(name, values)
        numbers = tuple(map(self.number, values))
        if name in COMPARE:
            return COMPARE[name](*numbers)
        if name in RING:
            return RING[name](*numbers)
        if name in ("div", "recip"):
            return self.quotient(*((1, *numbers) if name == "recip" else numbers))
        return self._other(name, numbers)

    def _logical(self, name: str, values: tuple[Any, ...]) -> Any:
        truths = [self.truth(value) for value in values[:2]]
        if name == "where":
            return self.choose(truths[0], *values[1:])
        if name == "indicator":
            return self.choose(truths[0], 1, 0)
        if name == "to_bool":
            return truths[0]
        if name == "not":
            return self.z3.Not(truths[0])
        return (self.z3.And if name == "and" else self.z3.Or)(*truths)

    def _other(self, name: str, numbers: tuple[Any, ...]) -> Any:
        if name in ("maximum", "minimum"):
            a, b = numbers
            return self.z3.If(a > b if name == "maximum" else a < b, a, b)
        if name in ("abs", "relu"):
            other = -numbers[0] if name == "abs" else 0
            return self.z3.If(numbers[0] > 0, numbers[0], other)
        if name == "to_int" and (not self.symbolic(numbers[0]) or numbers[0].is_int()):
            return numbers[0]
        if name in ("mod", "floordiv") and isinstance(numbers[1], int) and numbers[1] > 0:
            whole = numbers[0]
            if self.symbolic(whole) and whole.is_int():
                return whole % numbers[1] if name == "mod" else whole / numbers[1]
        if name in NAMED and name not in FALLIBLE:
            real = self.z3.RealSort()
            return self.z3.Function(name, real, real)(self._real(numbers[0]))
        raise UnsupportedError(
            f"{name} has no meaning on variables",
            expected="arithmetic, comparisons, choices, mod of integers, named functions",
            found=name,
        )

    def _real(self, value: Any) -> Any:
        if isinstance(value, int):
            return self.z3.RealVal(value)
        return self.z3.ToReal(value) if value.is_int() else value

    def quotient(self, a: Any, b: Any) -> Any:
        """A quotient; a divisor that depends on the variables must never be zero."""
        if self.symbolic(b):
            self.divisors.append(b)
        elif isinstance(b, int) and b == 0:
            raise RaspZeroDivisionError("a division by zero", found=f"{a} / 0")
        return self._real(a) / self._real(b)

    def _aggregate(self, node: Aggregate) -> list[Any]:
        values, rows = self.known[node.value], self.known[node.selector]
        default = EXACT.lift(node.default)
        return [self._mean(row, values, default) for row in rows]

    def _mean(self, row: list[Any], values: list[Any], default: Any) -> Any:
        chosen = [(c, v) for c, v in zip(row, values, strict=True) if self.symbolic(c) or c]
        if not any(self.symbolic(c) for c, _ in chosen):
            return self._plain_mean([v for _, v in chosen], default)
        total = sum((self.choose(c, v, 0) for c, v in chosen), start=0)
        count = self._count(row)
        result = self.number(default)
        for size in range(1, len(chosen) + 1):
            result = self.z3.If(count == size, self._real(total) / size, result)
        return result

    def _plain_mean(self, chosen: list[Any], default: Any) -> Any:
        if len(chosen) < 2:
            return chosen[0] if chosen else default
        if not any(map(self.symbolic, chosen)):
            return exact_rule(chosen, EXACT)
        return self._real(sum(map(self.number, chosen))) / len(chosen)

    def _count(self, row: list[Any]) -> Any:
        return sum((self.choose(c, 1, 0) for c in row), start=0)

    def _width(self, node: Width) -> list[Any]:
        return [self._count(row) for row in self.known[node.selector]]

    # ------------------------------------------------------------------------- selectors

    def _select(self, node: Select) -> list[list[Any]]:
        keys, queries = self.known[node.keys], self.known[node.queries]
        return [[self._holds(node, key, query) for key in keys] for query in queries]

    def _holds(self, node: Select, key: Any, query: Any) -> Any:
        if not self.symbolic(key) and not self.symbolic(query):
            return bool(node.comparison.scalar(key, query))
        if node.comparison.name not in COMPARE:
            raise UnsupportedError(
                "a selector's own predicate has no meaning on variables",
                expected="== != < <= > >=",
                found=node.comparison.name,
            )
        return COMPARE[node.comparison.name](self.number(key), self.number(query))

    def _combine(self, node: Combine) -> list[list[Any]]:
        parts = [self.known[child] for child in node.args]
        return [
            [self._joined(node.op, cells) for cells in zip(*rows, strict=True)]
            for rows in zip(*parts, strict=True)
        ]

    def _joined(self, op: str, cells: tuple[Any, ...]) -> Any:
        if not any(map(self.symbolic, cells)):
            return not cells[0] if op == "not" else (all if op == "and" else any)(cells)
        if op == "not":
            return self.z3.Not(cells[0])
        return (self.z3.And if op == "and" else self.z3.Or)(*cells)

    def _hardmax(self, node: Hardmax) -> list[list[Any]]:
        scores = self.known[node.score]
        return [
            [self._greatest(row, scores, j) for j in range(len(row))]
            for row in self.known[node.among]
        ]

    def _greatest(self, row: list[Any], scores: list[Any], j: int) -> Any:
        if not self.symbolic(row[j]) and not row[j]:
            return False
        beaten = [
            self._joined("and", (row[k], self._above(scores[k], scores[j])))
            for k in range(len(row))
            if k != j
        ]
        free = self._joined("not", (self._any(beaten),))
        return self._joined("and", (row[j], free))

    def _above(self, a: Any, b: Any) -> Any:
        if not self.symbolic(a) and not self.symbolic(b):
            return a > b
        return self.number(a) > self.number(b)

    def _any(self, cells: list[Any]) -> Any:
        result: Any = False
        for cell in cells:
            result = self._joined("or", (result, cell))
        return result


RULES: dict[type[Node], Callable[..., Any]] = {
    Tokens: Symbolic._tokens,
    Indices: Symbolic._indices,
    Constant: Symbolic._constant,
    Apply: Symbolic._apply,
    Aggregate: Symbolic._aggregate,
    Width: Symbolic._width,
    Select: Symbolic._select,
    Combine: Symbolic._combine,
    Hardmax: Symbolic._hardmax,
}
