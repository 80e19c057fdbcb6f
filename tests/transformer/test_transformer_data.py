"""Spaces, forms, checks, costs and summaries: the data side of a transformer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from raspire import length
from raspire.compile import REALS, compile
from raspire.errors import RaspError, RaspValueError
from raspire.transformer import Builder, Space, Stream, beside, check, cost, read, summary, write
from tests.transformer.random_models import random_transformer


def test_a_stream_reuses_released_slots_and_refuses_a_double_release() -> None:
    stream = Stream()
    first, second = stream.space("first", 3), stream.space("second", 2)
    stream.release(first)
    assert stream.space("third", 4).slots == (0, 1, 2, 5)
    assert stream.width == 6
    stream.release(second)
    with pytest.raises(RaspValueError, match="already free"):
        stream.release(second)


def test_spaces_know_their_labels() -> None:
    space = Space("letter", ("a", "b"), (4, 2))
    assert space.part("ba").slots == (2, 4)
    with pytest.raises(RaspError, match="space 'letter' has no label 'c'"):
        space["c"]
    with pytest.raises(RaspError, match="one slot a label"):
        Space("x", ("a",), (1, 2))


def test_forms_are_matrices_and_add_as_matrices_do() -> None:
    rng = np.random.default_rng(0)
    x, y = Space("x", (0, 1), (5, 0)), Space("y", (0, 1, 2), (1, 2, 6))
    a, c, e = rng.normal(size=(2, 3)), rng.normal(size=(3, 3)), rng.normal(size=(3, 2))
    total = (2 * read(x, a) - read(y, c)).reader(7).toarray()
    expected = np.zeros((7, 3))
    expected[[5, 0]] += 2 * a
    expected[[1, 2, 6]] -= c
    np.testing.assert_allclose(total, expected)
    np.testing.assert_allclose(write(x, e).writer(7).toarray()[:, [5, 0]], e)
    assert beside(read(x), read(y)).reader(7).shape == (7, 5)
    with pytest.raises(RaspError, match="do not add"):
        read(x) + read(y)
    with pytest.raises(RaspError, match="does not fit space 'x'"):
        read(x, np.ones((3, 1)))


def test_check_names_the_layer_and_the_head() -> None:
    model = random_transformer(0)
    layer = model.layers[1]
    bad = replace(layer.heads[2], value=sparse.csr_array((model.width, 5)))
    broken = replace(model, layers=(model.layers[0], replace(layer, heads=(*layer.heads[:2], bad))))
    with pytest.raises(RaspError, match=r"layer 2 head 2 \(real average-hard\): W_O: shape"):
        check(broken)
    units = replace(layer.units[0], first_bias=np.array([np.nan, 0.0]))
    with pytest.raises(RaspError, match="layer 2 units"):
        check(replace(model, layers=(model.layers[0], replace(layer, units=(units,)))))


def test_a_builder_refuses_a_head_whose_sides_differ() -> None:
    b = Builder()
    x, y = b.space("x", 2), b.space("y", 3)
    b.values(write(x[0]))
    b.layer().head("odd", query=read(x), key=read(y), value=read(x), output=write(x))
    b.numeric(read(x))
    with pytest.raises(RaspError, match=r"layer 1 head 0 \(odd\): W_K: shape"):
        b.build()


def test_units_of_an_unknown_family_are_refused() -> None:
    b = Builder()
    x = b.space("x")
    with pytest.raises(RaspError, match="unknown feed-forward family 'gated:magic'"):
        b.layer().units("u", "gated:magic", read(x), write(x))


def test_cost_counts_the_weights() -> None:
    model = random_transformer(0)
    found = cost(model)
    assert (found.attention_depth, found.layers, found.heads) == (2, 2, (4, 4))
    assert found.width == model.width == 13
    assert sum(found.units.values()) == sum(u.count for la in model.layers for u in la.units)
    text = summary(model)
    assert "head 0 shift: average-hard, mask none" in text
    assert "mixed -> found" in text


def test_numeric_outputs_may_be_missing() -> None:
    b = Builder()
    x, missing = b.space("x"), b.space("missing")
    b.values(write(x) + write(missing))
    b.numeric(beside(read(x), read(missing)), ("value", None))
    assert b.build().run([0.25, 3.0]) == [0.25, None]


def test_nan_among_real_inputs_is_refused_and_not_read_as_padding() -> None:
    compiled = compile(length, alphabet=REALS, max_length=3)
    assert compiled.batch([[1.0, 2.0], [1.0]]) == [[2, 2], [1]]
    with pytest.raises(RaspValueError, match="NaN is no input"):
        compiled([1.0, float("nan"), 2.0])
