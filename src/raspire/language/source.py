"""A source text and the places in it: an offset becomes file, line, column and the line's text."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from raspire.errors import Place, RaspTypeError


class Source:
    """A text with a name; ``first`` is the number of its first line (a session counts on).

    >>> print(Source("a = 1;\\nb = c;", "demo.rasp").place(11))
    demo.rasp:2:5
    """

    def __init__(self, text: str, name: str = "console", first: int = 1) -> None:
        if not isinstance(text, str):
            raise RaspTypeError("RASP is text", expected="a string", found=type(text).__name__)
        self.text = text
        self.name = name
        self.first = first

    @cached_property
    def _starts(self) -> list[int]:
        starts, at = [0], self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    def line(self, offset: int) -> int:
        """The number of the line that holds the offset, counted from 0."""
        return bisect_right(self._starts, offset) - 1

    def place(self, offset: int) -> Place:
        """The place of an offset in the text."""
        offset = max(0, min(offset, len(self.text)))
        line = self.line(offset)
        text = self._lines[line].rstrip("\r")
        column = offset - self._starts[line] + 1
        return Place(self.name, line + self.first, column, text)
