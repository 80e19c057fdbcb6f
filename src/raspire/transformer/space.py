"""Residual subspaces as objects: a name, a label for every basis vector, and a place.

Nothing in the package slices the residual stream by integers; a layer reads and writes spaces.
A place may be reused once its value is dead, so a space need not be contiguous.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from raspire.errors import RaspValueError


@dataclass(frozen=True)
class Space:
    """A named subspace of the residual stream: ``labels[i]`` lives in slot ``slots[i]``.

    >>> color = Space("color", ("red", "blue"), (3, 5))
    >>> color["blue"].slots
    (5,)
    """

    name: str
    labels: tuple[Hashable, ...]
    slots: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.slots):
            raise RaspValueError(
                f"space {self.name!r} needs one slot a label",
                expected=f"{len(self.labels)} slots",
                found=f"{len(self.slots)} slots",
            )
        if len(set(self.slots)) != len(self.slots):
            raise RaspValueError(f"space {self.name!r} names a slot twice")

    @property
    def size(self) -> int:
        """The dimension of the subspace."""
        return len(self.slots)

    def __len__(self) -> int:
        return len(self.slots)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.labels)

    def __getitem__(self, label: Hashable) -> Space:
        return self.part((label,))

    def index(self, label: Hashable) -> int:
        """The place of a label inside the space, from 0; a missing label is an error."""
        try:
            return self.labels.index(label)
        except ValueError:
            raise RaspValueError(
                f"space {self.name!r} has no label {label!r}",
                expected=", ".join(map(repr, self.labels[:12])),
            ) from None

    def part(self, labels: Iterable[Hashable]) -> Space:
        """The subspace of some labels, in the order given."""
        chosen = tuple(labels)
        places = dict(zip(self.labels, self.slots, strict=True))
        missing = [label for label in chosen if label not in places]
        if missing:
            self.index(missing[0])
        return Space(self.name, chosen, tuple(places[label] for label in chosen))


class Stream:
    """The allocator of residual slots: a fresh space takes the lowest free slots.

    ``release`` gives slots back; whoever does so has erased them by a linear unit, or writes
    into them in the same feed-forward part in which they are erased.

    >>> stream = Stream()
    >>> one, pair = stream.space("one"), stream.space("pair", "ab")
    >>> stream.release(one)
    >>> stream.space("next", "xy").slots, stream.width
    ((0, 3), 4)
    """

    def __init__(self) -> None:
        self.spaces: list[Space] = []
        self._free: list[int] = []
        self.width = 0

    def space(self, name: str, labels: Iterable[Hashable] | int = 1) -> Space:
        """A new space on free slots; ``labels`` may be a number (labels 0, 1, ...)."""
        names = tuple(range(labels)) if isinstance(labels, int) else tuple(labels)
        reused = self._free[: len(names)]
        del self._free[: len(names)]
        fresh = range(self.width, self.width + len(names) - len(reused))
        self.width += len(fresh)
        return self.place(Space(name, names, (*reused, *fresh)))

    def place(self, space: Space) -> Space:
        """Record a space whose slots somebody else has chosen."""
        self.width = max(self.width, max(space.slots, default=-1) + 1)
        self.spaces.append(space)
        return space

    def release(self, space: Space) -> None:
        """Give the slots of a dead space back."""
        for slot in space.slots:
            if slot in self._free:
                raise RaspValueError(f"slot {slot} of space {space.name!r} is already free")
            insort(self._free, slot)
