"""Reading targets: every naming, orientation and stored type, and what is refused by name."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from raspire import RaspError
from raspire.simulator import AttentionTarget, GivenNames, attention
from tests.simulator.attention_textbook import plain_attention, random_weights

D, HEADS = 6, 2


@pytest.fixture
def weights():
    return random_weights(np.random.default_rng(7), D, HEADS, 3, 3)


def write(folder, tensors, config=None, name="model.safetensors"):
    path = folder / name
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, path)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return path


def linear_layers(names, weights, prefix):
    """Tensors as torch's linear layers store them: outputs × inputs."""
    tensors = {}
    for name, w, b in zip(names, weights[::2], weights[1::2], strict=True):
        tensors[f"{prefix}{name}.weight"] = w.T
        tensors[f"{prefix}{name}.bias"] = b
    return tensors


def conv1d(weights, prefix):
    """GPT-2's packed layer: inputs × outputs."""
    w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o = weights
    return {
        f"{prefix}attn.c_attn.weight": np.hstack([w_q, w_k, w_v]),
        f"{prefix}attn.c_attn.bias": np.concatenate([b_q, b_k, b_v]),
        f"{prefix}attn.c_proj.weight": w_o,
        f"{prefix}attn.c_proj.bias": b_o,
        f"{prefix}attn.bias": np.tril(np.ones((1, 1, 8, 8))),
        f"{prefix}mlp.c_proj.weight": np.ones((4 * D, D)),
    }


def in_proj(weights, prefix):
    """torch's nn.MultiheadAttention: three matrices in one, outputs × inputs."""
    w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o = weights
    return {
        f"{prefix}in_proj_weight": np.vstack([w_q.T, w_k.T, w_v.T]),
        f"{prefix}in_proj_bias": np.concatenate([b_q, b_k, b_v]),
        f"{prefix}out_proj.weight": w_o.T,
        f"{prefix}out_proj.bias": b_o,
    }


BERT = ("attention.self.query", "attention.self.key", "attention.self.value",
        "attention.output.dense")  # fmt: skip
VIT = ("attention.attention.query", "attention.attention.key", "attention.attention.value",
       "attention.output.dense")  # fmt: skip
DISTIL = ("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin")
LLAMA = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
BART = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj")

NAMINGS = {
    "BERT": (lambda w: linear_layers(BERT, w, "bert.encoder.layer.1."), 1, "none"),
    "RoBERTa": (lambda w: linear_layers(BERT, w, "roberta.encoder.layer.11."), 11, "none"),
    "ViT": (lambda w: linear_layers(VIT, w, "vit.encoder.layer.0."), 0, "none"),
    "DistilBERT": (
        lambda w: linear_layers(DISTIL, w, "distilbert.transformer.layer.2."),
        2,
        "none",
    ),
    "GPT-2": (lambda w: conv1d(w, "transformer.h.3."), 3, "causal"),
    "GPT-2, bare": (lambda w: conv1d(w, "h.0."), 0, "causal"),
    "nn.MultiheadAttention": (lambda w: in_proj(w, ""), 0, "none"),
    "nn.TransformerEncoder": (lambda w: in_proj(w, "layers.4.self_attn."), 4, "none"),
    "LLaMA": (lambda w: linear_layers(LLAMA, w, "model.layers.5."), 5, "causal"),
    "CLIP": (lambda w: linear_layers(BART, w, "vision_model.encoder.layers.2."), 2, "none"),
    "BART decoder": (lambda w: linear_layers(BART, w, "model.decoder.layers.2."), 2, "causal"),
}


@pytest.mark.parametrize("naming", NAMINGS)
def test_every_naming_gives_the_same_layer_in_its_own_mask(naming, weights, tmp_path):
    make, layer, mask = NAMINGS[naming]
    path = write(tmp_path, make(weights), {"num_attention_heads": HEADS})
    target = AttentionTarget.from_safetensors(path, layer)
    assert (target.d, target.heads, target.d_k, target.d_v) == (D, HEADS, 3, 3)
    x = np.random.default_rng(1).standard_normal((4, D))
    assert target.mask == mask
    expected = plain_attention(weights, x, HEADS, mask=mask)
    assert np.abs(attention(target, x) - expected).max() < 1e-12
    in_memory = AttentionTarget.from_state(make(weights), layer, HEADS)
    assert np.array_equal(in_memory.w_q, target.w_q)


def test_missing_biases_are_zero(weights, tmp_path):
    tensors = linear_layers(BERT, weights, "encoder.layer.0.")
    path = write(tmp_path, {k: v for k, v in tensors.items() if k.endswith("weight")})
    target = AttentionTarget.from_safetensors(path, 0, HEADS)
    assert not target.b_q.any()
    assert target.b_o is not None
    assert not target.b_o.any()


def test_tensors_named_one_by_one(weights, tmp_path):
    tensors = linear_layers(("a", "b", "c", "d"), weights, "x.")
    path = write(tmp_path, tensors)
    names = GivenNames("x.a", "x.b.weight", "x.c", "x.d")
    target = AttentionTarget.from_safetensors(path, heads=HEADS, names=names)
    x = np.random.default_rng(1).standard_normal((3, D))
    assert np.abs(attention(target, x) - plain_attention(weights, x, HEADS)).max() < 1e-12
    names = GivenNames("x.a", "x.b", "x.c")
    assert AttentionTarget.from_safetensors(path, heads=HEADS, names=names).w_o is None
    with pytest.raises(RaspError, match=r"holds no tensor 'x\.e'"):
        AttentionTarget.from_safetensors(path, heads=HEADS, names=GivenNames("x.e", "x.b", "x.c"))
    with pytest.raises(RaspError, match="need query, key and value"):
        GivenNames("x.a", "", "x.c")


def bfloat16_file(path, tensors):
    """A safetensors file of bfloat16, written by hand: the upper halves of binary32 numbers."""
    header, body = {}, b""
    for name, array in tensors.items():
        bits = (np.ascontiguousarray(array, dtype="<f4").view("<u4") >> 16).astype("<u2")
        chunk = bits.tobytes()
        place = [len(body), len(body) + len(chunk)]
        header[name] = {"dtype": "BF16", "shape": list(array.shape), "data_offsets": place}
        body += chunk
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


@pytest.mark.parametrize("kind", ["F16", "BF16", "F32", "F64"])
def test_every_stored_type_widens_exactly(kind, tmp_path):
    w = np.arange(-8, 8).reshape(4, 4) * 2.0**-7  # exact in every type
    w[0, 0] = {"F16": 2.0**-24, "BF16": 2.0**-126, "F32": 1 + 2.0**-23, "F64": 1 + 2.0**-52}[kind]
    names = ("q_proj", "k_proj", "v_proj", "o_proj")
    path = tmp_path / "model.safetensors"
    if kind == "BF16":
        bfloat16_file(path, {f"{n}.weight": w for n in names})
    else:
        dtype = {"F16": np.float16, "F32": np.float32, "F64": np.float64}[kind]
        write(tmp_path, {f"{n}.weight": w.astype(dtype) for n in names})
    target = AttentionTarget.from_safetensors(path, heads=1)
    assert np.array_equal(target.w_q[0], w.T)
    assert {r.dtype for r in target.reads} == {kind}


def test_a_sharded_set_is_read_by_its_index(weights, tmp_path):
    tensors = linear_layers(BERT, weights, "encoder.layer.0.")
    names = sorted(tensors)
    place = {name: f"model-{1 + i % 2}-of-2.safetensors" for i, name in enumerate(names)}
    for file in set(place.values()):
        write(tmp_path, {n: tensors[n] for n in names if place[n] == file}, name=file)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": place}))
    whole = AttentionTarget.from_state(tensors, 0, HEADS)
    for path in (index, tmp_path):
        assert np.array_equal(AttentionTarget.from_safetensors(path, 0, HEADS).w_k, whole.w_k)
    (tmp_path / "model-2-of-2.safetensors").unlink()
    with pytest.raises(RaspError, match="names files that are not there"):
        AttentionTarget.from_safetensors(index, 0, HEADS)
    index.write_text("{}")
    with pytest.raises(RaspError, match="not an index of safetensors files"):
        AttentionTarget.from_safetensors(index, 0, HEADS)


def test_an_npz_file_is_read_like_a_safetensors_file(weights, tmp_path):
    tensors = linear_layers(BERT, weights, "encoder.layer.0.")
    np.savez(tmp_path / "w.npz", **tensors)
    target = AttentionTarget.from_safetensors(tmp_path / "w.npz", 0, HEADS)
    assert np.array_equal(target.w_q, AttentionTarget.from_state(tensors, 0, HEADS).w_q)


REFUSED = [
    ({"model_type": "phi"}, "rotary positions"),
    ({"rope_theta": 10000.0}, "rotary positions"),
    ({"position_embedding_type": "relative_key_query"}, "relative_key_query positions"),
    ({"alibi": True}, "ALiBi"),
    ({"relative_attention_num_buckets": 32}, "relative position biases"),
    ({"sliding_window": 4096}, "sliding window"),
    ({"attn_logit_softcapping": 50.0}, "capped scores"),
    ({"model_type": "longformer"}, "windowed attention"),
    ({"model_type": "segformer"}, "keys reduced"),
    ({"attention_type": "block_sparse"}, "sparse attention"),
]


@pytest.mark.parametrize(("facts", "thing"), REFUSED)
def test_what_would_be_another_layer_is_refused_by_name(facts, thing, weights, tmp_path):
    tensors = linear_layers(LLAMA, weights, "model.layers.0.")
    path = write(tmp_path, tensors, {"num_attention_heads": HEADS, **facts})
    with pytest.raises(RaspError, match=f"{thing}.*wait for a later version"):
        AttentionTarget.from_safetensors(path, 0)


@pytest.mark.parametrize(
    ("name", "thing"),
    [
        ("self_attn.q_norm.weight", "normalised queries"),
        ("self_attn.rotary_emb.inv_freq", "rotary positions"),
        ("self_attn.bias_k", "extra learnt key"),
    ],
)
def test_a_tensor_that_changes_the_layer_is_refused_by_name(name, thing, weights):
    tensors = linear_layers(LLAMA, weights, "model.layers.0.")
    tensors[f"model.layers.0.{name}"] = np.ones(3)
    with pytest.raises(RaspError, match=thing):
        AttentionTarget.from_state(tensors, 0, HEADS)


def test_grouped_queries_are_repeated_for_the_heads_that_share_them(weights):
    tensors = linear_layers(LLAMA, weights, "model.layers.0.")
    for name in ("k_proj", "v_proj"):
        for part in ("weight", "bias"):
            key = f"model.layers.0.self_attn.{name}.{part}"
            tensors[key] = tensors[key][:3]
    target = AttentionTarget.from_state(tensors, 0, HEADS)
    assert (target.heads, target.w_k.shape) == (HEADS, target.w_q.shape)
    assert np.array_equal(target.w_k[0], target.w_k[1])
    assert "2 heads share 1 heads of keys and values" in target.notes[0]


def test_the_number_of_shared_heads_must_not_contradict_the_shapes(weights, tmp_path):
    tensors = linear_layers(LLAMA, weights, "model.layers.0.")
    path = write(tmp_path, tensors, {"num_attention_heads": HEADS, "num_key_value_heads": 1})
    with pytest.raises(RaspError, match="another number of heads than the configuration says"):
        AttentionTarget.from_safetensors(path, 0)


def test_a_family_with_rotary_relatives_says_that_it_was_not_told(weights):
    target = AttentionTarget.from_state(linear_layers(LLAMA, weights, "layers.0."), 0, HEADS)
    assert "no config.json" in target.notes[0]


def test_a_family_that_is_not_known_is_noted(weights, tmp_path):
    facts = {"num_attention_heads": HEADS, "model_type": "novel"}
    path = write(tmp_path, linear_layers(BERT, weights, "encoder.layer.0."), facts)
    assert "family 'novel' is not known here" in AttentionTarget.from_safetensors(path).notes[0]
    (tmp_path / "config.json").write_text(json.dumps(facts | {"model_type": "bert"}))
    assert AttentionTarget.from_safetensors(path).notes == ()


@pytest.mark.parametrize(
    ("facts", "scale"),
    [
        ({}, None),
        ({"scale_attn_weights": False}, 1.0),
        ({"scale_attn_by_inverse_layer_idx": True}, 3**-0.5 / 3),
        ({"query_pre_attn_scalar": 16}, 0.25),
    ],
)
def test_the_scale_is_the_one_that_the_configuration_names(facts, scale, weights, tmp_path):
    path = write(tmp_path, conv1d(weights, "h.2."), {"n_head": HEADS, **facts})
    target = AttentionTarget.from_safetensors(path, 2)
    assert target.scale == (None if scale is None else pytest.approx(scale, rel=1e-15))


def bad_value(tensors, value):
    tensors["encoder.layer.0.attention.self.key.weight"][1, 2] = value
    return tensors


BAD = {
    "unknown layer": (lambda t: t, {"layer": 5}, "no attention layer 5.*(?s:.*)layers 0"),
    "unknown prefix": (lambda t: t, {"layer": "decoder.1"}, "no attention layer at 'decoder.1'"),
    "heads missing": (lambda t: t, {"heads": None}, "number of heads is not known"),
    "no heads": (lambda t: t, {"heads": 0}, "at least one head"),
    "heads do not divide": (lambda t: t, {"heads": 4}, r"4 heads do not divide.*d = 6"),
    "NaN": (lambda t: bad_value(t, np.nan), {}, r"not finite.*(?s:.*)nan at \[1, 2\]"),
    "infinity": (lambda t: bad_value(t, np.inf), {}, "not finite"),
    "integers": (
        lambda t: t | {"encoder.layer.0.attention.self.key.weight": np.ones((6, 6), np.int8)},
        {},
        "does not hold floating-point weights",
    ),
    "not a matrix": (
        lambda t: t | {"encoder.layer.0.attention.self.key.weight": np.ones(6)},
        {},
        "is not a matrix",
    ),
    "a matrix without rows": (
        lambda t: t | {"encoder.layer.0.attention.self.query.weight": np.ones((0, 6))},
        {},
        "is not a matrix(?s:.*)none of them 0",
    ),
    "a bias of another size": (
        lambda t: t | {"encoder.layer.0.attention.self.key.bias": np.ones(5)},
        {},
        "b_k does not fit its matrix",
    ),
    "an output map of another size": (
        lambda t: t | {"encoder.layer.0.attention.output.dense.weight": np.ones((6, 5))},
        {},
        "w_o does not fit the target",
    ),
    "no output map": (
        lambda t: {k: v for k, v in t.items() if "output" not in k},
        {},
        "has no output map",
    ),
    "no known names": (
        lambda t: {"a": np.ones((2, 2))},
        {},
        "no attention layer of a known naming",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_weights_are_refused_with_what_is_there(case, weights, tmp_path):
    spoil, options, message = BAD[case]
    tensors = {k: v.copy() for k, v in linear_layers(BERT, weights, "encoder.layer.0.").items()}
    path = write(tmp_path, spoil(tensors))
    with pytest.raises(RaspError, match=message):
        AttentionTarget.from_safetensors(path, **({"layer": 0, "heads": HEADS} | options))


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(RaspError, match="no such file"):
        AttentionTarget.from_safetensors(tmp_path / "none.safetensors")
    (tmp_path / "text.safetensors").write_text("these are no weights")
    with pytest.raises(RaspError, match="not a safetensors file"):
        AttentionTarget.from_safetensors(tmp_path / "text.safetensors", heads=1)
    with pytest.raises(RaspError, match="holds no weights"):
        AttentionTarget.from_safetensors(tmp_path)
    path = write(tmp_path, {"a": np.ones(1)})
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(RaspError, match="is not JSON"):
        AttentionTarget.from_safetensors(path)


def test_two_layers_of_one_number_need_a_prefix(weights):
    tensors = linear_layers(BART, weights, "encoder.layers.0.")
    tensors |= linear_layers(BART, weights, "decoder.layers.0.")
    cross = tuple(name.replace("self_attn", "encoder_attn") for name in BART)
    tensors |= linear_layers(cross, weights, "decoder.layers.0.")
    with pytest.raises(RaspError, match="several attention layers"):
        AttentionTarget.from_state(tensors, 0, HEADS)
    target = AttentionTarget.from_state(tensors, "decoder.layers.0.self_attn", HEADS)
    assert target.heads == HEADS
    with pytest.raises(RaspError, match="cross-attention"):
        AttentionTarget.from_state(tensors, "decoder.layers.0.encoder_attn", HEADS)


def test_heads_must_not_contradict_the_configuration(weights, tmp_path):
    path = write(tmp_path, in_proj(weights, ""), {"num_attention_heads": HEADS})
    with pytest.raises(RaspError, match="contradicts the model's configuration"):
        AttentionTarget.from_safetensors(path, 0, heads=3)


@pytest.mark.parametrize(
    "facts",
    [
        {"query_pre_attn_scalar": "x"},
        {"query_pre_attn_scalar": -0.5},
        {"model_type": "llama", "rope_theta": {}},
        {"model_type": "llama", "rope_theta": 0},
        {"model_type": "llama", "rope_parameters": {"rope_type": "linear"}},
        {"model_type": "llama", "rope_scaling": {"type": "llama3"}},
        {"model_type": "llama", "partial_rotary_factor": []},
        {"model_type": "llama", "rotary_pct": 1e300},
    ],
)
def test_a_configuration_with_values_of_no_use_is_refused(weights, tmp_path, facts):
    tensors = linear_layers(LLAMA, weights, "model.layers.0.")
    path = write(tmp_path, tensors, {"num_attention_heads": HEADS, **facts})
    with pytest.raises(RaspError, match=r"config\.json"):
        AttentionTarget.from_safetensors(path, 0)


def test_a_packed_bias_of_another_size_is_refused(weights):
    tensors = in_proj(weights, "") | {"in_proj_bias": np.ones((7,))}
    with pytest.raises(RaspError, match="'in_proj_bias' does not fit its matrix"):
        AttentionTarget.from_state(tensors, 0, HEADS)


@pytest.mark.parametrize("said", [0, -2])
def test_a_configuration_without_heads_is_refused(weights, tmp_path, said):
    path = write(tmp_path, in_proj(weights, ""), {"num_attention_heads": said})
    with pytest.raises(RaspError, match=r"at least one head(?s:.*)config\.json"):
        AttentionTarget.from_safetensors(path, 0)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones((2, 5)), "wrong width.*(?s:.*)6 columns"),
        (np.ones((2, 6), dtype=np.int64), "does not hold floating-point numbers"),
        (np.ones((2, 6), dtype=complex), "does not hold floating-point numbers"),
        (np.ones(6), "is not a matrix"),
        (np.ones((0, 6)), "n = 0"),
        (np.full((2, 6), np.nan), "not finite"),
    ],
)
def test_a_bad_input_is_refused_by_name(x, message, weights):
    target = AttentionTarget.from_state(in_proj(weights, ""), 0, HEADS)
    with pytest.raises(RaspError, match=message):
        attention(target, x)


def test_torch_agrees(weights):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    module = torch.nn.MultiheadAttention(D, HEADS, batch_first=True, dtype=torch.float64)
    state = {k: torch.tensor(v) for k, v in in_proj(weights, "").items()}
    module.load_state_dict(state)
    x = np.random.default_rng(2).standard_normal((5, D))
    with torch.no_grad():
        theirs = module(*[torch.tensor(x)[None]] * 3, need_weights=False)[0][0].numpy()
    arrays = {k: v.numpy() for k, v in module.state_dict().items()}
    target = AttentionTarget.from_state(arrays, 0, HEADS)
    assert np.abs(attention(target, x) - theirs).max() < 1e-12
