"""A transformer as data, its one forward pass, its cost, and how it is written down."""

from raspire.transformer.builder import Builder, LayerBuilder
from raspire.transformer.check import check
from raspire.transformer.cost import Cost, cost
from raspire.transformer.form import Form, beside, nothing, read, repeated, write
from raspire.transformer.forward import forward
from raspire.transformer.layer import Head, Layer, Mask, Units
from raspire.transformer.model import Embedding, Transformer, Unembedding
from raspire.transformer.precision import check_precision
from raspire.transformer.rotation import rotated
from raspire.transformer.saturation import Saturated, saturated, scale_for
from raspire.transformer.space import Space, Stream
from raspire.transformer.summary import summary

__all__ = [
    "Builder",
    "Cost",
    "Embedding",
    "Form",
    "Head",
    "Layer",
    "LayerBuilder",
    "Mask",
    "Saturated",
    "Space",
    "Stream",
    "Transformer",
    "Unembedding",
    "Units",
    "beside",
    "check",
    "check_precision",
    "cost",
    "forward",
    "nothing",
    "read",
    "repeated",
    "rotated",
    "saturated",
    "scale_for",
    "summary",
    "write",
]
