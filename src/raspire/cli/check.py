"""``raspire check``: parse, types, dialect and cost of a RASP file, without running it."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from raspire.cli.run import source_of
from raspire.errors import RaspError

if TYPE_CHECKING:
    from raspire.language.source import Source

MOST_COUNTS = 40  # numbers of heads that are written one by one


def findings(source: Source) -> dict[str, Any]:
    """What a check finds: errors, what the last value is, its types, dialect and cost."""
    from raspire.language.dialect import additions
    from raspire.language.lint import warnings
    from raspire.language.report import fault
    from raspire.language.statements import parse
    from raspire.language.syntax import Syntax
    from raspire.language.types import TypedInterpreter

    parsed = list(parse(source))
    trees = [tree for tree in parsed if isinstance(tree, Syntax)]
    errors: list[RaspError] = [tree for tree in parsed if isinstance(tree, RaspError)]
    last: Any = None
    name = None
    if not errors:
        interpreter = TypedInterpreter()
        interpreter.drawer = lambda node, tokens: None
        for outcome in interpreter.run(source):
            errors += outcome.errors()
            if outcome.kind in ("value", "assigned"):
                last = outcome.value
                name = next(reversed(outcome.names), outcome.name)
    added = additions(trees, source)
    found: dict[str, Any] = {
        "file": source.name,
        "statements": len(trees),
        "dialect": "extended" if added else "original",
        "additions": added,
        "warnings": warnings(trees, source),
    }
    if not errors:
        found["last"] = _value(name, last)
    found["errors"] = [fault(error) for error in errors]
    found["texts"] = [str(error) for error in errors]
    return found


def _value(name: str | None, value: Any) -> dict[str, Any] | None:
    from raspire.language.dialect import attention
    from raspire.language.types import type_of
    from raspire.language.values import describe
    from raspire.program.facts import cost, heads_by_depth
    from raspire.program.nodes import Node, SOp

    if value is None:
        return None
    if not isinstance(value, Node):
        return {"name": name, "kind": describe(value)}
    facts: dict[str, Any] = {"name": name, "kind": "selector"}
    if isinstance(value, SOp):
        counted = cost(value)
        heads = heads_by_depth(value)
        facts |= {
            "kind": "s-op",
            "types": sorted(type_of(value)),
            "depth": max(heads, default=0),
            "heads_per_depth": [len(heads.get(d, ())) for d in range(1, max(heads, default=0) + 1)],
            "layers": counted.layers,
            "heads_per_layer": list(counted.heads_per_layer),
            "feed_forward": list(counted.feed_forward),
        }
    return facts | {"attention": attention(value)}


@click.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(file: str, as_json: bool) -> None:
    """Check a RASP file without running it: syntax, names, types, dialect, cost.

    The exit code is 1 if anything is wrong.
    """
    found = findings(source_of(file))
    texts = found.pop("texts")
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    else:
        for text in texts:
            click.echo(text)
        for line in _lines(found):
            click.echo(line)
    if texts:
        raise click.exceptions.Exit(1)


def _lines(found: dict[str, Any]) -> list[str]:
    count = len(found["errors"])
    said = found["statements"]
    lines = [
        f"{found['file']}: {said} statement{'s' * (said != 1)}, {count} error{'s' * (count != 1)}"
    ]
    added = [f"{what} (line {line})" for what, line in found["additions"].items()]
    lines.append(f"dialect: {found['dialect']}" + (", with " + ", ".join(added) if added else ""))
    lines += [f"warning: line {w['line']}: {w['message']}" for w in found["warnings"]]
    last = found.get("last")
    if last is None:
        return lines
    lines.append(f"last value: {last['name']}, {last['kind']}")
    if "types" in last:
        heads, layers = _counts(last["heads_per_depth"]), _counts(last["heads_per_layer"])
        lines += [
            f"type: {' or '.join(last['types'])}",
            f"attention depth {last['depth']}, heads per depth: {heads} (as written)",
            f"layers {last['layers']}, heads per layer: {layers} (equal parts shared)",
            f"feed-forward: {', '.join(last['feed_forward']) or 'none'}",
        ]
    if "attention" in last:
        kinds = last["attention"]
        if kinds["comparisons"]:
            lines.append(
                f"selects by {' '.join(kinds['comparisons'])}"
                + (", causal" if kinds["causal"] else "")
            )
    return lines


def _counts(numbers: list[int]) -> str:
    """Numbers of heads; a long list with its repetitions counted.

    >>> _counts([3, 2, 1]), _counts([1] * 99 + [2])
    ('3, 2, 1', '99 times 1, 2')
    """
    if len(numbers) <= MOST_COUNTS:
        return ", ".join(map(str, numbers)) or "none"
    runs = [(number, len(list(run))) for number, run in groupby(numbers)]
    return ", ".join(f"{n} times {number}" if n > 1 else str(number) for number, n in runs)
