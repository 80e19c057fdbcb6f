"""A network as a circuit diagram: slots of the residual stream are wires, weights are marks.

Small networks fit on one page with every weight: the universal simulator's construction `long`
has 80, the same for every shape (``constructions``: Theorem 6, Theorem 9).
"""

from __future__ import annotations

from html import escape

from raspire.simulator.networks import Network, Weight, weights_table

WIRE, COLUMN, LEFT, TOP = 21, 50, 196, 150
COLOURS = {"Q": "#2f6f9f", "K": "#c2571a", "V": "#2b8a57", "W": "#7a4fa3"}
STYLE = (
    "text{font-family:ui-sans-serif,system-ui,Helvetica,Arial,sans-serif;font-size:11px;"
    "fill:#1f2933}.h{font-size:17px;font-weight:700}.s{fill:#52606d}.e{text-anchor:end}"
    ".c{text-anchor:middle}.m{fill:#fff;font-size:9px;font-weight:700;text-anchor:middle}"
    ".w{stroke:#d5dbe1}.band{fill:#f4f6f8}.v{stroke-width:1.6;fill:none}"
)


def circuit(network: Network, title: str = "") -> str:
    """The network as one SVG page: a column for every head and unit, a mark for every weight."""
    rows = [row for row in weights_table(network) if row.matrix != "W_U"]
    wires = _wires(rows)
    columns = list(dict.fromkeys((row.layer, row.part) for row in rows))
    height = TOP + WIRE * len(wires) + 78
    parts = _bands(columns, height - 54)
    width = _x(columns, len(columns) - 1) + COLUMN + 150
    for name, k in wires.items():
        y = _y(k)
        parts.append(f'<path class="w" d="M{LEFT - 8} {y}H{width - 150}"/>')
        parts.append(_text(LEFT - 14, y + 4, name, "e"))
    for k, (layer, part) in enumerate(columns):
        own = [row for row in rows if (row.layer, row.part) == (layer, part)]
        x = _x(columns, k)
        parts.append(
            f'<text transform="translate({x + 4} {TOP - 22}) rotate(-32)">{escape(part)}</text>'
        )
        parts += _marks(x, own, wires)
    heading = title or f"U, construction {network.name}: {len(rows)} weights"
    parts.append(_text(20, 30, heading, "h"))
    parts += _legend(height - 18)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title>{escape(heading)}</title><style>{STYLE}</style>'
        '<rect width="100%" height="100%" fill="#fff"/>' + "\n".join(parts) + "</svg>\n"
    )


def _wires(rows: list[Weight]) -> dict[str, int]:
    """The slots in the order in which they are first used."""
    names: dict[str, None] = {}
    for row in rows:
        for name in (row.source, row.target):
            if name[:1] not in "qku" or not name[1:].isdigit():
                names[name] = None
    names.pop("1", None)
    first = [n for n in names if n in ("value", "one", "here", "here²", "left", "right")]
    rest = [n for n in names if n not in first]
    return {name: k for k, name in enumerate(first + rest)}


def _x(columns: list[tuple[int, str]], k: int) -> int:
    """The middle of column k; a new layer begins after a gap."""
    return LEFT + 28 + COLUMN * k + 12 * (columns[k][0] - 1)


def _y(k: int) -> int:
    return TOP + WIRE * k


def _bands(columns: list[tuple[int, str]], bottom: int) -> list[str]:
    parts = []
    for layer in dict.fromkeys(layer for layer, _ in columns):
        own = [_x(columns, k) for k, column in enumerate(columns) if column[0] == layer]
        left, right = own[0] - 25, own[-1] + 25
        parts.append(
            f'<rect class="band" x="{left}" y="{TOP - 16}" width="{right - left}" '
            f'height="{bottom - TOP + 6}" rx="6"/>'
        )
        parts.append(_text((left + right) / 2, bottom + 6, f"layer {layer}", "c s"))
    return parts


def _marks(x: int, rows: list[Weight], wires: dict[str, int]) -> list[str]:
    """The weights of one head or unit: Q, K and V beside each other, V with an arrow to O."""
    parts: list[str] = []
    carried = 0
    for row in rows:
        if row.matrix == "W_V W_O":
            parts += _carried(x + 13 + 9 * carried, _y(wires[row.source]), _y(wires[row.target]))
            carried += 1
            continue
        kind = row.matrix[-1]
        name = row.target if row.matrix == "W_3" else row.source
        wire = _y(wires["one" if row.matrix == "b_1" else name])
        letter = "b" if row.matrix == "b_1" else kind
        shift = {"Q": -16, "K": -1}.get(kind, 0)
        parts.append(_disc(x + shift, wire, letter, COLOURS.get(kind, COLOURS["W"])))
    return parts


def _carried(x: int, start: int, end: int) -> list[str]:
    return [
        f'<path class="v" stroke="{COLOURS["V"]}" d="M{x} {start}V{end}"/>',
        _disc(x, start, "V", COLOURS["V"]),
        f'<circle cx="{x}" cy="{end}" r="4.5" fill="{COLOURS["V"]}"/>',
    ]


def _disc(x: float, y: float, letter: str, colour: str) -> str:
    return (
        f'<circle cx="{x:g}" cy="{y}" r="8" fill="{colour}"/>'
        f'<text class="m" x="{x:g}" y="{y + 3}">{letter}</text>'
    )


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _legend(y: int) -> list[str]:
    entries = (
        ("Q", "Q", "query weight"),
        ("K", "K", "key weight"),
        ("V", "V", "value carried to the slot below"),
        ("W", "1 2 3 b", "feed-forward: W₃((W₁h + b) ⊙ f(W₂h)), f = identity, exp or 1/x"),
    )
    parts, x = [], 24.0
    for key, letter, meaning in entries:
        for mark in letter.split():
            parts.append(_disc(x, y - 4, mark, COLOURS[key]))
            x += 19
        parts.append(_text(x - 4, y, meaning, "s"))
        x += 6.2 * len(meaning) + 34
    return parts
