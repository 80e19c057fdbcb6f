"""``raspire``: the session at a prompt, or RASP from a pipe."""

from __future__ import annotations

import sys
from pathlib import Path

import click


def repl(file: str | None = None) -> None:
    """Open a session; a file is loaded first. From a pipe, a failure gives exit code 2."""
    from raspire.cli.run import source_of
    from raspire.session import prompt
    from raspire.session.session import Message, Session

    def plain(message: Message) -> None:
        click.echo(message.text)

    session = Session()
    if file is not None:
        for message in session.open(source_of(file)):
            plain(message)
    if sys.stdin.isatty():
        click.echo("raspire: RASP, one statement at a time. help shows what there is; quit leaves.")
        prompt.interact(session, Path.home() / ".raspire_history")
        return
    prompt.pipe(session, sys.stdin)
    if session.failed:
        raise click.exceptions.Exit(2)


@click.command("repl")
@click.argument("file", required=False)
def repl_command(file: str | None) -> None:
    """Open the RASP session; FILE, or one of our own programs, is loaded first."""
    repl(file)
