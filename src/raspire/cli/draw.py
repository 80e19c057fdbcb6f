"""``raspire draw``: which layer and head computes what, as text or as a picture."""

from __future__ import annotations

import click

from raspire.cli.options import writable
from raspire.cli.run import given_input, input_options, last_value
from raspire.errors import RaspTypeError


@click.command()
@click.argument("file")
@input_options
@click.option("--svg", callback=writable, metavar="FILE", help="Write a picture to this file.")
def draw(
    file: str, text: str | None, tokens: str | None, input_file: str | None, svg: str | None
) -> None:
    """Draw the last s-op of a RASP file on an input."""
    from raspire.language.interpreter import Interpreter
    from raspire.language.values import describe
    from raspire.program.nodes import SOp
    from raspire.show import flow

    example = given_input(text, tokens, input_file)
    interpreter = Interpreter(example)
    interpreter.drawer = lambda node, given: click.echo(flow.draw(node, given).text())
    name, value = last_value(interpreter, file)
    if not isinstance(value, SOp):
        raise RaspTypeError(
            "only an s-op can be drawn",
            expected="an s-op as the file's last value",
            found="no value" if value is None else describe(value),
        )
    drawing = flow.draw(value, interpreter.example)
    if name != "out":  # an s-op keeps its first name; the file may have given it another
        drawing.name = name
    click.echo(drawing.text())
    if svg is not None:
        click.echo(f"picture: {drawing.save(svg)}")
