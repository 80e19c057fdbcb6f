"""`long` and `wide` against the textbook, against each other, exactly, and by their cost."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raspire import RaspError
from raspire.program.nodes import Constant
from raspire.program.walk import topological
from raspire.simulator import AttentionTarget, Shape, UniversalSimulator, attention
from raspire.simulator.universal import encode
from tests.simulator.attention_textbook import affine, exact, plain_attention, random_weights

BOTH = ("long", "wide")


def target_of(weights, heads, **options):
    w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o = weights
    return AttentionTarget.from_arrays(
        w_q, w_k, w_v, w_o, heads=heads, b_q=b_q, b_k=b_k, b_v=b_v, b_o=b_o, **options
    )


shapes = st.tuples(
    st.integers(1, 6), st.integers(1, 5), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)
)


@pytest.mark.slow
@given(
    shapes,
    st.booleans(),
    st.sampled_from(("none", "causal", "padding")),
    st.sampled_from(("plain", "stable")),
    st.sampled_from((None, 0.3)),
    st.integers(0, 2**32 - 1),
)
@example((1, 1, 1, 1, 1), True, "causal", "stable", None, 0)
@example((3, 5, 2, 1, 3), True, "padding", "stable", 0.3, 1)
@settings(max_examples=60)
def test_long_and_wide_equal_the_textbook(shape, output, mask, softmax, scale, seed):
    n, d, heads, d_k, d_v = shape
    rng = np.random.default_rng(seed)
    weights = random_weights(rng, d, heads, d_k, d_v, output=output)
    x = rng.standard_normal((n, d))
    seen = None
    if mask == "padding":
        seen = rng.integers(0, 2, n)
        seen[rng.integers(n)] = 1
    target = target_of(weights, heads, scale=scale, mask=mask)
    expected = plain_attention(weights, x, heads, mask=mask, seen=seen, scale=scale)
    results = [attention(target, x, seen)]
    for construction in BOTH:
        u = UniversalSimulator.for_target(target, n, construction, softmax)
        results.append(u(target, x, seen))
    for result in results:
        assert result.shape == expected.shape
        assert np.abs(result - expected).max() <= 1e-12 * max(1, np.abs(expected).max())


@pytest.mark.parametrize("construction", BOTH)
def test_projections_and_unscaled_scores_are_exact_over_the_rationals(construction):
    n, d, heads, d_k, d_v = 2, 3, 2, 2, 1
    rng = np.random.default_rng(3)
    weights = random_weights(rng, d, heads, d_k, d_v, output=False)
    x = rng.standard_normal((n, d))
    target = target_of(weights, heads)
    u = UniversalSimulator.for_target(target, n, construction)
    sequence = exact(u.encode(target, x))
    q, k, v = (affine(exact(x), exact(weights[i]), exact(weights[i + 1])) for i in (0, 2, 4))
    projections = [a for row in zip(q, k, v, strict=True) for part in row for a in part]
    assert exact(list(u.run(sequence, "projections", arithmetic="exact"))) == projections
    scores = [
        sum((q[i][t * d_k + a] * k[j][t * d_k + a] for a in range(d_k)), start=Fraction(0))
        for t in range(heads)
        for i in range(n)
        for j in range(n)
    ]
    assert exact(list(u.run(sequence, "unscaled", arithmetic="exact"))) == scores


@pytest.mark.parametrize("construction", BOTH)
def test_one_program_serves_two_targets_and_holds_no_weight(construction):
    n, d, heads, d_k, d_v = 3, 2, 2, 1, 2
    rng = np.random.default_rng(5)
    u = UniversalSimulator(n, d, heads, d_k, d_v, construction)
    before = repr(u.program)
    numbers = {node.value for node in topological(u.program) if isinstance(node, Constant)}
    for _ in range(2):
        weights = random_weights(rng, d, heads, d_k, d_v)
        x = rng.standard_normal((n, d))
        result = u(target_of(weights, heads), x)
        assert np.abs(result - plain_attention(weights, x, heads)).max() < 1e-12
        entries = {float(v) for w in weights for v in np.ravel(w)}
        assert not entries & {float(c) for c in numbers}
    assert repr(u.program) == before
    assert all(isinstance(number, int) for number in numbers)


# constructions, section 5: attention depth, layers, heads per layer
COSTS = [
    ("long", "plain", False, 6, 6, (2, 1, 2, 1, 2, 1)),
    ("long", "plain", True, 8, 8, (2, 1, 2, 1, 2, 1, 2, 1)),
    ("long", "stable", False, 7, 7, (2, 1, 2, 1, 1, 2, 1)),
    ("wide", "plain", False, 3, 4, (2 * 6, 2 * 2, 2 * 4, 0)),
    ("wide", "plain", True, 4, 5, (2 * 6, 2 * 2, 2 * 4, 0, 2 * 3 * 3 + 1)),
]


@pytest.mark.parametrize(("construction", "softmax", "output", "depth", "layers", "heads"), COSTS)
def test_the_cost_is_that_of_the_construction(construction, softmax, output, depth, layers, heads):
    u = UniversalSimulator(4, 5, 3, 2, 3, construction, softmax, output=output)
    assert u.cost.attention_depth == depth
    assert u.cost.layers == layers
    assert u.cost.heads_per_layer == heads
    assert u.cost.feed_forward == ("gated:exp", "gated:identity", "gated:recip")


@pytest.mark.parametrize("output", [False, True])
@given(shapes)
@settings(max_examples=20)
def test_the_sequence_has_the_length_of_the_construction(output, shape):
    n, d, h, d_k, d_v = shape
    e, m, merged = d + 1, h * (2 * d_k + d_v), h * d_v
    inputs = n * e + e * m + (merged + 1) * d * output
    products = n * e * m + h * n * n * (d_k + d_v) + n * (merged + 1) * d * output
    long, wide = (UniversalSimulator(n, d, h, d_k, d_v, c, output=output) for c in BOTH)
    assert long.sequence_length == inputs + products
    assert wide.sequence_length == max(inputs, n * m, h * n * n, n * merged, n * d * output)


@pytest.mark.parametrize("construction", BOTH)
def test_scores_beyond_700_are_refused_by_plain_and_computed_by_stable(construction):
    rng = np.random.default_rng(8)
    weights = random_weights(rng, 3, 1, 2, 2, size=30.0)
    x = rng.standard_normal((3, 3))
    target = target_of(weights, 1)
    plain = UniversalSimulator.for_target(target, 3, construction)
    with pytest.raises(RaspError, match=r"plain softmax cannot take.*(?s:.*)\|score\| up to"):
        plain(target, x)
    stable = UniversalSimulator.for_target(target, 3, construction, "stable")
    assert stable.cost.attention_depth == plain.cost.attention_depth + 1
    expected = plain_attention(weights, x, 1)
    assert np.abs(stable(target, x) - expected).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize("construction", BOTH)
@pytest.mark.parametrize("mask", ["causal", "padding"])
def test_a_hidden_key_of_enormous_score_does_not_matter(construction, mask):
    n, d = 3, 1
    one = np.array([[1.0]])
    target = AttentionTarget.from_arrays(80 * one, one, one, heads=1, mask=mask)
    x = np.array([[1.0], [-2.0], [100.0]])
    seen = [1, 1, 0] if mask == "padding" else None
    u = UniversalSimulator(n, d, 1, 1, 1, construction, "stable", mask, output=False)
    weights = (80 * one, [0.0], one, [0.0], one, [0.0], None, None)
    expected = plain_attention(weights, x, 1, mask=mask, seen=seen)
    assert np.isfinite(u(target, x, seen)).all()
    assert np.abs(u(target, x, seen) - expected).max() < 1e-9


def test_encode_multiplies_the_query_by_the_ratio_of_scales():
    weights = random_weights(np.random.default_rng(1), 2, 1, 4, 1, output=False)
    x = np.ones((1, 2))
    usual, doubled = target_of(weights, 1), target_of(weights, 1, scale=1.0)
    assert (usual.ratio, doubled.ratio) == (1.0, 2.0)
    difference = encode(doubled, x) - encode(usual, x)
    assert np.count_nonzero(difference) == 3 * 4  # W_Q and b_Q, no more
    assert target_of(weights, 1, scale=0.5).ratio == 1.0


def test_a_simulator_refuses_what_does_not_fit():
    weights = random_weights(np.random.default_rng(1), 2, 1, 1, 1)
    target = target_of(weights, 1)
    u = UniversalSimulator(2, 2, 1, 1, 1)
    assert u.accepts(Shape(2, 1, 1, 1, True))
    with pytest.raises(RaspError, match="n of 3, and U has room for 2"):
        u(target, np.ones((3, 2)))
    with pytest.raises(RaspError, match="without a mask takes n of 2 only"):
        u(target, np.ones((1, 2)))
    with pytest.raises(RaspError, match="d of 2, and U has room for 1"):
        UniversalSimulator(2, 1, 2, 1, 1)(target, np.ones((2, 2)))
    with pytest.raises(RaspError, match="an output map"):
        UniversalSimulator(2, 2, 1, 1, 1, output=False)(target, np.ones((2, 2)))
    with pytest.raises(RaspError, match="mask none, and U has mask causal"):
        UniversalSimulator(2, 2, 1, 1, 1, mask="causal")(target, np.ones((2, 2)))
    with pytest.raises(RaspError, match="does not fit the memory budget"):
        u(target, np.ones((2, 2)), budget=100)
    with pytest.raises(RaspError, match="key padding was given"):
        u(target, np.ones((2, 2)), [1, 1])


@pytest.mark.parametrize("construction", BOTH)
@pytest.mark.parametrize("mask", ["causal", "padding"])
@pytest.mark.parametrize("output", [False, True])
def test_every_smaller_target_runs_in_a_larger_simulator(construction, mask, output):
    """Corollary 6.2: over all smaller shapes, fewer rows included."""
    rng = np.random.default_rng(4)
    rows = 2
    u = UniversalSimulator(rows, 3, 2, 2, 2, construction, "stable", mask, output)
    smaller = itertools.product(range(1, rows + 1), (1, 3), (1, 2), (1, 2), (1, 2))
    for n, d, heads, d_k, d_v in smaller:
        weights = random_weights(rng, d, heads, d_k, d_v, output=output)
        own = mask if mask == "causal" or rng.integers(2) else "none"
        target = target_of(weights, heads, mask=own)
        assert u.accepts(target.shape, n)
        x = rng.standard_normal((n, d))
        seen = [0, 1][-n:] if own == "padding" else None
        expected = plain_attention(weights, x, heads, mask=own, seen=seen)
        found = u(target, x, seen)
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() < 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0, "d": 2}, "n must be 1 or more"),
        ({"n": 1, "d": 4, "heads": 3}, "3 heads do not divide d = 4"),
        ({"n": 1, "d": 2, "construction": "tall"}, "no such construction"),
        ({"n": 1, "d": 2, "softmax": "soft"}, "no such softmax"),
        ({"n": 1, "d": 2, "mask": "some"}, "no such mask"),
    ],
)
def test_a_shape_that_is_none_is_refused_by_name(arguments, message):
    with pytest.raises(RaspError, match=message):
        UniversalSimulator(**arguments)


@pytest.mark.parametrize("construction", BOTH)
def test_the_explanation_tells_the_layout_and_the_positions_computed(construction):
    u = UniversalSimulator(2, 3, 1, 2, 2, construction)
    text = u.explain()
    assert f"N = {u.sequence_length}" in text
    assert "4 x 6  [W_Q | W_K | W_V]" in text
    assert "the result is read at 6 positions, 2 x 3" in text
    assert f"projections: 12 of {u.sequence_length} positions" in text


def test_sizes_may_be_numpy_integers_and_windows_are_checked():
    assert UniversalSimulator(np.int64(3), np.int64(2)).sequence_length == (
        UniversalSimulator(3, 2).sequence_length
    )
    with pytest.raises(RaspError, match="window must be 1 or more"):
        UniversalSimulator(3, 2, window=0)
    with pytest.raises(RaspError, match="an integer, 1 or more"):
        AttentionTarget.from_arrays(*np.ones((3, 2, 2)), heads=1, window=1.5)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid:RuntimeWarning")
def test_values_beyond_float64_are_an_error_and_no_nan():
    rng = np.random.default_rng(0)
    target = AttentionTarget.from_arrays(*rng.standard_normal((4, 3, 3)), heads=1)
    x = rng.standard_normal((4, 3))
    u = UniversalSimulator.for_target(target, 4, softmax="stable")
    assert np.isfinite(u(target, x * 1e100)).all()
    with pytest.raises(RaspError, match="float64"):
        u(target, x * 1e160)


@pytest.mark.parametrize(
    ("construction", "options", "says"),
    [("long", {}, True), ("wide", {}, False), ("long", {"window": 3}, False)],
)
def test_the_hint_names_wide_only_where_it_is_a_way_out(construction, options, says):
    from raspire.errors import BudgetError
    from raspire.simulator.estimate import refuse_beyond

    u = UniversalSimulator(4, 8, 2, 4, 4, construction=construction, **options)
    with pytest.raises(BudgetError) as caught:
        refuse_beyond(100, u.construction)
    assert ("wide" in caught.value.hint) is says
