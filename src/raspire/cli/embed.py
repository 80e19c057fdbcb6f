"""`raspire embed`: a sentence through a whole pretrained encoder, every layer run by U."""

from __future__ import annotations

import click

from raspire.cli.simulate import _bytes, _check_writable


@click.command()
@click.argument("model")
@click.argument("sentence")
@click.option("--out", "out_path", help="Write the embedding as computed through U (.npy).")
@click.option("--report", "report_path", help="Write a report to this JSON file.")
@click.option("--budget", callback=_bytes, default="2GiB", show_default=True, help="Memory.")
@click.option("--quiet", is_flag=True, help="Print the result's line only.")
def embed(
    model: str,
    sentence: str,
    out_path: str | None,
    report_path: str | None,
    budget: int,
    quiet: bool,
) -> None:
    """Compute the embedding of SENTENCE by the encoder MODEL, every layer run through one U.

    MODEL is the folder of a pretrained encoder (weights, config.json, tokenizer.json), or
    `minilm`, the installed one. Prints how far the result is from the direct computation.
    """
    from raspire.simulator.pretrained import weights_path
    from raspire.simulator.sentence import embed_sentence

    for written in (out_path, report_path):
        _check_writable(written)

    def tell(layer: int, layers: int) -> None:
        if not quiet:
            click.echo(f"  layer {layer} of {layers} done", err=True)

    run = embed_sentence(weights_path(model), sentence, budget=budget, progress=tell)
    _write(run.embedding, out_path)
    if report_path is not None:
        _write_report(run.report(), report_path)
    if not quiet:
        cost = run.simulator.cost
        click.echo(f"{len(run.tokens)} tokens: {' '.join(run.tokens)}")
        click.echo(f"U for encoder blocks: {run.simulator.shape}")
        click.echo(
            f"  attention depth {cost.attention_depth}, layers {cost.layers}, heads per layer "
            f"{', '.join(map(str, cost.heads_per_layer))}, N = {run.simulator.sequence_length:,}"
        )
        for layer, difference in enumerate(run.differences):
            click.echo(f"  after layer {layer}: largest difference {difference:.2e}")
        click.echo(f"Pooling: {run.pool}")
        first = ", ".join(f"{value:.6f}" for value in run.embedding[:4])
        click.echo(f"Embedding, {len(run.embedding)} numbers: {first}, ...")
        click.echo(
            f"U took {run.seconds:.2f} s, the direct computation {run.seconds_direct:.2f} s; "
            f"peak memory {run.peak_bytes / 2**20:,.0f} MiB"
        )
    click.echo(f"Largest difference from the direct computation: {run.max_abs_error:.2e}")


def _write(array: object, path: str | None) -> None:
    if path is None:
        return
    import io

    import numpy as np

    from raspire.files import write_whole

    content = io.BytesIO()
    np.save(content, np.asarray(array))
    write_whole(path, content.getvalue())


def _write_report(report: dict[str, object], path: str) -> None:
    import json

    from raspire.files import write_whole

    write_whole(path, (json.dumps(report, indent=2, allow_nan=False) + "\n").encode())
