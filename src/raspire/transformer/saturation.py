"""Average-hard attention as saturated softmax, bit for bit, with its certificate.

If the computed gap of a head's scores, times its scale, exceeds 746 in binary64 (104.1 in
binary32), every exponential of a score below the maximum is exactly 0, and stock softmax gives
the average-hard result up to the rounding of the average. The scale is a power of two, so that
scaling rounds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, frexp, inf

from raspire.errors import RaspValueError
from raspire.transformer.forward import saturation
from raspire.transformer.layer import Head
from raspire.transformer.model import Transformer
from raspire.transformer.precision import PRECISIONS, check_exact


@dataclass(frozen=True)
class Saturated:
    """What is certified of one head: scores in units of the gap, the scale, and both bounds.

    ``real_bound`` is ``2 N exp(-scale gap)``: in real arithmetic the outputs differ by at most
    this times the largest value. ``threshold`` is what ``scale * gap`` exceeds, so that in the
    stated precision the difference is 0 but for the rounding of the average.
    """

    layer: int
    head: int
    name: str
    gap: float
    scale: float
    real_bound: float
    threshold: float

    def __str__(self) -> str:
        return (
            f"layer {self.layer + 1} head {self.head} ({self.name}): gap {self.gap:g}, "
            f"scale {self.scale:g}, real bound {self.real_bound:.3g}·max|v|, "
            f"scaled gap {self.scale * self.gap:g} > {self.threshold:g}"
        )


def scale_for(gap: float, precision: str = "float64") -> float:
    """The least power of two that lifts a gap over the threshold of a precision.

    >>> scale_for(1.0), scale_for(1.0, "float32"), scale_for(0.5)
    (1024.0, 128.0, 2048.0)
    """
    if not 0 < gap < inf:
        raise RaspValueError("a gap is a positive number", found=repr(gap))
    mantissa, exponent = frexp(saturation(precision) / gap)
    return 2.0 ** (exponent - 1 if mantissa == 0.5 else exponent)


def saturated(
    model: Transformer, precision: str = "float64", length: int | None = None
) -> Transformer:
    """The same transformer with softmax in place of average-hard attention, certified.

    Every average-hard head needs its gap; where the largest score is known too, it must be exact
    in the precision. ``notes["saturation"]`` holds the certificate of every head.
    """
    if precision not in PRECISIONS:
        raise RaspValueError(f"unknown precision {precision!r}", expected=", ".join(PRECISIONS))
    longest = length or model.embedding.max_length
    record: list[Saturated] = []
    layers = []
    for i, layer in enumerate(model.layers):
        heads = []
        for j, head in enumerate(layer.heads):
            if head.kind == "average-hard":
                record.append(_certify(head, i, j, precision, longest))
                head = replace(head, kind="softmax", scale=record[-1].scale)
            heads.append(head)
        layers.append(replace(layer, heads=tuple(heads)))
    notes = {**model.notes, "saturation": tuple(record), "precision": precision}
    return replace(model, layers=tuple(layers), notes=notes)


def _certify(head: Head, i: int, j: int, precision: str, length: int | None) -> Saturated:
    where = f"layer {i + 1} head {j} ({head.name})"
    if head.gap is None:
        raise RaspValueError(
            f"{where} has no certified gap, so softmax attention cannot be exact",
            hint="scores on reals have no least distance; keep average-hard attention",
        )
    check_exact(head, where, precision)
    scale = scale_for(head.gap, precision)
    real = inf if length is None else 2 * length * exp(-scale * head.gap)
    return Saturated(i, j, head.name, head.gap, scale, real, saturation(precision))
