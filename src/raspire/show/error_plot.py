"""The picture of the error report: largest error and bound over the size, a panel an operation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raspire.errors import MissingExtraError, RaspValueError
from raspire.files import write_whole
from raspire.paper.errors import Entry

COLOURS = {"float64": "#2f6f9f", "float32": "#c0622f"}
FLOOR = 1e-18  # where an error of zero is drawn
FORMATS = (".png", ".svg", ".pdf")


def draw_errors(found: Sequence[Entry], path: str | Path) -> None:
    """Draw the entries into a file (png, svg or pdf by its ending), whole or not at all.

    Raises MissingExtraError without matplotlib, RaspValueError for another ending.
    """
    target = Path(path)
    if target.suffix not in FORMATS:
        raise RaspValueError(
            "this picture format is not offered",
            expected="a name that ends in " + ", ".join(FORMATS),
            found=target.name,
        )
    figure = _figure(found)
    write_whole(target, lambda temporary: figure.savefig(temporary, dpi=150))


def _figure(found: Sequence[Entry]) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    operations = list(dict.fromkeys(entry.operation for entry in found))
    figure = Figure(figsize=(2.6 * len(operations), 3.2), layout="constrained")
    panels = figure.subplots(1, len(operations), sharey=True, squeeze=False)[0]
    for panel, operation in zip(panels, operations, strict=True):
        _panel(panel, operation, [e for e in found if e.operation == operation])
    panels[0].set_ylabel("largest difference from NumPy")
    panels[0].legend(fontsize=7, frameon=False)
    return figure


def _panel(panel: Any, operation: str, found: Sequence[Entry]) -> None:
    for precision, colour in COLOURS.items():
        some = [entry for entry in found if entry.precision == precision]
        sizes = [entry.size for entry in some]
        panel.plot(sizes, [max(e.error, FLOOR) for e in some], "o-", color=colour, label=precision)
        bounds = [max(e.bound, FLOOR) for e in some]
        panel.plot(sizes, bounds, ":", color=colour, label=f"{precision}, bound")
    panel.set_title(operation, fontsize=10)
    panel.set_xlabel("size")
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_ylim(FLOOR / 3, 1)
