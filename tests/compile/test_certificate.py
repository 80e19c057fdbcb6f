"""Gaps, margins and noise: what is certified is what the network shows."""

import sys

import numpy as np
import pytest

from raspire.compile import compile
from raspire.compile.genuine import genuine
from raspire.compile.parts import HeadPart
from raspire.compile.sampling import sample
from raspire.transformer import families
from raspire.transformer.attention import scores
from tests.compile.programs import LIBRARY


def smallest_gap(model, inputs):
    """The least distance between a row's greatest score and any smaller one, head by head."""
    record = {}
    model.logits(inputs, record=record)
    gaps = []
    streams = {0: record["hook_embed"]}
    for i in range(1, len(model.layers)):
        streams[i] = record[f"blocks.{i - 1}.hook_resid_post"]
    for i, _, head in model.heads():
        stream = streams[i]
        found = scores(stream @ head.query.toarray(), stream @ head.key.toarray())
        if head.mask.causal:
            found = np.where(np.tril(np.ones(found.shape[1:], dtype=bool)), found, -np.inf)
        top = found.max(axis=-1, keepdims=True)
        below = (top - found)[(found < top) & np.isfinite(found)]
        gaps.append((head.gap, below.min() if below.size else np.inf))
    return gaps


@pytest.mark.parametrize("name", LIBRARY)
def test_no_head_shows_a_smaller_gap_than_it_is_certified_for(name):
    shows_its_gaps(*LIBRARY[name])


@pytest.mark.parametrize("seed", range(20))
def test_no_head_of_a_random_program_shows_a_smaller_gap(seed):
    shows_its_gaps(sample(seed, 14), "abc")


def shows_its_gaps(program, alphabet):
    compiled = compile(program, alphabet=alphabet, max_length=10)
    draw = np.random.default_rng(0)
    words = [[alphabet[i] for i in draw.integers(len(alphabet), size=10)] for _ in range(20)]
    for certified, seen in smallest_gap(compiled.transformer, compiled.transformer.inputs(words)):
        assert seen >= certified * (1 - 1e-9)


def test_softmax_is_average_hard_attention_bit_for_bit():
    program, alphabet = LIBRARY["sort"]
    compiled = compile(program, alphabet=alphabet, max_length=12)
    draw = np.random.default_rng(1)
    words = [[alphabet[i] for i in draw.integers(len(alphabet), size=12)] for _ in range(50)]
    inputs = compiled.transformer.inputs(words)
    soft = compiled.softmax()
    assert np.array_equal(compiled.transformer.logits(inputs), soft.logits(inputs))
    certificate = soft.notes["saturation"]
    assert all(c.scale == 1024 for c in certificate)
    assert "gap 1" in str(certificate[0])


def test_the_certificate_lists_every_head_and_every_group_of_steps():
    program, alphabet = LIBRARY["sort"]
    compiled = compile(program, alphabet=alphabet, max_length=30)
    heads = [p for p in compiled.plan.parts() if isinstance(p, HeadPart)]
    checks = compiled.certificate.checks
    assert sum(c.kind == "head" for c in checks) == len(heads)
    assert compiled.certificate.smallest_gap == 1
    # The nearest two shares among 1/1 .. 1/31 are 1/30 and 1/31 apart; hard steps halve that.
    assert 0 < compiled.certificate.smallest_margin <= (1 / 30 - 1 / 31) / 2
    assert "certified for float64" in str(compiled.certificate)


def test_ties_are_computed_without_noise():
    program, alphabet = LIBRARY["double histogram"]
    compiled = compile(program, alphabet=alphabet, max_length=30)
    for part in compiled.plan.parts():
        if isinstance(part, HeadPart) and part.ties:
            assert all(q.noise == k.noise == 0 for q, k in part.pairs)


@pytest.mark.parametrize("name", ["reverse", "Dyck-3", "sort letters", "double histogram"])
@pytest.mark.parametrize("attention", ["hard", "softmax"])
def test_a_compiled_network_is_a_genuine_transformer(name, attention):
    program, alphabet = LIBRARY[name]
    compiled = compile(program, alphabet=alphabet, max_length=9, attention=attention)
    findings = genuine(compiled.transformer)
    assert all(finding.holds for finding in findings), list(map(str, findings))
    assert attention in " ".join(map(str, findings))


def test_a_network_repaired_on_the_host_is_found_out(monkeypatch):
    program, alphabet = LIBRARY["histogram"]
    model = compile(program, alphabet=alphabet, max_length=9).transformer
    honest = families.PLAIN["relu"]
    repaired = lambda x: np.rint(honest(x))  # noqa: E731
    place = sys.modules["raspire.transformer.forward"]
    monkeypatch.setattr(place, "activate", lambda family, first, second: repaired(first))
    findings = genuine(model)
    assert not all(finding.holds for finding in findings)
    assert any(str(finding).startswith("NO ") for finding in findings)
