"""``raspire prove``: U returns T(X) for every T and X of a shape; two programs are one."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from raspire.cli.options import writable

if TYPE_CHECKING:
    from raspire.verify.certificate import Certificate


@click.group()
def prove() -> None:
    """Verify, and print or write the certificate. Exit code 1 if the claim does not hold."""


def _conclude(found: Certificate, out: str | None) -> None:
    click.echo(str(found))
    for name, value in found.details.items():
        shown = f"{value:.3g}" if isinstance(value, float) else value
        text = ", ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
        click.echo(f"  {name}: {text}")
    if out:
        found.save(out)
        click.echo(f"certificate written to {out}")
    sys.exit(0 if found.holds else 1)


@prove.command()
@click.option("--n", type=click.IntRange(min=1), required=True, help="Rows of X.")
@click.option("--d", type=click.IntRange(min=1), required=True, help="Model dimension.")
@click.option("--heads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--d-k", type=click.IntRange(min=1), help="Default: d / heads.")
@click.option("--d-v", type=click.IntRange(min=1), help="Default: d / heads.")
@click.option(
    "--construction",
    type=click.Choice(["long", "wide", "native", "pair"]),
    default="long",
    show_default=True,
)
@click.option("--softmax", type=click.Choice(["plain", "stable"]), default="plain")
@click.option("--mask", type=click.Choice(["none", "causal", "padding"]), default="none")
@click.option("--output/--no-output", default=True, help="With or without the output map.")
@click.option("--weights", is_flag=True, help="Prove the explicit weights, not the program.")
@click.option("--error", type=float, default=1e-9, show_default=True, help="Error probability.")
@click.option("--random-prime", is_flag=True, help="Draw the field of every trial at random.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--out", callback=writable, help="Write the certificate (JSON) here.")
def simulator(
    n: int,
    d: int,
    heads: int,
    d_k: int | None,
    d_v: int | None,
    construction: Any,
    softmax: Any,
    mask: Any,
    output: bool,
    weights: bool,
    error: float,
    random_prime: bool,
    seed: int,
    out: str | None,
) -> None:
    """U returns T(X) for every T and X of a shape, over a finite field.

    Constructions native and pair are networks, so their weights are what is proved.
    """
    from raspire.arithmetic.field import MERSENNE_61
    from raspire.paper.network_proofs import named_network, prove_network
    from raspire.paper.proofs import prove_identity
    from raspire.simulator.universal import UniversalSimulator

    options: dict[str, Any] = {
        "error": error,
        "prime": None if random_prime else MERSENNE_61,
        "seed": seed,
    }
    program: Any = construction if construction in ("long", "wide") else "wide"
    made = UniversalSimulator(n, d, heads, d_k, d_v, program, softmax, mask, output)
    if weights or construction in ("native", "pair"):
        network = named_network(construction, n, made.shape, softmax)
        _conclude(prove_network(network, n, **options), out)
    _conclude(prove_identity(made, **options), out)


@prove.command()
@click.argument("left")
@click.argument("right")
@click.option("--alphabet", help="Letters, or a JSON list of tokens: compare on every word.")
@click.option("--longest", type=click.IntRange(min=0), default=5, show_default=True, help="Words.")
@click.option("--reals", type=click.IntRange(min=1), help="Decide for every real input this long.")
@click.option("--integers", type=click.IntRange(min=1), help="The same for integer inputs.")
@click.option("--field", type=click.IntRange(min=1), help="Test the identity on inputs this long.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="For the solver.")
@click.option("--out", callback=writable, help="Write the certificate (JSON) here.")
def programs(
    left: str,
    right: str,
    alphabet: str | None,
    longest: int,
    reals: int | None,
    integers: int | None,
    field: int | None,
    seconds: float,
    out: str | None,
) -> None:
    """The last values of two RASP files are one program, in one of three ways.

    --alphabet compares every word up to a length; --reals or --integers asks a solver (extra
    proof); --field tests the identity of rational functions and named ones.
    """
    chosen = [way for way in (alphabet, reals, integers, field) if way is not None]
    if len(chosen) != 1:
        raise click.UsageError("Give one of --alphabet, --reals, --integers and --field.")
    one, other = _program(left), _program(right)
    claim = f"{left} and {right} are one program"
    if alphabet is not None:
        from raspire.verify.exhaustive import exhaustive

        _conclude(exhaustive(claim, one, other, _tokens(alphabet), longest), out)
    if field is not None:
        from raspire.verify.identity import ProgramSide, identity

        _conclude(identity(claim, ProgramSide(one), ProgramSide(other), field), out)
    from raspire.verify.solver import solve

    kind: Any = "real" if integers is None else "int"
    length = integers if integers is not None else reals
    assert length is not None
    _conclude(solve(claim, one, other, length, kind=kind, seconds=seconds), out)


def _program(path: str) -> Any:
    """The last s-op of a RASP file, or of one of our own programs by its name."""
    from raspire.cli.run import last_value
    from raspire.errors import RaspTypeError
    from raspire.language.interpreter import Interpreter
    from raspire.program.nodes import SOp

    name, value = last_value(Interpreter(checking=False), path)
    if not isinstance(value, SOp):
        raise RaspTypeError(
            f"the last value of {path} is no s-op",
            expected="an s-op, as in flipped = reverse(tokens);",
            found=f"{name}: {type(value).__name__}",
        )
    return value


def _tokens(alphabet: str) -> list[Any]:
    try:
        tokens = json.loads(alphabet)
    except ValueError:
        return list(alphabet)
    return tokens if isinstance(tokens, list) else list(alphabet)
