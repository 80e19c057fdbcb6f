"""U runs the attention of a real pretrained encoder: one layer by default, all six when slow."""

import math
import resource
import time

import numpy as np
import pytest

from raspire.simulator import AttentionTarget, Encoder, UniversalSimulator

SENTENCE = "The quick brown fox jumps over the lazy dog, and then sleeps."


def direct(target: AttentionTarget, x):
    """The layer once more, by einsum."""
    q, k, v = (
        np.einsum("nd,hdk->hnk", x, w) + b[:, None]
        for w, b in ((target.w_q, target.b_q), (target.w_k, target.b_k), (target.w_v, target.b_v))
    )
    weights = np.exp(np.einsum("hik,hjk->hij", q, k) / math.sqrt(target.d_k))
    mixed = np.einsum("hij,hjc->ihc", weights / weights.sum(axis=2, keepdims=True), v)
    return mixed.reshape(len(x), -1) @ target.w_o + target.b_o


def check(minilm, layer, construction, text=SENTENCE):
    pytest.importorskip("tokenizers", reason="needs the extra models")
    encoder = Encoder.open(minilm)
    x = encoder.input(text, layer)
    target = encoder.target(layer)
    u = UniversalSimulator(len(x), 384, 12, 32, 32, construction)
    assert np.abs(u(target, x) - direct(target, x)).max() < 1e-11
    return u


def test_one_layer_by_long(minilm):
    u = check(minilm, 3, "long")
    assert (u.n, u.cost.attention_depth) == (16, 8)
    assert u.sequence_length == 10_255_888


@pytest.mark.slow
def test_one_layer_by_wide(minilm):
    assert check(minilm, 3, "wide").cost.attention_depth == 4


@pytest.mark.slow
@pytest.mark.parametrize("layer", range(6))
def test_every_layer(minilm, layer):
    check(minilm, layer, "long")


@pytest.mark.slow
def test_a_long_text_runs_within_the_budget(minilm):
    """n = 128: N is 8.9e7, the memory budget 2 GiB, and no more than 4 GiB are ever resident."""
    pytest.importorskip("tokenizers", reason="needs the extra models")
    encoder = Encoder.open(minilm)
    x = np.tile(encoder.input(SENTENCE, 2), (8, 1))
    x += 0.1 * np.random.default_rng(0).standard_normal(x.shape)
    target = encoder.target(2)
    u = UniversalSimulator(128, 384, 12, 32, 32)
    start = time.perf_counter()
    result = u(target, x, budget=2 << 30)
    assert np.abs(result - direct(target, x)).max() < 1e-11
    assert time.perf_counter() - start < 300
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20
