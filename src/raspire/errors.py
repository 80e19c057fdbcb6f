"""One family of errors: what went wrong, where, what was expected, what was found, how to mend.

Every error that raspire raises on purpose is a :class:`RaspError`; a command line prints it
without a traceback.
"""

from __future__ import annotations

from dataclasses import dataclass

WINDOW = 160  # characters of a very long line that a caret is shown in


@dataclass(frozen=True)
class Place:
    """A place in a source text; ``line`` and ``column`` count from 1, ``text`` is that line."""

    file: str
    line: int
    column: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def caret(self) -> str:
        """The source line with a caret below the column, or nothing when the line is unknown."""
        if not self.text:
            return ""
        first = max(0, self.column - 1 - WINDOW // 2) if len(self.text) > WINDOW else 0
        shown = self.text[first : first + WINDOW]
        indent = "".join("\t" if c == "\t" else " " for c in shown[: self.column - 1 - first])
        return f"{shown}\n{indent}^"


class RaspError(Exception):
    """The base of the family: a message, and whatever is known of place, expectation and cure.

    >>> print(RaspError("a selector is needed", expected="a selector", found="an s-op"))
    a selector is needed
      expected: a selector
      found:    an s-op
    """

    category = "any"

    def __init__(
        self,
        what: str,
        *,
        where: Place | None = None,
        expected: str = "",
        found: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.found = found
        self.hint = hint

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        lines = [head]
        if self.where and self.where.text:
            lines += ["  " + line for line in self.where.caret().split("\n")]
        for label, text in (
            ("expected: ", self.expected),
            ("found:    ", self.found),
            ("hint:     ", self.hint),
        ):
            if text:
                lines.append(f"  {label}{text}")
        return "\n".join(lines)

    def at(self, where: Place | None) -> RaspError:
        """Give the error a place, if it has none yet; returns itself."""
        if self.where is None:
            self.where = where
        return self


class RaspSyntaxError(RaspError):
    """The text is not RASP."""

    category = "syntax"


class RaspNameError(RaspError):
    """A name is not defined."""

    category = "undefined"


class RaspReservedError(RaspError):
    """A reserved name is assigned."""

    category = "reserved"


class RaspArityError(RaspError):
    """A function received the wrong number of arguments."""

    category = "arity"


class RaspTypeError(RaspError):
    """A value of another kind was needed."""

    category = "type"


class RaspValueError(RaspError):
    """The kind is right, the value is not."""

    category = "value"


class RaspZeroDivisionError(RaspError):
    """A division, or a reciprocal, of zero."""

    category = "zero-division"


class RaspOverflowError(RaspError):
    """A result too large for its arithmetic."""

    category = "overflow"


class RaspLoadError(RaspError):
    """A file cannot be read."""

    category = "load"


class BudgetError(RaspError):
    """A request needs more memory, time or size than it was given."""

    category = "budget"


class UnsupportedError(RaspError):
    """A thing that is understood and not offered: it is refused by name."""

    category = "unsupported"


class MissingExtraError(RaspError):
    """An optional dependency is not installed."""

    category = "extra"

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"the package {package!r} is not installed",
            hint=f"pip install 'raspire[{extra}]'",
        )
