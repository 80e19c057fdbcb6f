"""Files that appear whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from raspire.errors import RaspLoadError


def write_whole(path: str | Path, content: bytes | str | Callable[[Path], object]) -> Path:
    """Write ``content`` to a temporary file beside ``path``, then rename it into place.

    ``content`` is bytes, text, or a function that writes the file it is given (of the same
    suffix). Raises RaspLoadError when the place cannot be written; then nothing is left behind.
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.stem}.", suffix=target.suffix
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
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        raise RaspLoadError(f"cannot write {target}", found=str(error)) from None
    finally:
        temporary.unlink(missing_ok=True)
    return target


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
