"""A drawing as SVG: a band for every layer, a grid for every head, a strip for every s-op."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

from raspire.show.flow import Column, Drawing, Head

CELL = 20
GAP = 28
TITLE = 18
HEADING = 6  # letters of a token above a column
LETTER = {"t": 7, "l": 8}  # the width of a letter of the texts that begin at their place
STYLE = (
    "text{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:11px;fill:#1f2933}"
    ".t{font-weight:600}.l{font-size:13px;font-weight:700;fill:#52606d}"
    ".g{fill:#fff;stroke:#cbd2d9}.on{fill:#2f6f9f;stroke:#fff}.v{fill:#f0f4f8;stroke:#cbd2d9}"
    ".band{fill:#f8fafc}.c{text-anchor:middle}.e{text-anchor:end}"
)


@dataclass
class _Canvas:
    """Elements with the room they take."""

    width: float = 0
    height: float = 0
    parts: list[str] = field(default_factory=list)

    def rect(self, x: float, y: float, w: float, h: float, kind: str) -> None:
        """A rectangle."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" class="{kind}"/>'
        )
        self.grow(x + w, y + h)

    def text(self, x: float, y: float, text: str, kind: str = "") -> None:
        """A text with its baseline at (x, y)."""
        given = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}"{given}>{escape(text)}</text>')
        self.grow(x + (LETTER[kind] * len(text) if kind in LETTER else 0), y)

    def grow(self, x: float, y: float) -> None:
        """Make room up to a point."""
        self.width, self.height = max(self.width, x), max(self.height, y)


def picture(drawing: Drawing) -> str:
    """The drawing as one SVG document."""
    canvas = _Canvas()
    names = [_short(token) for token in drawing.tokens]
    canvas.text(GAP, 24, f"{drawing.name} on {' '.join(names)}", "l")
    y = 40.0
    if not drawing.layers:
        y = _strip(canvas, GAP, y, Column(drawing.name, drawing.result), names) + GAP
    for layer in drawing.layers:
        title = f"layer {layer.depth}" if layer.depth else "before the first layer"
        canvas.text(GAP, y + TITLE, title, "l")
        y += TITLE + 10
        y = _panels(canvas, y, layer.heads, layer.feed_forward, names)
    width, height = canvas.width + GAP, canvas.height + GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}"><title>{escape(drawing.name)}</title>'
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
        + "".join(canvas.parts)
        + "</svg>\n"
    )


def _panels(
    canvas: _Canvas, y: float, heads: list[Head], columns: list[Column], names: list[str]
) -> float:
    """The heads beside each other, the elementwise results below; the next free height."""
    x, bottom = float(GAP), y
    for head in heads:
        right, low = _head(canvas, x, y, head, names)
        x, bottom = right + GAP, max(bottom, low)
    for column in columns:
        bottom = _strip(canvas, GAP, bottom + 8, column, names)
    return bottom + GAP


def _head(canvas: _Canvas, x: float, y: float, head: Head, names: list[str]) -> tuple[float, float]:
    """One head: its selector's name, the pattern (rows are queries), what it makes."""
    canvas.text(x, y + TITLE - 6, head.selector, "t")
    edge = 7 * max(map(len, names), default=1) + 8
    tops = [_short(name, HEADING) for name in names]
    cell_width = max(CELL, 7 * max(map(len, tops), default=1) + 6)
    width: float = max(7 * len(head.selector), edge + cell_width * len(names))
    if head.pattern is None:
        return x + width, y + TITLE
    top = y + TITLE + 16
    for j, name in enumerate(tops):
        canvas.text(x + edge + (j + 0.5) * cell_width, top - 4, name, "c")
    for i, row in enumerate(head.pattern):
        canvas.text(x + edge - 5, top + (i + 0.7) * CELL, names[i], "e")
        for j, cell in enumerate(row):
            kind = "on" if cell else "g"
            canvas.rect(x + edge + j * cell_width, top + i * CELL, cell_width, CELL, kind)
    low = top + CELL * len(head.pattern)
    for column in head.creates:
        low = _strip(canvas, x, low + 6, column, names, edge)
        width = max(width, edge + _cell_width(column) * len(names), 7 * len(column.name))
    return x + width, low


def _cell_width(column: Column) -> float:
    longest = max((len(_short(value)) for value in column.values or ()), default=1)
    return max(CELL, 7 * longest + 6)


def _strip(
    canvas: _Canvas, x: float, y: float, column: Column, names: list[str], edge: float = 0
) -> float:
    """One s-op: its name and a box for every value; the next free height."""
    canvas.text(x, y + 12, column.name, "t")
    if column.values is None:
        return y + 16
    width = _cell_width(column)
    for j, value in enumerate(column.values):
        canvas.rect(x + edge + j * width, y + 16, width, CELL, "v")
        canvas.text(x + edge + (j + 0.5) * width, y + 16 + 0.7 * CELL, _short(value), "c")
    return y + 16 + CELL


def _short(value: Any, longest: int = 12) -> str:
    """A value in at most so many characters."""
    if isinstance(value, bool):
        return "T" if value else "F"
    text = str(round(value, 3)) if isinstance(value, float) else str(value)
    text = "".join(c if c.isprintable() else "·" for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"
