"""Text in columns of a terminal, where a character may take two of them, or none."""

from __future__ import annotations


def width(text: str) -> int:
    """The columns that a text takes.

    >>> width("abc"), width("東京")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def left(text: str, columns: int) -> str:
    """The text with spaces behind it, up to a number of columns."""
    return text + " " * (columns - width(text))


def right(text: str, columns: int) -> str:
    """The text with spaces before it, up to a number of columns."""
    return " " * (columns - width(text)) + text
