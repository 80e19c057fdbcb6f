"""What an arithmetic must say: how a value enters, how a primitive acts, what a mean is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol


class Record(Protocol):
    """What an arithmetic reads of a primitive's record."""

    @property
    def name(self) -> str: ...
    @property
    def scalar(self) -> Callable[..., Any]: ...
    @property
    def exact(self) -> Callable[..., Any] | None: ...
    @property
    def ball(self) -> Callable[..., Any] | None: ...
    @property
    def field(self) -> Callable[..., Any] | None: ...


class Arithmetic(ABC):
    """One kind of numbers; strings, booleans and None pass through every arithmetic unchanged."""

    name: str

    @abstractmethod
    def lift(self, value: Any) -> Any:
        """A value of the input or of the program, as a value of this arithmetic."""

    def constant(self, value: Any) -> Any:
        """A constant of the program; an arithmetic may know that it stands for another number."""
        return self.lift(value)

    def leaving(self, column: Any) -> list[Any]:
        """A column's values as the values of this arithmetic."""
        return column.values()  # type: ignore[no-any-return]

    def working(self) -> AbstractContextManager[Any]:
        """What has to be in force while this arithmetic computes (a precision, for one)."""
        return nullcontext()

    @abstractmethod
    def form(self, record: Record) -> Callable[..., Any]:
        """The primitive on single values of this arithmetic.

        Raises UnsupportedError where the primitive has no form here.
        """

    @abstractmethod
    def mean(self, values: Sequence[Any]) -> Any:
        """The mean of at least one number, as close to the exact mean as this arithmetic is."""

    @abstractmethod
    def number(self, value: Any) -> bool:
        """Whether the value can be averaged."""

    def inexact(self, value: Any) -> Any:
        """A mean as the text language has it: a float where this arithmetic has floats."""
        return value

    def columns(self, record: Any, columns: Sequence[Any]) -> Any:
        """The primitive on whole columns, where this arithmetic stores them its own way."""
        return None

    @abstractmethod
    def quotient(self, total: Any, count: int) -> Any:
        """A sum of ``count`` numbers as their mean."""

    def payload(self, values: Any) -> Any:
        """Channels and their finish for columns that this arithmetic stores its own way."""
        return None

    def entering(self, column: Any) -> Any:
        """A column of the input, where this arithmetic stores it its own way."""
        return None
