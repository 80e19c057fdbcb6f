"""``raspire theorems``: the paper's results, each a program, its cost and what it rests on."""

from __future__ import annotations

import json
import sys

import click

from raspire.cli.options import exclusive


@click.command()
@click.argument("claim", required=False)
@click.option("--check", is_flag=True, help="Redo the verification of every claim.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def theorems(claim: str | None, check: bool, as_markdown: bool, as_json: bool) -> None:
    """Print the results of the paper, or redo one CLAIM and print its certificate.

    Attention depth counts attention alone, as RASP does; layers count feed-forward parts of one
    gated unit each. Exit code 1 if a verification does not hold.
    """
    from raspire.paper import theorems as text
    from raspire.paper.claims import claim as claim_of
    from raspire.paper.claims import claims

    exclusive(json=as_json, markdown=as_markdown)
    exclusive(check=check, markdown=as_markdown)
    if claim and as_markdown:
        raise click.UsageError("--markdown prints the table of all results; leave it with a CLAIM")
    chosen = [claim_of(claim)] if claim else list(claims().values())
    redo = check or claim is not None
    if as_markdown:
        click.echo(text.markdown(chosen))
        return
    held = True
    if as_json:
        found = [(one, one.check() if redo else None) for one in chosen]
        held = all(proof is None or proof.holds for _, proof in found)
        click.echo(json.dumps([text.data(*pair) for pair in found], indent=2, default=str))
    elif claim:
        proof = chosen[0].check()
        held = proof.holds
        click.echo(text.page(chosen[0], proof))
    elif check:
        for one in chosen:
            proof = one.check()
            held = held and proof.holds
            click.echo(f"{one.key}: {proof}")
    else:
        click.echo(text.table(chosen))
        click.echo("\nraspire theorems CLAIM redoes one and prints its certificate.")
    sys.exit(0 if held else 1)
