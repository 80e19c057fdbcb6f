"""Files that appear whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from raspire.errors import RaspLoadError


def write_whole(path: str | Path, content: bytes | str | Callable[[Path], object]) -> Path:
    """Write ``content`` to a temporary file beside ``path``, then rename it into place.

    ``content`` is bytes, text, or a function that writes the file it is given (of the same
    suffix). A link is followed: what it points to is written. A device or a pipe is no file to be
    replaced: the content goes straight into it. Raises RaspLoadError when the place cannot be
    written; then nothing is left behind.
    """
    target = Path(path)
    try:
        through = _is_stream(target)
        final = target if through else Path(os.path.realpath(target))
        handle, name = tempfile.mkstemp(
            dir=None if through else final.parent, prefix=f".{target.stem}.", suffix=target.suffix
        )
        os.close(handle)
    except OSError as error:
        raise RaspLoadError(
            f"cannot write {target}", expected="a folder that can be written", found=str(error)
        ) from None
    temporary = Path(name)
    try:
        if callable(content):
            content(temporary)
        else:
            temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        if through:
            with target.open("wb") as stream:
                stream.write(temporary.read_bytes())
        else:
            temporary.chmod(0o666 & ~_umask())
            os.replace(temporary, final)
    except OSError as error:
        raise RaspLoadError(f"cannot write {target}", found=str(error)) from None
    finally:
        temporary.unlink(missing_ok=True)
    return target


def refuse_unwritable(path: str | Path) -> None:
    """Refuse a place that is a folder or lies in none, before work is done for it."""
    target = Path(os.path.realpath(path))
    if target.is_dir() or not target.parent.is_dir():
        raise RaspLoadError(
            f"{path} cannot be written",
            expected="a file name in a folder that is there",
            found="a folder" if target.is_dir() else f"no folder {target.parent}",
        )


def _is_stream(target: Path) -> bool:
    """Whether the place is a device, a pipe, or an open file by its number, as /dev/stdout."""
    links = [target]
    if target.is_symlink():
        links.append(target.parent / os.readlink(target))
    if any(os.path.realpath(link.parent).startswith("/proc/") for link in links):
        return True
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
