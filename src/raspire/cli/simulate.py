"""`raspire simulate` and `raspire cost`: U runs an attention layer from a file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raspire.cli.options import writable
from raspire.errors import RaspLoadError, RaspValueError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from raspire.cli.simulate_cross import CrossRun
    from raspire.simulator.block_run import BlockRun
    from raspire.simulator.run import Run
    from raspire.simulator.target import AttentionTarget
    from raspire.simulator.universal import SimulatorCost, UniversalSimulator

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def _bytes(ctx: click.Context, option: click.Parameter, value: str) -> int:
    """A number of bytes, with an optional unit: 500M, 2GiB."""
    text = value.strip().lower()
    number = text.rstrip("kmgtib ")
    unit = text[len(number) :].strip().removesuffix("ib").removesuffix("b")
    try:
        size = int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        size = 0
    if size < 1:
        raise click.BadParameter(f"{value!r} is no number of bytes (for one: 500M, 2GiB)")
    return size


@click.command()
@click.argument("weights")
@click.option("--layer", default="0", help="Number of the layer, or the prefix of its tensors.")
@click.option("--input", "input_path", help="X: an .npy file of shape (n, d).")
@click.option("--text", help="A text; X is then the true input of the layer in the encoder.")
@click.option("--heads", type=int, help="Number of heads, where no config.json tells it.")
@click.option("--q", "query", help="Name of the query tensor, for any other naming.")
@click.option("--k", "key", help="Name of the key tensor.")
@click.option("--v", "value", help="Name of the value tensor.")
@click.option("--o", "output_map", help="Name of the output map's tensor.")
@click.option(
    "--mask", type=click.Choice(["none", "causal", "padding"]), help="Instead of the family's own."
)
@click.option(
    "--padding", "padding_path", help="An .npy file of n flags, 1 for a key that is seen."
)
@click.option(
    "--construction", type=click.Choice(["long", "wide"]), default="long", show_default=True
)
@click.option(
    "--softmax", type=click.Choice(["auto", "plain", "stable"]), default="auto", show_default=True
)
@click.option("--memory", "memory_path", help="Y: for cross-attention, an .npy file (rows, d).")
@click.option("--block", "whole_block", is_flag=True, help="Run the whole encoder block.")
@click.option(
    "--out", "out_path", callback=writable, help="Write T(X) as computed by U to this .npy file."
)
@click.option(
    "--report", "report_path", callback=writable, help="Write a report to this JSON file."
)
@click.option("--budget", callback=_bytes, default="2GiB", show_default=True, help="Memory.")
@click.option("--quiet", is_flag=True, help="Print the result's line only.")
def simulate(
    weights: str,
    layer: str,
    input_path: str | None,
    text: str | None,
    heads: int | None,
    query: str | None,
    key: str | None,
    value: str | None,
    output_map: str | None,
    mask: Any,
    padding_path: str | None,
    construction: Any,
    softmax: str,
    memory_path: str | None,
    whole_block: bool,
    out_path: str | None,
    report_path: str | None,
    budget: int,
    quiet: bool,
) -> None:
    """Let U run the self-attention of one layer of WEIGHTS on an input.

    WEIGHTS is a .safetensors file, a sharded set's .index.json, an .npz file, a model's folder,
    or `minilm`, the installed pretrained encoder. Prints what U is, how long it took, and the
    largest difference from the same layer computed directly.
    """
    if (input_path is None) == (text is None):
        raise click.UsageError("give either --input X.npy or --text TEXT")
    if mask == "padding" and padding_path is None:
        raise click.UsageError("--mask padding needs --padding FLAGS.npy: which keys are seen")
    from raspire.simulator.estimate import estimate, refuse_beyond
    from raspire.simulator.inputs import checked_input
    from raspire.simulator.pretrained import weights_path
    from raspire.simulator.run import simulate as run_beside
    from raspire.simulator.run import softmax_for
    from raspire.simulator.target import AttentionTarget
    from raspire.simulator.universal import UniversalSimulator

    path = weights_path(weights)
    if memory_path is not None:
        if (
            input_path is None
            or whole_block
            or construction == "wide"
            or softmax == "plain"
            or mask
        ):
            raise click.UsageError(
                "--memory needs --input and runs by the construction long with the stable "
                "softmax; leave --text, --block, --mask, --construction and --softmax"
            )
        from raspire.cli.simulate_cross import simulate_cross

        names = _names(query, key, value, output_map)
        simulate_cross(path, _layer(layer), input_path, memory_path, heads, names, padding_path,
                       out_path, report_path, budget, quiet)  # fmt: skip
        return
    if whole_block:
        if _names(query, key, value, output_map) or construction == "wide" or softmax == "plain":
            raise click.UsageError(
                "--block runs by the construction long with the stable softmax, on tensors of a "
                "known naming; leave --q --k --v --o, --construction and --softmax"
            )
        from raspire.cli.simulate_block import simulate_block

        simulate_block(path, _layer(layer), input_path, text, heads, mask, padding_path,
                       out_path, report_path, budget, quiet)  # fmt: skip
        return
    target = AttentionTarget.from_safetensors(
        path, _layer(layer), heads, names=_names(query, key, value, output_map), mask=mask
    )
    if text is None:
        x, said = _read_array(input_path or "", "X"), ""
    else:
        x, said = _text_input(path, layer, text)
    x = checked_input(x, target.d)
    padding = _read_array(padding_path, "the key padding") if padding_path else None
    needed, bound = softmax_for(target, x)
    if not math.isfinite(bound):
        raise RaspValueError(
            "the scores leave the range of float64",
            expected="finite products of queries and keys",
            found=f"|score| up to {bound} (a bound computed from T and X)",
            hint="scale X down",
        )
    chosen: Any = needed if softmax == "auto" else softmax
    u = UniversalSimulator.for_target(target, len(x), construction, chosen)
    refuse_beyond(budget, u.construction)
    u.check(target, x)
    forecast = estimate(u.construction)
    if not quiet:
        click.echo(said, nl=bool(said))
        _announce(u, target, bound, softmax == "auto" and chosen == "stable", str(forecast))
    with _progress(forecast.seconds, quiet):
        run = run_beside(u, target, x, padding, budget=budget)
    if not math.isfinite(run.max_abs_error):
        raise RaspValueError("the result leaves the range of float64", hint="scale X down")
    _write_results(run, out_path, report_path)
    _conclude(run)


@click.command()
@click.option("--n", type=click.IntRange(min=1), required=True, help="Rows of X.")
@click.option("--d", type=click.IntRange(min=1), required=True, help="Model dimension.")
@click.option("--heads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--d-k", type=click.IntRange(min=1), help="Default: d / heads.")
@click.option("--d-v", type=click.IntRange(min=1), help="Default: d / heads.")
@click.option(
    "--construction", type=click.Choice(["long", "wide", "both"]), default="both", show_default=True
)
@click.option(
    "--softmax", type=click.Choice(["plain", "stable"]), default="plain", show_default=True
)
@click.option(
    "--mask", type=click.Choice(["none", "causal", "padding"]), default="none", show_default=True
)
@click.option("--output/--no-output", default=True, help="With or without the output map.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def cost(
    n: int,
    d: int,
    heads: int,
    d_k: int | None,
    d_v: int | None,
    construction: str,
    softmax: Any,
    mask: Any,
    output: bool,
    as_json: bool,
) -> None:
    """What U costs for a shape, counted on its program: both depths, heads, N, families."""
    import json
    from dataclasses import asdict

    from raspire.simulator.forecast import forecast
    from raspire.simulator.universal import CONSTRUCTIONS

    names: list[Any] = list(CONSTRUCTIONS) if construction == "both" else [construction]
    rows = [forecast(n, d, heads, d_k, d_v, name, softmax, mask, output) for name in names]
    if as_json:
        click.echo(json.dumps([asdict(row.cost) for row in rows], indent=2))
        return
    click.echo(f"U for n={n}, {rows[0].shape}, softmax {softmax}")
    for row in rows:
        for line in _cost_lines(row.cost):
            click.echo(line)
        click.echo(f"  {'to run here':<18}{row.estimate}")


def _cost_lines(c: SimulatorCost) -> list[str]:
    from raspire.simulator.estimate import large

    heads = ", ".join(map(str, c.heads_per_layer))
    return [
        f"{c.construction}",
        f"  {'attention depth':<18}{c.attention_depth}",
        f"  {'layers':<18}{c.layers} (one gated unit a layer)",
        f"  {'heads per layer':<18}{heads}",
        f"  {'feed-forward':<18}{', '.join(c.feed_forward)}",
        f"  {'sequence length N':<18}{large(c.sequence_length)}",
    ]


def _layer(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text


def _names(query: str | None, key: str | None, value: str | None, out: str | None) -> Any:
    from raspire.simulator.naming import GivenNames

    if query is None and key is None and value is None and out is None:
        return None
    return GivenNames(query or "", key or "", value or "", out)


def _read_array(path: str, what: str) -> NDArray[Any]:
    from zipfile import BadZipFile

    import numpy as np

    if not Path(path).is_file():
        raise RaspLoadError(f"no such file: {path}", expected=f"an .npy file with {what}")
    try:
        with open(path, "rb") as file:
            array = np.load(file, allow_pickle=False)
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        found = "no header of one" if "pickle" in str(error) else str(error)
        raise RaspLoadError(f"{path} is not an .npy file of numbers", found=found) from error
    if not isinstance(array, np.ndarray):
        raise RaspLoadError(f"{path} holds several arrays", expected="one array in an .npy file")
    return array


def _text_input(path: Path, layer: str, text: str) -> tuple[NDArray[Any], str]:
    """The input that the encoder gives the layer, and the tokens that it made of the text."""
    from raspire.simulator.encoder import Encoder

    number = _layer(layer)
    if not isinstance(number, int):
        raise RaspValueError(
            "with a text the layer is given by its number", expected="a number", found=layer
        )
    encoder = Encoder.open(path)
    names = encoder.tokens(text)[1]
    said = f"Input of layer {number} for {len(names)} tokens: {' '.join(names)}"
    return encoder.input(text, number), said


def _announce(
    u: UniversalSimulator, target: AttentionTarget, bound: float, deeper: bool, forecast: str
) -> None:
    names = [r.name for r in target.reads if len(r.shape) > 1]
    click.echo(f"Target: {target.shape}" + (f", n={u.n}" if u.n else ""))
    click.echo("  " + "\n  ".join(names))
    for note in target.notes:
        click.echo(f"  note: {note}")
    if target.ratio != 1.0:
        click.echo(f"  W_Q and its bias are multiplied by {target.ratio!r}, the ratio of scales")
    click.echo(f"U, construction {u.construction.name}, softmax {u.construction.softmax}:")
    for line in _cost_lines(u.cost)[1:]:
        click.echo(line)
    if deeper:
        click.echo(
            f"  scores may reach {bound:.4g}, beyond 700: softmax stable, one layer deeper "
            f"(attention depth {u.cost.attention_depth})"
        )
    click.echo(f"Needs: {forecast}")


@contextmanager
def _progress(seconds: float, quiet: bool) -> Iterator[None]:
    """A bar of the time passed over the time estimated; nothing where no terminal looks on."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    import threading

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("simulating"), BarColumn(), TimeElapsedColumn())
    done = threading.Event()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("simulating", total=seconds)

        def tick() -> None:
            passed = 0.0
            while not done.wait(0.1):
                passed += 0.1
                bar.update(task, completed=min(passed, 0.97 * seconds))

        clock = threading.Thread(target=tick, daemon=True)
        clock.start()
        try:
            yield
            bar.update(task, completed=seconds)
        finally:
            done.set()
            clock.join()


def _write_results(
    run: Run | BlockRun | CrossRun, out_path: str | None, report_path: str | None
) -> None:
    import io
    import json

    import numpy as np

    from raspire.files import write_whole

    if out_path is not None:
        content = io.BytesIO()
        np.save(content, run.result)
        write_whole(out_path, content.getvalue())
    if report_path is not None:
        text = json.dumps(run.report(), indent=2, allow_nan=False) + "\n"
        write_whole(report_path, text.encode())


def _conclude(run: Run | BlockRun) -> None:
    click.echo(
        f"U took {run.seconds:.2f} s, the direct computation {1000 * run.seconds_direct:.2f} ms; "
        f"peak memory {run.peak_bytes / 2**20:,.0f} MiB"
    )
    click.echo(
        f"Largest difference from the direct computation: {run.max_abs_error:.2e} "
        f"(entries up to {abs(run.direct).max():.2g})"
    )
