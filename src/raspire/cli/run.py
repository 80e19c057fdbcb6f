"""``raspire run``: a RASP file on an input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raspire.errors import RaspError, RaspValueError

if TYPE_CHECKING:
    from raspire.language.interpreter import Interpreter
    from raspire.language.source import Source


def given_input(text: str | None, tokens: str | None, file: str | None) -> Any:
    """The input of a run: text, a JSON list of tokens, or a file of either; ``hello`` if none."""
    if sum(given is not None for given in (text, tokens, file)) > 1:
        raise click.UsageError("give one input: --input, --tokens or --input-file")
    if file is not None:
        from raspire.language.interpreter import read_source

        content = read_source(file).text
        if not file.endswith(".json"):
            return content.rstrip("\n")
        tokens = content
    if tokens is None:
        return "hello" if text is None else text
    try:
        values = json.loads(tokens)
    except ValueError as problem:
        raise RaspValueError(
            "the tokens are not JSON", expected='a list, as in [1, 2.5, "a"]', found=str(problem)
        ) from None
    if not isinstance(values, list | str):
        raise RaspValueError("the tokens are a JSON list", found=tokens.strip()[:40])
    return values


def input_options(command: Any) -> Any:
    """The options that give an input."""
    for option in (
        click.option("--input-file", type=click.Path(exists=True, dir_okay=False),
                     help="A file with the input: text, or a JSON list if it ends in .json."),
        click.option("--tokens", help="The input as a JSON list of tokens."),
        click.option("--input", "text", help="The input: every character is a token."),
    ):  # fmt: skip
        command = option(command)
    return command


def source_of(file: str) -> Source:
    """The text of a file, or of one of our own programs by its name (``reverse``, ``sort`` ...).

    Raises RaspLoadError.
    """
    from raspire.language.interpreter import read_source
    from raspire.library.sources import source_names, source_path

    if not Path(file).exists() and file in source_names():
        return read_source(str(source_path(file)))
    return read_source(file)


def last_value(interpreter: Interpreter, path: str) -> tuple[str, Any]:
    """Run a file up to its first failure or ``exit``; the name and value of its last result.

    A failure in a file that it loads is its failure.

    Raises RaspError.
    """
    name, value = "out", None
    for outcome in interpreter.run(source_of(path)):
        for error in outcome.errors():
            raise error
        if outcome.kind == "command" and outcome.words[0] in ("exit", "quit"):
            break
        if outcome.kind == "value":
            name, value = outcome.name, outcome.value
        elif outcome.kind == "assigned":
            name, value = next(reversed(outcome.names)), outcome.value
    return name, value


@click.command()
@click.argument("file")
@input_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line for the last value.")
def run(
    file: str, text: str | None, tokens: str | None, input_file: str | None, as_json: bool
) -> None:
    """Run a RASP file on an input and print its last value.

    FILE may also be the name of one of our own programs, such as reverse, sort or dyck1.
    """
    from raspire.language.interpreter import Interpreter
    from raspire.language.report import fact, fault
    from raspire.session import printing

    try:
        interpreter = Interpreter(given_input(text, tokens, input_file))
        interpreter.drawer = _draw
        name, value = last_value(interpreter, file)
        if as_json:
            click.echo(json.dumps(fact(value, interpreter), ensure_ascii=False))
            return
        for line in printing.lines(name, value, interpreter):
            click.echo(line)
    except RaspError as error:
        if not as_json:
            raise
        click.echo(json.dumps(fault(error), ensure_ascii=False))
        raise click.exceptions.Exit(2) from None


def _draw(node: Any, tokens: list[Any]) -> None:
    from raspire.show.flow import draw

    click.echo(draw(node, tokens).text(), err=True)
