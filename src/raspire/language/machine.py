"""The stack machine that runs a program: plain values are computed, s-ops become graph nodes.

Every function call is a frame on the machine's own stack, so recursion is bounded by
``MOST_FRAMES`` and not by Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from raspire.errors import (
    BudgetError,
    Place,
    RaspArityError,
    RaspError,
    RaspNameError,
    RaspTypeError,
    RaspValueError,
)
from raspire.language import forms, operators
from raspire.language.code import Code, Template
from raspire.language.complaints import NO_SEMICOLON
from raspire.language.lexicon import FORMS
from raspire.language.names import refuse_reserved, suggestion
from raspire.language.source import Source
from raspire.language.syntax import Names
from raspire.language.trial import sequence_input
from raspire.language.values import Builtin, Function, Scope, describe, is_atom
from raspire.program.nodes import Node, Selector, SOp

MOST_FRAMES = 20_000
LIBRARY = "RASP_support/rasplib"


class Host(Protocol):
    """What the machine asks of the session around it."""

    reserved: frozenset[str]

    def check(self, node: Node) -> None:
        """Try a new node on the running example."""

    def apply(self, node: Node, tokens: list[Any]) -> Any:
        """The result of a node on an input."""

    def draw(self, node: Node, tokens: list[Any] | None) -> Any:
        """Draw a node on an input, or on the running example."""

    def read(self, path: str) -> dict[str, Any]:
        """Load a file: the names it defines."""


@dataclass(slots=True)
class Frame:
    """One running piece of code: a statement of the session, or a function's body."""

    code: Code
    source: Source
    scope: Scope
    creator: str
    function: str = ""
    at: int = 0
    hushed: int = 0
    next: int = 0
    stack: list[Any] = field(default_factory=list)
    choices: list[Any] = field(default_factory=list)
    loops: list[tuple[Iterator[Any], Any]] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)


_FALSE = object()  # a ternary whose condition is a plain false value


class Machine:
    """Runs code in a scope for a host."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.frames: list[Frame] = []
        self.last: Any = None
        self._does: dict[str, Callable[[Frame, Any], None]] = {
            name[4:]: getattr(self, name) for name in dir(self) if name.startswith("_do_")
        }

    def run(self, code: Code, source: Source, scope: Scope, creator: str) -> list[str]:
        """Run one statement; what it assigned, by name. Its value is ``last``.

        Raises RaspError with a place.
        """
        depth = len(self.frames)
        top = Frame(code, source, scope, creator)
        self.frames.append(top)
        try:
            self._loop(depth)
        except RaspError as error:
            raise self._placed(error, depth) from None
        finally:
            del self.frames[depth:]
        return top.stored

    def _loop(self, depth: int) -> None:
        frames, does = self.frames, self._does
        while len(frames) > depth:
            frame = frames[-1]
            code = frame.code
            while frame.next < len(code):
                name, argument, frame.at = code[frame.next]
                frame.next += 1
                does[name](frame, argument)
                if frames[-1] is not frame:
                    break
            else:
                frames.pop()

    def _placed(self, error: RaspError, depth: int) -> RaspError:
        """Blame the innermost place in the user's own text, and say what was running there."""
        running = self.frames[depth:]
        own = [frame for frame in running if frame.creator != LIBRARY] or running
        blamed = own[-1]
        error.where = None if error.where and error.where.file == LIBRARY else error.where
        error.at(blamed.source.place(blamed.at))
        inside = [frame.function for frame in running if frame.function]
        if inside and not error.hint:
            caller = running[0]
            where = caller.source.place(caller.at)
            error.hint = f"in {inside[-1]}, called from line {where.line}"
        return error

    def place(self) -> Place:
        """Where the running code stands, in the user's own text."""
        own = [frame for frame in self.frames if frame.creator != LIBRARY] or self.frames
        return own[-1].source.place(own[-1].at)

    # ------------------------------------------------------------------ values and operators

    def _push(self, frame: Frame, value: Any) -> None:
        """A new value; a node is tried on the running example at once."""
        if isinstance(value, Node) and not frame.hushed:
            if value.place is None and value.label is None:
                value.at(self.place())  # type: ignore[attr-defined]
            self.host.check(value)
        frame.stack.append(value)

    def _do_push(self, frame: Frame, value: Any) -> None:
        frame.stack.append(value)

    def _do_load(self, frame: Frame, name: str) -> None:
        if name == "out":
            return frame.stack.append(self.last)
        try:
            value = frame.scope.find(name)
        except KeyError:
            hint = suggestion(name, frame.scope.known() | set(FORMS))
            if name in ("help", "exit", "quit"):
                hint = NO_SEMICOLON
            if name in FORMS:
                hint = f"{name} is a form, not a value: write {name}(...)"
            raise RaspNameError(f"the name {name!r} is not defined", hint=hint) from None
        return self._push(frame, value)

    def _do_unary(self, frame: Frame, symbol: str) -> None:
        self._push(frame, operators.unary(symbol, frame.stack.pop()))

    def _do_binary(self, frame: Frame, symbol: str) -> None:
        right = frame.stack.pop()
        left = frame.stack.pop()
        self._push(frame, operators.binary(symbol, left, right))

    def _do_choose(self, frame: Frame, otherwise: Any) -> None:
        condition = frame.stack.pop()
        if isinstance(condition, Selector):
            raise RaspTypeError(
                "a selector is no condition", expected="an s-op or a plain value",
                found=describe(condition),
            )  # fmt: skip
        if isinstance(condition, SOp):
            frame.choices.append(condition)
        elif condition:
            frame.choices.append(None)
        else:
            frame.choices.append(_FALSE)
            frame.next = otherwise.position

    def _do_keep(self, frame: Frame, end: Any) -> None:
        if frame.choices[-1] is None:
            frame.choices.pop()
            frame.next = end.position

    def _do_merge(self, frame: Frame, _: None) -> None:
        condition = frame.choices.pop()
        if condition is not _FALSE:
            no = frame.stack.pop()
            yes = frame.stack.pop()
            self._push(frame, operators.choose(condition, yes, no))

    def _do_index(self, frame: Frame, _: None) -> None:
        key = frame.stack.pop()
        value = frame.stack.pop()
        self._push(frame, forms.index(value, key))

    def _do_hush(self, frame: Frame, change: int) -> None:
        frame.hushed += change

    def _do_form(self, frame: Frame, form: tuple[str, int]) -> None:
        name, count = form
        self._push(frame, forms.FORMS[name](*_pop(frame.stack, count)))

    def _do_select(self, frame: Frame, comparison: str) -> None:
        keys, queries = _pop(frame.stack, 2)
        self._push(frame, forms.select(keys, queries, comparison))

    def _do_aggregate(self, frame: Frame, count: int) -> None:
        self._push(frame, forms.aggregate(*_pop(frame.stack, count)))

    def _do_list(self, frame: Frame, count: int) -> None:
        frame.stack.append(_pop(frame.stack, count))

    def _do_dict(self, frame: Frame, count: int) -> None:
        parts = _pop(frame.stack, count)
        frame.stack.append({_key(k): v for k, v in zip(parts[::2], parts[1::2], strict=True)})

    # ------------------------------------------------------------------ calls

    def _do_call(self, frame: Frame, count: int) -> None:
        arguments = _pop(frame.stack, count)
        called = frame.stack.pop()
        if isinstance(called, Function):
            self._enter(called, arguments)
        elif isinstance(called, Builtin):
            _check_arity(called.name, called.arities, count)
            self._push(frame, called.run(*arguments))
        elif isinstance(called, Node):
            _check_arity(describe(called), (1,), count)
            frame.stack.append(self.host.apply(called, sequence_input(arguments[0])))
        else:
            raise RaspTypeError(
                "this cannot be applied",
                expected="a function, an s-op or a selector",
                found=describe(called),
            )

    def _enter(self, function: Function, arguments: list[Any]) -> None:
        names = [name for name, _ in function.parameters]
        _check_arity(function.name, (len(names),), len(arguments))
        if len(self.frames) >= MOST_FRAMES:
            raise BudgetError(
                "functions call each other too deeply",
                expected=f"at most {MOST_FRAMES} calls inside each other",
                hint="does the recursion end?",
            )
        for name in names:
            refuse_reserved(name)
        scope = Scope(dict(zip(names, arguments, strict=True)), function.scope)
        self.frames.append(
            Frame(function.code, function.source, scope, function.creator, function.name)
        )

    def _do_give(self, frame: Frame, _: None) -> None:
        value = frame.stack.pop()
        self.frames.pop()
        caller = self.frames[-1]
        self._push(caller, value)

    def _do_define(self, frame: Frame, template: Template) -> None:
        inner = frame.function != "" and not frame.creator.endswith("'")
        function = Function(
            template.name,
            template.parameters,
            template.code,
            frame.source,
            frame.scope,
            frame.creator + ("'" if inner else ""),
        )
        self._bind(frame, template.name, function)
        self.last = function

    # ------------------------------------------------------------------ names and loops

    def _bind(self, frame: Frame, name: str, value: Any) -> None:
        refuse_reserved(name, frozenset() if frame.function else self.host.reserved)
        if isinstance(value, Node):
            value.named(name)  # type: ignore[attr-defined]
        frame.scope.names[name] = value
        if not frame.function and name not in frame.stored:
            frame.stored.append(name)

    def _unpack(self, names: Names, value: Any) -> Iterator[tuple[str, Any]]:
        if len(names) == 1:
            return iter([(names[0][0], value)])
        if not isinstance(value, list | str | dict):
            raise RaspTypeError(
                f"{len(names)} names need several values",
                expected="a list, a string or a dictionary",
                found=describe(value),
            )
        if len(value) != len(names):
            raise RaspTypeError(
                "the numbers of names and values differ",
                expected=f"{len(names)} values",
                found=str(len(value)),
            )
        return iter([(name, part) for (name, _), part in zip(names, value, strict=True)])

    def _do_store(self, frame: Frame, names: Names) -> None:
        value = frame.stack.pop()
        if len(names) > 1:
            for name, _ in names:
                refuse_reserved(name, frozenset() if frame.function else self.host.reserved)
        for name, part in self._unpack(names, value):
            self._bind(frame, name, part)
        if not frame.function:
            self.last = value

    def _do_drop(self, frame: Frame, _: None) -> None:
        value = frame.stack.pop()
        if not frame.function:
            self.last = value

    def _do_iterate(self, frame: Frame, kind: str) -> None:
        value = frame.stack.pop()
        if not isinstance(value, list | dict):
            raise RaspTypeError(
                "only a list or a dictionary can be gone through",
                expected="a list or a dictionary",
                found=describe(value),
            )
        gathered: Any = {} if kind == "dict_for" else []
        frame.loops.append((iter(list(value)), gathered))
        if kind != "loop":
            frame.scope = Scope(outer=frame.scope)

    def _do_next(self, frame: Frame, argument: tuple[Names, Any]) -> None:
        names, end = argument
        iterator, _ = frame.loops[-1]
        try:
            item = next(iterator)
        except StopIteration:
            frame.next = end.position
            return
        inner = frame.code[end.position].with_ != "loop"
        for name, part in self._unpack(names, item):
            if inner:
                refuse_reserved(name)
                frame.scope.names[name] = part
            else:
                self._bind(frame, name, part)

    def _do_gather(self, frame: Frame, start: Any) -> None:
        value = frame.stack.pop()
        gathered = frame.loops[-1][1]
        if isinstance(gathered, dict):
            gathered[_key(frame.stack.pop())] = value
        else:
            gathered.append(value)
        frame.next = start.position

    def _do_jump(self, frame: Frame, start: Any) -> None:
        frame.next = start.position

    def _do_finish(self, frame: Frame, kind: str) -> None:
        gathered = frame.loops.pop()[1]
        if kind != "loop":
            assert frame.scope.outer is not None
            frame.scope = frame.scope.outer
            frame.stack.append(gathered)

    def _do_read(self, frame: Frame, path: str) -> None:
        for name, value in self.host.read(path).items():
            self._bind(frame, name, value)


def _pop(stack: list[Any], count: int) -> list[Any]:
    if not count:
        return []
    values = stack[-count:]
    del stack[-count:]
    return values


def _key(value: Any) -> Any:
    if not is_atom(value):
        raise RaspTypeError(
            "the keys of a dictionary are atoms", expected="an atom", found=describe(value)
        )
    if value != value:
        raise RaspValueError("not a number is no key", found="nan")
    return value


def _check_arity(name: str, expected: tuple[int, ...], found: int) -> None:
    if found not in expected:
        wanted = " or ".join(map(str, expected))
        raise RaspArityError(
            f"{name} is given the wrong number of arguments", expected=wanted, found=str(found)
        )
