"""Random targets, and the formulas that positions are defined by, one distance at a time."""

import math

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from raspire.simulator import AttentionTarget

NEAR = 1e-10
seeds = st.integers(0, 2**31 - 1)
quick = settings(max_examples=12, deadline=None)


def random_target(rng, d, heads, d_k, d_v, *, output=True, **options):
    def draw(*size):
        return rng.normal(size=size)

    return AttentionTarget.from_arrays(
        draw(heads, d, d_k), draw(heads, d, d_k), draw(heads, d, d_v),
        draw(heads * d_v, d) if output else None,
        b_q=draw(heads, d_k), b_k=draw(heads, d_k), b_v=draw(heads, d_v),
        b_o=draw(d) if output else None, **options,
    )  # fmt: skip


def by_torch(target, x, bias=None, *, memory=None):
    """The target by torch's scaled_dot_product_attention, with a bias that may be -inf."""
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    rows, others = torch.tensor(x), torch.tensor(x if memory is None else memory)
    parts = ((target.w_q, target.b_q, rows), (target.w_k, target.b_k, others),
             (target.w_v, target.b_v, others))  # fmt: skip
    q, k, v = (r @ torch.tensor(w) + torch.tensor(b)[:, None] for w, b, r in parts)
    mask = None if bias is None else torch.tensor(bias)
    mixed = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, scale=target.scale
    )
    mixed = mixed.transpose(0, 1).reshape(len(x), -1).numpy()
    return mixed if target.w_o is None else mixed @ target.w_o + target.b_o


def distances(n):
    return np.subtract.outer(np.arange(n), np.arange(n))


def rotated_by_halves(x, base, width):
    """LLaMA's formula: x·cos + rotate_half(x)·sin on the first `width` coordinates."""
    frequencies = 1 / base ** (np.arange(0, width, 2) / width)
    angles = np.concatenate([np.outer(np.arange(len(x)), frequencies)] * 2, axis=1)
    turned, rest = x[:, :width], x[:, width:]
    half = np.concatenate([-turned[:, width // 2 :], turned[:, : width // 2]], axis=1)
    return np.concatenate([turned * np.cos(angles) + half * np.sin(angles), rest], axis=1)


def rotated_by_neighbours(x, base, width):
    """GPT-J's formula: neighbours (0, 1), (2, 3), ... turn together."""
    out = x.copy()
    for k in range(width // 2):
        angle = np.arange(len(x)) / base ** (2 * k / width)
        a, b = x[:, 2 * k], x[:, 2 * k + 1]
        out[:, 2 * k] = a * np.cos(angle) - b * np.sin(angle)
        out[:, 2 * k + 1] = b * np.cos(angle) + a * np.sin(angle)
    return out


def bucket_of_t5(distance, buckets, farthest, bidirectional):
    """The rule of the T5 paper for key minus query, one distance at a time."""
    key_minus_query, base = -distance, 0
    if bidirectional:
        buckets //= 2
        if key_minus_query > 0:
            base = buckets
        away = abs(key_minus_query)
    else:
        away = max(-key_minus_query, 0)
    exact = buckets // 2
    if away < exact:
        return base + away
    ratio = math.log(away / exact) / math.log(farthest / exact)
    return base + min(exact + int(ratio * (buckets - exact)), buckets - 1)
