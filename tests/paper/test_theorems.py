"""The table of theorems: counted from programs, at or below what is claimed, each redone."""

from __future__ import annotations

import dataclasses
import json

import pytest
from click.testing import CliRunner

from raspire.cli.theorems import theorems
from raspire.errors import RaspNameError
from raspire.paper import theorems as text
from raspire.paper.claims import Claim, claim, claims
from raspire.program.embedding import tokens
from raspire.verify.certificate import Certificate

SLOW = {
    "block-pre-norm",
    "sort-pairs",
    "sort-wide",
    "match2",
    "match3",
    "match3-pairs",
    "dyck-1",
    "dyck-2",
    "parity",
    "k-parity",
    "network-heads-long",
}
KEYS = list(claims())


@pytest.mark.parametrize("key", KEYS)
def test_costs_are_at_or_below_what_is_claimed(key: str) -> None:
    one = claim(key)
    row = one.row()
    assert row.attention_depth <= one.expected[0]
    assert row.layers <= one.expected[1]
    if one.paper_layers is not None:
        assert max(row.attention_depth, row.layers) < one.paper_layers


def test_the_paper_s_numbers_are_those_we_know() -> None:
    known = {(c.result, c.paper_layers) for c in claims().values() if c.paper_layers is not None}
    assert known == {("Lemma 3", 2), ("Lemma 5", 3), ("Lemma 10", 5)}
    of_inverse = [k for k, c in claims().items() if c.paper_layers == 5]
    assert of_inverse == ["inverse-3x3", "inverse-3x3-network"]


@pytest.mark.parametrize(
    "key", [pytest.param(k, marks=pytest.mark.slow) if k in SLOW else k for k in KEYS]
)
def test_every_claim_holds(key: str) -> None:
    found = claim(key).check()
    assert found.holds, found.details
    assert found.error_probability < 1e-9


def test_simulators_of_one_construction_have_one_depth() -> None:
    from raspire.simulator import UniversalSimulator

    for construction, depth in (("long", 8), ("wide", 4)):
        depths = {
            UniversalSimulator(n, d, h, construction=construction).cost.attention_depth  # type: ignore[arg-type]
            for n in (1, 2, 5)
            for d, h in ((2, 1), (4, 2))
        }
        assert depths == {depth}


def test_the_command_prints_the_table() -> None:
    run = CliRunner().invoke(theorems, [])
    assert run.exit_code == 0
    lines = run.output.splitlines()
    assert " ".join(lines[0].split()) == "claim result depth layers heads N paper rests on"
    assert len(lines) == len(KEYS) + 3
    table = CliRunner().invoke(theorems, ["--markdown"]).output
    assert "| transposition | Lemma 3 | 1 | 1 | 1 | 12 | 2 | none | identity over GF(p) |" in table
    assert "`raspire theorems transposition`" in table


def test_the_command_redoes_one_claim() -> None:
    run = CliRunner().invoke(theorems, ["inverse-3x3"])
    assert run.exit_code == 0
    assert "attention depth 1, layers 3, heads a layer 9,0,0, N = 9" in run.output
    assert "inverse 3x3, for every input: holds" in run.output
    found = json.loads(CliRunner().invoke(theorems, ["product", "--json"]).output)
    assert found[0]["certificate"]["holds"] is True
    assert found[0]["paper_layers"] == 3


def test_a_claim_that_fails_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    false = Certificate("x", "exhaustive", False, 0.0, {"input": "[1]"})
    one = dataclasses.replace(claim("maxmin"), check=lambda: false)
    monkeypatch.setattr("raspire.paper.claims.claims", lambda: {"maxmin": one})
    for arguments in (["maxmin"], ["--check"], ["--check", "--json"]):
        run = CliRunner().invoke(theorems, arguments)
        assert run.exit_code == 1, run.output
    assert "DOES NOT HOLD" in CliRunner().invoke(theorems, ["maxmin"]).output


def test_an_unknown_claim_is_named() -> None:
    with pytest.raises(RaspNameError, match="there is no claim 'nothing'"):
        claim("nothing")


def test_a_table_of_anything() -> None:
    one = Claim(
        "x", "none", "", "", lambda: tokens, (0, 0), "nothing", lambda: claim("maxmin").check()
    )
    assert " ".join(text.table([one]).splitlines()[1].split()) == "x none 0 0 any - nothing"
