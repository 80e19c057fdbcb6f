"""`raspire explain`: the plan by which a program, or U, is evaluated."""

from __future__ import annotations

from typing import Any

import click

from raspire.cli.run import source_of


@click.command()
@click.argument("file", required=False)
@click.option(
    "--length",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="Length of the input that is planned for, with FILE.",
)
@click.option("--n", type=click.IntRange(min=1), help="Rows of X: explain U instead of a file.")
@click.option("--d", type=click.IntRange(min=1), help="Model dimension.")
@click.option("--heads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--d-k", type=click.IntRange(min=1), help="Default: d / heads.")
@click.option("--d-v", type=click.IntRange(min=1), help="Default: d / heads.")
@click.option(
    "--construction", type=click.Choice(["long", "wide"]), default="long", show_default=True
)
@click.option(
    "--softmax", type=click.Choice(["plain", "stable"]), default="plain", show_default=True
)
@click.option(
    "--mask", type=click.Choice(["none", "causal", "padding"]), default="none", show_default=True
)
@click.option("--output/--no-output", default=True, help="With or without the output map.")
def explain(
    file: str | None,
    length: int,
    n: int | None,
    d: int | None,
    heads: int,
    d_k: int | None,
    d_v: int | None,
    construction: Any,
    softmax: Any,
    mask: Any,
    output: bool,
) -> None:
    """The evaluator's plan for a RASP program in FILE, or for U with --n and --d.

    For every selector: how it is evaluated and what that costs; for every s-op: at how many of
    the N positions it is computed. FILE may also be the name of one of our own programs.
    """
    if (file is None) == (n is None and d is None):
        raise click.UsageError("give either a FILE or the shape of U (--n and --d)")
    if file is not None:
        from raspire.evaluate import explain as plan
        from raspire.language import from_rasp

        click.echo(str(plan(from_rasp(source_of(file)), length)))
        return
    if n is None or d is None:
        raise click.UsageError("the shape of U needs both --n and --d")
    from raspire.simulator.universal import UniversalSimulator

    u = UniversalSimulator(n, d, heads, d_k, d_v, construction, softmax, mask, output)
    click.echo(u.explain())
