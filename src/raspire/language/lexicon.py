"""The words of RASP: a text becomes a list of tokens, each with its offset.

Everything the original accepts is accepted, and more: single-quoted strings, ``!=``, ``//``,
Unicode names, comments and blanks anywhere. The words of commands (``set``, ``show``, ``load``,
``on`` ...) are ordinary names; statements.py recognises a command by its shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lark import Token

KEYWORDS = {
    "def": "DEF",
    "return": "RETURN",
    "for": "FOR",
    "in": "IN",
    "if": "IF",
    "else": "ELSE",
    "not": "NOT",
    "and": "LOGIC",
    "or": "LOGIC",
}
FORMS = {
    "select": "SELECT",
    "aggregate": "AGGREGATE",
    "range": "FORM",
    "zip": "FORM",
    "len": "FORM1",
    "round": "FORM1",
    "indicator": "FORM1",
}
MOST_DIGITS = 4300  # of an integer, Python's own limit between text and number
NEVER_NAMES = frozenset(("round", "indicator"))

# The names that lark gives to punctuation, so that the two agree.
PUNCTUATION = {
    "(": "LPAR",
    ")": "RPAR",
    "[": "LSQB",
    "]": "RSQB",
    "{": "LBRACE",
    "}": "RBRACE",
    ",": "COMMA",
    ";": "SEMICOLON",
    ":": "COLON",
    "=": "EQUAL",
    "+": "SIGN",
    "-": "SIGN",
    "%": "MODULO",
    "*": "TIMES",
    "/": "TIMES",
    "//": "TIMES",
    "^": "POWER",
    "==": "COMPARE",
    "!=": "COMPARE",
    "<=": "COMPARE",
    ">=": "COMPARE",
    "<": "COMPARE",
    ">": "COMPARE",
}

_WORDS = re.compile(
    r"""(?P<NAME>[^\W\d]\w*)
      | (?P<MARK>==|!=|<=|>=|//|[()\[\]{},;:=+\-*/%^<>])
      | (?P<FLOAT>[0-9]+\.[0-9]+)
      | (?P<INTEGER>[0-9]+)
      | (?P<STRING>"[^"\n]*"|'[^'\n]*')
      | (?P<BLANK>\s+|\#[^\n]*)
      | (?P<UNKNOWN>["'][^\n]*|.)""",
    re.VERBOSE,
)
_NEXT_IS_PAREN = re.compile(r"\s*\(")


def scan(text: str, start: int = 0) -> Iterator[Token]:
    """The tokens of a text from an offset on; what is no token comes as ``UNKNOWN``.

    >>> [(t.type, str(t)) for t in scan("x = 'a'; # note")]
    [('NAME', 'x'), ('EQUAL', '='), ('STRING', "'a'"), ('SEMICOLON', ';')]
    """
    for match in _WORDS.finditer(text, start):
        kind = match.lastgroup
        if kind == "BLANK":
            continue
        word = match.group()
        if kind == "NAME":
            if word in KEYWORDS:
                kind = KEYWORDS[word]
            elif word in FORMS and _NEXT_IS_PAREN.match(text, match.end()):
                kind = FORMS[word]
            elif word in NEVER_NAMES:
                kind = "FORM1"
        elif kind == "MARK":
            kind = PUNCTUATION[word]
        elif kind == "INTEGER" and len(word) > MOST_DIGITS:
            kind = "UNKNOWN"
        yield Token(kind or "UNKNOWN", word, match.start())
