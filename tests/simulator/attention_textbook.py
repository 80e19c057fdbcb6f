"""The oracle of the simulator's tests: attention in Python loops, sharing nothing with raspire."""

import math
from fractions import Fraction

import numpy as np


def plain_attention(weights, x, heads, *, mask="none", seen=None, scale=None):
    """Textbook attention in Python loops over (w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o).

    Matrices multiply rows from the right, (d, heads * width); returns (n, columns) as lists.
    """
    w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o = weights
    n = len(x)
    q, k, v = (affine(x, w, b) for w, b in ((w_q, b_q), (w_k, b_k), (w_v, b_v)))
    d_k, d_v = len(q[0]) // heads, len(v[0]) // heads
    factor = 1 / math.sqrt(d_k) if scale is None else scale
    rows = []
    for i in range(n):
        row = []
        for t in range(heads):
            keys = [
                j
                for j in range(n)
                if (mask != "causal" or j <= i) and (mask != "padding" or seen is None or seen[j])
            ]
            scores = [
                factor * sum(q[i][t * d_k + a] * k[j][t * d_k + a] for a in range(d_k))
                for j in keys
            ]
            top = max(scores)
            weight = [math.exp(s - top) for s in scores]
            mass = math.fsum(weight)
            for c in range(d_v):
                total = math.fsum(w * v[j][t * d_v + c] for w, j in zip(weight, keys, strict=True))
                row.append(total / mass)
        rows.append(row)
    return np.array(rows if w_o is None else affine(rows, w_o, b_o), dtype=float)


def affine(x, w, b):
    """x w + b in the arithmetic of its entries."""
    columns = range(len(w[0]))
    return [
        [sum((xi * w[r][c] for r, xi in enumerate(row)), start=b[c]) for c in columns] for row in x
    ]


def exact(array):
    """Nested lists of Fractions with the exact values of the floats."""
    if isinstance(array, np.ndarray):
        array = array.tolist()
    return [exact(a) for a in array] if isinstance(array, list) else Fraction(array)


def random_weights(rng, d, heads, d_k, d_v, *, output=True, size=1.0):
    """Random matrices and biases as (w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o)."""

    def normal(*shape):
        return size * rng.standard_normal(shape)

    k, v = heads * d_k, heads * d_v
    w_o, b_o = (normal(v, d), normal(d)) if output else (None, None)
    return normal(d, k), normal(k), normal(d, k), normal(k), normal(d, v), normal(v), w_o, b_o
