"""Random programs: compiled = reference, hard and softmax, on inputs of every length."""

import random

import numpy as np
import pytest

from raspire.compile import compile
from raspire.compile.lowering import restricted
from raspire.compile.sampling import sample
from raspire.compile.verification import agree
from raspire.errors import UnsupportedError
from raspire.evaluate.reference import reference

ALPHABET = "abc"


def disagreements(seed, size, length):
    program = sample(seed, size, ALPHABET)
    try:
        compiled = compile(program, alphabet=ALPHABET, max_length=length)
    except UnsupportedError:
        return None
    draw = random.Random(seed)
    lengths = [1, 2, length, length, *(draw.randint(1, length) for _ in range(8))]
    inputs = [draw.choices(ALPHABET, k=n) for n in lengths]
    wanted = [reference(program, tokens, "exact") for tokens in inputs]
    outputs = [compiled.batch(inputs), compiled.softmax().batch(inputs)]
    return [
        (tokens, expected, found)
        for found_all in outputs
        for tokens, expected, found in zip(inputs, wanted, found_all, strict=True)
        if not all(map(agree, expected, found))
    ]


@pytest.mark.parametrize("seed", range(40))
def test_small_random_programs(seed):
    assert disagreements(seed, 8, 6) == []


MODES = {
    "float32": {"precision": "float32"},
    "softmax float32": {"precision": "float32", "attention": "softmax"},
    "causal": {"causal": True},
    "stock": {"attention": "softmax", "stock": True},
    "causal stock": {"attention": "softmax", "stock": True, "causal": True},
}


def disagreements_in(mode, seed):
    options = MODES[mode]
    draw = random.Random(seed)
    program, length = sample(seed, draw.randint(6, 18), ALPHABET), draw.randint(3, 12)
    try:
        compiled = compile(program, alphabet=ALPHABET, max_length=length, **options)
    except UnsupportedError:
        return None
    model, single = compiled.transformer, "precision" in options
    meaning = restricted(program) if options.get("causal") else program
    inputs = [draw.choices(ALPHABET, k=n) for n in [1, 2, *range(3, length + 1)]]
    logits = model.logits(model.inputs(inputs), dtype=np.float32 if single else np.float64)
    tolerance = max(1e-6 if single else 1e-9, compiled.certificate.error)
    found = [
        model.unembedding.decode(rows[1 : 1 + len(tokens)])
        for rows, tokens in zip(logits, inputs, strict=True)
    ]
    wanted = [reference(meaning, tokens, "exact") for tokens in inputs]
    return [
        (tokens, a, b)
        for tokens, a, b in zip(inputs, wanted, found, strict=True)
        if not all(agree(x, y, tolerance) for x, y in zip(a, b, strict=True))
    ]


@pytest.mark.parametrize("mode", MODES)
def test_random_programs_in_every_mode(mode):
    assert not any(disagreements_in(mode, seed) for seed in range(8))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_more_random_programs_in_every_mode(mode):
    outcomes = [disagreements_in(mode, seed) for seed in range(100, 220)]
    assert not any(outcomes)
    assert sum(outcome is None for outcome in outcomes) <= 12


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, 14, 20])
def test_larger_random_programs(size):
    outcomes = [disagreements(seed, size, 9) for seed in range(1_000, 1_080)]
    assert sum(outcome is None for outcome in outcomes) <= 4
    assert [o for o in outcomes if o] == []


@pytest.mark.fuzz
def test_many_random_programs():
    for seed in range(10_000, 12_000):
        assert not disagreements(seed, 10 + seed % 12, 4 + seed % 20), seed


def test_a_sample_is_reproducible_and_varied():
    texts = {repr(sample(seed)) for seed in range(30)}
    assert len(texts) > 25
    assert repr(sample(7, 12)) == repr(sample(7, 12))
