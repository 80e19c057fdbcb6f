"""Trial runs: every s-op and selector is tried on a short input as soon as it is defined.

The values are those of the reference evaluator; what a run has computed it never computes again,
so that a definition costs only its own nodes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from raspire.errors import RaspError, RaspOverflowError, RaspTypeError
from raspire.language.operators import PRIMITIVE_OF, PYTHON
from raspire.language.values import Matrix, Sequence, describe, is_atom, sequence_type
from raspire.program.nodes import Apply, Node, Select, Selector, SOp

if TYPE_CHECKING:
    from raspire.evaluate.reference import Evaluation

LONGEST = 100  # tokens of an input that definitions are tried on; beyond, only results are computed

# Elementwise operations by Python's own operators; those whose results can be astronomically large
# have the bounds of operators.py. What they refuse is left to the reference to explain.
_PLAIN: dict[str, Callable[..., Any]] = {
    PRIMITIVE_OF[symbol]: PYTHON[symbol] for symbol in ("+", "*", "^")
} | {
    name: getattr(operator, name) for name in ("sub", "eq", "ne", "lt", "le", "gt", "ge")
}  # fmt: skip


class Trial:
    """One input, with the values of every node tried on it so far."""

    def __init__(self, tokens: list[Any]) -> None:
        self.tokens = tokens

    @cached_property
    def _run(self) -> Evaluation:
        """The reference's run; what only reads or checks a program does without NumPy."""
        from raspire.evaluate.reference import Evaluation

        return Evaluation(self.tokens)

    def value(self, root: Node) -> list[Any]:
        """The values of a node: a list of atoms, or the rows of a selector.

        Raises the RaspError of whatever fails on this input.
        """
        known = self._run.known
        waiting = [root]
        while waiting:
            node = waiting[-1]
            if node in known:
                waiting.pop()
                continue
            missing = [child for child in node.args if child not in known]
            if missing:
                waiting.extend(missing)
                continue
            known[node] = self._compute(node, [known[child] for child in node.args])
            waiting.pop()
        return known[root]

    def _compute(self, node: Node, arguments: list[list[Any]]) -> list[Any]:
        try:
            values = _quickly(node, arguments)
            if values is None:
                from raspire.evaluate.reference import RULES

                values = RULES[type(node)](self._run, node, *arguments)
            if isinstance(node, SOp):
                sequence_type(values)
        except RaspError as error:
            raise error.at(node.place) from None
        except (ValueError, RecursionError) as problem:  # from showing a value of absurd size
            raise RaspOverflowError(f"a value is too large: {problem}", where=node.place) from None
        return values


def _quickly(node: Node, arguments: list[list[Any]]) -> list[Any] | None:
    """The values of the commonest nodes, or None where anything is unusual."""
    try:
        if isinstance(node, Select):
            holds = _PLAIN[node.comparison.name]
            keys, queries = arguments
            return [[holds(key, query) for key in keys] for query in queries]
        if isinstance(node, Apply):
            function = _PLAIN.get(node.primitive.name)
            if function is not None:
                return list(map(function, *arguments))
    except (TypeError, ValueError, ArithmeticError, KeyError):
        pass
    return None


class Trials:
    """Runs on the inputs used last; an input is known by its values and their types."""

    KEPT = 4

    def __init__(self) -> None:
        self._runs: dict[tuple[Any, ...], Trial] = {}

    def on(self, tokens: list[Any]) -> Trial:
        """The run on an input, with whatever it has computed before."""
        key = tuple((type(token), repr(token)) for token in tokens)
        run = self._runs.pop(key, None) or Trial(tokens)
        self._runs[key] = run
        while len(self._runs) > self.KEPT:
            self._runs.pop(next(iter(self._runs)))
        return run


def sequence_input(value: object) -> list[Any]:
    """The tokens of an input: the characters of a string, a list's atoms, a dictionary's keys.

    >>> sequence_input("abc")
    ['a', 'b', 'c']

    Raises RaspTypeError for anything else, and for an input without tokens.
    """
    if not isinstance(value, str | list | dict):
        raise RaspTypeError(
            "a sequence or selector is applied to a sequence of tokens",
            expected="a string, a list or a dictionary",
            found=describe(value),
        )
    if not value:
        raise RaspTypeError("the input is empty", expected="at least one token", found="none")
    tokens = list(value)
    for token in tokens:
        if not is_atom(token):
            raise RaspTypeError(
                "the tokens of an input are atoms", expected="an atom", found=describe(token)
            )
    return tokens


class Evaluator:
    """Values on inputs of any length: short ones by trial runs, long ones by the engine."""

    def __init__(self) -> None:
        self.trials = Trials()

    def result(self, node: Node, tokens: list[Any]) -> Sequence | Matrix:
        """The node's result on an input."""
        if len(tokens) <= LONGEST:
            values: Iterable[Any] = self.trials.on(tokens).value(node)
        else:
            from raspire.evaluate import evaluate, shown

            with shown() as tick:
                values = evaluate(node, tokens, tick=tick)
        if isinstance(node, Selector):
            return Matrix(values, tokens)
        return Sequence(values)
