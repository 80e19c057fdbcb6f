"""Index expressions: integer arithmetic on positions, normalised to digits of a mixed radix.

A position of a program such as the universal simulator's is a number in a mixed radix: base plus
digits times strides. On a set of positions written that way, ``+ - *`` and ``//``, ``%`` by
constants, comparisons and ``where`` on ``indices`` become affine forms of the digits. Everything
here is proved on the expression, by intervals and divisibility, for a given sequence length; no
value is ever looked at. What cannot be proved raises :class:`NotProved`.

* :class:`Axis` is one digit, :class:`Form` an affine function of digits.
* :class:`Space` normalises expressions; a digit that has to be taken apart is *split* into two
  digits, and where an expression changes its form inside a digit's range :class:`Border` says so.
* :func:`preimage` solves ``keys == queries``: which positions of the whole sequence a query
  selects, as a form in the query's digits and in the digits that the keys leave free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import gcd

from raspire.program.nodes import Aggregate, Apply, Constant, Indices, Node, Select, SOp

INDEX_PRIMITIVES = frozenset(
    ("add", "sub", "mul", "neg", "pos", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge")
    + ("and", "or", "not", "where", "indicator")
)


class NotProved(Exception):  # noqa: N818  (an answer, not an error)
    """The expression is outside of what this algebra can prove."""


class Axis:
    """One digit: the integers ``low <= x < high``. Two axes are equal only if identical.

    A *ragged* axis is a digit of a key's position; its range may reach beyond the sequence, so
    whoever uses it checks the position itself.
    """

    __slots__ = ("high", "low", "ragged")

    def __init__(self, high: int, low: int = 0, ragged: bool = False) -> None:
        self.low, self.high, self.ragged = low, high, ragged

    @property
    def size(self) -> int:
        """How many values the digit takes."""
        return self.high - self.low


class Border(Exception):  # noqa: N818  (an answer, not an error)
    """The expression has one form where ``axis < at`` and another where ``axis >= at``."""

    def __init__(self, axis: Axis, at: int) -> None:
        super().__init__()
        self.axis, self.at = axis, at


class Form:
    """An affine function of digits with integer coefficients: ``const + sum(coef * axis)``."""

    __slots__ = ("_hash", "const", "terms")

    def __init__(self, const: int, terms: Mapping[Axis, int] | None = None) -> None:
        self.const = const
        self.terms = {axis: coef for axis, coef in (terms or {}).items() if coef}
        self._hash = hash((const, frozenset(self.terms.items())))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and self.const == other.const and self.terms == other.terms

    def __add__(self, other: Form) -> Form:
        terms = dict(self.terms)
        for axis, coef in other.terms.items():
            terms[axis] = terms.get(axis, 0) + coef
        return Form(self.const + other.const, terms)

    def __mul__(self, factor: int) -> Form:
        return Form(self.const * factor, {a: c * factor for a, c in self.terms.items()})

    def __sub__(self, other: Form) -> Form:
        return self + other * -1

    def plus(self, constant: int) -> Form:
        """The form shifted by a constant."""
        return Form(self.const + constant, self.terms)

    def substitute(self, values: Mapping[Axis, Form]) -> Form:
        """The form with axes replaced by forms."""
        if not any(axis in values for axis in self.terms):
            return self
        result = Form(self.const, {a: c for a, c in self.terms.items() if a not in values})
        for axis, coef in self.terms.items():
            if axis in values:
                result = result + values[axis] * coef
        return result

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest value."""
        low = high = self.const
        for axis, coef in self.terms.items():
            ends = coef * axis.low, coef * (axis.high - 1)
            low, high = low + min(ends), high + max(ends)
        return low, high


def digit_form(axis: Axis) -> Form:
    """The digit itself; a digit of one value is that value."""
    return Form(0, {axis: 1}) if axis.size > 1 else Form(axis.low)


class Space:
    """The digits of one set of positions, and how expressions on positions read in them."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.splits: dict[Axis, Form] = {}
        self._known: dict[Form, dict[Node, Form | Exception]] = {}

    # ---------------------------------------------------------------- forms

    def resolve(self, form: Form) -> Form:
        """The form in the digits as they are split by now."""
        while any(axis in self.splits for axis in form.terms):
            form = form.substitute(self.splits)
        return form

    def split(self, axis: Axis, low_size: int, shift: int = 0) -> None:
        """Take the digit apart: ``axis = high digit * low_size + low digit + shift``."""
        first = (axis.low - shift) // low_size
        last = (axis.high - 1 - shift) // low_size
        high = digit_form(Axis(last + 1, first, axis.ragged))
        self.splits[axis] = high * low_size + digit_form(Axis(low_size)).plus(shift)

    def divide(self, form: Form, divisor: int) -> Form:
        """``form // divisor`` as a form; splits digits, or raises Border or NotProved."""
        if divisor <= 0:
            raise NotProved
        for _ in range(64):
            form = self.resolve(form)
            quotient, rest = _parts(form, divisor)
            low, high = rest.range
            if low // divisor == high // divisor:
                return quotient.plus(low // divisor)
            self._take_apart(rest, divisor)
        raise NotProved

    def _take_apart(self, rest: Form, divisor: int) -> None:
        """Split the digit, or name the border, that lets ``rest // divisor`` be constant."""
        for axis, coef in sorted(rest.terms.items(), key=lambda term: -abs(term[1])):
            size = abs(coef)
            if divisor % size:
                continue
            period = divisor // size
            others = rest - Form(0, {axis: coef})
            lowest = others.range[0] // size
            shift = (-lowest if coef > 0 else lowest + 1) % period
            if axis.ragged:
                if axis.size > 1:
                    self.split(axis, period, shift)
                    return
            elif axis.low < shift < axis.high:
                raise Border(axis, shift)
            elif shift == 0 and axis.low == 0 and axis.size > period:
                if axis.size % period:
                    raise Border(axis, axis.size - axis.size % period)
                self.split(axis, period)
                return
        raise NotProved

    def at_least(self, form: Form, bound: int) -> bool:
        """Whether ``form >= bound`` on the whole space, or on none of it; else Border."""
        form = self.resolve(form)
        low, high = form.range
        if low >= bound:
            return True
        if high < bound:
            return False
        axis, coef = max(form.terms.items(), key=lambda term: abs(term[1]))
        low, high = (form - Form(0, {axis: coef})).range
        if coef > 0:
            sure, never = -((low - bound) // coef), -((high - bound) // coef)
        else:
            sure, never = (low - bound) // -coef + 1, (high - bound) // -coef + 1
        if sure != never:
            raise NotProved
        raise Border(axis, sure)

    def is_zero(self, form: Form) -> bool:
        """Whether ``form == 0`` on the whole space, or on none of it; else Border."""
        form = self.resolve(form)
        if not form.terms:
            return form.const == 0
        low, high = form.range
        if low > 0 or high < 0 or form.const % gcd(*form.terms.values()):
            return False
        if len(form.terms) > 1:
            raise NotProved
        ((axis, coef),) = form.terms.items()
        root = -form.const // coef
        raise Border(axis, root if root > axis.low else root + 1)

    # ---------------------------------------------------------------- expressions

    def normal(self, expression: Node, position: Form) -> Form:
        """The index expression at the position, as a form (truth values as 0 and 1).

        Raises Border or NotProved.
        """
        position = self.resolve(position)
        known = self._known.setdefault(position, {})
        stack = [] if expression in known else [(expression, False)]
        while stack:
            node, expanded = stack.pop()
            if expanded or not isinstance(node, Apply) or is_length(node):
                known[node] = self._attempt(node, position, known)
            elif node not in known:
                stack.append((node, True))
                stack.extend((arg, False) for arg in node.args if arg not in known)
        return self.resolve(_sure(known[expression]))

    def _attempt(
        self, node: Node, position: Form, known: Mapping[Node, Form | Exception]
    ) -> Form | Exception:
        if isinstance(node, Indices):
            return position
        if isinstance(node, Constant) and type(node.value) in (int, bool):
            return Form(int(node.value))
        if not isinstance(node, Apply):
            return NotProved()
        if is_length(node):
            return Form(self.length)
        try:
            return self._apply(node.primitive.name, [known[arg] for arg in node.args])
        except (Border, NotProved) as answer:
            return answer

    def _apply(self, name: str, args: list[Form | Exception]) -> Form:
        if name in ("and", "or"):
            return self._logical(name, args)
        if name == "where":
            return _sure(args[1] if self._truth(_sure(args[0])) else args[2])
        values = [self.resolve(_sure(arg)) for arg in args]
        if name in _ARITHMETIC:
            return _ARITHMETIC[name](*values)
        if name in ("not", "indicator"):
            return Form(int(self._truth(values[0]) == (name == "indicator")))
        if name == "mul":
            left, right = values
            if left.terms and right.terms:
                raise NotProved
            return left * right.const if left.terms else right * left.const
        if name in ("floordiv", "mod"):
            if values[1].terms:
                raise NotProved
            quotient = self.divide(values[0], values[1].const)
            return quotient if name == "floordiv" else values[0] - quotient * values[1].const
        return Form(int(self._compare(name, values[0] - values[1])))

    def _compare(self, name: str, difference: Form) -> bool:
        if name in ("eq", "ne"):
            return self.is_zero(difference) == (name == "eq")
        if name in ("ge", "lt"):
            return self.at_least(difference, 0) == (name == "ge")
        return self.at_least(difference, 1) == (name == "gt")

    def _truth(self, value: Form) -> bool:
        return not self.is_zero(value)

    def _logical(self, name: str, args: list[Form | Exception]) -> Form:
        decisive = name == "or"
        trouble: Exception | None = None
        for arg in args:
            try:
                if self._truth(_sure(arg)) == decisive:
                    return Form(int(decisive))
            except (Border, NotProved) as answer:
                trouble = trouble or answer
        if trouble:
            raise trouble
        return Form(int(not decisive))


_ARITHMETIC: dict[str, Callable[..., Form]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "neg": lambda a: a * -1,
    "pos": lambda a: a,
}


def _sure(value: Form | Exception) -> Form:
    if isinstance(value, Exception):
        raise value
    return value


def _parts(form: Form, divisor: int) -> tuple[Form, Form]:
    """``form = quotient * divisor + rest``, coefficients of the rest smaller than the divisor."""
    quotient = {a: (abs(c) // divisor) * (1 if c > 0 else -1) for a, c in form.terms.items()}
    whole = Form(form.const // divisor, quotient)
    return whole, form - whole * divisor


# ---------------------------------------------------------------- recognition


def is_length(node: Node) -> bool:
    """Whether this is the length, ``round(1 / aggregate(full, indicator(indices == 0)))``."""
    if not (isinstance(node, Apply) and node.primitive.name == "round"):
        return False
    try:
        (inverse,) = node.args
        one, share = _named(inverse, "div").args
        full, first = share.args if isinstance(share, Aggregate) else ()
        condition = _named(_named(first, "indicator").args[0], "eq")
    except ValueError:
        return False
    return (
        _is_constant(one, 1)
        and isinstance(full, Select)
        and full.comparison.symbol == "=="
        and all(_is_constant(arg, 1) for arg in full.args)
        and isinstance(condition.args[0], Indices)
        and _is_constant(condition.args[1], 0)
    )


def _named(node: Node, name: str) -> Apply:
    if isinstance(node, Apply) and node.primitive.name == name:
        return node
    raise ValueError


def _is_constant(node: Node, value: int) -> bool:
    return isinstance(node, Constant) and type(node.value) is int and node.value == value


def index_nodes(order: Iterable[Node]) -> set[int]:
    """The ids of the nodes of a topological order that are index expressions."""
    found: set[int] = set()
    for node in order:
        if isinstance(node, Constant):
            if type(node.value) in (int, bool):
                found.add(id(node))
        elif isinstance(node, Indices) or (
            isinstance(node, Apply)
            and (
                (
                    node.primitive.name in INDEX_PRIMITIVES
                    and all(id(arg) in found for arg in node.args)
                )
                or is_length(node)
            )
        ):
            found.add(id(node))
    return found


# ---------------------------------------------------------------- keys == queries


@dataclass(frozen=True)
class Preimage:
    """The positions a query selects: a form in the query's digits and in ``free`` digits."""

    position: Form
    free: tuple[Axis, ...]


def preimage(space: Space, conditions: list[tuple[SOp, Form]]) -> Preimage | None:
    """All positions of the sequence where every key expression has its query's value.

    ``conditions`` pairs a key expression with the query's value as a form. The answer is complete:
    no other position of the sequence is selected. None: no position is. The free digits run
    through their whole range for every query. Raises Border (in a digit of a query) or NotProved.
    """
    found: Preimage | None = None
    ranges = [(0, space.length)] if space.length else []
    for _ in range(64):
        if not ranges:
            return found
        first, end = ranges.pop()
        axis = Axis(end, first, ragged=True)
        try:
            forms = [space.normal(key, digit_form(axis)) for key, _ in conditions]
        except Border as border:
            at = _sequence_border(space.resolve(digit_form(axis)), border, first, end)
            ranges += [(first, at), (at, end)]
            continue
        part = _solve(space, axis, forms, [value for _, value in conditions])
        if part is not None and found is not None:
            raise NotProved
        found = part or found
    raise NotProved


def _sequence_border(position: Form, border: Border, first: int, end: int) -> int:
    """Where to cut a range of the sequence so that the border in a digit of it goes away."""
    coef = position.terms.get(border.axis, 0)
    if not border.axis.ragged or coef <= 0:
        raise NotProved
    at = position.const + coef * border.at
    if not first < at < end:
        raise NotProved
    return at


def _solve(space: Space, axis: Axis, keys: list[Form], queries: list[Form]) -> Preimage | None:
    position = space.resolve(digit_form(axis))
    own = set(position.terms)
    digits: dict[Axis, Form] = {}
    for key, query in zip(keys, queries, strict=True):
        if not _digits(space, space.resolve(key), query, own, digits):
            return None
    fresh = {a: Axis(a.size) for a in own - digits.keys()}
    digits |= {a: digit_form(new).plus(a.low) for a, new in fresh.items()}
    position = position.substitute(digits)
    try:
        if not space.at_least(position, axis.low) or space.at_least(position, axis.high):
            return None
    except Border as border:
        if border.axis in fresh.values():
            raise NotProved from None
        raise
    return Preimage(space.resolve(position), tuple(fresh.values()))


def _digits(space: Space, key: Form, query: Form, own: set[Axis], digits: dict[Axis, Form]) -> bool:
    """Solve ``key == query`` for the key's digits, the greatest first; False: no solution.

    The key is a number in a mixed radix only if every coefficient is greater than all that the
    smaller ones can add up to; otherwise two keys could be equal, which is NotProved.
    """
    unknown = own - digits.keys()
    terms = sorted(
        ((a, c) for a, c in key.terms.items() if a in unknown), key=lambda term: abs(term[1])
    )
    known = Form(key.const, {a: c for a, c in key.terms.items() if a not in unknown})
    remaining = query - known.substitute(digits)
    reach = 0
    for axis, coef in terms:
        if abs(coef) <= reach:
            raise NotProved
        reach += abs(coef) * (axis.size - 1)
        remaining = remaining.plus(-min(coef * axis.low, coef * (axis.high - 1)))
    for axis, coef in reversed(terms):
        digit = space.divide(remaining, abs(coef))
        remaining = space.resolve(remaining) - digit * abs(coef)
        if not space.at_least(digit, 0) or space.at_least(digit, axis.size):
            return False
        digits[axis] = digit.plus(axis.low) if coef > 0 else digit * -1 + Form(axis.high - 1)
    return space.is_zero(remaining)
