"""Looped transformers in our form: each block against NumPy, its error against its estimate."""

from __future__ import annotations

import numpy as np
import pytest

from raspire.paper.looped import (
    FLOAT32,
    HEADINGS,
    PUBLISHED,
    compare,
    product_error,
    render,
    transposition_error,
)
from raspire.paper.looped_blocks import Linearised, ProductBlock, TransposeBlock, bits_for, code
from raspire.paper.looped_inverse import InverseBlock
from raspire.paper.looped_machine import Instruction, LoopedAttention, MatrixMachine
from raspire.paper.looped_memory import MemoryBlock
from raspire.transformer import cost


@pytest.mark.parametrize("d", [1, 2, 3, 4, 8])
def test_transposition(d: int) -> None:
    a = np.random.default_rng(d).normal(size=(d, d))
    block = TransposeBlock.build(d)
    np.testing.assert_allclose(block(a), a.T, rtol=0, atol=1e-14)
    assert block.network.length == d + d * d
    assert cost(block.network.model).heads == (1, 1, 1)


@pytest.mark.parametrize("temperature", [5.0, 10.0, 15.0, 20.0])
def test_the_error_of_a_transposition_falls_as_its_bound(temperature: float) -> None:
    measured, bound = transposition_error(temperature)
    assert measured <= bound


def test_a_product_has_an_error_that_no_scale_removes() -> None:
    measured = {}
    for exponent in range(14, 34, 2):
        measured[exponent], estimate = product_error(2.0**-exponent, 20.0)
        assert measured[exponent] <= 2 * estimate
    assert min(measured.values()) > 1e-8
    assert min(measured.values()) < 1e-6
    assert measured[14] > 10 * min(measured.values())
    assert measured[32] > 10 * min(measured.values())


@pytest.mark.parametrize(("d", "width"), [(2, 10), (4, 18), (8, 34)])
def test_product_of_any_sizes(d: int, width: int) -> None:
    rng = np.random.default_rng(d)
    a, b = rng.uniform(-1, 1, size=(d, 3)), rng.uniform(-1, 1, size=(d, 5))
    block = ProductBlock.build(d, 3, 5)
    np.testing.assert_allclose(block(a, b), a.T @ b, atol=1e-6)
    assert block.network.length == 9
    assert cost(ProductBlock.build(d, d, d).network.model).width == width
    single = ProductBlock.build(d, 3, 5, FLOAT32)(a, b, np.float32)
    assert 1e-5 < np.abs(single - a.T @ b).max() < 2e-2


@pytest.mark.parametrize("d", [2, 3, 5])
def test_inverse(d: int) -> None:
    a = 2 * np.eye(d) + np.random.default_rng(d).uniform(-1, 1, size=(d, d)) / d
    block = InverseBlock.build(d, 16)
    error = np.abs(block(a) - np.linalg.inv(a)).max()
    assert 1e-10 < error < 1e-6
    assert (block.network.body, block.network.applications) == (5, 80)


def test_a_coarse_scale_stops_newton_early() -> None:
    a = 2 * np.eye(3) + np.random.default_rng(0).uniform(-1, 1, size=(3, 3)) / 3
    coarse = InverseBlock.build(3, 16, Linearised(2.0**-12, 20.0))(a)
    assert np.abs(coarse - np.linalg.inv(a)).max() > 1e-5


@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_read_and_write(n: int) -> None:
    rng = np.random.default_rng(n)
    memory, scratch, at = rng.normal(size=(n, 3)), rng.normal(size=3), n // 2
    rows, vector = MemoryBlock.build("read", n, 3)(memory, at, scratch)
    np.testing.assert_array_equal(rows, memory)
    np.testing.assert_allclose(vector, memory[at], atol=1e-14)
    rows, vector = MemoryBlock.build("write", n, 3)(memory, at, scratch)
    expected = memory.copy()
    expected[at] = scratch
    np.testing.assert_allclose(rows, expected, atol=1e-14)
    np.testing.assert_array_equal(vector, scratch)


def test_the_machine_runs_programs_that_are_data() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, size=(2, 3, 3))
    machine = MatrixMachine(3, ["A", "B", "I", "C", "D"], steps=3)
    program = [
        Instruction("A", "B", "C"),
        Instruction("C", "I", "D", skip=True),
        Instruction("D", "C", "A"),
    ]
    out = machine.run({"A": a, "B": b, "I": np.eye(3)}, program)
    np.testing.assert_allclose(out["C"], a @ b, atol=1e-6)
    np.testing.assert_allclose(out["D"], (a @ b).T, atol=1e-6)
    np.testing.assert_allclose(out["A"], (a @ b).T @ (a @ b), atol=3e-6)
    np.testing.assert_allclose(out["B"], b, atol=1e-14)


def test_one_attention_layer_takes_seven_instructions() -> None:
    layer = LoopedAttention.build(3)
    assert layer.applications == 49
    assert PUBLISHED["instructions of one attention layer"] * (9 + 4) == 91
    rng = np.random.default_rng(0)
    x, *weights = (rng.uniform(-1, 1, size=(2 if i == 0 else 3, 3)) for i in range(5))
    q, k, v, o = weights
    scores = (x @ q) @ (x @ k).T / np.sqrt(3)
    pattern = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    error = np.abs(layer(x, *weights) - pattern @ (x @ v) @ o).max()
    assert 1e-9 < error < 1e-5


def test_the_table_has_both_side_by_side() -> None:
    rows = {(r.task.split(",")[0], r.network): r for r in compare(3, [0], loops=4)}
    native, looped = rows["attention", "native"], rows["attention", "looped"]
    assert (native.attention_depth, looped.attention_depth) == (2, 49)
    assert native.error64 < 1e-13 < looped.error64
    text = render(rows.values())
    assert text.splitlines()[0] == "| " + " | ".join(HEADINGS) + " |"
    assert len(text.splitlines()) == len(rows) + 2


def test_codes_are_two_apart() -> None:
    for count in (1, 2, 3, 9):
        codes = np.array([code(i, bits_for(count)) for i in range(count)])
        gaps = codes @ codes.T - (1 + bits_for(count))
        np.testing.assert_array_equal(np.diag(gaps), 0)
        off = gaps[~np.eye(count, dtype=bool)]
        assert off.size == 0 or off.max() <= -2
