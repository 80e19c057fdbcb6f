"""Syntax errors that teach: what was expected, what was found, and the likely cure."""

from __future__ import annotations

from lark import Token

from raspire.errors import RaspSyntaxError
from raspire.language.lexicon import MOST_DIGITS
from raspire.language.source import Source

EXPRESSION = {
    *("NAME", "INTEGER", "FLOAT", "STRING", "LPAR", "LSQB", "LBRACE"),
    *("NOT", "SELECT", "AGGREGATE", "FORM", "FORM1"),
}
OPERATOR = {"COMPARE", "SIGN", "MODULO", "TIMES", "POWER", "LOGIC", "IN", "IF"}
SHOWN = {
    "SEMICOLON": "';'",
    "RPAR": "')'",
    "RSQB": "']'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "COLON": "':'",
    "EQUAL": "'='",
    "LPAR": "'('",
    "LBRACE": "'{'",
    "LSQB": "'['",
    "ELSE": "'else'",
    "FOR": "'for'",
    "IN": "'in'",
    "RETURN": "'return'",
    "DEF": "'def'",
    "NAME": "a name",
    "COMPARE": "one of == != < > <= >=",
    "$END": "the end",
}
HINTS = {
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not', or '!='",
    ".": "a number has digits on both sides of its point; there are no methods",
    "?": "write: value if condition else other",
    **dict.fromkeys("\u201c\u201d\u2018\u2019\xab\xbb", "write plain quotes: \" or '"),
}
NO_SEMICOLON = "a command takes no ';'"


def complaint(
    tokens: list[Token], stopped: int, accepted: set[str], source: Source
) -> RaspSyntaxError:
    """The error for a parser that stopped at a token (or, past the last, at the end)."""
    token = tokens[stopped] if stopped < len(tokens) else None
    before = tokens[stopped - 1] if stopped else None
    if token is not None and token.type == "UNKNOWN":
        return _unknown(token, source)
    expected = _expected(accepted)
    after_before = source.place((before.start_pos or 0) + len(before)) if before else None
    if "SEMICOLON" in accepted and (token is None or new_line(before, token, source)):
        return RaspSyntaxError(
            "the statement is not finished: ';' is missing",
            where=after_before,
            expected=expected,
            found="the end of the text" if token is None else f"{str(token)!r} on the next line",
            hint="every statement but def and for ends with ';'",
        )
    if token is None:
        return RaspSyntaxError(
            "the text ends in the middle of a statement",
            where=after_before,
            expected=expected,
            found="the end of the text",
        )
    return RaspSyntaxError(
        f"this is not RASP: unexpected {str(token)!r}",
        where=source.place(token.start_pos or 0),
        expected=expected,
        hint=_hint(tokens, stopped, accepted),
    )


def new_line(before: Token | None, token: Token, source: Source) -> bool:
    """Whether a line ends between two tokens."""
    if before is None:
        return False
    end = (before.start_pos or 0) + len(before)
    return source.text.find("\n", end, token.start_pos) >= 0


def _unknown(token: Token, source: Source) -> RaspSyntaxError:
    where = source.place(token.start_pos or 0)
    if token[0].isdigit():
        return RaspSyntaxError(
            "the integer has too many digits", where=where, expected=f"at most {MOST_DIGITS} digits"
        )
    if token[0] in "\"'":
        return RaspSyntaxError(
            "the string has no end",
            where=where,
            expected=f"{token[0]} before the end of the line",
            found="the end of the line",
            hint="a string has no escapes and stays on one line",
        )
    return RaspSyntaxError(
        f"the character {token[0]!r} is not RASP", where=where, hint=HINTS.get(token[0], "")
    )


def _expected(accepted: set[str]) -> str:
    words = []
    rest = set(accepted)
    if rest >= EXPRESSION:
        words.append("an expression")
        rest -= EXPRESSION | {"SIGN"}
    if rest >= OPERATOR:
        words.append("an operator")
        rest -= OPERATOR
        rest -= {"LPAR", "LSQB"}
    if rest >= {"DEF", "LOAD"} or "DEF" in rest:
        words = ["a statement"]
        rest -= {"DEF", "LOAD", "FOR"}
    words += [SHOWN.get(name, name.lower()) for name in sorted(rest)]
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def _hint(tokens: list[Token], stopped: int, accepted: set[str]) -> str:
    token = tokens[stopped]
    before = tokens[stopped - 1] if stopped else None
    word, kind = str(token), token.type
    if before is None:
        return _hint_at_start(token)
    last = str(before)
    if kind == "EQUAL":
        if before.type in ("SIGN", "TIMES", "MODULO", "POWER"):
            return f"there is no {last}=; write x = x {last} ..."
        return "to compare, write =="
    if kind == "COLON":
        return "there are no slices" if "RSQB" in accepted else ""
    if kind in ("RSQB", "RPAR", "RBRACE") and last == ",":
        return "no comma after the last element"
    if kind == "SEMICOLON":
        return NO_SEMICOLON if accepted == {"$END"} else _hint_at_end(before, accepted)
    if last == "help" and stopped == 1:
        return "help stands alone"
    if last == "if" or word == "if":
        return "there is no if statement; write: value if condition else other"
    if kind == "IF" or (before.type == "IN" and kind == "NOT"):
        return ""
    if last in ("while", "lambda", "import", "class", "elif") and before.type == "NAME":
        return f"there is no {last}; loop with: for x in list {{ ... }}"
    if last in ("is", "print", "xor", "None"):
        return "compare with =="
    if word == "is":
        return "compare with =="
    if before.type in ("INTEGER", "FLOAT") and kind in ("NAME", "INTEGER", "FLOAT", "UNKNOWN"):
        return "a number is digits, or digits . digits"
    if last in ("*", "/") and word == last:
        return "a power is written ^"
    if kind == "RETURN":
        return "'return' stands once, at the end of a def"
    if kind == "RBRACE" and "RETURN" in accepted:
        return "a def ends with: return value; }"
    return ""


def _hint_at_start(token: Token) -> str:
    word = str(token)
    if token.type == "IF":
        return "there is no if statement; write: value if condition else other"
    if word in ("/", "//"):
        return "a comment begins with #"
    if word == ";":
        return "an empty statement is not allowed; no ';' after '}' or another ';'"
    if token.type == "RETURN":
        return "'return' stands once, at the end of a def"
    if token.type in ("RBRACE", "RPAR", "RSQB"):
        return "nothing is open here"
    return ""


def _hint_at_end(before: Token, accepted: set[str]) -> str:
    for name, mark in (("RPAR", ")"), ("RSQB", "]"), ("RBRACE", "}")):
        if name in accepted and "SEMICOLON" not in accepted:
            return f"{mark!r} is missing"
    if before.type in ("SEMICOLON", "RBRACE"):
        return "an empty statement is not allowed; no ';' after '}' or another ';'"
    return ""
