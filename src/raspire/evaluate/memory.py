"""Let freed arrays be used again: large inputs otherwise pay for fresh pages at every step.

The C library hands arrays of more than 32 MiB back to the system when they are freed, so that the
next one is paid for page by page. A program that runs long, or often, may tell it to keep them.
"""

from __future__ import annotations

import ctypes

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # the names of glibc's <malloc.h>


def keep_freed_memory(limit: int = 1 << 30) -> bool:
    """Let this process keep up to ``limit`` bytes of freed arrays for the next ones.

    This changes the whole process, so the library never does it unasked; what it gains is measured
    by `benchmarks/evaluator.py --keep-freed-memory`. Returns False where the C library does not
    offer it (any but glibc).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    limit = min(limit, 2**31 - 1)
    return bool(mallopt(_MMAP_THRESHOLD, limit)) and bool(mallopt(_TRIM_THRESHOLD, limit))
