"""`raspire simulate` and `raspire cost`: results, report, refusals with exit code 2."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from raspire.cli.main import main
from tests.simulator.attention_textbook import plain_attention, random_weights

D, HEADS = 4, 2


@pytest.fixture
def raspire(monkeypatch, capsys):
    """Run the command line: (exit code, standard output, standard error)."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["raspire", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run


@pytest.fixture
def layer(tmp_path):
    """A file with one layer, an input, and what the layer makes of it."""
    weights = random_weights(np.random.default_rng(2), D, HEADS, 2, 2)
    names = ("self.query", "self.key", "self.value", "output.dense")
    tensors = {}
    for name, w, b in zip(names, weights[::2], weights[1::2], strict=True):
        stem = f"encoder.layer.0.attention.{name}"
        tensors[stem + ".weight"], tensors[stem + ".bias"] = np.ascontiguousarray(w.T), b
    save_file(tensors, tmp_path / "w.safetensors")
    x = np.random.default_rng(3).standard_normal((3, D))
    np.save(tmp_path / "x.npy", x)
    return tmp_path / "w.safetensors", tmp_path / "x.npy", plain_attention(weights, x, HEADS)


@pytest.mark.parametrize("construction", ["long", "wide"])
def test_the_result_and_the_report_are_written(raspire, layer, tmp_path, construction):
    weights, x, expected = layer
    out, report = tmp_path / "y.npy", tmp_path / "r.json"
    code, text, errors = raspire(
        "simulate", weights, "--layer", 0, "--input", x, "--heads", HEADS,
        "--construction", construction, "--out", out, "--report", report,
    )  # fmt: skip
    assert (code, errors) == (0, "")
    assert "Largest difference from the direct computation" in text
    assert np.abs(np.load(out) - expected).max() < 1e-12
    facts = json.loads(report.read_text())
    assert facts["construction"] == construction
    assert facts["attention_depth"] == {"long": 8, "wide": 4}[construction]
    assert facts["layers"] == len(facts["heads_per_layer"]) == {"long": 8, "wide": 5}[construction]
    assert facts["feed_forward"] == ["gated:exp", "gated:identity", "gated:recip"]
    assert 0 <= facts["max_abs_error"] < 1e-12
    assert facts["seconds"] > 0
    assert facts["seconds_direct"] > 0
    assert facts["peak_bytes"] > 1 << 20
    assert len(facts["target"]["tensors"]) == 8
    assert facts["target"]["tensors"][0]["shape"] == [D, D]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "r.json",
        "w.safetensors",
        "x.npy",
        "y.npy",
    ]


def test_the_command_line_picks_stable_and_prints_its_depth(raspire, layer, tmp_path):
    weights, x, _ = layer
    np.save(x, 100 * np.load(x))
    arguments = ("simulate", weights, "--input", x, "--heads", HEADS)
    code, text, _ = raspire(*arguments)
    assert code == 0
    assert "softmax stable, one layer deeper (attention depth 9)" in text
    code, text, errors = raspire(*arguments, "--softmax", "plain")
    assert (code, text) == (2, "")
    assert "plain softmax cannot take these scores" in errors
    assert "|score| up to" in errors


def test_tensors_are_named_one_by_one(raspire, layer):
    weights, x, _ = layer
    stem = "encoder.layer.0.attention."
    names = ("--q", stem + "self.query", "--k", stem + "self.key", "--v", stem + "self.value")
    code, text, _ = raspire("simulate", weights, "--input", x, "--heads", HEADS, *names)
    assert code == 0
    assert "no output map" in text
    code, _, errors = raspire("simulate", weights, "--input", x, "--heads", HEADS, *names[:2])
    assert code == 2
    assert "--q, --k and --v together" in errors


REFUSALS = {
    "missing file": (["none.safetensors", "--input", "x.npy"], "no such file"),
    "missing input": (["w.safetensors", "--input", "none.npy", "--heads", "2"], "no such file"),
    "not safetensors": (["x.npy", "--input", "x.npy", "--heads", "2"], "not a safetensors file"),
    "not an array": (
        ["w.safetensors", "--input", "w.safetensors", "--heads", "2"],
        "not an .npy file",
    ),
    "unknown layer": (
        ["w.safetensors", "--layer", "3", "--input", "x.npy", "--heads", "2"],
        "one of the layers 0",
    ),
    "heads unknown": (["w.safetensors", "--input", "x.npy"], "give --heads"),
    "heads do not divide": (
        ["w.safetensors", "--input", "x.npy", "--heads", "3"],
        "3 heads do not divide",
    ),
    "wrong width": (["w.safetensors", "--input", "narrow.npy", "--heads", "2"], "wrong width"),
    "wrong type": (["w.safetensors", "--input", "whole.npy", "--heads", "2"], "found:    int64"),
    "NaN": (["w.safetensors", "--input", "nan.npy", "--heads", "2"], "nan at [0, 1]"),
    "no rows": (["w.safetensors", "--input", "empty.npy", "--heads", "2"], "n = 0"),
    "beyond the budget": (
        ["w.safetensors", "--input", "x.npy", "--heads", "2", "--budget", "1k"],
        "3,256 bytes for a sequence of N = 407",
    ),
    "no budget": (
        ["w.safetensors", "--input", "x.npy", "--heads", "2", "--budget", "much"],
        "is no number of bytes",
    ),
    "no input": (["w.safetensors", "--heads", "2"], "either --input X.npy or --text"),
    "two inputs": (["w.safetensors", "--input", "x.npy", "--text", "a"], "either --input"),
    "text without a model": (["w.safetensors", "--text", "a", "--heads", "2"], "no config.json"),
    "no folder": (
        ["w.safetensors", "--input", "x.npy", "--heads", "2", "--out", "none/y.npy"],
        "cannot be written",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_refused_with_exit_code_2(raspire, layer, tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    x = np.load("x.npy")
    np.save("narrow.npy", x[:, :3])
    np.save("whole.npy", x.astype(np.int64))
    np.save("empty.npy", x[:0])
    np.save("nan.npy", np.where(np.arange(D) == 1, np.nan, x))
    arguments, message = REFUSALS[case]
    code, text, errors = raspire("simulate", "--out", "y.npy", *arguments)
    assert (code, text) == (2, "")
    assert message in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "y.npy").exists()


def test_cost_prints_both_constructions(raspire):
    code, text, _ = raspire("cost", "--n", 16, "--d", 384, "--heads", 12)
    assert code == 0
    assert "10,255,888" in text
    assert "597,520" in text
    code, text, _ = raspire("cost", "--n", 2, "--d", 4, "--heads", 2, "--no-output", "--json")
    long, wide = json.loads(text)
    assert (long["attention_depth"], long["layers"]) == (6, 6)
    assert (wide["attention_depth"], wide["layers"]) == (3, 4)
    code, _, errors = raspire("cost", "--n", 2, "--d", 4, "--heads", 3)
    assert code == 2
    assert "3 heads do not divide d = 4" in errors


def test_a_layer_of_cross_attention_reads_a_memory(raspire, tmp_path):
    weights = random_weights(np.random.default_rng(2), D, HEADS, 2, 2)
    names, tensors = ("q_proj", "k_proj", "v_proj", "out_proj"), {}
    for name, w, b in zip(names, weights[::2], weights[1::2], strict=True):
        stem = f"model.decoder.layers.0.encoder_attn.{name}"
        tensors[stem + ".weight"], tensors[stem + ".bias"] = np.ascontiguousarray(w.T), b
    path, x, memory, out = (tmp_path / n for n in ("w.safetensors", "x.npy", "y.npy", "z.npy"))
    save_file(tensors, path)
    rng = np.random.default_rng(4)
    both = rng.standard_normal((5, D))
    np.save(x, both[:2])
    np.save(memory, both[2:])
    code, text, errors = raspire(
        "simulate", path, "--heads", HEADS, "--input", x, "--memory", memory, "--out", out
    )
    assert (code, errors) == (0, "")
    assert "a memory of 3 rows" in text
    # queries see the last three rows of all five, which is what a key padding does
    expected = plain_attention(
        weights, both, HEADS, mask="padding", seen=np.array([0, 0, 1, 1, 1])
    )[:2]
    assert np.abs(np.load(out) - expected).max() < 1e-12
    code, _, errors = raspire("simulate", path, "--heads", HEADS, "--input", x)
    assert code == 2
    assert "holds no attention layer 0" in errors


def test_an_input_beyond_float64_is_refused(raspire, layer, tmp_path):
    weights, x, _ = layer
    np.save(tmp_path / "big.npy", np.load(x) * 1e200)
    code, _, errors = raspire(
        "simulate", weights, "--input", tmp_path / "big.npy", "--heads", HEADS, "--quiet"
    )
    assert code == 2
    assert errors.startswith("Error: the scores leave the range of float64")


@pytest.mark.parametrize(
    "content", [b"", b"hello\n", b"PK\x03\x04junk", b"\x93NUMPY", b"\x80\x04N."]
)
def test_an_input_that_is_no_array_is_refused(raspire, layer, tmp_path, content):
    weights, _, _ = layer
    (tmp_path / "x.bin").write_bytes(content)
    code, _, errors = raspire("simulate", weights, "--input", tmp_path / "x.bin", "--heads", HEADS)
    assert code == 2
    assert "is not an .npy file of numbers" in errors
    assert "pickle" not in errors


def test_a_padding_mask_without_its_flags_is_refused(raspire, layer):
    weights, x, _ = layer
    code, _, errors = raspire("simulate", weights, "--input", x, "--heads", HEADS, "--mask",
                              "padding")  # fmt: skip
    assert code == 2
    assert "--mask padding needs --padding" in errors


@pytest.mark.parametrize(("width", "code"), [(D, 0), (2 * D, 2)])
def test_a_configuration_of_another_width_is_refused(raspire, layer, width, code):
    weights, x, _ = layer
    facts = {"model_type": "bert", "num_attention_heads": HEADS, "hidden_size": width}
    (weights.parent / "config.json").write_text(json.dumps(facts))
    found, _, errors = raspire("simulate", weights, "--input", x)
    assert found == code
    assert ("hidden_size 8" in errors) == (code == 2)


def test_a_missing_tensor_is_named_in_full(raspire, layer):
    weights, x, _ = layer
    tensors = load_file(weights)
    del tensors["encoder.layer.0.attention.self.key.weight"]
    save_file(tensors, weights)
    code, _, errors = raspire("simulate", weights, "--input", x, "--heads", HEADS)
    assert code == 2
    assert "holds no tensor 'encoder.layer.0.attention.self.key.weight'" in errors
