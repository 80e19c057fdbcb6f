"""A transformer as an ONNX file that runs on stock operators, batch and length dynamic.

Inputs: ``tokens`` int64 (batch, length), the beginning of sequence first, or ``values`` float64
(batch, length) or (batch, length, c), NaN for padding. Outputs: ``outputs`` (batch, length),
label indices or numbers, and ``logits`` (batch, length, labels). Average-hard heads average over
the positions whose score equals the row's maximum; softmax heads are Softmax.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from scipy import sparse

from raspire.errors import BudgetError, RaspLoadError
from raspire.export.config import config
from raspire.export.onnx_ops import GATES, PLAIN, Graph
from raspire.files import write_whole
from raspire.transformer import Head, Layer, Transformer, Units
from raspire.transformer.families import gate_of
from raspire.transformer.model import BOS_TYPE, PAD_TYPE, TOKEN_TYPE

OPSET = 18
IR_VERSION = 9
_LIMIT = (1 << 31) - (1 << 20)


def to_onnx(model: Transformer, precision: str = "float64") -> onnx.ModelProto:
    """The ONNX model, checked by the ONNX checker; ``metadata_props`` carry the token maps."""
    writer = _Writer(model, precision)
    proto = writer.write()
    _describe(proto, model, precision)
    if proto.ByteSize() > _LIMIT:
        raise BudgetError(
            "the ONNX file would exceed 2 GB",
            found=f"{proto.ByteSize()} bytes",
            hint="write .safetensors: it keeps the matrices sparse",
        )
    onnx.checker.check_model(proto)
    return proto


def save_onnx(model: Transformer, path: str | Path, *, precision: str = "float64") -> Path:
    """Write an ONNX file, whole or not at all; returns its path."""
    return write_whole(path, to_onnx(model, precision).SerializeToString())


class _Writer:
    def __init__(self, model: Transformer, precision: str) -> None:
        self.model, self.graph = model, Graph(precision)
        given = model.embedding.types or (TOKEN_TYPE,)
        self.names = list(dict.fromkeys([PAD_TYPE, BOS_TYPE, TOKEN_TYPE, *given]))
        self.seen: dict[frozenset[str] | None, str] = {}
        self.causal = ""
        self.range = ""
        self.types = ""

    def write(self) -> onnx.ModelProto:
        graph = self.graph
        graph.scope = "embed."
        source, kind, dims = self._source()
        stream = self._embed(source)
        for i, layer in enumerate(self.model.layers):
            stream = self._layer(i, layer, stream)
        graph.scope = "unembed."
        logits = graph.named(
            "Identity", "logits", graph.project(stream, self.model.unembedding.matrix)
        )
        outputs = self._outputs(logits)
        proto = helper.make_graph(
            graph.nodes,
            "raspire",
            [helper.make_tensor_value_info(source, kind, dims)],
            [outputs, helper.make_tensor_value_info("logits", graph.real, self._shape(None))],
            list(graph.initializers.values()),
        )
        return helper.make_model(
            proto,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="raspire",
        )

    def _shape(self, last: int | None) -> list[str | int]:
        size = len(self.model.unembedding.labels) if last is None else last
        return ["batch", "length", size]

    def _source(self) -> tuple[str, int, list[str | int]]:
        if self.model.embedding.tokens is not None:
            return "tokens", TensorProto.INT64, ["batch", "length"]
        assert self.model.embedding.values is not None
        size = self.model.embedding.values.shape[0]
        return "values", TensorProto.DOUBLE, ["batch", "length", *([size] if size > 1 else [])]

    def _outputs(self, logits: str) -> onnx.ValueInfoProto:
        graph, labels = self.graph, self.model.unembedding.labels
        if self.model.unembedding.kind == "categorical":
            graph.named("ArgMax", "outputs", logits, axis=2, keepdims=0)
            return helper.make_tensor_value_info("outputs", TensorProto.INT64, ["batch", "length"])
        if len(labels) == 1:
            graph.named("Squeeze", "outputs", logits, graph.constant([2], np.int64))
            return helper.make_tensor_value_info("outputs", graph.real, ["batch", "length"])
        graph.named("Identity", "outputs", logits)
        return helper.make_tensor_value_info("outputs", graph.real, self._shape(None))

    def _embed(self, source: str) -> str:
        graph, embedding = self.graph, self.model.embedding
        shape = graph.op("Shape", source, start=0, end=2)
        length = graph.op("Gather", shape, graph.constant(1, np.int64))
        zero, one = graph.constant(0, np.int64), graph.constant(1, np.int64)
        self.range = graph.op("Range", zero, length, one)
        if embedding.tokens is not None:
            stream = graph.op("Gather", graph.constant(embedding.tokens.toarray()), source)
            missing = None
        else:
            stream, missing = self._values(source)
        if embedding.positions is not None:
            table = embedding.positions.toarray()
            places = self._clipped(len(table)) if embedding.extend else self.range
            rows = graph.op("Gather", graph.constant(table), places)
            stream = graph.op("Add", stream, rows)
        self.types = self._types(source, shape, missing)
        return stream

    def _values(self, source: str) -> tuple[str, str]:
        graph, matrix = self.graph, self.model.embedding.values
        assert matrix is not None
        missing = graph.op("IsNaN", source)
        values = graph.op("Where", missing, graph.constant(0.0, np.float64), source)
        if graph.dtype != np.float64:
            values = graph.op("Cast", values, to=graph.real)
        if matrix.shape[0] == 1:
            values = graph.op("Unsqueeze", values, graph.constant([2], np.int64))
        else:
            flags = graph.op("Cast", missing, to=TensorProto.INT64)
            any_ = graph.op("ReduceMax", flags, graph.constant([2], np.int64), keepdims=0)
            missing = graph.op("Cast", any_, to=TensorProto.BOOL)
        return graph.op("MatMul", values, graph.constant(matrix.toarray())), missing

    def _clipped(self, rows: int) -> str:
        return self.graph.op("Min", self.range, self.graph.constant(rows - 1, np.int64))

    def _types(self, source: str, shape: str, missing: str | None) -> str:
        """The type (batch, length) of every position, as an index into ``names``."""
        graph, embedding = self.graph, self.model.embedding
        given = embedding.types or (TOKEN_TYPE,)
        table = graph.constant([self.names.index(t) for t in given], np.int64)
        types = graph.op("Expand", graph.op("Gather", table, self._clipped(len(given))), shape)
        marks = [] if missing is None else [(missing, PAD_TYPE)]
        if embedding.tokens is not None:
            for special, name in ((embedding.bos, BOS_TYPE), (embedding.pad, PAD_TYPE)):
                if special is not None:
                    found = graph.op("Equal", source, graph.constant(special, np.int64))
                    marks.append((found, name))
        for found, name in marks:
            mark = graph.constant(self.names.index(name), np.int64)
            types = graph.op("Where", found, mark, types)
        return types

    def _visible(self, keys: frozenset[str] | None) -> str:
        """The key mask (batch, 1, length) of a set of key types, computed once."""
        if keys not in self.seen:
            graph = self.graph
            scope, graph.scope = graph.scope, "mask."
            table = [n != PAD_TYPE and (keys is None or n in keys) for n in self.names]
            mask = graph.op("Gather", graph.constant(table, np.bool_), self.types)
            self.seen[keys] = graph.op("Unsqueeze", mask, graph.constant([1], np.int64))
            graph.scope = scope
        return self.seen[keys]

    def _lower(self) -> str:
        if not self.causal:
            graph = self.graph
            column = graph.op("Unsqueeze", self.range, graph.constant([1], np.int64))
            self.causal = graph.op("LessOrEqual", self.range, column)
        return self.causal

    def _layer(self, i: int, layer: Layer, stream: str) -> str:
        graph = self.graph
        if layer.heads:
            outs = []
            for j, head in enumerate(layer.heads):
                graph.scope = f"blocks.{i}.attn.head.{j}."
                outs.append(self._head(head, stream))
            graph.scope = f"blocks.{i}.attn."
            stream = self._add(stream, outs, [head.output for head in layer.heads])
        if layer.units:
            outs = []
            for j, units in enumerate(layer.units):
                graph.scope = f"blocks.{i}.mlp.{j}."
                outs.append(self._units(units, stream))
            graph.scope = f"blocks.{i}.mlp."
            stream = self._add(stream, outs, [units.output for units in layer.units])
        return stream

    def _add(self, stream: str, parts: list[str], outputs: list[sparse.csr_array]) -> str:
        graph = self.graph
        together = parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=2)
        matrix = graph.constant(sparse.vstack(outputs).toarray())
        return graph.op("Add", stream, graph.op("MatMul", together, matrix))

    def _head(self, head: Head, stream: str) -> str:
        graph = self.graph
        query, key = graph.project(stream, head.query), graph.project(stream, head.key)
        scores = graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 2, 1]))
        seen = self._visible(head.mask.keys)
        allowed = graph.op("And", seen, self._lower()) if head.mask.causal else seen
        masked = graph.op("Where", allowed, scores, graph.constant(-np.inf))
        if head.kind == "average-hard":
            weights = self._hard(masked, allowed)
        else:
            soft = graph.op("Softmax", graph.scale(masked, head.scale), axis=2)
            weights = graph.op("Where", allowed, soft, graph.constant(0.0))
        value = graph.project(stream, head.value)
        shown = graph.op("Transpose", seen, perm=[0, 2, 1])
        value = graph.op("Where", shown, value, graph.constant(0.0))
        return graph.op("MatMul", weights, value)

    def _hard(self, masked: str, allowed: str) -> str:
        graph = self.graph
        axis = graph.constant([2], np.int64)
        best = graph.op("Equal", masked, graph.op("ReduceMax", masked, axis, keepdims=1))
        weights = graph.op("Cast", graph.op("And", best, allowed), to=graph.real)
        total = graph.op("ReduceSum", weights, axis, keepdims=1)
        return graph.op("Div", weights, graph.op("Max", total, graph.constant(1.0)))

    def _units(self, units: Units, stream: str) -> str:
        graph, gate = self.graph, gate_of(units.family)
        first = None
        if units.first.nnz or gate is None or not (units.first_bias == 1).all():
            first = graph.shift(graph.project(stream, units.first), units.first_bias)
        if gate is None:
            assert first is not None
            return PLAIN[units.family](graph, first)
        assert units.second is not None
        assert units.second_bias is not None
        second = graph.shift(graph.project(stream, units.second), units.second_bias)
        gated = GATES[gate](graph, second)
        return gated if first is None else graph.op("Mul", first, gated)


def _describe(proto: onnx.ModelProto, model: Transformer, precision: str) -> None:
    record = config(model, precision)
    embedding = record["embedding"]
    kinds = sorted({head.kind for _, _, head in model.heads()})
    entries: dict[str, Any] = {
        "vocabulary": embedding["vocabulary"],
        "bos": embedding["bos"],
        "pad": embedding["pad"],
        "start": model.start,
        "max_length": embedding["max_length"],
        "output_kind": record["unembedding"]["kind"],
        "output_labels": record["unembedding"]["labels"],
        "attention": kinds,
        "precision": precision,
        "opset": OPSET,
        "cost": record["cost"],
        "config": record,
    }
    for name, value in entries.items():
        prop = proto.metadata_props.add()
        prop.key, prop.value = name, json.dumps(value)


def metadata(path: str | Path) -> dict[str, Any]:
    """The metadata of an ONNX file written here: token maps, kinds, cost, certificates."""
    try:
        proto = onnx.load(str(path), load_external_data=False)
    except Exception as error:
        raise RaspLoadError(f"{str(path)!r} cannot be read as ONNX: {error}") from None
    return {prop.key: json.loads(prop.value) for prop in proto.metadata_props}
