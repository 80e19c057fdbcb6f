"""What a run will need, told before it starts: sequence length, memory, time."""

from __future__ import annotations

from dataclasses import dataclass

from raspire.errors import BudgetError
from raspire.simulator.construction import Construction
from raspire.simulator.target import Shape

# Products and look-ups a second on two cores of 2020s hardware; an estimate, not a promise.
_PRODUCTS_A_SECOND = 2.0e8
_LOOKUPS_A_SECOND = 2.0e7
_START = 0.3


@dataclass(frozen=True)
class Estimate:
    """The size of a run: N, the products or look-ups in it, bytes for the sequence, seconds."""

    sequence_length: int
    operations: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"N = {large(self.sequence_length)} positions, {large(self.operations)} products, "
            f"{_memory(self.bytes)} for the sequence, about {_duration(self.seconds)}"
        )


def large(count: int) -> str:
    """A count to read: every digit, or its magnitude where digits say nothing.

    >>> large(1_234_567), large(10**21 + 7)
    ('1,234,567', '1.00e+21')
    """
    return f"{count:,}" if count < 10**15 else f"{count:.2e}"


def _duration(seconds: float) -> str:
    """A time in the unit that a person would use.

    >>> _duration(3.25), _duration(7000.0), _duration(3e14)
    ('3.2 s', '1.9 hours', '9.51e+06 years')
    """
    for unit, size in (("years", 31_557_600), ("days", 86_400), ("hours", 3_600)):
        if seconds >= 1.5 * size:
            number = seconds / size
            return f"{number:.1f} {unit}" if number < 10**5 else f"{number:.2e} {unit}"
    return f"{seconds:.1f} s"


def _memory(size: int) -> str:
    """Bytes in MiB, or in TiB from one on.

    >>> _memory(3 << 20), _memory(5 << 42)
    ('3 MiB', '20 TiB')
    """
    if size < 1 << 40:
        return f"{size / 2**20:,.0f} MiB"
    return f"{large(size >> 40)} TiB"


def estimate(construction: Construction) -> Estimate:
    """The estimate for one construction of one shape."""
    wide = construction.name == "wide"
    count = _lookups if wide else _products
    operations = count(construction.n, construction.shape)
    rate = _LOOKUPS_A_SECOND if wide else _PRODUCTS_A_SECOND
    length = construction.length
    return Estimate(length, operations, 8 * length, _START + operations / rate)


def refuse_beyond(budget: int, construction: Construction) -> None:
    """Refuse a shape whose sequence alone exceeds the budget (in bytes)."""
    needed = 8 * construction.length
    if needed > budget:
        raise BudgetError(
            f"U for n={construction.n}, {construction.shape} does not fit the memory budget",
            expected=f"at most {budget:,} bytes",
            found=f"{needed:,} bytes for a sequence of N = {construction.length:,}",
            hint="a smaller n, " + ("the construction wide, " if _in_wide(construction) else "")
            + "or a larger budget",
        )  # fmt: skip


def _in_wide(construction: Construction) -> bool:
    """Whether the construction `wide`, whose sequence is shorter, could take this shape."""
    shape = construction.shape
    return construction.name == "long" and isinstance(shape, Shape) and not shape.positional


def _products(n: int, shape: Shape) -> int:
    output = n * (shape.merged + 1) * shape.d if shape.output else 0
    scores = shape.heads * n * n * (shape.d_k + shape.d_v)
    return n * shape.inputs * shape.columns + scores + output


def _lookups(n: int, shape: Shape) -> int:
    return 2 * _products(n, shape)
