"""The direct encoder against torch's own functions, and the pretrained model's tokens."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from raspire import RaspError
from raspire.simulator import Encoder

SENTENCE = "The quick brown fox jumps over the lazy dog, and then sleeps."


def torch_inputs(tensors, ids, heads, layers, eps):
    """The input of every attention layer of a BERT encoder, by torch's functions in float64."""
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    f = torch.nn.functional
    w = {k: torch.tensor(v).double() for k, v in tensors.items() if v.dtype.kind == "f"}

    def linear(x, name):
        return f.linear(x, w[name + ".weight"], w[name + ".bias"])

    def norm(x, name):
        return f.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], eps)

    def split(x):
        return x.view(len(ids), heads, -1).transpose(0, 1)

    tables = (w[f"embeddings.{t}_embeddings.weight"] for t in ("word", "position", "token_type"))
    rows = (torch.tensor(ids), torch.arange(len(ids)), torch.zeros(len(ids), dtype=torch.long))
    x = sum(f.embedding(r, t) for r, t in zip(rows, tables, strict=True))
    x, inputs = norm(x, "embeddings.LayerNorm"), []
    for layer in range(layers):
        inputs.append(x.numpy())
        at = f"encoder.layer.{layer}."
        q, k, v = (split(linear(x, at + "attention.self." + n)) for n in ("query", "key", "value"))
        mixed = f.scaled_dot_product_attention(q, k, v).transpose(0, 1).reshape(len(ids), -1)
        x = norm(
            x + linear(mixed, at + "attention.output.dense"), at + "attention.output.LayerNorm"
        )
        hidden = f.gelu(linear(x, at + "intermediate.dense"))
        x = norm(x + linear(hidden, at + "output.dense"), at + "output.LayerNorm")
    return inputs


def test_the_pretrained_encoder_equals_torch(minilm):
    pytest.importorskip("tokenizers", reason="needs the extra models")
    encoder = Encoder.open(minilm)
    ids, names = encoder.tokens(SENTENCE)
    assert len(ids) == 16  # unpadded
    assert names[0], names[-1] == ("[CLS]", "[SEP]")
    expected = torch_inputs(load_file(minilm), ids, heads=12, layers=4, eps=1e-12)
    for layer in (0, 3):
        found = encoder.input(SENTENCE, layer)
        assert np.abs(found - expected[layer]).max() < 1e-12


def test_what_the_encoder_cannot_do_is_refused(minilm, tmp_path):
    encoder = Encoder.open(minilm)
    with pytest.raises(RaspError, match="no layer 6"):
        encoder.input(SENTENCE, 6)
    with pytest.raises(RaspError, match="too long for the model"):
        encoder.tokens("word " * 600)
    path = tmp_path / "model.safetensors"
    save_file({"a": np.ones(1)}, path)
    with pytest.raises(RaspError, match=r"holds no config\.json"):
        Encoder.open(path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(RaspError, match="no direct encoder for the family 'gpt2'"):
        Encoder.open(path)


@pytest.mark.parametrize("family", ["distilbert", "roberta"])
def test_the_relatives_of_bert_have_names_and_positions_of_their_own(family, tmp_path):
    """RoBERTa's positions begin after the padding's; DistilBERT has no token types."""
    rng = np.random.default_rng(0)
    d, first = 4, 2 if family == "roberta" else 0
    prefix = family + "."
    tensors = {
        prefix + "embeddings.word_embeddings.weight": rng.standard_normal((9, d)),
        prefix + "embeddings.position_embeddings.weight": rng.standard_normal((7, d)),
        prefix + "embeddings.LayerNorm.weight": np.ones(d),
        prefix + "embeddings.LayerNorm.bias": np.zeros(d),
    }
    if family == "roberta":
        tensors[prefix + "embeddings.token_type_embeddings.weight"] = np.zeros((1, d))
    save_file(tensors, tmp_path / "model.safetensors")
    facts = {"model_type": family, "pad_token_id": 1, "num_hidden_layers": 1}
    (tmp_path / "config.json").write_text(json.dumps(facts))
    encoder = Encoder.open(tmp_path)
    assert encoder.longest == 7 - first
    words, places = list(tensors.values())[:2]
    raw = words[[3, 8]] + places[[first, first + 1]]
    centred = raw - raw.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
    assert np.abs(encoder.embed([3, 8]) - expected).max() < 1e-12
