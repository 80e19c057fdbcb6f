"""``raspire compile``: a RASP file becomes a transformer, verified, in a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from raspire.cli.options import writable
from raspire.cli.run import source_of
from raspire.errors import RaspTypeError, RaspValueError, UnsupportedError

if TYPE_CHECKING:
    from raspire.compile import Compiled
    from raspire.compile.verification import Verification

_INPUTS = 5_000
_SAMPLES = 200
_PAIRS = 32_000_000  # of positions, in all random inputs of the full length together


@click.command("compile")
@click.argument("file")
@click.option("--alphabet", help="The tokens: every character is one.")
@click.option("--tokens", help="The tokens as a JSON list, for numbers and longer symbols.")
@click.option("--reals", help="The tokens are real numbers between LOW:HIGH.")
@click.option("--max-length", type=int, required=True, help="The longest input.")
@click.option(
    "--to", "path", callback=writable, help="The file to write: .onnx, .safetensors or .pt."
)
@click.option("--attention", type=click.Choice(["hard", "softmax"]), default="hard",
              help="Average-hard, or softmax saturated in the precision.")  # fmt: skip
@click.option("--precision", type=click.Choice(["float64", "float32"]), default="float64")
@click.option("--causal", is_flag=True, help="No position sees a later one.")
@click.option("--relu-error", type=float, metavar="E",
              help="For reals: relu units alone, products to this error.")  # fmt: skip
@click.option("--stock", is_flag=True,
              help="Softmax, relu and one mask only, as TransformerLens has them.")  # fmt: skip
@click.option("--rotate", type=int, metavar="SEED", help="Write it in a random basis.")
@click.option("--circuit", callback=writable, help="Write the circuit as JSON to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print cost and verification as JSON.")
def compile_command(
    file: str,
    alphabet: str | None,
    tokens: str | None,
    reals: str | None,
    max_length: int,
    path: str | None,
    attention: Any,
    precision: Any,
    causal: bool,
    relu_error: float | None,
    stock: bool,
    rotate: int | None,
    circuit: str | None,
    as_json: bool,
) -> None:
    """Compile the last s-op of a RASP file, verify the network, and write it to a file.

    FILE may also be the name of one of our own programs, such as reverse, sort or dyck1.
    """
    from raspire.compile import compile

    _refuse_kind(path)
    compiled = compile(
        _program(file),
        alphabet=_alphabet(alphabet, tokens, reals),
        max_length=max_length,
        attention="softmax" if stock else attention,
        precision=precision,
        causal=causal,
        relu_error=relu_error,
        stock=stock,
    )
    report = (
        None
        if reals
        else compiled.verify(most=_INPUTS, samples=min(_SAMPLES, _PAIRS // max_length**2))
    )
    if as_json:
        click.echo(json.dumps(_record(compiled, report), ensure_ascii=False))
    else:
        _print(compiled, report)
    if report is not None and not report.holds:
        raise click.exceptions.Exit(1)
    if circuit:
        from raspire.files import write_whole

        write_whole(circuit, compiled.circuit.to_json())
    if path:
        _save(compiled, path, precision, rotate)
        if not as_json:
            click.echo(f"written to {path}")


def _refuse_kind(path: str | None) -> None:
    """Refuse a kind of file that could not be written before the work is done, not after."""
    if path is None:
        return
    if path.endswith(".rasp"):
        raise UnsupportedError("a transformer is not written as RASP", found=path)
    from raspire.export import writer_of

    writer_of(path)


def _program(file: str) -> Any:
    from raspire.language import from_rasp
    from raspire.program.nodes import SOp

    program = from_rasp(source_of(file))
    if not isinstance(program, SOp):
        raise RaspTypeError(
            f"the last value of {file} is a selector",
            expected="an s-op",
            hint="end the file with an s-op, such as aggregate(selector, tokens)",
        )
    return program


def _alphabet(alphabet: str | None, tokens: str | None, reals: str | None) -> Any:
    from raspire.compile import Real

    given = [value for value in (alphabet, tokens, reals) if value is not None]
    if len(given) != 1:
        raise RaspValueError(
            "compile has to know the tokens",
            expected="one of --alphabet, --tokens, --reals",
            found=f"{len(given)} of them",
        )
    if alphabet is not None:
        return alphabet
    try:
        if tokens is not None:
            symbols = json.loads(tokens)
            if not isinstance(symbols, list):
                raise ValueError
            return symbols
        assert reals is not None
        low, high = map(float, reals.split(":"))
    except ValueError:
        raise RaspValueError(
            "the tokens cannot be read",
            expected="a JSON list as in '[1, 2, \"a\"]', or two numbers as in -1:1",
            found=given[0],
        ) from None
    return Real(low, high)


def _print(compiled: Compiled, report: Verification | None) -> None:
    certificate = compiled.certificate
    click.echo(str(compiled))
    for line in _circuit_lines(compiled):
        click.echo("  " + line)
    click.echo(
        f"smallest score gap {certificate.smallest_gap:g}, smallest margin "
        f"{certificate.smallest_margin:g}, certified for {certificate.precision}"
    )
    for head in compiled.transformer.notes.get("saturation", ()):
        click.echo(f"  {head}")
    if compiled.transformer.unembedding.kind == "numeric" and certificate.error < float("inf"):
        click.echo(f"numeric outputs are within {certificate.error:.2g} of the exact values")
    for name in compiled.undefined:
        click.echo(f"note: {name} has no value for some symbols; such inputs fail in the program")
    if report is None:
        click.echo("not verified: a program on reals has no list of inputs")
        return
    click.echo(f"verified against the evaluator: {report}")
    for tokens, expected, found in report.wrong:
        click.echo(f"  wrong on {tokens}: expected {expected}, found {found}")


def _circuit_lines(compiled: Compiled) -> list[str]:
    lines = []
    for node in compiled.circuit.nodes:
        if node.kind == "output":
            continue
        lines.append(f"{node.name}: {node.computes}" if node.kind != "embedding" else "embedding")
        shown = node.writes[:12]
        for carried in shown:
            place = f"  ({carried.place})" if carried.place else ""
            lines.append(f"  slot {carried.slot}: {carried.expression}{place}")
        if len(node.writes) > len(shown):
            lines.append(f"  ... {len(node.writes) - len(shown)} more slots")
    return lines


def _record(compiled: Compiled, report: Verification | None) -> dict[str, Any]:
    from dataclasses import asdict

    verified = None
    if report is not None:
        verified = {
            "inputs": report.inputs,
            "positions": report.positions,
            "wrong_positions": report.wrong_positions,
            "every_up_to": report.every_up_to,
        }
    return {
        "cost": asdict(compiled.cost),
        "smallest_gap": _finite(compiled.certificate.smallest_gap),
        "smallest_margin": _finite(compiled.certificate.smallest_margin),
        "precision": compiled.certificate.precision,
        "verified": verified,
    }


def _finite(value: float) -> float | None:
    """A number that JSON knows."""
    return value if value < float("inf") else None


def _save(compiled: Compiled, path: str, precision: str, rotate: int | None) -> None:
    from raspire.export import save

    model = compiled.transformer
    if rotate is not None:
        model, _ = compiled.rotate(rotate)
    save(model, path, precision)
