"""RASP source text to programs and back.

>>> from raspire.language import from_rasp, to_rasp
>>> histogram = from_rasp("selector_width(select(tokens_asis, tokens_asis, ==));")
>>> histogram("hello")
[1, 1, 2, 2, 1]
>>> print(to_rasp(histogram), end="")
selector_width(select(tokens_asis, tokens_asis, ==));
"""

from __future__ import annotations

from raspire.language.interpreter import Interpreter, Outcome, from_rasp, read_source
from raspire.language.writing import to_rasp

__all__ = ["Interpreter", "Outcome", "from_rasp", "read_source", "to_rasp"]
