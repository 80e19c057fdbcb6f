"""``raspire report errors``: error against NumPy, as a table, data and a picture."""

from __future__ import annotations

import json
import sys

import click

from raspire.cli.options import writable
from raspire.files import write_whole


@click.group()
def report() -> None:
    """Reports that are measured anew."""


@report.command()
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--largest", type=click.IntRange(2), default=32, show_default=True, help="Size.")
@click.option("--only", multiple=True, help="One operation; may be given several times.")
@click.option("--json", "json_path", callback=writable, help="Write the data here.")
@click.option("--table", "table_path", callback=writable, help="Write the table here.")
@click.option("--picture", callback=writable, help="A .png, .svg or .pdf file.")
def errors(
    seeds: int,
    largest: int,
    only: tuple[str, ...],
    json_path: str | None,
    table_path: str | None,
    picture: str | None,
) -> None:
    """Error of transposition, product, softmax, inverse and attention against NumPy.

    Every entry is the largest difference over the seeds, beside an a priori bound and its cause.
    Exit code 1 if a difference exceeds its bound.
    """
    from raspire.errors import RaspNameError
    from raspire.paper import errors as measured

    unknown = [name for name in only if name not in measured.BUILDERS]
    if unknown:
        raise RaspNameError(
            f"there is no operation {unknown[0]!r}",
            expected="one of " + ", ".join(measured.BUILDERS),
            found=unknown[0],
        )
    found = list(measured.entries(only or tuple(measured.BUILDERS), seeds, largest))
    text = measured.table(found)
    click.echo(text)
    if table_path:
        write_whole(table_path, text + "\n")
    if json_path:
        write_whole(json_path, json.dumps(measured.data(found), indent=2) + "\n")
    if picture:
        from raspire.show.error_plot import draw_errors

        draw_errors(found, picture)
        click.echo(f"picture written to {picture}")
    sys.exit(0 if all(entry.holds for entry in found) else 1)
