"""The house rules hold: layers, lazy imports, a quick start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = ("numpy", "scipy", "torch", "onnx", "onnxruntime", "flint", "matplotlib", "tokenizers",
         "transformer_lens", "z3", "dask", "networkx")  # fmt: skip


def python(code: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return run.stdout.strip()


def test_nothing_imports_upwards():
    lint = Path(sys.executable).parent / "lint-imports"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run(
        [lint, "--no-cache"], capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )
    assert run.returncode == 0, run.stdout


def test_help_imports_nothing_heavy():
    loaded = python(
        "import sys\nfrom raspire.cli.main import cli\n"
        "try: cli(['--help'])\nexcept SystemExit: pass\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    assert loaded.endswith("[]")


@pytest.mark.parametrize("module", ["raspire.evaluate", "raspire.simulator", "raspire.language"])
def test_the_core_imports_no_extra(module: str):
    extras = tuple(name for name in HEAVY if name not in ("numpy", "scipy"))
    code = f"import sys, {module}\nprint([m for m in {extras!r} if m in sys.modules])"
    assert python(code) == "[]"


def test_no_path_of_a_machine_is_tracked():
    run = subprocess.run(
        ["git", "grep", "-nE", r"(^|[^A-Za-z0-9_.])/(home|root|work)/", "--", ":!tests/*house.py"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    if run.returncode > 1:
        pytest.skip("not a git checkout")
    assert run.stdout == ""
