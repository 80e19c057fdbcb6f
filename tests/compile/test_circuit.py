"""The circuit as data: complete, exportable, and true when heads are taken out."""

import json

import numpy as np
import pytest

from raspire.compile import compile
from raspire.compile.sampling import sample
from tests.compile.programs import LIBRARY


def compiled(name, length=7):
    program, alphabet = LIBRARY[name]
    return compile(program, alphabet=alphabet, max_length=length)


def test_every_head_and_unit_group_is_a_node_with_its_expression():
    network = compiled("sort letters")
    nodes = network.circuit.by_name
    heads = [n for n in nodes.values() if n.kind == "head"]
    assert len(heads) == sum(network.cost.heads)
    assert {"embedding", "output", "layer 1 head 0"} <= set(nodes)
    copied = [c.expression for c in nodes["layer 2 head 0"].writes]
    assert len(copied) == 3
    assert all("== 'b'" in e or "== 'a'" in e or "== 'c'" in e for e in copied)


def test_edges_join_a_reader_to_the_writer_of_its_slots():
    circuit = compiled("reverse").circuit
    by_name = circuit.by_name
    for edge in circuit.edges:
        written = {carried.slot for carried in by_name[edge.source].writes}
        assert set(edge.slots) <= written
    assert circuit.upstream("output") == set(by_name)


@pytest.mark.parametrize("seed", range(6))
def test_a_head_off_the_path_changes_nothing(seed):
    network = compile(sample(seed, 14), alphabet="abc", max_length=6)
    circuit, model = network.circuit, network.transformer
    inputs = model.inputs([list("abcabc"), list("ccabac")])
    whole, part = {}, {}
    model.logits(inputs, record=whole)
    for node in circuit.nodes:
        if node.kind != "head":
            continue
        model.logits(inputs, record=part, ablate={(node.layer, node.index)})
        for other in circuit.nodes:
            if other.kind == "output" or node.name in circuit.upstream(other.name):
                continue
            where = "resid_mid" if other.kind == "head" else "resid_post"
            hook = f"blocks.{other.layer}.hook_{where}"
            hook = "hook_embed" if other.kind == "embedding" else hook
            slots = [carried.slot for carried in other.writes]
            assert np.array_equal(whole[hook][..., slots], part[hook][..., slots])


def test_taking_out_a_head_on_the_path_changes_the_output():
    network = compiled("reverse")
    inputs = network.transformer.inputs([list("abcde")])
    whole = network.transformer.logits(inputs)
    assert not np.allclose(whole, network.transformer.logits(inputs, ablate={(1, 0)}))


def test_exports_as_json_and_as_a_graph():
    circuit = compiled("histogram").circuit
    data = json.loads(circuit.to_json())
    assert {n["name"] for n in data["nodes"]} == set(circuit.by_name)
    pytest.importorskip("networkx", reason="needs networkx")
    graph = circuit.to_networkx()
    assert set(graph) == set(circuit.by_name)
    assert graph.number_of_edges() == len(circuit.edges)


@pytest.mark.parametrize("name", ["reverse", "sort", "Dyck-3"])
def test_a_rotated_network_computes_the_same(name):
    network = compiled(name)
    rotated, basis = network.rotate(seed=3)
    _, alphabet = LIBRARY[name]
    assert np.allclose(basis @ basis.T, np.eye(network.cost.width))
    words = [[alphabet[(i * k + k) % len(alphabet)] for i in range(7)] for k in range(1, 6)]
    for found, wanted in zip(rotated.batch(words), network.batch(words), strict=True):
        assert found == pytest.approx(wanted, abs=1e-9) if name == "sort" else found == wanted


def test_slots_are_reused_when_their_value_is_dead():
    network = compiled("palindrome", 20)
    slots = list(network.slots.of.values())
    assert len(set(slots)) < len(slots)
    assert any(network.slots.erased)


def test_one_layout_for_one_program():
    first, second = compiled("sort"), compiled("sort")
    assert first.circuit == second.circuit
