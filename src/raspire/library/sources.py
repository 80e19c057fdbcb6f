"""Our programs as RASP source: the files `*.rasp` beside this module, each by its name.

A file opens with what it computes, its depth and its heads; shapes stand at its top.
"""

from __future__ import annotations

from pathlib import Path

from raspire.errors import RaspLoadError
from raspire.language import from_rasp, read_source
from raspire.program.nodes import Node

HERE = Path(__file__).parent


def source_names() -> list[str]:
    """The names of all source programs.

    >>> "reverse" in source_names()
    True
    """
    return sorted(path.stem for path in HERE.glob("*.rasp"))


def source_path(name: str) -> Path:
    """The file of a source program.

    Raises RaspLoadError for an unknown name, with the names there are.
    """
    if name not in source_names():
        raise RaspLoadError(
            f"there is no source program {name!r}", expected="one of " + ", ".join(source_names())
        )
    return HERE / f"{name}.rasp"


def source_program(name: str, **shapes: int) -> Node:
    """The program of a source file, with other shapes than those at its top if they are given.

    >>> source_program("transpose", rows=1, columns=2)([5, 6])
    [5.0, 6.0]

    Raises RaspLoadError for an unknown name or shape.
    """
    source = read_source(str(source_path(name)))
    text = source.text
    for shape, value in shapes.items():
        before, found, after = text.partition(f"\n{shape} = ")
        if not found:
            raise RaspLoadError(f"{name}.rasp has no shape {shape!r} at its top")
        text = f"{before}{found}{value};{after.partition(';')[2]}"
    return from_rasp(text, source.name)
