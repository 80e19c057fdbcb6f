"""TransformerLens runs the same network: logits, cache names, and refusals by name."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transformer.random_models import random_transformer

pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("transformer_lens", reason="needs the extra lens")

import torch

from raspire.errors import RaspError
from raspire.export import to_lens
from raspire.transformer import Builder, Transformer, beside, forward, read, saturated, write

pytestmark = pytest.mark.filterwarnings("ignore")


def shifted(causal: bool) -> Transformer:
    """Each position adds the letter before it to its own, minus two, by every kind of unit."""
    b = Builder("shifted")
    one, here, square = b.space("one"), b.space("here"), b.space("square")
    letter, found, total = b.space("letter", "xy"), b.space("found", "xy"), b.space("total", "xy")
    b.tokens(
        {
            "^": {one: 1},
            "_": {one: 1, letter: [9, 9]},
            "a": {one: 1, letter: [1, 0]},
            "b": {one: 1, letter: [0, 1]},
        },
        bos="^",
        pad="_",
    )
    b.positions([{here: i, square: i * i} for i in range(8)])
    layer = b.layer()
    layer.head(
        "before",
        query=beside(2 * (read(here) - read(one)), -read(one)),
        key=beside(read(here), read(square)),
        value=read(letter),
        output=write(found),
        causal=causal,
        gap=1.0,
    )
    layer.units("sum", "linear", read(letter) + read(found), write(total), bias=-2.0)
    layer.units("clip", "relu", read(found), write(total, 0.5 * np.eye(2)), bias=0.25)
    b.layer().head(
        "all", query=read(one), key=read(one), value=read(total), output=write(found),
        kind="softmax", causal=causal,
    )  # fmt: skip
    b.categorical(read(found) + read(total), "xy")
    return b.build()


@pytest.mark.parametrize("causal", [False, True])
def test_lens_agrees(causal: bool) -> None:
    model = saturated(shifted(causal))
    bridge = to_lens(model)
    ids = torch.from_numpy(model.inputs(["abba", "ba", "bbbbbbb"]))
    mask = (ids != model.embedding.pad).long()
    found = bridge(ids, attention_mask=mask).detach().numpy()
    expected = forward(model, ids.numpy())
    real = mask.numpy().astype(bool)
    np.testing.assert_allclose(found[real], expected[real], atol=1e-12)
    _, cache = bridge.run_with_cache(ids[:1, :5])
    pattern = cache["blocks.0.attn.hook_pattern"][0, 0].detach().numpy()
    np.testing.assert_array_equal(pattern.argmax(-1), [0, 0, 1, 2, 3])
    assert bridge.raspire["unembedding"]["labels"] == ["x", "y"]


def test_what_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(RaspError, match="average-hard; TransformerLens has softmax"):
        to_lens(shifted(False))
    with pytest.raises(RaspError, match="real values"):
        to_lens(random_transformer(0, values=True))
