"""Arithmetics: what a value is. The same program runs on any of them.

``float64`` and ``float32`` are IEEE binary, ``exact`` the rationals, ``ball`` encloses reals (it
needs the extra ``proof``), ``field`` is GF(2^61 - 1). An arithmetic is a parameter of a run, never
of a program.
"""

from __future__ import annotations

from raspire.arithmetic.binary import FLOAT32, FLOAT64
from raspire.arithmetic.interface import Arithmetic
from raspire.arithmetic.rational import EXACT
from raspire.errors import RaspValueError

ARITHMETICS: dict[str, Arithmetic] = {a.name: a for a in (FLOAT64, FLOAT32, EXACT)}

__all__ = ["ARITHMETICS", "EXACT", "FLOAT32", "FLOAT64", "Arithmetic", "arithmetic_named"]


def arithmetic_named(name: str | Arithmetic) -> Arithmetic:
    """The arithmetic of that name; an arithmetic stays itself.

    Raises RaspValueError for an unknown name, with the names there are.

    >>> arithmetic_named("exact").name
    'exact'
    """
    if isinstance(name, Arithmetic):
        return name
    if name == "ball":
        from raspire.arithmetic.ball import Balls

        return Balls()
    if name == "field":
        from raspire.arithmetic.field import PrimeField

        return PrimeField()
    if name not in ARITHMETICS:
        raise RaspValueError(
            f"there is no arithmetic {name!r}",
            expected="one of " + ", ".join(sorted([*ARITHMETICS, "ball", "field"])),
            found=repr(name),
        )
    return ARITHMETICS[name]
