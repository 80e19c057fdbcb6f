"""U on an attention layer given as NumPy arrays, against four lines of NumPy."""

import numpy as np

from raspire import AttentionTarget, UniversalSimulator

rng = np.random.default_rng(0)
n, d, heads = 5, 8, 2
q, k, v, o = rng.standard_normal((4, d, d))
X = rng.standard_normal((n, d))

T = AttentionTarget.from_arrays(q, k, v, o, heads=heads)
U = UniversalSimulator(n=n, d=d, heads=heads, d_k=4, d_v=4, construction="long")
Y = U(T, X)

Q, K, V = ((X @ w).reshape(n, heads, 4).swapaxes(0, 1) for w in (q, k, v))
A = np.exp(Q @ K.swapaxes(1, 2) / 2)
direct = (A / A.sum(-1, keepdims=True) @ V).swapaxes(0, 1).reshape(n, d) @ o

print("attention depth", U.cost.attention_depth, "layers", U.cost.layers)
print("U agrees with NumPy:", bool(np.abs(Y - direct).max() < 1e-12))
