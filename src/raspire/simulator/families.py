"""Model families by the `model_type` of their configuration, and what their attention is.

A family that is in none of these tables is read with a note that says so.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLAIN = _words("""
    bert roberta xlm-roberta xlm-roberta-xl camembert distilbert electra ernie megatron-bert
    data2vec-text rembert splinter layoutlm tapas vit deit dinov2 vit_mae clip clip_text_model
    clip_vision_model siglip bart mbart whisper
""")
"""Dot-product attention over absolute positions; causal only where the configuration says so."""

CAUSAL = _words("""
    gpt2 openai-gpt opt xglm llama mistral mixtral gpt_neox gptj phi qwen2 qwen2_moe gemma
    stablelm starcoder2 bloom
""")
"""Every query sees the keys up to its own position."""

ROTARY = _words("""
    llama mistral mixtral qwen2 qwen2_moe qwen3 gemma gemma2 gemma3 phi phi3 gpt_neox gptj
    stablelm cohere olmo olmo2 starcoder2 roformer falcon
""")
"""Positions turn the queries and keys."""

ROTARY_KNOWN = _words("""
    llama mistral mixtral qwen2 qwen2_moe gemma stablelm starcoder2 gptj gpt_neox
""")
"""Of those, the families whose turns are known here."""

WINDOWED = _words("mistral mixtral qwen2 qwen2_moe starcoder2")
"""The families whose sliding windows are known here: so many positions back, itself included."""

ROTARY_INTERLEAVED = _words("gptj")
"""Of those, the families that pair neighbouring coordinates."""

ROTARY_KEYS = (
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "rotary_emb_base",
    "rotary_pct",
    "rotary_dim",
    "rotary_value",
)
"""Entries of a configuration that speak of rotary positions in any family."""

ALIBI = _words("bloom")
"""The families with linear biases by distance, whose slopes are the usual ones."""

BUCKETS = _words("t5 mt5")
"""The families with relative biases in buckets, one table for all layers, and no scale."""

OTHER_ATTENTION = {
    "longformer": "windowed attention",
    "led": "windowed attention",
    "swin": "windowed attention",
    "gpt_neo": "unscaled and windowed attention",
    "nystromformer": "approximate attention",
    "yoso": "approximate attention",
    "beit": "relative position biases",
    "data2vec-vision": "relative position biases",
    "layoutlmv3": "relative position biases",
    "mpnet": "relative position biases",
    "nezha": "relative positions",
    "mpt": "position biases (ALiBi)",
    "deberta": "disentangled attention",
    "deberta-v2": "disentangled attention",
    "segformer": "keys reduced along the sequence",
    "convbert": "convolutions beside its heads",
    "ibert": "quantised weights",
}
"""Attention that is another function, by what makes it so."""
