"""Checks of options that several commands share, made before any work."""

from __future__ import annotations

import click


def writable(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A callback for a file to be written: refuses a folder, and a place in none."""
    if value is not None:
        from raspire.files import refuse_unwritable

        refuse_unwritable(value)
    return value


def exclusive(**given: bool) -> None:
    """Refuse options that exclude each other; each is given by its name and whether it is set.

    Raises click.UsageError naming those that are set.
    """
    together = [f"--{name}" for name, is_set in given.items() if is_set]
    if len(together) > 1:
        raise click.UsageError(f"give one of {' and '.join(together)}, not both")
