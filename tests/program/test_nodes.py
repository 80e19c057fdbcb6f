"""Nodes are immutable, have identity, and refuse what would be silently wrong."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

from raspire import aggregate, elementwise, exp, full, indices, lookup, select, tokens, where
from raspire.errors import RaspTypeError, RaspValueError, UnsupportedError
from raspire.program.embedding import apply
from raspire.program.nodes import Aggregate, Apply, Constant, Node
from raspire.program.primitives import PRIMITIVES


def test_a_program_cannot_be_changed():
    node = indices + 1
    with pytest.raises(AttributeError, match="immutable"):
        node.args = ()
    with pytest.raises(AttributeError, match="immutable"):
        del node.args


def test_the_first_label_stays():
    node = indices + 1
    assert node.named("next") is node
    assert node.named("other").label == "next"


@pytest.mark.parametrize("node", [indices == 1, select(indices, 1, "==")])
def test_a_program_has_no_truth_value(node: Node):
    with pytest.raises(RaspTypeError, match="no truth value"):
        bool(node)


def test_nodes_serve_as_dictionary_keys_although_equality_builds_a_program():
    nodes = [indices + k for k in range(1000)]
    table = {node: k for k, node in enumerate(nodes)}
    assert [table[node] for node in nodes] == list(range(1000))


def test_an_s_op_cannot_be_iterated():
    with pytest.raises(TypeError):
        iter(indices)


def test_constants_are_lifted_from_either_side_and_from_numpy():
    assert isinstance((3 - indices).args[0], Constant)
    three = (indices * np.int64(3)).args[1]
    assert isinstance(three, Constant)
    assert type(three.value) is int
    half = (indices * Fraction(1, 2)).args[1]
    assert isinstance(half, Constant)
    assert half.value == Fraction(1, 2)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: indices + full, "a selector"),
        (lambda: aggregate(indices, tokens), "a selector is needed"),
        (lambda: full & indices, "a selector is needed"),
        (lambda: exp(full), "exp works on s-ops"),
        (lambda: apply("where", indices), "wrong number of arguments"),
        (lambda: indices + np.ones(3), "expected: an s-op or a value"),
        (lambda: where(indices, {}, 1), "found:    dict"),
    ],
)
def test_a_wrong_kind_is_named(build, words):
    with pytest.raises(RaspTypeError) as caught:
        build()
    assert words in str(caught.value)


def test_an_unknown_comparison_lists_the_known_ones():
    with pytest.raises(RaspValueError) as caught:
        select(indices, indices, "=")
    assert "== != < <= > >=" in str(caught.value)
    with pytest.raises(RaspValueError, match="no primitive 'sine'"):
        apply("sine", indices)


def test_an_aggregate_carries_its_rule_and_default():
    node = aggregate(full, tokens, None)
    assert isinstance(node, Aggregate)
    assert (node.rule, node.default) == ("exact", None)
    assert aggregate(full, tokens).default == 0


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_every_record_is_complete(name: str):
    record = PRIMITIVES[name]
    assert record.name == name
    assert record.arity in (1, 2, 3)
    assert record.key == name
    assert record.kind(*"i" * record.arity) in "bifs?"
    assert record.family


def test_opaque_functions_are_told_apart_and_lookups_are_not():
    assert Apply(elementwise(str.upper, tokens).primitive, tokens).primitive.opaque
    first, second = lookup({"a": 1})(tokens), lookup({"a": 1})(tokens)
    other = lookup({"a": True})(tokens)
    assert first.primitive.key == second.primitive.key
    assert first.primitive.key != other.primitive.key


def test_a_copy_is_the_program_itself():
    program = aggregate(select(tokens, tokens, "=="), tokens + 1)
    for node in (program, program.args[0], tokens):
        assert copy.copy(node) is node
        assert copy.deepcopy(node) is node
    assert copy.deepcopy([program, {1: tokens}])[0] is program


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("program", [tokens + 1, tokens, select(tokens, tokens, "==")])
def test_a_program_is_not_pickled_and_says_so(program, protocol):
    with pytest.raises(UnsupportedError, match=r"cannot be pickled(.|\n)*to_rasp"):
        pickle.dumps(program, protocol)
