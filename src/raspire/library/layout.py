"""How arrays lie in a sequence: blocks of positions, and programs that carry their layout.

The paper's reviewers asked how the arguments of a construction are laid out as a sequence. Here
every program of the library answers: its inputs and its output are row-major *blocks*, one scalar
a token, and a block's digits and addresses depend on the position alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from raspire.errors import RaspValueError, RaspZeroDivisionError
from raspire.program.embedding import aggregate, indices, select
from raspire.program.facts import Cost, cost
from raspire.program.nodes import Atom, SOp, lift


@dataclass(frozen=True)
class Block:
    """A row-major block of positions: it starts at ``base`` and has the sizes ``shape``.

    >>> Block(6, (3, 2)).end
    12
    """

    base: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many positions the block takes."""
        return prod(self.shape)

    @property
    def end(self) -> int:
        """The first position after the block."""
        return self.base + self.size

    @property
    def strides(self) -> tuple[int, ...]:
        """How far apart neighbours along each axis are."""
        return tuple(prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    def digits(self, position: SOp = indices) -> tuple[SOp, ...]:
        """The coordinates of a position; outside the block they wrap, so they stay in range.

        >>> Block(1, (2, 2)).digits()[1]("abcde")
        [1, 0, 1, 0, 1]
        """
        local = position - self.base if self.base else position
        steps = zip(self.shape, self.strides, strict=True)
        return tuple((local // step if step > 1 else local) % size for size, step in steps)

    def address(self, *digits: int | SOp) -> int | SOp:
        """The position with these coordinates, each an int or an s-op.

        >>> Block(6, (3, 2)).address(2, 1)
        11
        """
        steps = list(zip(digits, self.strides, strict=True))
        known = sum(digit * step for digit, step in steps if isinstance(digit, int))
        total: int | SOp = self.base + known
        for digit, step in steps:
            if not isinstance(digit, int):
                term = digit * step if step > 1 else digit
                total = term + total if not isinstance(total, int) or total else term
        return total

    def groups(self, *kept: int, at: Mapping[int, int] | None = None) -> tuple[SOp, SOp]:
        """Keys and queries that group the block by the axes ``kept``, the first axis among them.

        ``select(key, query, "==")`` then selects the positions of the block with the same
        coordinates on those axes. The key's first coordinate does not wrap, so no position
        outside the block joins a group; the query's does, so every position meets a whole group.
        ``at`` gives kept axes whose coordinate in the query is fixed.

        >>> Block(0, (2, 2)).groups(0)[0]("abcdef"), Block(0, (2, 2)).groups(0)[1]("abcdef")
        ([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 0, 0])
        """
        local = indices - self.base if self.base else indices
        fixed = at or {}
        key, query, weight = [], [], 1
        for run in reversed(self._runs(sorted(kept), set(fixed))):
            step, size = self.strides[run[-1]], prod(self.shape[axis] for axis in run)
            place = local // step if step > 1 else local
            wrapped = place % size
            key.append(_scaled(place if run[0] == 0 else wrapped, weight))
            if run[0] not in fixed:
                query.append(_scaled(wrapped, weight))
            elif fixed[run[0]]:
                query.append(lift(fixed[run[0]] * weight))
            weight *= size
        return total(key[::-1]), total(query[::-1])

    def _runs(self, kept: list[int], alone: set[int]) -> list[list[int]]:
        """Neighbouring axes together, but those in ``alone`` each for itself."""
        runs: list[list[int]] = []
        for axis in kept:
            if runs and runs[-1][-1] == axis - 1 and not {axis, axis - 1} & alone:
                runs[-1].append(axis)
            else:
                runs.append([axis])
        return runs

    def holds(self) -> SOp:
        """Whether a position lies in the block."""
        inside = indices < self.end
        return inside & (indices >= self.base) if self.base else inside

    def positions(self) -> range:
        """The positions of the block, in row-major order."""
        return range(self.base, self.end)


def blocks(**shapes: tuple[int, ...]) -> dict[str, Block]:
    """Blocks one after the other, from position 0.

    >>> blocks(A=(2, 2), b=(2,))["b"].base
    4
    """
    found: dict[str, Block] = {}
    base = 0
    for name, shape in shapes.items():
        found[name] = Block(base, shape)
        base = found[name].end
    return found


def fetch(value: SOp, address: int | SOp, default: Atom = 0) -> SOp:
    """The value at an address: one equality head that copies a token (constructions, 3).

    >>> from raspire import tokens
    >>> fetch(tokens, 2)("abc")
    ['c', 'c', 'c']
    """
    return aggregate(select(indices, address, "=="), value, default)


def total(terms: list[SOp]) -> SOp:
    """The sum of at least one s-op, as a left-leaning chain."""
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def _scaled(sop: SOp, weight: int) -> SOp:
    return sop * weight if weight > 1 else sop


@dataclass(frozen=True)
class Face:
    """The positions of a block whose coordinates on some axes are fixed: where a result is read.

    >>> Face(Block(6, (2, 3, 2)), {1: 0}).positions().tolist(), Face(Block(6, (2, 3)), {1: 0}).shape
    ([6, 7, 12, 13], (2,))
    """

    block: Block
    fixed: Mapping[int, int]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the free axes."""
        return tuple(s for axis, s in enumerate(self.block.shape) if axis not in self.fixed)

    def positions(self) -> Any:
        """The positions in row-major order, an int64 array."""
        import numpy

        free = numpy.ix_(
            *(
                numpy.array([self.fixed[axis]]) if axis in self.fixed else numpy.arange(size)
                for axis, size in enumerate(self.block.shape)
            )
        )
        place = numpy.full((1,) * len(free), self.block.base)
        for digit, step in zip(free, self.block.strides, strict=True):
            place = place + digit * step
        return place.ravel()


def mean_over(block: Block, kept: tuple[int, ...], value: SOp) -> SOp:
    """The mean of a value over the axes of a block that are not kept, known at every position."""
    key, query = block.groups(*kept)
    return aggregate(select(key, query, "=="), value)


@dataclass(frozen=True)
class LaidOut:
    """A program together with where its inputs are written and where its result is read.

    ``length`` is N, padding included; positions outside the input blocks hold 0. ``flag``, if
    any, is read beside the result: true where the result means nothing (a network cannot raise).
    ``bound``, if any, gives the error of a run in floating point from the inputs and the
    arithmetic's name, and refuses inputs for which it is useless; every such run asks it first.
    Calling with one nested list (or array) per input gives the result in the output's shape.
    """

    name: str
    program: SOp
    inputs: Mapping[str, Block]
    output: Block | Face
    length: int
    source: str = ""
    flag: SOp | None = None
    bound: Callable[..., float] | None = None

    @property
    def cost(self) -> Cost:
        """What the program costs as a transformer."""
        return cost(self.program)

    def encode(self, *arrays: Any) -> list[Any]:
        """The input sequence, one scalar a token.

        Raises RaspValueError, naming the input, where a shape does not fit.
        """
        if len(arrays) != len(self.inputs):
            raise RaspValueError(
                f"{self.name} was given the wrong number of inputs",
                expected=", ".join(self.inputs),
                found=str(len(arrays)),
            )
        sequence: list[Any] = [0] * self.length
        for (name, block), array in zip(self.inputs.items(), arrays, strict=True):
            shape, values = flatten(array)
            if shape != block.shape:
                raise RaspValueError(
                    f"{self.name}: the shape of {name} does not fit",
                    expected=f"shape {block.shape}",
                    found=f"shape {shape}",
                )
            sequence[block.base : block.end] = values
        return sequence

    def decode(self, values: list[Any]) -> Any:
        """The output block's values as a nested list, or as one value for a shape of ()."""
        return nest(values, self.output.shape)

    def __call__(self, *arrays: Any, arithmetic: Any = "float64", **options: Any) -> Any:
        """Encode, evaluate at the output's positions, decode.

        A NumPy array among the inputs gives an array, otherwise nested lists. Raises
        RaspZeroDivisionError where the flag would be true, RaspValueError where a shape does not
        fit or where floating point gives no useful digit.
        """
        sequence = self.encode(*arrays)
        if self.bound is not None and str(arithmetic).startswith("float"):
            self.bound(*arrays, arithmetic=arithmetic)
        positions = list(self.output.positions())
        try:
            values = self.program(sequence, arithmetic=arithmetic, positions=positions, **options)
        except RaspZeroDivisionError:
            if self.flag is None:
                raise
            raise singular(self.name) from None
        result = self.decode(values)
        if any(hasattr(array, "dtype") for array in arrays):
            import numpy

            return numpy.array(result, dtype=object if arithmetic == "exact" else numpy.float64)
        return result


def singular(name: str) -> RaspZeroDivisionError:
    """The error for a matrix that has no inverse."""
    return RaspZeroDivisionError(
        f"{name}: the matrix is singular", expected="a determinant other than 0", found="0"
    )


def flatten(array: Any) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of a nested list or array, and its values in row-major order.

    Raises RaspValueError where rows differ in length.

    >>> flatten([[1, 2], [3, 4]])
    ((2, 2), [1, 2, 3, 4])
    """
    if hasattr(array, "tolist"):
        array = array.tolist()
    if not isinstance(array, list | tuple):
        return (), [array]
    parts = [flatten(item) for item in array]
    shapes = {shape for shape, _ in parts}
    if len(shapes) > 1:
        raise RaspValueError(
            "the rows of a matrix differ in length", found=", ".join(map(str, sorted(shapes)))
        )
    inner = shapes.pop() if shapes else ()
    return (len(parts), *inner), [value for _, values in parts for value in values]


def nest(values: list[Any], shape: tuple[int, ...]) -> Any:
    """Row-major values as nested lists of the shape.

    >>> nest([1, 2, 3, 4], (2, 2))
    [[1, 2], [3, 4]]
    """
    if not shape:
        return values[0]
    step = prod(shape[1:])
    return [nest(values[step * row : step * (row + 1)], shape[1:]) for row in range(shape[0])]
