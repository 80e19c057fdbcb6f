"""The compiler: a program over an alphabet and a maximal length becomes a transformer."""

from raspire.compile.certificate import Certificate
from raspire.compile.circuit import Circuit
from raspire.compile.compiled import Compiled
from raspire.compile.compiler import REALS, compile
from raspire.compile.domain import Real

__all__ = ["REALS", "Certificate", "Circuit", "Compiled", "Real", "compile"]
