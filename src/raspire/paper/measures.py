"""What is only measured: largest differences from a direct computation, in floating point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raspire.simulator.direct import attention
from raspire.simulator.target import AttentionTarget, Shape
from raspire.verify.certificate import Certificate

if TYPE_CHECKING:
    from raspire.simulator.networks import Network

NEAR = 1e-12


def random_target(shape: Shape, seed: int, spread: float = 1.0) -> AttentionTarget:
    """A target of that shape with normal weights and biases."""
    rng = np.random.default_rng(seed)
    h, d = shape.heads, shape.d

    def normal(*size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return spread * rng.normal(size=size)

    return AttentionTarget.from_arrays(
        normal(h, d, shape.d_k),
        normal(h, d, shape.d_k),
        normal(h, d, shape.d_v),
        normal(shape.merged, d) if shape.output else None,
        b_q=normal(h, shape.d_k),
        b_k=normal(h, shape.d_k),
        b_v=normal(h, shape.d_v),
        b_o=normal(d) if shape.output else None,
        mask=shape.mask,
    )


def measured_network(network: Network, n: int, *, seeds: int = 5) -> Certificate:
    """The largest difference of a network from the direct computation, over random T and X."""
    worst = 0.0
    for seed in range(seeds):
        target = random_target(network.shape, seed, 0.5)
        x = np.random.default_rng(1000 + seed).normal(size=(n, network.shape.d))
        worst = max(worst, float(np.max(np.abs(network(target, x) - attention(target, x)))))
    return Certificate(
        f"the network {network.name} for {network.shape} returns T(X), n={n}",
        "measurement",
        worst <= NEAR,
        0.0,
        {"targets": seeds, "largest difference": worst, "allowed": NEAR, "precision": "float64"},
    )
