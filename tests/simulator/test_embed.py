"""A whole encoder looped through U: `raspire embed`, its modules, and the framework's output."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from raspire import RaspError
from raspire.cli.main import main
from raspire.library.norms import norm_rows, pool_rows
from raspire.simulator.encoder import Encoder
from raspire.simulator.sentence import Pool, SentenceEncoder, embed_sentence

SENTENCE = "The quick brown fox jumps over the lazy dog, and then sleeps."


@pytest.fixture
def small_encoder(tmp_path):
    """A folder with a BERT encoder of two small layers and a tokenizer of single words."""
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra models")
    rng, d, hidden = np.random.default_rng(5), 6, 7
    tensors = {}

    def linear(stem, rows, columns):
        tensors[stem + ".weight"] = rng.normal(size=(rows, columns))
        tensors[stem + ".bias"] = rng.normal(size=rows)

    def norm(stem):
        tensors[stem + ".weight"], tensors[stem + ".bias"] = rng.normal(size=(2, d))

    for name, rows in (("word", 5), ("position", 8), ("token_type", 2)):
        tensors[f"embeddings.{name}_embeddings.weight"] = rng.normal(size=(rows, d))
    norm("embeddings.LayerNorm")
    for layer in range(2):
        at = f"encoder.layer.{layer}."
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            linear(at + "attention." + part, d, d)
        linear(at + "intermediate.dense", hidden, d)
        linear(at + "output.dense", d, hidden)
        norm(at + "attention.output.LayerNorm")
        norm(at + "output.LayerNorm")
    save_file(tensors, tmp_path / "model.safetensors")
    facts = {"model_type": "bert", "num_attention_heads": 2, "num_hidden_layers": 2}
    (tmp_path / "config.json").write_text(json.dumps(facts))
    words = {"[UNK]": 0, "attention": 1, "simulates": 2, "itself": 3}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_a_small_encoder_is_looped_through_u(small_encoder):
    run = embed_sentence(small_encoder, "attention simulates itself again")
    assert run.tokens == ("attention", "simulates", "itself", "[UNK]")
    encoder = Encoder.open(small_encoder)
    x = encoder.block(encoder.block(encoder.embed([1, 2, 3, 0]), 0), 1)
    assert np.abs(run.rows - x).max() < 1e-12
    assert np.abs(run.embedding - x.mean(axis=0)).max() < 1e-12
    assert len(run.differences) == 2
    assert max(run.differences) < 1e-12
    json.dumps(run.report())


def test_the_same_encoder_runs_as_explicit_weights(small_encoder):
    encoder = SentenceEncoder(small_encoder, "native")
    runs = [encoder(text) for text in ("attention", "attention simulates itself")]
    assert max(run.max_abs_error for run in runs) < 1e-12
    assert {run.u.attention_depth for run in runs} == {2}
    assert len({run.u.nonzero_weights for run in runs}) == 1  # one network for every n
    json.dumps(runs[0].report())
    with pytest.raises(RaspError, match=r"U as weights, n=1, .* does not fit the memory budget"):
        encoder("attention", budget=1000)
    with pytest.raises(RaspError, match="no such construction for blocks"):
        SentenceEncoder(small_encoder, "wide")("attention")


def test_the_command_prints_and_writes(small_encoder, monkeypatch, capsys, tmp_path):
    out, report = tmp_path / "e.npy", tmp_path / "e.json"
    arguments = ["embed", small_encoder, "attention", "--out", out, "--report", report]
    monkeypatch.setattr("sys.argv", ["raspire", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr().out
    assert stop.value.code == 0
    assert "Pooling: the mean over tokens" in printed
    assert "Largest difference from the direct computation" in printed
    facts = json.loads(report.read_text())
    assert facts["max_abs_error"] < 1e-12
    assert np.load(out).tolist() == facts["embedding"]


def test_several_sentences_are_compared(small_encoder, monkeypatch, capsys, tmp_path):
    texts, out = ("attention", "simulates", "attention"), tmp_path / "e.npy"
    monkeypatch.setattr(
        "sys.argv", ["raspire", "embed", str(small_encoder), *texts, "--quiet", "--out", str(out)]
    )
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "Cosines between the embeddings:"
    rows = np.load(out)
    lengths = np.linalg.norm(rows, axis=1)
    cosine = rows[0] @ rows[1] / lengths[0] / lengths[1]
    assert printed[1].split() == ["1.0000", f"{cosine:.4f}", "1.0000", "attention"]
    assert np.array_equal(rows[0], rows[2])


def test_a_text_that_the_pipeline_would_cut_off_is_refused(small_encoder):
    (small_encoder / "sentence_bert_config.json").write_text('{"max_seq_length": 2}')
    with pytest.raises(RaspError, match="too long for the sentence encoder"):
        embed_sentence(small_encoder, "attention simulates itself")


def test_modules_of_a_sentence_encoder(tmp_path):
    assert Pool.of(tmp_path) == Pool("mean", unit=False)

    def modules(*kinds):
        table = [{"type": "models." + kind, "path": kind} for kind in kinds]
        (tmp_path / "modules.json").write_text(json.dumps(table))

    (tmp_path / "Pooling").mkdir()
    facts = {"word_embedding_dimension": 4, "pooling_mode_cls_token": True}
    (tmp_path / "Pooling" / "config.json").write_text(json.dumps(facts))
    modules("Transformer", "Pooling", "Normalize")
    assert Pool.of(tmp_path) == Pool("cls", unit=True)
    modules("Transformer", "Pooling", "Dense")
    with pytest.raises(RaspError, match="has a module 'Dense'"):
        Pool.of(tmp_path)
    (tmp_path / "Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}')
    modules("Pooling")
    with pytest.raises(RaspError, match="pools in another way"):
        Pool.of(tmp_path)


def test_norms_and_pooling_as_programs():
    rng = np.random.default_rng(0)
    rows, weight, bias = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=4)
    table = np.stack([weight, bias, np.full(4, 1e-6)])
    centred = rows - rows.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-6) * weight + bias
    assert np.abs(norm_rows(3, 4)(rows, table) - expected).max() < 1e-13
    expected = rows / np.sqrt((rows**2).mean(axis=1, keepdims=True) + 1e-6) * weight + bias
    assert np.abs(norm_rows(3, 4, "rms")(rows, table) - expected).max() < 1e-13
    for pooling in ("mean", "cls"):
        for unit in (False, True):
            pool = Pool(pooling, unit)
            assert np.abs(pool(rows) - pool.direct(rows)).max() < 1e-14
    assert norm_rows(3, 4).cost.attention_depth == 2
    assert pool_rows(3, 4, "mean", unit=True).cost.attention_depth == 2


def framework_embedding(tensors, ids):
    """The sentence embedding by torch's own functions in float32."""
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    f = torch.nn.functional
    w = {name: torch.tensor(value) for name, value in tensors.items()}

    def linear(x, name):
        return f.linear(x, w[name + ".weight"], w[name + ".bias"])

    def norm(x, name):
        return f.layer_norm(x, (384,), w[name + ".weight"], w[name + ".bias"], 1e-12)

    def heads(x):
        return x.view(len(ids), 12, 32).transpose(0, 1)

    words, places, types = (
        w[f"embeddings.{t}_embeddings.weight"] for t in ("word", "position", "token_type")
    )
    x = words[torch.tensor(ids)] + places[: len(ids)] + types[0]
    x = norm(x, "embeddings.LayerNorm")
    for layer in range(6):
        at = f"encoder.layer.{layer}."
        q, k, v = (heads(linear(x, at + f"attention.self.{n}")) for n in ("query", "key", "value"))
        mixed = f.scaled_dot_product_attention(q, k, v).transpose(0, 1).reshape(len(ids), 384)
        attended = linear(mixed, at + "attention.output.dense")
        x = norm(x + attended, at + "attention.output.LayerNorm")
        hidden = f.gelu(linear(x, at + "intermediate.dense"))
        x = norm(x + linear(hidden, at + "output.dense"), at + "output.LayerNorm")
    assert x.dtype == torch.float32
    return f.normalize(x.mean(dim=0), dim=0).numpy()


@pytest.mark.slow
def test_the_pretrained_encoder_through_u(minilm):
    pytest.importorskip("tokenizers", reason="needs the extra models")
    run = embed_sentence(minilm.parent, SENTENCE)
    assert len(run.tokens) == 16
    assert run.max_abs_error < 1e-10
    assert max(run.differences) < 1e-10
    assert run.seconds < 60
    assert run.pool == Pool("mean", unit=True)
    ids = Encoder.open(minilm).tokens(SENTENCE)[0]
    framework = framework_embedding(load_file(minilm), ids)
    # measured: 9e-8, less than one rounding of binary32 at 1
    assert np.abs(run.embedding - framework).max() < 5e-7


@pytest.mark.slow
def test_the_pretrained_encoder_through_explicit_weights(minilm):
    """One transformer of 8.9 million weights, of attention depth 2, runs all six layers."""
    pytest.importorskip("tokenizers", reason="needs the extra models")
    run = SentenceEncoder(minilm.parent, "native")(SENTENCE)
    assert max(run.differences) < 1e-10
    assert run.max_abs_error < 1e-10
    assert run.u.attention_depth == 2
