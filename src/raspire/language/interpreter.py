"""A session's state without its face: scopes, the running examples, statements run one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from raspire.errors import (
    RaspError,
    RaspLoadError,
    RaspSyntaxError,
    RaspTypeError,
    UnsupportedError,
)
from raspire.language.code import Code, translate
from raspire.language.machine import LIBRARY, Machine
from raspire.language.names import added_names, base_names
from raspire.language.source import Source
from raspire.language.statements import parse
from raspire.language.syntax import Syntax
from raspire.language.trial import LONGEST, Evaluator, Trial, sequence_input
from raspire.language.values import Builtin, Matrix, Scope, Sequence, describe
from raspire.program.nodes import Node, Selector, SOp

MOST_LOADS = 50  # files that load each other

Drawer = Callable[[Node, list[Any]], None]


@dataclass
class Outcome:
    """What one statement came to.

    ``kind`` is ``value`` (an expression), ``assigned`` (``names`` holds what was bound, functions
    included), ``quiet`` (a loop), ``command`` (``words``; ``value`` for ``set``), ``loaded`` or
    ``error``.
    """

    kind: str
    value: Any = None
    name: str = "out"
    names: dict[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    error: RaspError | None = None
    inner: list[Outcome] = field(default_factory=list)

    def errors(self) -> Iterator[RaspError]:
        """What failed, in the order of the text; in the files that it loads first."""
        for inner in self.inner:
            yield from inner.errors()
        if self.error is not None:
            yield self.error


@dataclass
class Settings:
    """What a session shows."""

    sop_examples: bool = True
    selector_examples: bool = True
    full_display: bool = False


@cache
def _library_code() -> tuple[Source, list[Code]]:
    text = Path(__file__).with_name("base.rasp").read_text(encoding="utf-8")
    source = Source(text, LIBRARY)
    return source, [translate(tree) for tree in parse(source) if isinstance(tree, Syntax)]


class Interpreter:
    """Runs RASP; both examples begin as ``example``.

    ``checking`` tries every definition on the running example, as the original does; without it
    a text is only turned into a program.

    >>> last = list(Interpreter("abc").run("x = indices + 1; x * 2;"))[-1]
    >>> Interpreter("abc").result(last.value)
    [2, 4, 6]
    """

    def __init__(self, example: Any = "hello", *, checking: bool = True) -> None:
        self.evaluator = Evaluator()
        self.settings = Settings()
        self.checking = False
        self.drawer: Drawer | None = None
        self.reserved: frozenset[str] = frozenset()
        self._loading: list[str] = []
        self._inner: list[Outcome] = []
        self.machine = Machine(self)
        self.example: list[Any] = []
        self.selector_example: list[Any] = []
        self.shown_example: Any = example
        self.shown_selector_example: Any = example
        self.set_example(example)
        added = Scope({**added_names(), "draw": Builtin("draw(s, input)", (1, 2), self._draw)})
        self.library = Scope(base_names(), added)
        self._run_library()
        self.reserved = frozenset(self.library.names) - {"tokens"}
        self.scope = Scope(outer=self.library)
        self.checking = checking

    def _run_library(self) -> None:
        source, codes = _library_code()
        for code in codes:
            self.machine.run(code, source, self.library, LIBRARY)
        self.machine.last = None

    # ------------------------------------------------------------------ the running examples

    def set_example(self, value: Any, which: str = "") -> None:
        """Set both examples, or only that of ``s-op`` or ``selector``."""
        if not isinstance(value, str | list | dict):
            raise RaspTypeError(
                "an example is a sequence",
                expected="a string, a list or a dictionary",
                found=describe(value),
            )
        tokens = sequence_input(value) if value else []
        if which != "selector":
            self.example, self.shown_example = tokens, value
            self._trial = Trial(tokens)
        if which != "s-op":
            self.selector_example, self.shown_selector_example = tokens, value

    def check(self, node: Node) -> None:
        """Try a node on the running example; a long example is left to the printed results."""
        if self.checking and len(self.example) <= LONGEST:
            if not self.example:
                sequence_input(self.example)
            self._trial.value(node)

    def apply(self, node: Node, tokens: list[Any]) -> Sequence | Matrix:
        """The result of a node on an input."""
        return self.evaluator.result(node, tokens)

    def result(self, node: Node) -> Sequence | Matrix:
        """The result of a node on the running example of its kind."""
        selector = isinstance(node, Selector)
        tokens = self.selector_example if selector else self.example
        if not tokens:
            sequence_input(tokens)
        if not selector and len(tokens) <= LONGEST:
            return Sequence(self._trial.value(node))
        return self.evaluator.result(node, tokens)

    # ------------------------------------------------------------------ statements

    def run(self, text: str | Source, name: str = "console") -> Iterator[Outcome]:
        """Run a text statement by statement; a failure is an outcome and stops nothing."""
        source = text if isinstance(text, Source) else Source(text, name)
        yield from self._statements(source, self.scope, "console")

    def _statements(self, source: Source, scope: Scope, creator: str) -> Iterator[Outcome]:
        for tree in parse(source):
            if isinstance(tree, RaspSyntaxError):
                yield Outcome("error", error=tree)
            else:
                yield self._statement(tree, source, scope, creator)

    def _statement(self, tree: Syntax, source: Source, scope: Scope, creator: str) -> Outcome:
        outer, self._inner = self._inner, []
        try:
            if tree.kind == "command":
                return self._command(tree, source, scope, creator)
            stored = self.machine.run(translate(tree), source, scope, creator)
            return self._outcome(tree, stored, scope)
        except RaspError as error:
            error.at(source.place(tree.at))
            return Outcome("error", error=error, inner=self._inner)
        except (RecursionError, MemoryError) as error:
            text = f"this is too large: {type(error).__name__}"
            return Outcome("error", error=RaspError(text, where=source.place(tree.at)))
        finally:
            self._inner = outer

    def _outcome(self, tree: Syntax, stored: list[str], scope: Scope) -> Outcome:
        names = {name: scope.names[name] for name in stored}
        if tree.kind == "evaluate":
            expression = tree.parts[0]
            name = expression.value if expression.kind == "name" else "out"
            return Outcome("value", self.machine.last, name, inner=self._inner)
        if tree.kind == "load":
            return Outcome("loaded", tree.value, names=names, inner=self._inner)
        if tree.kind == "loop":
            return Outcome("quiet", inner=self._inner)
        return Outcome("assigned", self.machine.last, names=names, inner=self._inner)

    def _command(self, tree: Syntax, source: Source, scope: Scope, creator: str) -> Outcome:
        words, value = tree.value, None
        which = {"s": "s-op", "selector": "selector"}.get(words[0] if words[0] in (
            "s", "selector") else words[1] if len(words) > 1 else "", "")  # fmt: skip
        if words[0] == "set":
            self.machine.run(translate(_as_statement(tree.parts[0])), source, scope, creator)
            value = self.machine.last
            self.set_example(value, which)
        elif words[-2:-1] == ("examples",):
            if which != "selector":
                self.settings.sop_examples = words[-1] == "on"
            if which != "s-op":
                self.settings.selector_examples = words[-1] == "on"
        elif words[0] == "full":
            self.settings.full_display = words[-1] == "on"
        return Outcome("command", value, words=(words[0], which), inner=self._inner)

    # ------------------------------------------------------------------ files and drawings

    def read(self, path: str) -> dict[str, Any]:
        """Run ``path.rasp`` in a scope of its own; what it defines, without private names.

        Raises RaspLoadError when it cannot be read, or when loads never end.
        """
        return self._defined(read_source(path + ".rasp", shown=path), path)

    def open(self, source: Source) -> Outcome:
        """Take over what a file defines, as ``load`` does."""
        outer, self._inner = self._inner, []
        names = self._defined(source, source.name.removesuffix(".rasp"))
        self.scope.names.update(names)
        inner, self._inner = self._inner, outer
        return Outcome("loaded", names=names, inner=inner)

    def _defined(self, source: Source, path: str) -> dict[str, Any]:
        if len(self._loading) >= MOST_LOADS:
            raise RaspLoadError(
                "files load each other without end", found=" loads ".join(self._loading[-3:])
            )
        self._loading.append(path)
        try:
            scope = Scope(outer=self.library)
            inner = list(self._statements(source, scope, path))
        finally:
            self._loading.pop()
        self._inner += inner
        return {name: value for name, value in scope.names.items() if not name.startswith("_")}

    def draw(self, node: Node, tokens: list[Any] | None) -> Sequence | Matrix:
        """Draw a node and give its result."""
        if not isinstance(node, SOp):
            raise RaspTypeError("only an s-op can be drawn", expected="an s-op",
                                found=describe(node))  # fmt: skip
        if self.drawer is None:
            raise UnsupportedError("there is nothing to draw on here", hint="use raspire draw FILE")
        chosen = self.example if tokens is None else tokens
        self.drawer(node, chosen)
        return self.apply(node, chosen)

    def _draw(self, node: Any, *given: Any) -> Sequence | Matrix:
        return self.draw(node, sequence_input(given[0]) if given else None)


def _as_statement(expression: Syntax) -> Syntax:
    return Syntax("evaluate", expression.at, (expression,))


def read_source(path: str, shown: str | None = None) -> Source:
    """The text of a file.

    Raises RaspLoadError when there is none, or when it is not UTF-8 text.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise RaspLoadError(f"{path} is not text", expected="UTF-8") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise RaspLoadError(
            f"cannot read {path}",
            found=reason,
            hint="a path is relative to the current directory, without .rasp" if shown else "",
        ) from None
    return Source(text, path)


def from_rasp(text: str | Source, name: str = "program") -> Node:
    """The program that a text denotes: its last s-op or selector, not run on anything.

    >>> from_rasp("flip = select(indices, length - 1 - indices, ==); aggregate(flip, tokens_asis);")
    aggregate(flip, tokens)

    Raises the RaspError of the first statement that fails, or RaspTypeError if the last value is
    neither s-op nor selector.
    """
    last: Any = None
    for outcome in Interpreter(checking=False).run(text, name):
        for error in outcome.errors():
            raise error
        if outcome.kind in ("value", "assigned"):
            last = outcome.value
    if not isinstance(last, Node):
        raise RaspTypeError(
            "the text denotes no program",
            expected="an s-op or a selector as its last value",
            found=describe(last) if last is not None else "no value",
        )
    return last
