"""A session: text in, shown values and messages out; what the prompt and a pipe share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raspire.errors import RaspError
from raspire.language.interpreter import Interpreter, Outcome
from raspire.language.source import Source
from raspire.program.nodes import Node
from raspire.session import printing

HELP = """\
  expression;                    evaluate and show it: s-ops on the running example
  name = expression;             define; names can be redefined, the library's cannot
  def f(x, y) { ... return e; }  define a function
  for x in list { ... }          repeat
  load "path";                   run path.rasp and take over its names
  draw(s-op, input);             which layer and head computes what

  tokens indices length full_s   select(keys, queries, ==)  aggregate(selector, s-op, default)
  selector_width has_focus count contains sort shift max min ...   round indicator range zip len
  exp log sqrt abs floor ceil sin cos relu ...   hardmax(score, among)   x // y   x != y

  set example "hello"            also: set s-op example, set selector example
  show example                   examples on | off (also: s-op examples, selector examples)
  full seq display on | off      input and output below each other
  help                           quit"""


class Quit(Exception):  # noqa: N818 - it is no error
    """The user leaves."""


@dataclass(frozen=True)
class Message:
    """Text to show; ``style`` is ``value``, ``error`` or ``note``."""

    text: str
    style: str = "value"


class Session:
    """Runs text and says what to show.

    >>> print(*(m.text for m in Session("hello").feed("length;")), sep="\\n")
         s-op: length
              Example: length("hello") = [5]*5 (ints)
    """

    def __init__(self, example: Any = "hello") -> None:
        self.interpreter = Interpreter(example)
        self.interpreter.drawer = self._draw
        self.failed = False
        self._drawn: list[Message] = []
        self._line = 1

    def feed(self, text: str) -> Iterator[Message]:
        """Run some text; raises Quit when it says so."""
        source = Source(text, "console", self._line)
        self._line += text.count("\n") + (not text.endswith("\n"))
        for outcome in self.interpreter.run(source):
            yield from self._shown(outcome)

    def open(self, source: Source) -> Iterator[Message]:
        """Take over what a file defines, as ``load`` does, and show it."""
        outcome = self.interpreter.open(source)
        self.failed |= _failed(outcome)
        yield from self._shown(outcome)

    def _shown(self, outcome: Outcome) -> Iterator[Message]:
        drawn, self._drawn = self._drawn, []
        yield from drawn
        if outcome.error is not None:
            self.failed = True
            yield from self._inner(outcome)
            yield Message(str(outcome.error), "error")
        elif outcome.kind == "value":
            yield from self._value(outcome.name, outcome.value)
        elif outcome.kind == "assigned":
            for name, value in outcome.names.items():
                yield from self._value(name, value)
        elif outcome.kind == "loaded":
            yield from self._loaded(outcome)
        elif outcome.kind == "command":
            yield from self._command(outcome)

    def _value(self, name: str, value: Any) -> Iterator[Message]:
        for line in printing.lines(name, value, self.interpreter):
            yield Message(line)

    def _inner(self, outcome: Outcome) -> Iterator[Message]:
        for inner in outcome.inner:
            yield from self._shown(inner)

    def _loaded(self, outcome: Outcome) -> Iterator[Message]:
        """Every name once, or everything in order with the failures between."""
        if any(map(_failed, outcome.inner)):
            yield from self._inner(outcome)
            return
        for name, value in outcome.names.items():
            yield from self._value(name, value)

    def _command(self, outcome: Outcome) -> Iterator[Message]:
        word, which = outcome.words
        if word in ("exit", "quit"):
            raise Quit
        if word == "help":
            yield Message(HELP, "note")
        elif word == "show":
            if which != "selector":
                shown = printing.example_text(self.interpreter.shown_example)
                yield Message(f"\ts-op example: {shown}")
            if which != "s-op":
                shown = printing.example_text(self.interpreter.shown_selector_example)
                yield Message(f"\tselector example: {shown}")

    def _draw(self, node: Node, tokens: list[Any]) -> None:
        from raspire.show.flow import draw

        drawing = draw(node, tokens)
        self._drawn.append(Message(drawing.text()))
        try:
            path = drawing.save(Path("comp_flows") / f"{drawing.file_name}.svg")
        except (OSError, RaspError) as problem:
            self._drawn.append(Message(f"the picture was not saved: {problem}", "note"))
        else:
            self._drawn.append(Message(f"picture: {path}", "note"))


def _failed(outcome: Outcome) -> bool:
    return any(True for _ in outcome.errors())
