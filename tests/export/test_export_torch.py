"""The torch module against the NumPy forward pass, its hooks, gradients and compilation."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transformer.random_models import random_inputs, random_transformer

torch = pytest.importorskip("torch", reason="needs the extra torch")

from raspire.export import load, save, to_torch  # noqa: E402
from raspire.export.pytorch import GATES, PLAIN  # noqa: E402
from raspire.transformer import Builder, cost, families, forward, read, write  # noqa: E402


def test_every_family_has_a_torch_form() -> None:
    assert set(GATES) == set(families.GATES)
    assert set(PLAIN) == set(families.PLAIN)


@pytest.mark.parametrize("gate", sorted(families.GATES))
def test_gates_agree_with_numpy(gate: str) -> None:
    x = np.linspace(0.1, 3, 30) if gate in ("log", "sqrt", "rsqrt") else np.linspace(-3, 3, 31)
    with np.errstate(divide="ignore"):
        expected = families.GATES[gate](x)
    found = GATES[gate](torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_torch_agrees(seed: int, values: bool, precision: str) -> None:
    model = random_transformer(seed, hard=precision == "float64", values=values)
    inputs = random_inputs(model, seed)
    module = to_torch(model, precision)
    tensor = torch.from_numpy(inputs)
    found = module(tensor.to(getattr(torch, precision)) if values else tensor).detach().numpy()
    real = ~np.isnan(inputs) if values else inputs != 1
    tolerance = 1e-10 if precision == "float64" else 2e-3
    expected = forward(model, inputs)
    np.testing.assert_allclose(found[real], expected[real], rtol=tolerance, atol=tolerance)


def test_encode_outputs_and_decode() -> None:
    model = random_transformer(2)
    module = to_torch(model)
    ids = module.encode(["abc", "b"])
    assert ids.tolist() == [[0, 2, 3, 4], [0, 3, 1, 1]]
    labels = module.decode(module(ids))
    assert labels[0][1:] == model.run("abc")
    assert [module.labels[i] for i in module.outputs(ids)[1]][1:2] == model.run("b")
    assert module.attention == ("average-hard", "softmax")


def test_hooks_carry_the_names_of_transformerlens() -> None:
    module = to_torch(random_transformer(0))
    names = dict(module.named_modules())
    seen: dict[str, tuple[int, ...]] = {}
    for name in ("hook_embed", "blocks.0.attn.hook_pattern", "blocks.1.hook_resid_post"):
        names[name].register_forward_hook(
            lambda _m, _i, out, name=name: seen.__setitem__(name, tuple(out.shape))
        )
    module(module.encode(["abc", "ab"]))
    assert seen == {
        "hook_embed": (2, 4, 13),
        "blocks.0.attn.hook_pattern": (2, 4, 4, 4),
        "blocks.1.hook_resid_post": (2, 4, 13),
    }


def test_gradients_flow_to_every_value_path() -> None:
    module = to_torch(random_transformer(0, values=True))
    values = torch.randn(2, 6, dtype=torch.float64, requires_grad=True)
    module(values).sum().backward()
    assert torch.isfinite(values.grad).all()
    assert values.grad.abs().sum() > 0
    assert module.blocks[0].mlp[0].first.weight.grad is not None


def test_state_dict_travels() -> None:
    model = random_transformer(0)
    first, second = to_torch(model), to_torch(random_transformer(1))
    second.load_state_dict(to_torch(model).state_dict(), strict=False)
    third = to_torch(model)
    third.load_state_dict(first.state_dict())
    ids = first.encode(["cab"])
    assert torch.equal(first(ids), third(ids))


def test_a_saved_file_loads_with_weights_only(tmp_path) -> None:
    model = random_transformer(0)
    path = save(model, tmp_path / "model.pt")
    content = torch.load(path, weights_only=True)
    module = to_torch(model)
    module.load_state_dict(content["state_dict"])
    assert '"vocabulary"' in content["config"]


@pytest.mark.parametrize("values", [False, True])
def test_a_saved_file_is_the_whole_transformer(tmp_path, values: bool) -> None:
    model = random_transformer(3, values=values)
    again = load(save(model, tmp_path / "model.pt"))
    inputs = random_inputs(model, 3)
    np.testing.assert_array_equal(forward(again, inputs), forward(model, inputs))
    assert cost(again) == cost(model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_torch_compile_agrees() -> None:
    model = random_transformer(0, layers=1)
    module = to_torch(model)
    compiled = torch.compile(module, dynamic=False, backend="aot_eager", fullgraph=True)
    for length in (4,):
        ids = torch.from_numpy(random_inputs(model, 5, length=length))
        torch.testing.assert_close(compiled(ids), module(ids))


def test_a_model_without_positions_comes_back_without(tmp_path) -> None:
    b = Builder("twice")
    x, y = b.space("x"), b.space("y")
    b.values(write(x))
    b.layer().units("twice", "linear", 2 * read(x), write(y))
    b.numeric(read(y))
    again = load(save(b.build(), tmp_path / "model.pt"))
    assert again.embedding.positions is None
    assert again.run([1.0, 2.0, 5.0]) == [2.0, 4.0, 10.0]
