"""The plan of long programs and of lengths that are none."""

from time import perf_counter

import pytest

from raspire import aggregate, indices, select, selector_width, tokens
from raspire.errors import RaspValueError
from raspire.evaluate import explain
from raspire.program.printing import expression, expressions
from raspire.program.walk import reached, selectors_of, topological


def chain(terms, named):
    found = indices
    for i in range(terms):
        found = aggregate(select(found, indices, "<="), found + 1)
        if named:
            found.named(f"a{i}")
    return found


@pytest.mark.parametrize("named", [True, False])
def test_a_chain_is_planned_in_time_linear_in_its_length(named):
    start = perf_counter()
    found = explain(chain(1500, named), 100)
    text = str(found)
    assert perf_counter() - start < 20  # quadratic walks took minutes
    assert len(found.steps) == 1500
    assert found.cost == 1500 * 200 * 8
    if named:
        assert [step.text for step in found.steps[-2:]] == ["a1498", "a1499"]
    else:
        first = "aggregate(select(indices, indices, <=), indices + 1)"
        assert found.steps[0].text == first
        assert "..." in found.steps[-1].text
    assert len(text) < 1500 * 200


def test_the_texts_of_many_nodes_are_those_of_each():
    program = (aggregate(select(tokens, tokens, "=="), chain(3, False)).named("mean") * 2) - 1
    order = topological(program)
    assert expressions(order, limit=60) == {
        node: node.label or expression(node, limit=60) for node in order
    }


def test_a_walk_of_a_selector_does_not_enter_what_it_compares():
    deep = chain(5, False)
    left, right = select(deep, indices, "=="), select(indices, deep, "<")
    both = left & right | left
    assert selectors_of(both) == [left, right, both.args[0], both]
    assert reached(both, lambda node: ()) == [both]


@pytest.mark.parametrize("length", [-1, 99_999_999_999_999_999_999])
def test_a_length_that_no_input_has_is_refused(length):
    with pytest.raises(RaspValueError, match=f"found: +{length:,}"):
        explain(tokens, length)


def test_a_sort_is_a_look_up_by_rank():
    from raspire.library.sequences import sort, sort_by_frequency

    for program in (sort(), sort_by_frequency()):
        assert [s.plan for s in explain(program, 100).steps][-1] == "look-up by rank"
    ranks = selector_width(select(tokens, tokens, "<"))  # equal tokens have equal ranks
    found = explain(aggregate(select(ranks, indices, "=="), tokens), 100)
    assert found.steps[-1].plan == "group by 1 key"
    few = explain(sort(), 100, positions=[3, 5])  # there the values are joined by their ranks
    assert few.steps[-1].plan == "group by 1 key"
