"""Certificates: what was shown, by which method, on what it rests; plain data, kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from raspire.errors import RaspLoadError
from raspire.files import write_whole

Method: TypeAlias = Literal[
    "identity over a finite field",
    "exact over the rationals",
    "enclosure",
    "exhaustive",
    "decided by a solver",
    "proved bound",
    "measurement",
]
METHODS = get_args(Method)


@dataclass(frozen=True)
class Certificate:
    """What one verification found.

    ``holds`` is the verdict; ``error_probability`` bounds the chance that a false claim passes (0
    for the methods that leave none); ``details`` holds the numbers that the method reports. A
    measurement is named as one: it certifies nothing.

    >>> Certificate("1 + 1 = 2", "exact over the rationals", True, 0.0).holds
    True
    """

    claim: str
    method: Method
    holds: bool
    error_probability: float
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """The certificate as JSON, its keys in a fixed order."""
        return json.dumps(asdict(self), indent=2, sort_keys=True, default=str)

    def save(self, path: str | Path) -> None:
        """Write the certificate as JSON, whole or not at all."""
        write_whole(path, self.to_json() + "\n")

    @staticmethod
    def from_json(text: str) -> Certificate:
        """Read what :meth:`to_json` wrote.

        Raises RaspLoadError for text that is no certificate.
        """
        try:
            data = json.loads(text)
            if data["method"] not in METHODS:
                raise KeyError(data["method"])
            return Certificate(**data)
        except (ValueError, KeyError, TypeError) as error:
            raise RaspLoadError(
                "this is no certificate",
                expected="JSON with " + ", ".join(Certificate.__dataclass_fields__),
                found=f"{type(error).__name__}: {error}",
            ) from None

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "DOES NOT HOLD"
        chance = f", error probability <= {self.error_probability:.2g}"
        tail = chance if self.error_probability else ""
        return f"{self.claim}: {verdict} ({self.method}{tail})"
