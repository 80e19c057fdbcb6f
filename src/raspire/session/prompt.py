"""The prompt: multi-line input, history, completion and colour; plain text from a pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO

from prompt_toolkit import PromptSession, print_formatted_text
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText, StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from raspire.language.lexicon import FORMS, KEYWORDS, scan
from raspire.language.source import Source
from raspire.language.statements import unfinished
from raspire.session.session import Message, Quit, Session

STYLE = Style.from_dict(
    {
        "keyword": "ansimagenta",
        "form": "ansiblue",
        "string": "ansigreen",
        "number": "ansicyan",
        "operator": "ansiyellow",
        "error": "ansired",
        "note": "ansibrightblack",
        "prompt": "bold",
    }
)
COMMAND_WORDS = (
    "set example",
    "set s-op example",
    "set selector example",
    "show example",
    "examples on",
    "examples off",
    "full seq display on",
    "full seq display off",
    "load",
    "draw(",
    "help",
    "quit",
)
_COLOURS = {
    **dict.fromkeys(KEYWORDS.values(), "keyword"),
    **dict.fromkeys(FORMS.values(), "form"),
    **dict.fromkeys(("INTEGER", "FLOAT"), "number"),
    **dict.fromkeys(("COMPARE", "SIGN", "TIMES", "MODULO", "POWER", "EQUAL"), "operator"),
    "STRING": "string",
    "UNKNOWN": "error",
}
_WORD = re.compile(r"[^\W\d]\w*$")


class Colours(Lexer):
    """The colours of a line, by its words."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """A function from a line's number to its coloured pieces."""

        def line(number: int) -> StyleAndTextTuples:
            return list(coloured(document.lines[number]))

        return line


def coloured(text: str) -> Iterator[tuple[str, str]]:
    """The pieces of a line with their colours; together they are the line.

    >>> list(coloured("a + 1 # b"))
    [('', 'a'), ('', ' '), ('class:operator', '+'), ('', ' '), ('class:number', '1'), ('', ' # b')]
    """
    end = 0
    for token in scan(text):
        start = token.start_pos or 0
        if start > end:
            yield "", text[end:start]
        colour = _COLOURS.get(token.type)
        yield f"class:{colour}" if colour else "", str(token)
        end = start + len(token)
    if end < len(text):
        yield "", text[end:]


class Names(Completer):
    """Completes names in sight, keywords and commands."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        """What the word before the cursor may become."""
        before = document.text_before_cursor.rsplit("\n", 1)[-1]
        if before and before == before.lstrip():
            for command in COMMAND_WORDS:
                if command.startswith(before) and command != before:
                    yield Completion(command, -len(before))
        match = _WORD.search(before)
        if match is None:
            return
        word = match.group()
        known = self._session.interpreter.scope.known() | set(KEYWORDS) | set(FORMS) | {"out"}
        for name in sorted(known):
            if name.startswith(word) and name != word:
                yield Completion(name, -len(word))


def interact(session: Session, history: Path | None = None) -> None:
    """Read statements at a prompt until the user leaves."""
    prompt: PromptSession[str] = PromptSession(
        history=_history(history),
        completer=Names(session),
        complete_while_typing=False,
        lexer=Colours(),
        style=STYLE,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=lambda width, number, wrapped: ".. ",
    )
    while True:
        try:
            text = prompt.prompt([("class:prompt", ">> ")])
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text.strip() and not run(session, text, _show):
            return


def run(session: Session, text: str, show: Callable[[Message], None]) -> bool:
    """Run text and show what comes; an interruption ends it and keeps the session.

    Returns whether the session goes on.
    """
    try:
        for message in session.feed(text):
            show(message)
    except Quit:
        return False
    except KeyboardInterrupt:
        show(Message("interrupted; the session goes on", "note"))
    return True


def _show(message: Message) -> None:
    style = "" if message.style == "value" else f"class:{message.style}"
    print_formatted_text(FormattedText([(style, message.text)]), style=STYLE)


def _history(path: Path | None) -> History:
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _keys() -> KeyBindings:
    """Enter finishes a statement, or goes on where it is not finished."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text.strip() and unfinished(Source(buffer.text)):
            buffer.insert_text("\n" + "  " * _depth(buffer.document.text_before_cursor))
        else:
            buffer.validate_and_handle()

    return keys


def _depth(text: str) -> int:
    """How many blocks and brackets are open."""
    kinds = [token.type for token in scan(text)]
    opened = sum(kind in ("LBRACE", "LPAR", "LSQB") for kind in kinds)
    return max(0, opened - sum(kind in ("RBRACE", "RPAR", "RSQB") for kind in kinds))


def chunks(lines: Iterable[str]) -> Iterator[str]:
    """Lines gathered into texts that are finished as far as can be seen.

    Brackets are counted line by line, so that a long definition is not parsed again and again.

    >>> list(chunks(["def f(x) {", "return x; }", "f(2);"]))
    ['def f(x) {\\nreturn x; }\\n', 'f(2);\\n']
    """
    waiting: list[str] = []
    depth = 0
    for line in lines:
        text = line.rstrip("\n") + "\n"
        kinds = [token.type for token in scan(text)]
        if not kinds and not waiting:
            yield text
            continue
        waiting.append(text)
        depth += sum(kind in ("LBRACE", "LPAR", "LSQB") for kind in kinds)
        depth -= sum(kind in ("RBRACE", "RPAR", "RSQB") for kind in kinds)
        whole = "".join(waiting)
        if depth <= 0 and not unfinished(Source(whole)):
            yield whole
            waiting, depth = [], 0
    if waiting:
        yield "".join(waiting)


def pipe(session: Session, lines: Iterable[str], output: TextIO | None = None) -> None:
    """Run plain text from a pipe and print what comes, statement by statement."""
    target = output or sys.stdout

    def show(message: Message) -> None:
        print(message.text, file=target, flush=True)

    for text in chunks(lines):
        if not run(session, text, show):
            return
