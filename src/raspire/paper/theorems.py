"""The table of the paper's results: text, Markdown and JSON, counted from the programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from raspire.paper.claims import Claim, Row
from raspire.verify.certificate import Certificate

HEADER = ("claim", "result", "depth", "layers", "heads", "N", "paper", "rests on")
RIGHT = {2, 3, 5, 6}


def heads_text(heads: tuple[int, ...]) -> str:
    """Heads a layer, as ``2,1,2``."""
    return ",".join(map(str, heads))


def short(heads: tuple[int, ...]) -> str:
    """The same with the middle of a long list left out.

    >>> short((2, 1) * 9)
    '2,1,2,1,..,2,1'
    """
    if len(heads) <= 8:
        return heads_text(heads)
    return f"{heads_text(heads[:4])},..,{heads_text(heads[-2:])}"


def cells(claim: Claim, row: Row) -> tuple[str, ...]:
    """One line of the table."""
    return (
        claim.key,
        claim.result,
        str(row.attention_depth),
        str(row.layers),
        short(row.heads),
        "any" if row.length is None else str(row.length),
        "-" if claim.paper_layers is None else str(claim.paper_layers),
        claim.rests_on,
    )


def table(some: Iterable[Claim]) -> str:
    """The table as text, columns aligned.

    >>> from raspire.paper.claims import claim
    >>> print(table([claim("transposition")]))
    claim          result   depth  layers  heads   N  paper  rests on
    transposition  Lemma 3      1       1  1      12      2  identity over GF(p)
    """
    rows = [HEADER, *(cells(claim, claim.row()) for claim in some)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    parts = (
        text.rjust(width) if place in RIGHT else text.ljust(width)
        for place, (text, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(parts).rstrip()


def markdown(some: Iterable[Claim]) -> str:
    """The table as Markdown, with the families and the command that reproduces each line."""
    head = (*HEADER[:-1], "feed-forward", HEADER[-1], "command")
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for claim in some:
        row = claim.row()
        *first, rests_on = cells(claim, row)
        families = ", ".join(row.feed_forward) or "none"
        line = (*first, families, rests_on, f"`{claim.command}`")
        lines.append("| " + " | ".join(line) + " |")
    return "\n".join(lines)


def data(claim: Claim, certificate: Certificate | None = None) -> Mapping[str, Any]:
    """A claim with its cost (and its certificate, if it was redone) as plain data."""
    row = claim.row()
    found: dict[str, Any] = {
        "claim": claim.key,
        "result": claim.result,
        "statement": claim.statement,
        "layout": claim.layout,
        "counted on": claim.kind,
        "attention_depth": row.attention_depth,
        "layers": row.layers,
        "heads_per_layer": list(row.heads),
        "N": row.length,
        "feed_forward": list(row.feed_forward),
        "paper_layers": claim.paper_layers,
        "rests_on": claim.rests_on,
        "command": claim.command,
    }
    if row.weights is not None:
        found["nonzero_weights"] = row.weights
    if certificate is not None:
        found["certificate"] = {
            "claim": certificate.claim,
            "method": certificate.method,
            "holds": certificate.holds,
            "error_probability": certificate.error_probability,
            "details": dict(certificate.details),
        }
    return found


def page(claim: Claim, certificate: Certificate) -> str:
    """Everything about one claim, its verification redone."""
    row = claim.row()
    length = "every length" if row.length is None else f"N = {row.length}"
    lines = [
        f"{claim.key} ({claim.result})",
        f"  {claim.statement}",
        f"  layout        {claim.layout}",
        f"  cost          attention depth {row.attention_depth}, layers {row.layers}, heads a "
        f"layer {heads_text(row.heads)}, {length}",
        f"  feed-forward  {', '.join(row.feed_forward) or 'none'}",
        f"  counted on    {_counted(claim, row)}",
    ]
    if claim.paper_layers is not None:
        lines.append(f"  the paper     {claim.paper_layers} layers")
    lines.append(f"  rests on      {claim.rests_on}")
    lines.append(f"  checked now   {certificate}")
    lines += [f"    {name}: {_short(value)}" for name, value in certificate.details.items()]
    return "\n".join(lines)


def _counted(claim: Claim, row: Row) -> str:
    if claim.kind == "program":
        return "the program"
    return f"the weights, {row.weights} of them not zero"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
