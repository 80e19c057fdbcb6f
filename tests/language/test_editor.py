"""The TextMate grammar knows the words that the lexicon knows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raspire.language.interpreter import Interpreter
from raspire.language.lexicon import FORMS, KEYWORDS
from raspire.language.names import RESERVED
from raspire.library.sources import source_names, source_path

EDITORS = Path(__file__).parents[2] / "editors" / "vscode"
GRAMMAR = json.loads((EDITORS / "syntaxes" / "rasp.tmLanguage.json").read_text("utf-8"))


def patterns(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every pattern with the scope it gives, in the order in which they are tried."""
    if "include" in entry:
        yield from patterns(GRAMMAR["repository"][entry["include"][1:]])
    for inner in entry.get("patterns", []):
        yield from patterns(inner)
    if "match" in entry:
        captures = entry.get("captures", {})
        yield entry["match"], entry.get("name") or captures["1"]["name"]


ORDERED = [(re.compile(regex, re.MULTILINE), scope) for regex, scope in patterns(GRAMMAR)]


def scopes(text: str) -> list[tuple[str, str]]:
    """The words of a text with their scopes, as an editor would find them."""
    found, at = [], 0
    while at < len(text):
        matches = [(m.start(), n, m, s) for n, (r, s) in enumerate(ORDERED)
                   if (m := r.search(text, at)) and m.end() > m.start()]  # fmt: skip
        if not matches:
            break
        _, _, match, scope = min(matches, key=lambda entry: entry[:2])
        found.append((match.group().strip(), scope))
        at = match.end()
    return found


def test_the_words_of_the_language_have_their_scopes() -> None:
    for word in KEYWORDS:
        assert scopes(f"{word} x")[0][1].startswith(("keyword", "storage"))
    for word in FORMS:
        assert scopes(f"{word} (x)")[0] == (word, "support.function.builtin.rasp")
    for name in Interpreter().library.names:
        assert scopes(f"{name};")[0][1].startswith(("support", "variable", "constant")), name
    assert RESERVED - {"range", "zip", "len", "get"} <= {
        name for name in RESERVED if scopes(name) and "language" in scopes(name)[0][1]
    }


@pytest.mark.parametrize(
    ("text", "word", "scope"),
    [
        ("set example 'a'", "set example", "keyword.other.command.rasp"),
        ("set s-op example 'a'", "set s-op example", "keyword.other.command.rasp"),
        ("x = 1; # note", "# note", "comment.line.number-sign.rasp"),
        ("load 'lib';", "load", "keyword.control.import.rasp"),
        ("f(2.5);", "2.5", "constant.numeric.float.rasp"),
        ("a // b;", "//", "keyword.operator.arithmetic.rasp"),
        ('"for # in"', '"for # in"', "string.quoted.double.rasp"),
        ('x = "open', '"open', "invalid.illegal.unclosed-string.rasp"),
        ("my_fun (x);", "my_fun", "entity.name.function.call.rasp"),
    ],
)
def test_scopes(text: str, word: str, scope: str) -> None:
    assert (word, scope) in scopes(text)


@pytest.mark.parametrize("name", source_names())
def test_nothing_in_our_sources_is_illegal(name: str) -> None:
    assert not any("invalid" in scope for _, scope in scopes(source_path(name).read_text("utf-8")))


def test_the_extension_names_files_that_exist() -> None:
    manifest = json.loads((EDITORS / "package.json").read_text("utf-8"))
    contributed = manifest["contributes"]
    assert (EDITORS / contributed["grammars"][0]["path"]).is_file()
    assert (EDITORS / contributed["languages"][0]["configuration"]).is_file()
