"""Modules that need an extra are left out of the doctests where it is not installed."""

from importlib.util import find_spec

NEEDS = {
    "src/raspire/export/pytorch.py": "torch",
    "src/raspire/export/onnx_model.py": "onnx",
    "src/raspire/export/onnx_ops.py": "onnx",
    "src/raspire/export/lens.py": "transformer_lens",
}
collect_ignore = [path for path, module in NEEDS.items() if find_spec(module) is None]
