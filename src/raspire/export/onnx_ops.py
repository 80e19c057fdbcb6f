"""A graph of ONNX operators being written, and the feed-forward families in it.

Projections that only pick and scale slots become a Gather and a Mul, others a Gather of the slots
they use and a small MatMul, so that files stay small when the residual stream is wide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from scipy import sparse, special


class Graph:
    """Nodes and initializers; every method returns the name of its result."""

    def __init__(self, precision: str) -> None:
        self.dtype = np.dtype(precision)
        self.real = TensorProto.DOUBLE if self.dtype == np.float64 else TensorProto.FLOAT
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.scope = ""
        self._count = 0
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output."""
        self._count += 1
        name = f"{self.scope}{kind}_{self._count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def named(self, kind: str, output: str, *inputs: str, **attributes: Any) -> str:
        """Add a node whose output has a given name."""
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def constant(self, value: Any, dtype: Any = None) -> str:
        """An initializer; equal constants are one."""
        array = np.ascontiguousarray(np.asarray(value, dtype=dtype or self.dtype))
        if np.ndim(value) == 0:
            array = array.reshape(())
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            name = f"weight_{len(self._constants)}"
            self._constants[key] = name
            self.initializers[name] = numpy_helper.from_array(array, name)
        return self._constants[key]

    def project(self, stream: str, matrix: sparse.sparray) -> str:
        """``stream @ matrix`` on the last axis, reading only the slots that the matrix uses."""
        entries = sparse.coo_array(matrix)
        slots, columns = entries.coords
        if len(columns) == matrix.shape[1] and len(set(columns.tolist())) == len(columns):
            order = np.argsort(columns)
            picked = self.op("Gather", stream, self.constant(slots[order], np.int64), axis=2)
            factors = entries.data[order]
            return picked if (factors == 1).all() else self.scale(picked, factors)
        used = np.unique(slots)
        if len(used) == 0:
            used = np.array([0])
        block = sparse.csr_array(matrix)[used].toarray()
        picked = self.op("Gather", stream, self.constant(used, np.int64), axis=2)
        return self.op("MatMul", picked, self.constant(block))

    def scale(self, name: str, factors: Any) -> str:
        """Multiply by a constant."""
        return self.op("Mul", name, self.constant(factors))

    def shift(self, name: str, bias: NDArray[np.float64]) -> str:
        """Add a bias, if there is one."""
        return self.op("Add", name, self.constant(bias)) if bias.any() else name


def _step(graph: Graph, x: str, kind: str) -> str:
    return graph.op("Cast", graph.op(kind, x, graph.constant(0.0)), to=graph.real)


def _gelu_tanh(graph: Graph, x: str) -> str:
    cube = graph.op("Mul", x, graph.op("Mul", x, x))
    inner = graph.op("Add", x, graph.scale(cube, 0.044715))
    half = graph.scale(graph.op("Tanh", graph.scale(inner, np.sqrt(2 / np.pi))), 0.5)
    return graph.op("Mul", x, graph.op("Add", half, graph.constant(0.5)))


def _erf(graph: Graph, x: str) -> str:
    """The error function; in binary64, for which onnxruntime has no kernel, by a Chebyshev sum.

    ``erfc(z) = t exp(-z² + P(t))`` with ``t = 2 / (2 + z)``; P is smooth on (0, 1], and 31 terms
    give the rounding of binary64 (error below 4e-16).
    """
    if graph.dtype != np.float64:
        return graph.op("Erf", x)
    z = graph.op("Abs", x)
    t = graph.op("Div", graph.constant(2.0), graph.op("Add", z, graph.constant(2.0)))
    twice = graph.op("Sub", graph.scale(t, 4.0), graph.constant(2.0))
    later = latest = graph.constant(0.0)
    first, *rest = _erfc_series()
    for coefficient in reversed(rest):
        total = graph.op("Sub", graph.op("Mul", twice, latest), later)
        later, latest = latest, graph.op("Add", total, graph.constant(coefficient))
    half = graph.op("Mul", graph.scale(twice, 0.5), latest)
    series = graph.op("Add", graph.op("Sub", half, later), graph.constant(first))
    power = graph.op("Exp", graph.op("Sub", series, graph.op("Mul", z, z)))
    rest_ = graph.op("Sub", graph.constant(1.0), graph.op("Mul", t, power))
    return graph.op("Mul", graph.op("Sign", x), rest_)


def _erfc_series(terms: int = 31) -> list[float]:
    """Chebyshev coefficients of ``log(exp(z²) erfc(z) / t)`` in ``2 t - 1``."""

    def function(u: Any) -> Any:
        t = (u + 1) / 2
        return np.log(special.erfcx(2 / t - 2) / t)

    return [float(c) for c in np.polynomial.chebyshev.chebinterpolate(function, terms - 1)]


def _gelu(graph: Graph, x: str) -> str:
    half = graph.scale(_erf(graph, graph.scale(x, np.sqrt(0.5))), 0.5)
    return graph.op("Mul", x, graph.op("Add", half, graph.constant(0.5)))


def _one(kind: str) -> Callable[[Graph, str], str]:
    return lambda graph, x: graph.op(kind, x)


GATES: dict[str, Callable[[Graph, str], str]] = {
    "identity": lambda graph, x: x,
    "exp": _one("Exp"),
    "recip": _one("Reciprocal"),
    "rsqrt": lambda graph, x: graph.op("Reciprocal", graph.op("Sqrt", x)),
    "sqrt": _one("Sqrt"),
    "log": _one("Log"),
    "abs": _one("Abs"),
    "sign": _one("Sign"),
    "sin": _one("Sin"),
    "cos": _one("Cos"),
    "tanh": _one("Tanh"),
    "erf": _erf,
    "sigmoid": _one("Sigmoid"),
    "step": lambda graph, x: _step(graph, x, "Greater"),
    "zero": lambda graph, x: _step(graph, x, "Equal"),
    "floor": _one("Floor"),
    "relu": _one("Relu"),
    "silu": lambda graph, x: graph.op("Mul", x, graph.op("Sigmoid", x)),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}


def _relu2(graph: Graph, x: str) -> str:
    positive = graph.op("Relu", x)
    return graph.op("Mul", positive, positive)


PLAIN: dict[str, Callable[[Graph, str], str]] = {
    "linear": lambda graph, x: x,
    "relu": _one("Relu"),
    "relu2": _relu2,
}
