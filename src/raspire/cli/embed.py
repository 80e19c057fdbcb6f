"""`raspire embed`: sentences through a whole pretrained encoder, every layer run by U."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from raspire.cli.options import writable
from raspire.cli.simulate import _bytes

if TYPE_CHECKING:
    from raspire.simulator.sentence import SentenceRun


@click.command()
@click.argument("model")
@click.argument("sentences", nargs=-1, required=True)
@click.option(
    "--construction",
    type=click.Choice(["long", "native"]),
    default="long",
    show_default=True,
    help="U as the program long, or as the explicit weights native.",
)
@click.option(
    "--out",
    "out_path",
    callback=writable,
    help="Write the embeddings as computed through U (.npy).",
)
@click.option(
    "--report", "report_path", callback=writable, help="Write a report to this JSON file."
)
@click.option("--budget", callback=_bytes, default="4GiB", show_default=True, help="Memory.")
@click.option("--quiet", is_flag=True, help="Print the result's line only.")
def embed(
    model: str,
    sentences: tuple[str, ...],
    construction: Any,
    out_path: str | None,
    report_path: str | None,
    budget: int,
    quiet: bool,
) -> None:
    """Compute the embeddings of SENTENCES by the encoder MODEL, every layer run through one U.

    MODEL is the folder of a pretrained encoder (weights, config.json, tokenizer.json), or
    `minilm`, the installed one. Prints how far each result is from the direct computation, and
    the cosines between several.
    """
    from raspire.simulator.pretrained import weights_path
    from raspire.simulator.sentence import SentenceEncoder

    watched = sys.stderr.isatty() and not quiet

    def tell(layer: int, layers: int) -> None:
        if watched:
            click.echo(f"  layer {layer} of {layers} done", err=True)

    encoder = SentenceEncoder(weights_path(model), construction)
    runs = []
    for sentence in sentences:
        runs.append(encoder(sentence, budget=budget, progress=tell))
        if not quiet:
            _describe(runs[-1])
    _write(runs, out_path, report_path)
    if len(runs) > 1:
        _compare(runs, sentences)
    worst = max(run.max_abs_error for run in runs)
    click.echo(f"Largest difference from the direct computation: {worst:.2e}")


def _describe(run: SentenceRun) -> None:
    click.echo(f"{len(run.tokens)} tokens: {' '.join(run.tokens)}")
    click.echo(f"U for encoder blocks: {run.u.shape}")
    click.echo(f"  {run.u}")
    for layer, difference in enumerate(run.differences):
        click.echo(f"  after layer {layer}: largest difference {difference:.2e}")
    click.echo(f"Pooling: {run.pool}")
    first = ", ".join(f"{value:.6f}" for value in run.embedding[:4])
    click.echo(f"Embedding, {len(run.embedding)} numbers: {first}, ...")
    click.echo(
        f"U took {run.seconds:.2f} s, the direct computation {run.seconds_direct:.2f} s; "
        f"peak memory {run.peak_bytes / 2**20:,.0f} MiB"
    )


def _compare(runs: list[SentenceRun], sentences: tuple[str, ...]) -> None:
    from raspire.simulator.sentence import cosines

    click.echo("Cosines between the embeddings:")
    for row, sentence in zip(cosines(runs), sentences, strict=True):
        click.echo("  " + " ".join(f"{value:7.4f}" for value in row) + f"  {sentence[:60]}")


def _write(runs: list[SentenceRun], out_path: str | None, report_path: str | None) -> None:
    import io
    import json

    import numpy as np

    from raspire.files import write_whole

    if out_path is not None:
        content = io.BytesIO()
        rows = [run.embedding for run in runs]
        np.save(content, rows[0] if len(rows) == 1 else np.stack(rows))
        write_whole(out_path, content.getvalue())
    if report_path is not None:
        reports: list[dict[str, Any]] = [run.report() for run in runs]
        found = reports[0] if len(reports) == 1 else {"sentences": reports}
        text = json.dumps(found, indent=2, allow_nan=False) + "\n"
        write_whole(report_path, text.encode())
