"""Error against NumPy: every entry within its bound; table, data and picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from raspire.cli.report import report
from raspire.errors import RaspNameError, RaspValueError
from raspire.paper.errors import BUILDERS, Entry, entries, table


@pytest.mark.parametrize("operation", BUILDERS)
def test_every_difference_is_within_its_bound(operation: str) -> None:
    found = list(entries([operation], seeds=3, largest=8))
    assert {e.precision for e in found} == {"float64", "float32"}
    for entry in found:
        assert entry.holds, entry
        assert entry.cause
        if operation == "transposition":
            assert entry.error == entry.bound == 0
        else:
            assert 0 < entry.bound < (1e-10 if entry.precision == "float64" else 1e-1)


@pytest.mark.slow
def test_the_whole_report_is_within_its_bounds() -> None:
    assert all(entry.holds for entry in entries())


def test_the_command_writes_what_it_is_asked_for(tmp_path: Path) -> None:
    arguments = ["errors", "--seeds", "1", "--largest", "2"]
    files = ["--json", str(tmp_path / "e.json"), "--table", str(tmp_path / "e.txt")]
    run = CliRunner().invoke(report, arguments + files)
    assert run.exit_code == 0, run.output
    assert run.output == (tmp_path / "e.txt").read_text(encoding="utf-8")
    data = json.loads((tmp_path / "e.json").read_text(encoding="utf-8"))
    assert len(data) == 2 * len(BUILDERS)
    assert all(entry["holds"] for entry in data)
    assert {p.name for p in tmp_path.iterdir()} == {"e.json", "e.txt"}


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    path = tmp_path / "e.svg"
    run = CliRunner().invoke(
        report,
        ["errors", "--seeds", "1", "--largest", "4", "--only", "product", "--picture", str(path)],
    )
    assert run.exit_code == 0, run.output
    assert "<svg" in path.read_text(encoding="utf-8")
    from raspire.show.error_plot import draw_errors

    with pytest.raises(RaspValueError, match="this picture format is not offered"):
        draw_errors([], tmp_path / "e.gif")


def test_an_unknown_operation_is_named() -> None:
    run = CliRunner().invoke(report, ["errors", "--only", "sum"])
    assert isinstance(run.exception, RaspNameError)
    assert "there is no operation 'sum'" in str(run.exception)


def test_a_difference_beyond_its_bound_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Entry("product", 2, "float64", 1, 1.0, 0.5, "rounding")
    monkeypatch.setattr("raspire.paper.errors.entries", lambda *_: iter([wrong]))
    assert CliRunner().invoke(report, ["errors"]).exit_code == 1
    assert " ".join(table([wrong]).splitlines()[1].split()).endswith("1.0e+00 5.0e-01 rounding")
