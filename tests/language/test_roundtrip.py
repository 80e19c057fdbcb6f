"""Programs to source and back: the same graph, sharing included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raspire.errors import UnsupportedError
from raspire.language import from_rasp, to_rasp
from raspire.program.embedding import (
    aggregate,
    elementwise,
    exp,
    full,
    hardmax,
    indices,
    length,
    lookup,
    maximum,
    select,
    selector_width,
    tokens,
    where,
)
from raspire.program.nodes import Aggregate, Constant, Node, SOp
from tests.language.rasp_graphs import same_graph

ATOMS = st.one_of(
    st.integers(-5, 10**20),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(alphabet="ab'# é", max_size=3),
)
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
BINARY: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a / b,
    lambda a, b: a // b,
    lambda a, b: a % b,
    lambda a, b: a**b,
    lambda a, b: a & b,
    lambda a, b: a | b,
    lambda a, b: a == b,
    lambda a, b: a < b,
    maximum,
)
UNARY: tuple[Callable[[Any], Any], ...] = (
    lambda a: -a,
    lambda a: ~a,
    lambda a: +a,
    round,
    exp,
    lookup({"a": 1, 2: -0.5}),
    lookup([True, False]),
)


@st.composite
def programs(draw: Callable[..., Any]) -> Node:
    """A random program; nodes are reused, labelled now and then."""
    sops: list[Any] = [tokens, indices, length]
    selectors: list[Any] = [full]
    node: Any = tokens

    def sop() -> Any:
        return draw(st.sampled_from(sops))

    def operand() -> Any:
        return draw(ATOMS) if draw(st.booleans()) else sop()

    def selector() -> Any:
        return draw(st.sampled_from(selectors))

    for number in range(draw(st.integers(1, 14))):
        kind = draw(st.integers(0, 6))
        if kind == 0:
            node = draw(st.sampled_from(BINARY))(sop(), operand())
        elif kind == 1:
            node = draw(st.sampled_from(UNARY))(sop())
        elif kind == 2:
            node = where(sop(), operand(), operand())
        elif kind == 3:
            node = select(operand(), operand(), draw(st.sampled_from(COMPARISONS)))
        elif kind == 4:
            a, b = selector(), selector()
            node = draw(st.sampled_from([a & b, a | b, ~a]))
        elif kind == 5:
            node = aggregate(selector(), operand(), draw(ATOMS))
            if draw(st.booleans()):
                node = Aggregate(node.selector, node.value, node.default, "rasp")
        else:
            node = selector_width(selector()) if draw(st.booleans()) else hardmax(sop(), selector())
        if draw(st.integers(0, 4)) == 0:
            node.named(
                draw(st.sampled_from(["a", "b", f"n{number}", "sort", "for", "load from 1"]))
            )
        (sops if isinstance(node, SOp) else selectors).append(node)
    return (sops + selectors)[-1] if draw(st.booleans()) else node  # type: ignore[no-any-return]


def round_trip(first: Node) -> None:
    text = to_rasp(first)
    second = from_rasp(text)
    assert same_graph(first, second), text
    assert to_rasp(second) == text


@settings(max_examples=25)
@given(programs())
def test_random_programs_come_back(first: Node) -> None:
    round_trip(first)


@pytest.mark.slow
@settings(max_examples=5000)
@given(programs())
def test_many_random_programs_come_back(first: Node) -> None:
    round_trip(first)


def test_sharing_is_kept() -> None:
    twice = indices + 1
    assert to_rasp(twice * twice) == "x1 = indices + 1;\nx1 * x1;\n"
    apart = (indices + 1) * (indices + 1)
    assert not same_graph(from_rasp(to_rasp(apart)), twice * twice)
    assert same_graph(from_rasp(to_rasp(apart)), apart)


def test_long_programs_come_back() -> None:
    total = indices
    for number in range(2000):
        total = total + number
    assert same_graph(from_rasp(to_rasp(total)), total)


REFUSED = [
    (elementwise(str.upper, tokens), "upper"),
    (select(tokens, tokens, lambda key, query: key == query), "comparison"),
    (aggregate(full, indices, None), "None"),
    (Constant(3), "constant"),
    (tokens == "'\"", "string"),
    (indices * float("inf"), "inf"),
    (Constant(1) + 2, "constants"),
]


@pytest.mark.parametrize(("sop", "named"), REFUSED, ids=lambda x: x if isinstance(x, str) else "")
def test_what_cannot_be_said_is_refused_by_name(sop: Node, named: str) -> None:
    with pytest.raises(UnsupportedError, match=named):
        to_rasp(sop)
