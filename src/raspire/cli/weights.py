"""``raspire weights``: the universal simulator as explicit weights, printed or saved."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from raspire.cli.options import exclusive, writable

CONSTRUCTIONS = ("long", "wide", "native", "pair")


@click.command()
@click.argument("construction", type=click.Choice(CONSTRUCTIONS), default="long")
@click.option(
    "-n",
    "rows",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Rows of X (native: any).",
)
@click.option("-d", "d", type=click.IntRange(1), default=3, show_default=True, help="Columns of X.")
@click.option(
    "--heads", type=click.IntRange(1), default=1, show_default=True, help="Heads of the target."
)
@click.option(
    "--dk",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Columns of a head's queries and keys.",
)
@click.option(
    "--dv", type=click.IntRange(1), default=2, show_default=True, help="Columns of a head's values."
)
@click.option("--output/--no-output", default=True, help="With or without the output map.")
@click.option("--mask", type=click.Choice(["none", "causal", "padding"]), default="none")
@click.option("--stable", is_flag=True, help="`long` with the row maximum subtracted.")
@click.option("--summary", "as_summary", is_flag=True, help="Heads and units, not every weight.")
@click.option("--json", "as_json", is_flag=True, help="Print the weights as JSON.")
@click.option("--svg", callback=writable, help="Write a picture: slots as wires, weights as marks.")
@click.option("--save", callback=writable, help="Write .safetensors, .onnx or .pt.")
@click.option(
    "--softmax",
    type=click.Choice(["float64", "float32"]),
    help="On stock softmax attention, saturated for this precision.",
)
def weights(
    construction: str,
    rows: int,
    d: int,
    heads: int,
    dk: int,
    dv: int,
    output: bool,
    mask: str,
    stable: bool,
    as_summary: bool,
    as_json: bool,
    svg: str | None,
    save: str | None,
    softmax: str | None,
) -> None:
    """Print every weight of U in CONSTRUCTION with its meaning; by default `long`, on one page.

    The weights depend on the shape alone, never on a target; those of `long` are the same few for
    every shape, but for three factors.
    """
    from raspire.simulator import networks
    from raspire.simulator.target import Shape
    from raspire.transformer import summary

    exclusive(json=as_json, summary=as_summary)
    if save:
        from raspire.export import writer_of

        writer_of(save)
    shape = Shape(d, heads, dk, dv, output, mask)  # type: ignore[arg-type]
    if construction == "long":
        network = networks.long_network(rows, shape, "stable" if stable else "plain")
    elif construction == "native":
        network = networks.native_network(shape)
    else:
        build = networks.wide_network if construction == "wide" else networks.pair_network
        network = build(rows, shape)
    if softmax:
        network = network.saturated(softmax)
    if as_json:
        table = [asdict(row) for row in networks.weights_table(network)]
        click.echo(json.dumps({"cost": asdict(network.cost), "weights": table}, indent=1))
    elif as_summary:
        click.echo(summary(network.model))
    else:
        click.echo(networks.render(network))
    if softmax and not as_json:
        click.echo("\nsoftmax attention, saturated:")
        click.echo("\n".join(f"  {line}" for line in network.model.notes["saturation"]))
    if svg:
        from raspire.files import write_whole
        from raspire.show.circuit import circuit

        click.echo(f"wrote {write_whole(svg, circuit(network))}", err=True)
    if save:
        from raspire.export import save as write

        click.echo(f"wrote {write(network.model, save, softmax or 'float64')}", err=True)
