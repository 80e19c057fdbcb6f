"""How the program's values are read from the stream: labels and their logits, or numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from raspire.compile.domain import Finite, is_number
from raspire.compile.linear import Form, constant
from raspire.compile.resolve import Resolver
from raspire.program.nodes import SOp

MANY = 64
"""From so many values on, a copied categorical value keeps its one-hot code."""


@dataclass(frozen=True)
class Output:
    """The output forms, what their argmax or their numbers mean, and the labels.

    ``decided`` are the forms that have to be right to a quarter for the argmax, or the flag, to be.
    """

    kind: str
    forms: list[Form]
    labels: tuple[Any, ...]
    decided: tuple[Form, ...] = ()


def output_of(node: SOp, resolver: Resolver) -> Output:
    """The unembedding of a program.

    Whole numbers have the logits ``2 v x - v^2``, greatest for the nearest v; other symbols one
    logit each; rationals and reals are read as numbers, with a flag where they may be None.
    """
    domain = resolver.domain(node)
    if not isinstance(domain, Finite):
        return Output("numeric", [resolver.number(node)], ("value",))
    if domain.whole and not _one_hot_number(node, domain, resolver):
        return _nearest(domain, resolver.number(node))
    if domain.numeric and not domain.whole:
        return Output("numeric", [resolver.number(node)], ("value",))
    if _optional_rational(domain):
        number, flag = resolver.optional(node)
        return Output("numeric", [number, flag], ("value", None), (flag,))
    return _symbols(node, domain, resolver)


def _one_hot_number(node: SOp, domain: Finite, resolver: Resolver) -> bool:
    """Whether whole numbers are read from a one-hot code: many of them, copied from tokens."""
    return len(domain) > MANY and resolver.carries_symbols(node)


def _optional_rational(domain: Finite) -> bool:
    others = [v for v in domain.values if not is_number(v)]
    return others == [None] and any(isinstance(v, Fraction | float) for v in domain.values)


def _nearest(domain: Finite, form: Form) -> Output:
    forms = [form * (2 * v) - constant(v * v) for v in domain.floats]
    return Output("categorical", forms, domain.values, (form,))


def _symbols(node: SOp, domain: Finite, resolver: Resolver) -> Output:
    rows = np.eye(len(domain))
    spare = resolver.spare_value(node)
    forms = [Form() if i == spare else resolver.form(node, rows[i]) for i in range(len(domain))]
    if spare is not None:
        rest = constant(1)
        for form in forms:
            rest = rest - form
        forms[spare] = rest
    return Output("categorical", forms, domain.values, tuple(forms))
