"""The command line: arguments in, text and exit codes out.

Commands live in modules of their own and are imported when called, so that ``raspire --help``
answers at once. Exit codes: 0 done, 1 a check did not hold, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

from raspire.errors import RaspError

# command: (module, attribute, one line of help)
COMMANDS = {
    "simulate": ("raspire.cli.simulate", "simulate", "Let U run an attention layer from a file."),
    "cost": ("raspire.cli.simulate", "cost", "What U costs for a shape."),
    "explain": ("raspire.cli.explain", "explain", "The evaluator's plan for a program, or for U."),
    "repl": ("raspire.cli.repl", "repl_command", "The RASP session, after loading a file."),
    "run": ("raspire.cli.run", "run", "Run a RASP file."),
    "check": ("raspire.cli.check", "check", "Check a RASP file without running it."),
    "draw": ("raspire.cli.draw", "draw", "Which layer and head computes what."),
    "compile": ("raspire.cli.compile", "compile_command", "Compile a program to a transformer."),
    "doctor": ("raspire.cli.doctor", "doctor", "Check that a model is a genuine transformer."),
    "weights": ("raspire.cli.weights", "weights", "The universal simulator's weights, each named."),
    "embed": ("raspire.cli.embed", "embed", "A sentence embedding, every layer run through U."),
    "prove": ("raspire.cli.prove", "prove", "U for all T and X of a shape; two programs as one."),
    "theorems": ("raspire.cli.theorems", "theorems", "The paper's results, each as a program."),
    "compare": ("raspire.cli.compare", "compare", "Ours beside the looped transformers."),
    "report": ("raspire.cli.report", "report", "Error against NumPy, as table and picture."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, with help known beforehand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[2]) for name, entry in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0].endswith(".rasp"):
            args = ["repl", *args]
        if args and args[0] not in COMMANDS:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, invoke_without_command=True)
@click.version_option(package_name="raspire", prog_name="raspire")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Transformer algorithms as programs: run them, compile them, simulate attention exactly.

    Without a command, opens the RASP session (or runs RASP from standard input).
    """
    if ctx.invoked_subcommand is None:
        import_module("raspire.cli.repl").repl()


def main() -> None:
    """Run the command line; no error that raspire foresees ends in a traceback."""
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except RaspError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except OSError as error:  # a full disk, a folder without permission
        place = f"{error.filename}: " if error.filename else ""
        click.echo(f"Error: {place}{error.strerror or error}", err=True)
        sys.exit(2)
    except (MemoryError, RecursionError) as error:
        name = type(error).__name__
        click.echo(f"Error: {name}: the input is too large for this machine", err=True)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
