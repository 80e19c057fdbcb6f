"""A text is cut into statements and commands, so that a fault in one leaves the others whole.

A statement ends with ``;`` outside every block, a ``def`` or ``for`` with its closing brace, and a
command (``set example ...``, ``examples on`` ...) with its line. A brace opens a block when
something that could be an operand stands before it; otherwise it begins a dictionary.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from lark import Token

from raspire.errors import RaspSyntaxError
from raspire.language.complaints import new_line
from raspire.language.lexicon import scan
from raspire.language.parsing import Failure, parse_tokens
from raspire.language.source import Source
from raspire.language.syntax import Syntax

OPERAND_ENDS = {"NAME", "INTEGER", "FLOAT", "STRING", "RPAR", "RSQB", "RBRACE"}
OPENING = {"LPAR", "LSQB", "LBRACE"}
CLOSING = {"RPAR", "RSQB", "RBRACE"}
KINDS = (("s", "-", "op"), ("selector",))
COMMANDS: tuple[tuple[str, ...], ...] = (
    *(("set", *kind, "example") for kind in ((), *KINDS)),
    *(("show", *kind, "example") for kind in ((), *KINDS)),
    *((*kind, "examples", switch) for kind in ((), *KINDS) for switch in ("on", "off")),
    *(("full", "seq", "display", switch) for switch in ("on", "off")),
    ("exit", "(", ")"),
    ("quit", "(", ")"),
    ("exit",),
    ("quit",),
    ("help",),
)
FIRST_WORDS = frozenset(words[0] for words in COMMANDS)


@dataclass(slots=True)
class Piece:
    """The tokens of one statement or command, and whether its end was seen."""

    tokens: list[Token]
    finished: bool
    command: tuple[str, ...] = ()


class Cutter:
    """Cuts the tokens of a source into pieces, from an offset on."""

    def __init__(self, source: Source, start: int = 0) -> None:
        self._source = source
        self._tokens = scan(source.text, start)
        self._ahead: list[Token] = []

    def pieces(self) -> Iterator[Piece]:
        """The pieces in order."""
        while (first := self._next()) is not None:
            command = self._command(first) if str(first) in FIRST_WORDS else None
            if command is not None:
                yield command
                continue
            if str(first) == "load":
                first = self._load(first)
            yield self._statement(first)

    def _next(self) -> Token | None:
        return self._ahead.pop() if self._ahead else next(self._tokens, None)

    def _rest(self) -> Iterator[Token]:
        while (token := self._next()) is not None:
            yield token

    def _load(self, first: Token) -> Token:
        following = self._next()
        if following is None:
            return first
        self._ahead.append(following)
        if following.type == "STRING":
            return Token("LOAD", str(first), first.start_pos)
        return first

    def _statement(self, first: Token) -> Piece:
        tokens: list[Token] = []
        blocks: list[bool] = []  # for every open brace: is it a block?
        previous = None
        for token in chain((first,), self._rest()):
            kind = token.type
            if kind == "NAME" and token == "load" and previous in ("SEMICOLON", "LBRACE"):
                token = self._load(token)
            tokens.append(token)
            if kind == "LBRACE":
                blocks.append(first.type in ("DEF", "FOR") and previous in OPERAND_ENDS)
            elif kind == "RBRACE":
                was_block = blocks.pop() if blocks else False
                if was_block and not blocks:
                    return Piece(tokens, True)
            elif kind == "SEMICOLON" and (not blocks or not blocks[-1]):
                return Piece(tokens, True)
            previous = kind
        return Piece(tokens, False)

    def _command(self, first: Token) -> Piece | None:
        """The command that begins here, if one does; the tokens looked at are given back."""
        line = [first, *self._rest_of_line(first)]
        words = tuple(map(str, line))
        for shape in COMMANDS:
            if words[: len(shape)] == shape and (len(words) == len(shape) or shape[0] == "set"):
                return Piece(line, True, shape)
        self._ahead += reversed(line[1:])
        return None

    def _rest_of_line(self, first: Token) -> Iterator[Token]:
        """The following tokens up to the first that begins a line outside brackets."""
        end, depth = (first.start_pos or 0) + len(first), 0
        while (token := self._next()) is not None:
            start = token.start_pos or 0
            if depth <= 0 and self._source.text.find("\n", end, start) >= 0:
                self._ahead.append(token)
                return
            depth += (token.type in OPENING) - (token.type in CLOSING)
            end = start + len(token)
            yield token


def parse(source: Source) -> Iterator[Syntax | RaspSyntaxError]:
    """The statements of a source in order; what is not RASP comes as an error in its place.

    >>> [s.kind for s in parse(Source("a = 1; def f(x) { return x; } a;"))]
    ['assign', 'define', 'evaluate']
    """
    start: int | None = 0
    while start is not None:
        pieces = Cutter(source, start).pieces()
        start = None
        for piece in pieces:
            try:
                yield parse_piece(piece, source)
            except Failure as failure:
                yield failure.error
                start = _resume(piece, failure, source)
                if start is not None:
                    break


def parse_piece(piece: Piece, source: Source) -> Syntax:
    """The tree of one piece; raises Failure."""
    if not piece.command:
        return parse_tokens(piece.tokens, source)
    at = piece.tokens[0].start_pos or 0
    rest = piece.tokens[len(piece.command) :]
    words = tuple(word for word in piece.command if word not in "()")
    if piece.command[0] == "set":
        try:
            value = parse_tokens(rest, source, "lone")
        except Failure as failure:
            failure.error.at(source.place(at))
            raise
        return Syntax("command", at, (value,), words)
    return Syntax("command", at, (), words)


def _resume(piece: Piece, failure: Failure, source: Source) -> int | None:
    """Where to go on inside a piece that failed, if a new statement seems to begin in it."""
    tokens = piece.tokens
    stopped = failure.stopped
    if (
        failure.missing_end
        and 0 < stopped < len(tokens)
        and new_line(tokens[stopped - 1], tokens[stopped], source)
    ):
        return int(tokens[stopped].start_pos)
    depth = 0
    for here, token in enumerate(tokens):
        if here > max(stopped, 1) and _starts_line(token, source):
            after = tokens[here + 1].type if here + 1 < len(tokens) else ""
            opens = token.type == "DEF" or (token.type == "NAME" and after == "EQUAL")
            if opens or (depth <= 0 and token.type not in CLOSING):
                return int(token.start_pos)
        depth += (token.type in OPENING) - (token.type in CLOSING)
    return None


def _starts_line(token: Token, source: Source) -> bool:
    at = token.start_pos or 0
    return at == 0 or source.text[at - 1] == "\n"


def unfinished(source: Source) -> bool:
    """Whether the text, so far without fault, waits for more: what a prompt asks."""
    pieces = deque(Cutter(source).pieces(), maxlen=1)
    last = pieces[0] if pieces else None
    if last is None or last.finished:
        return False
    try:
        parse_piece(last, source)
    except Failure as failure:
        return failure.stopped >= len(last.tokens)
    return False
