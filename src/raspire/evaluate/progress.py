"""Progress of long evaluations, on a terminal only; Ctrl-C ends them as any Python program."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from raspire.evaluate.joins import Tick

PATIENCE = 1.0
"""Seconds before anything is shown."""


@contextmanager
def shown(title: str = "evaluating") -> Iterator[Tick]:
    """A ``tick`` that draws a bar on standard error where that is a terminal, else does nothing.

    What is counted changes while a program runs (expressions, keys, blocks of queries, inputs of
    a batch), so the bar tells which it is.

    >>> from raspire import indices
    >>> from raspire.evaluate import evaluate
    >>> with shown() as tick:
    ...     evaluate(indices, "abc", tick=tick)
    [0, 1, 2]
    """
    if not sys.stderr.isatty():
        yield lambda what, done, of: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, visible=False)
        started = time.monotonic()

        def tick(what: str, done: int, of: int) -> None:
            late = time.monotonic() - started > PATIENCE
            bar.update(task, description=f"{title}: {what}", completed=done, total=of, visible=late)

        yield tick
