"""From tokens to the syntax tree, one statement at a time, with lark's LALR parser."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput, UnexpectedToken
from lark.lexer import Lexer

from raspire.errors import RaspSyntaxError
from raspire.language.complaints import complaint
from raspire.language.precedence import Operator, group
from raspire.language.source import Source
from raspire.language.syntax import Definition, Names, Syntax


class _Given(Lexer):  # type: ignore[misc]
    """The tokens are given to the parser as they are."""

    def __init__(self, conf: object) -> None:
        pass

    def lex(self, data: list[Token]) -> Iterator[Token]:
        return iter(data)


class _Chain:
    """Operands and operators of a chain in the making."""

    __slots__ = ("operands", "operators")

    def __init__(self, left: Syntax, operator: Operator, right: Syntax) -> None:
        self.operands = [left, right]
        self.operators = [operator]


def _operator(item: Any) -> Operator:
    return item if isinstance(item, tuple) else (str(item), item.start_pos, None)


def _close(item: Any) -> Syntax:
    """A finished expression: a chain gets its tree."""
    return group(item.operands, item.operators) if isinstance(item, _Chain) else item


def _names(tokens: list[Token]) -> Names:
    return tuple((str(token), token.start_pos) for token in tokens)


class _Builder(Transformer):  # type: ignore[misc]
    """One method for each rule of rasp.lark, called as the rule is reduced."""

    def open_chain(self, items: list[Any]) -> _Chain:
        return _Chain(items[0], _operator(items[1]), items[2])

    def extend_chain(self, items: list[Any]) -> _Chain:
        chain: _Chain = items[0]
        chain.operators.append(_operator(items[1]))
        chain.operands.append(items[2])
        return chain

    def choice(self, items: list[Any]) -> Operator:
        return "if", items[0].start_pos, _close(items[1])

    def unary(self, items: list[Any]) -> Syntax:
        return Syntax("unary", items[0].start_pos, (items[1],), str(items[0]))

    def name(self, items: list[Token]) -> Syntax:
        return Syntax("name", items[0].start_pos or 0, (), str(items[0]))

    def integer(self, items: list[Token]) -> Syntax:
        return Syntax("literal", items[0].start_pos or 0, (), int(items[0]))

    def decimal(self, items: list[Token]) -> Syntax:
        return Syntax("literal", items[0].start_pos or 0, (), float(items[0]))

    def string(self, items: list[Token]) -> Syntax:
        return Syntax("literal", items[0].start_pos or 0, (), str(items[0])[1:-1])

    def grouped(self, items: list[Any]) -> Syntax:
        tree = _close(items[0])
        tree.bracketed = True
        return tree

    def index(self, items: list[Any]) -> Syntax:
        return Syntax("index", items[1].start_pos, (items[0], _close(items[2])))

    def call(self, items: list[Any]) -> Syntax:
        arguments = items[2] if len(items) > 2 else ()
        return Syntax("call", items[1].start_pos, (items[0], *arguments))

    def form(self, items: list[Any]) -> Syntax:
        parts = items[1] if isinstance(items[1], tuple) else (_close(items[1]),)
        return Syntax("form", items[0].start_pos, parts, str(items[0]))

    def select(self, items: list[Any]) -> Syntax:
        parts = (_close(items[1]), _close(items[2]))
        return Syntax("select", items[0].start_pos, parts, str(items[3]))

    def aggregate(self, items: list[Any]) -> Syntax:
        return Syntax("aggregate", items[0].start_pos, tuple(map(_close, items[1:])))

    def listing(self, items: list[Any]) -> Syntax:
        return Syntax("list", items[0].start_pos, items[1] if len(items) > 1 else ())

    def list_for(self, items: list[Any]) -> Syntax:
        opening, element, _, names, _, iterated = items
        parts = (_close(element), _close(iterated))
        return Syntax("list_for", opening.start_pos, parts, names)

    def mapping(self, items: list[Any]) -> Syntax:
        pairs = items[1:]
        return Syntax("dict", items[0].start_pos, tuple(part for pair in pairs for part in pair))

    def dict_for(self, items: list[Any]) -> Syntax:
        opening, pair, _, names, _, iterated = items
        return Syntax("dict_for", opening.start_pos, (*pair, _close(iterated)), names)

    def pair(self, items: list[Any]) -> tuple[Syntax, Syntax]:
        return _close(items[0]), _close(items[1])

    def names(self, items: list[Token]) -> Names:
        return _names(items)

    def expressions(self, items: list[Any]) -> tuple[Syntax, ...]:
        return tuple(map(_close, items))

    def lone(self, items: list[Any]) -> Syntax:
        return _close(items[0])

    def evaluate(self, items: list[Any]) -> Syntax:
        expression = _close(items[0])
        return Syntax("evaluate", expression.start, (expression,))

    def assign(self, items: list[Any]) -> Syntax:
        return Syntax("assign", items[0][0][1], items[1], items[0])

    def load(self, items: list[Token]) -> Syntax:
        return Syntax("load", items[0].start_pos or 0, (), str(items[1])[1:-1])

    def body(self, items: list[Syntax]) -> tuple[Syntax, ...]:
        return tuple(items)

    statements = body

    def define(self, items: list[Any]) -> Syntax:
        name = items[1]
        parameters = items[2] if len(items) == 6 else ()
        body, returned = items[-3], items[-1]
        definition = Definition(str(name), parameters, returned)
        return Syntax("define", name.start_pos, body, definition)

    def loop(self, items: list[Any]) -> Syntax:
        keyword, names, _, iterated, body = items
        return Syntax("loop", keyword.start_pos, (_close(iterated), *body), names)


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("rasp.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer=_Given,
        transformer=_Builder(),
        start=["statement", "lone"],
        maybe_placeholders=False,
    )


class Failure(Exception):  # noqa: N818 - it is caught at once
    """A statement that is not RASP: the error, which token stopped the parser, and why."""

    def __init__(self, error: RaspSyntaxError, stopped: int, missing_end: bool) -> None:
        super().__init__(error)
        self.error = error
        self.stopped = stopped
        self.missing_end = missing_end


def parse_tokens(tokens: list[Token], source: Source, start: str = "statement") -> Syntax:
    """The tree of one statement's tokens, or of a lone expression's.

    Raises :class:`Failure`.
    """
    try:
        tree: Syntax = _parser().parse(tokens, start)
    except UnexpectedToken as problem:
        raise _failure(problem, tokens, source) from None
    except UnexpectedInput as problem:  # pragma: no cover - the tokens are ours
        raise Failure(RaspSyntaxError(str(problem)), 0, False) from None
    return tree


def _failure(problem: UnexpectedToken, tokens: list[Token], source: Source) -> Failure:
    accepted = _accepted(problem)
    stopped = len(tokens)
    if problem.token.type != "$END":
        stopped = next(i for i, token in enumerate(tokens) if token is problem.token)
    error = complaint(tokens, stopped, accepted, source)
    return Failure(error, stopped, "SEMICOLON" in accepted)


def _accepted(problem: UnexpectedToken) -> set[str]:
    interactive = problem.interactive_parser
    return set(problem.accepts or ()) if interactive is None else interactive.accepts()
