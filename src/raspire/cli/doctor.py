"""``raspire doctor``: the extras that are here, and whether a model is a genuine transformer."""

from __future__ import annotations

from importlib.util import find_spec

import click

EXTRAS = {
    "models": ["tokenizers"],
    "proof": ["flint", "z3"],
    "onnx": ["onnx", "onnxruntime"],
    "torch": ["torch"],
    "lens": ["transformer_lens"],
    "plot": ["matplotlib"],
    "playground": ["starlette", "uvicorn"],
    "distributed": ["dask", "distributed"],
}
SUSPICIOUS = {"Round", "If", "Loop", "Scan", "RandomNormal", "RandomUniform"}


@click.command()
@click.option("--genuine", "path", type=click.Path(exists=True, dir_okay=False),
              help="A .safetensors or .onnx file written by raspire.")  # fmt: skip
def doctor(path: str | None) -> None:
    """Say which extras are installed, or check that a model is a genuine transformer."""
    if path is None:
        _extras()
        return
    held = _onnx(path) if path.endswith(".onnx") else _weights(path)
    if not held:
        raise click.exceptions.Exit(1)


def _extras() -> None:
    import platform

    import raspire

    click.echo(f"raspire {raspire.__version__}, Python {platform.python_version()}")
    for extra, modules in EXTRAS.items():
        missing = [m for m in modules if find_spec(m) is None]
        state = "installed" if not missing else f"missing {', '.join(missing)}"
        click.echo(f"  {extra:12} {state}")


def _weights(path: str) -> bool:
    from raspire.compile.genuine import genuine
    from raspire.export import load

    findings = genuine(load(path))
    for finding in findings:
        click.echo(str(finding))
    return all(finding.holds for finding in findings)


def _onnx(path: str) -> bool:
    """The graph's operators, that its weights are constants of the file, and what it states."""
    from raspire.errors import MissingExtraError

    try:
        import onnx
    except ModuleNotFoundError:
        raise MissingExtraError("onnx", "onnx") from None
    graph = onnx.load(path).graph
    operators = sorted({node.op_type for node in graph.node})
    suspicious = [op for op in operators if op in SUSPICIOUS]
    products = [node for node in graph.node if node.op_type in ("MatMul", "Gemm")]
    constants = {tensor.name for tensor in graph.initializer}
    weighted = [node for node in products if any(name in constants for name in node.input)]
    from raspire.export.onnx_model import metadata

    stated = metadata(path)
    known = [str(stated.get(key)) for key in ("attention", "precision", "opset")]
    findings = [
        ("no operator rounds, branches or loops", not suspicious, ", ".join(operators)),
        ("weights are constants of the file", bool(constants),
         f"{len(constants)} constants; {len(weighted)} of {len(products)} products have one"),
        ("attention kind, precision and opset are stated", "None" not in known, ", ".join(known)),
    ]  # fmt: skip
    for question, holds, seen in findings:
        click.echo(f"{'yes' if holds else 'NO '}  {question}: {seen}")
    return all(holds for _, holds, _ in findings)
