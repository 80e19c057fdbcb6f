"""The forward pass against its definition, its engines against one another, and its masks."""

from __future__ import annotations

import numpy as np
import pytest

from raspire.errors import RaspValueError
from raspire.transformer import Builder, beside, forward, read, rotated, saturated, write
from tests.transformer.random_models import by_hand, random_inputs, random_transformer


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("values", [False, True])
def test_forward_is_the_definition(seed: int, values: bool) -> None:
    model = random_transformer(seed, values=values)
    inputs = random_inputs(model, seed)
    logits = forward(model, inputs)
    for row, found in zip(inputs, logits, strict=True):
        real = row[~np.isnan(row)] if values else row[row != 1]
        expected = by_hand(model, real, list(model.embedding.types or ())[: len(real)])
        np.testing.assert_allclose(found[: len(real)], expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_gives_what_each_sequence_gives_alone(seed: int) -> None:
    model = random_transformer(seed)
    inputs = random_inputs(model, seed, count=6)
    together = forward(model, inputs)
    for row, found in zip(inputs, together, strict=True):
        real = row[row != 1]
        alone = forward(model, real[None])[0]
        np.testing.assert_allclose(found[: len(real)], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_and_gathered_agree(dtype: type) -> None:
    for seed in range(6):
        model = random_transformer(seed)
        inputs = random_inputs(model, seed)
        dense = forward(model, inputs, engine="dense", dtype=dtype)
        gathered = forward(model, inputs, engine="gather", dtype=dtype)
        tolerance = 1e-12 if dtype == np.float64 else 1e-4
        real = inputs != 1
        np.testing.assert_allclose(gathered[real], dense[real], rtol=tolerance, atol=tolerance)


def lookup(length: int, duplicates: int = 1, offset: float = 0.0):
    """Every position copies the value at half its place (rounded down, plus an offset)."""
    b = Builder("lookup")
    one, value, found = b.space("one"), b.space("value"), b.space("found")
    goal, here, square = b.space("goal"), b.space("here"), b.space("square")
    places = [i // duplicates for i in range(length)]
    b.positions(
        [
            {one: 1, goal: i // 2 // duplicates + offset, here: p, square: p * p}
            for i, p in enumerate(places)
        ]
    )
    b.values(write(value))
    b.layer().head(
        "half",
        query=beside(2 * read(goal), -read(one)),
        key=beside(read(here), read(square)),
        value=read(value),
        output=write(found),
        gap=1.0,
        bound=2.0 * length**2,
        address=True,
    )
    b.numeric(read(found))
    return b.build()


@pytest.mark.parametrize("length", [1, 2, 7, 300])
def test_a_lookup_copies_bit_for_bit(length: int) -> None:
    model = lookup(length)
    values = np.random.default_rng(0).normal(size=(2, length))
    for engine in ("dense", "gather"):
        got = forward(model, values, engine=engine)[:, :, 0]
        np.testing.assert_array_equal(got, values[:, np.arange(length) // 2])


def test_equal_and_equally_near_keys_are_averaged() -> None:
    for duplicates, offset in ((3, 0.0), (1, 0.5), (2, 0.5)):
        model = lookup(24, duplicates, offset)
        values = np.random.default_rng(1).normal(size=(1, 24))
        dense, gathered = (forward(model, values, engine=e) for e in ("dense", "gather"))
        np.testing.assert_allclose(dense, gathered, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_saturated_softmax_is_average_hard_bit_for_bit(precision: str) -> None:
    for length, duplicates in ((5, 1), (40, 4), (200, 7)):
        hard = lookup(length, duplicates)
        soft = saturated(hard, precision)
        values = np.random.default_rng(2).normal(size=(3, length))
        left = forward(hard, values, dtype=precision, engine="dense")
        right = forward(soft, values, dtype=precision, engine="dense")
        np.testing.assert_array_equal(left, right)


def test_saturation_refuses_what_it_cannot_certify() -> None:
    with pytest.raises(
        RaspValueError, match=r"layer 1 head 2 \(real average-hard\) has no certified gap"
    ):
        saturated(random_transformer(0))
    with pytest.raises(RaspValueError, match="not exact in float32"):
        saturated(lookup(4000), "float32")
    with pytest.raises(RaspValueError, match="head 'half': its scores are not exact in float32"):
        forward(lookup(4000), np.zeros((1, 4)), dtype=np.float32, engine="dense")


def test_a_rotated_basis_gives_the_same_outputs() -> None:
    model = random_transformer(3, hard=False)
    soft = saturated(model)
    turned, rotation = rotated(soft, 7)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(model.width), atol=1e-12)
    inputs = random_inputs(model, 3)
    np.testing.assert_allclose(forward(turned, inputs), forward(soft, inputs), rtol=1e-7, atol=1e-9)
    with pytest.raises(RaspValueError, match="average-hard"):
        rotated(model)


def test_ablation_leaves_out_one_head_and_records_name_every_stage() -> None:
    model = random_transformer(1)
    inputs = random_inputs(model, 1)
    record: dict[str, np.ndarray] = {}
    logits = forward(model, inputs, record=record)
    assert record["blocks.1.attn.hook_pattern.3"].shape == (4, 9, 9)
    np.testing.assert_allclose(record["blocks.0.attn.hook_pattern.1"].sum(-1), 1)
    assert record["blocks.1.hook_resid_post"].shape == (4, 9, model.width)
    assert np.abs(forward(model, inputs, ablate={(0, 0)}) - logits).max() > 1e-6


def test_a_row_that_may_see_nothing_is_zero_and_unseen_values_may_be_infinite() -> None:
    b = Builder()
    one, value, found = b.space("one"), b.space("value"), b.space("found")
    b.positions([{one: 1}] * 3, ["left", "left", "right"])
    b.values(write(value))
    for keys in (["nobody"], ["left"]):
        b.layer().head(
            "all", query=read(one), key=read(one), value=read(value), output=write(found), keys=keys
        )
    b.numeric(read(found))
    out = forward(b.build(), np.array([[1.0, 3.0, np.inf]]))
    np.testing.assert_array_equal(out[0, :, 0], [2.0, 2.0, 2.0])


def test_lengths_zero_and_too_long() -> None:
    model = random_transformer(0)
    assert forward(model, np.zeros((2, 0), dtype=np.int64)).shape == (2, 0, 3)
    assert forward(model, np.zeros((0, 4), dtype=np.int64)).shape == (0, 4, 3)
    with pytest.raises(RaspValueError, match="longer than the model"):
        forward(model, np.zeros((1, 10), dtype=np.int64))
    with pytest.raises(RaspValueError, match="token id"):
        forward(model, np.full((1, 3), 99))
    with pytest.raises(RaspValueError, match="not in the model's alphabet"):
        model.run("az")


def test_large_batches_are_split_without_a_difference() -> None:
    model = lookup(300)
    values = np.random.default_rng(0).normal(size=(400, 300))
    np.testing.assert_array_equal(forward(model, values)[:, :, 0], values[:, np.arange(300) // 2])
