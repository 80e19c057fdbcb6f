"""``raspire compare``: U beside the looped transformers of Giannou et al., both run here."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from raspire.cli.options import exclusive


@click.command()
@click.option("-k", "size", default=4, show_default=True, help="The matrices are k × k.")
@click.option("--seeds", default=3, show_default=True, help="How many random draws.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown tables.")
def compare(size: int, seeds: int, as_json: bool, as_markdown: bool) -> None:
    """Run one attention layer, and its building blocks, both ways; print sizes and errors."""
    from raspire.paper import looped

    exclusive(json=as_json, markdown=as_markdown)
    rows = looped.compare(size, range(seeds))
    if as_json:
        others = [asdict(other) for other in looped.OTHERS]
        click.echo(json.dumps({"rows": [asdict(r) for r in rows], "others": others}, indent=1))
        return
    click.echo(looped.render(rows) if as_markdown else looped.aligned(rows))
    click.echo()
    click.echo(looped.remarks(size))
