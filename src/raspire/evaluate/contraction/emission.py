"""From blocks to steps: each value of a block becomes array operations on registers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from raspire.evaluate.contraction import kernels
from raspire.evaluate.contraction.kernels import Array
from raspire.evaluate.contraction.means import (
    Product,
    as_product,
    greatest_among,
    mean_of_product,
    or_default,
)
from raspire.evaluate.contraction.steps import (
    MOST_CONSTANT,
    TOKENS,
    Emission,
    Ref,
    alignment,
    union,
)
from raspire.evaluate.contraction.values import (
    TOTAL,
    Best,
    Block,
    Index,
    Literal,
    Map,
    Mean,
    Pieces,
    Read,
    Value,
)
from raspire.program.index_expressions import Axis, Border, Form, NotProved, Space, digit_form
from raspire.program.nodes import Apply, Node, Tokens
from raspire.program.primitives import REALS, Primitive

EXACT = 2.0**53
CONTINUOUS = frozenset(
    ("add", "sub", "mul", "div", "neg", "pos", "abs", "maximum", "minimum", "relu", "exp", "log")
    + ("sqrt", "recip", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid", "silu", "gelu", "where")
)


def emit(plan: Emission, block: Block) -> Ref:
    """The steps of one block; its result has the block's axes (those it depends on)."""
    volume = math.prod(axis.size for axis, _ in block.axes)
    plan.lines.append(f"{_node_name(block.node)}: {volume:,} of {plan.length:,} positions")
    ref = BlockEmission(plan, block.space).ref(block.value)
    wanted = [(axis, digits_of(block.space, axis)) for axis, _ in block.axes]
    kept = [(axis, digits) for axis, digits in wanted if set(digits) & set(ref.axes)]
    spread = plan.spread(ref, tuple(digit for _, digits in kept for digit in digits))
    axes = tuple(axis for axis, _ in kept)
    shape = tuple(axis.size for axis in axes)
    if spread.axes != axes:
        spread = plan.add(
            ("reshape", axes),
            lambda array: array.reshape(shape),
            [spread],
            axes,
            ref.kind,
            ref.range,
            fresh=False,
        )
    plan.blocks[id(block)] = spread
    return spread


def digits_of(space: Space, axis: Axis) -> tuple[Axis, ...]:
    """The digits that an axis was split into, the most significant first."""
    terms = space.resolve(digit_form(axis)).terms
    return tuple(sorted(terms, key=lambda digit: -terms[digit]))


class BlockEmission:
    """The steps of the values of one block."""

    def __init__(self, plan: Emission, space: Space) -> None:
        self.plan, self.space = plan, space
        self.refs: dict[int, Ref] = {}
        self.products: dict[int, Product] = {}
        self.maxima: dict[int, tuple[Ref, Ref]] = {}

    def ref(self, root: Value | None) -> Ref:
        """The register of a value, after those it needs."""
        if root is None:
            raise NotProved
        stack = [root]
        while stack:
            value = stack[-1]
            missing = [v for v in self._needs(value) if id(v) not in self.refs]
            if id(value) in self.refs:
                stack.pop()
            elif missing:
                stack.extend(missing)
            else:
                self.refs[id(value)] = self._emit(stack.pop())
        return self.refs[id(root)]

    def _needs(self, value: Value) -> tuple[Value, ...]:
        if isinstance(value, Map):
            return value.args
        if isinstance(value, Mean):
            return (*self._factors(value).factors, *value.weights)
        if isinstance(value, Best):
            return (value.score, *value.weights)
        if isinstance(value, Pieces):
            return tuple(part for _, part in value.parts)
        return ()

    def _emit(self, value: Value) -> Ref:
        if isinstance(value, Literal):
            number = float(value.value)
            return self.plan.constant(value.value, (), value.kind, (number, number))
        if isinstance(value, Index):
            return self._index(value)
        if isinstance(value, Read):
            return self._read(value)
        if isinstance(value, Map):
            return self._map(value.record, [self.refs[id(arg)] for arg in value.args], value.kind)
        if isinstance(value, Mean):
            return self._mean(value)
        if isinstance(value, Best):
            return self._best(value)
        return self._join(value)

    # ---------------------------------------------------------------- leaves

    def _index(self, value: Index) -> Ref:
        form = self.space.resolve(value.form)
        axes = tuple(form.terms)
        if math.prod(axis.size for axis in axes) > MOST_CONSTANT:
            raise NotProved
        array = np.array(form.const, dtype=np.int64)
        for place, axis in enumerate(axes):
            column = form.terms[axis] * np.arange(axis.low, axis.high)
            array = array + column.reshape(-1, *(1,) * (len(axes) - 1 - place))
        low, high = form.range
        if max(-low, high) >= EXACT:
            raise NotProved
        return self.plan.constant(array, axes, "i", (float(low), float(high)))

    def _read(self, value: Read) -> Ref:
        access = value.access
        form = self.space.resolve(access.form)
        if isinstance(access.node, Tokens):
            source, digits = Ref(TOKENS, (), "f"), [form]
        else:
            if access.block is None:
                raise NotProved
            source = self.plan.blocks[id(access.block)]
            digits = self._block_digits(access.block, form, source.axes)
            form = self.space.resolve(form)
            digits = [self.space.resolve(digit) for digit in digits]
        axes = tuple(
            axis
            for axis, _ in sorted(form.terms.items(), key=lambda term: -abs(term[1]))
            if any(axis in digit.terms for digit in digits)
        )
        offsets = tuple(digit.const for digit in digits)
        steps = tuple(
            tuple((old, d.terms[axis]) for old, d in enumerate(digits) if axis in d.terms)
            for axis in axes
        )
        shape = tuple(axis.size for axis in axes)
        run = partial(kernels.view, offsets=offsets, shape=shape, steps=steps)
        key = ("view", offsets, axes, steps)
        return self.plan.add(key, run, [source], axes, value.kind, source.range, fresh=False)

    def _block_digits(self, block: Block, form: Form, kept: tuple[Axis, ...]) -> list[Form]:
        rest = form.plus(-block.base)
        found: list[Form] = []
        try:
            for axis, stride in block.axes:
                digit = self.space.divide(rest, stride)
                rest = self.space.resolve(rest) - digit * stride
                if axis in kept:
                    found.append(digit)
        except Border:
            raise NotProved from None
        return found

    # ---------------------------------------------------------------- element by element

    def _map(self, record: Primitive, args: list[Ref], kind: str) -> Ref:
        name = record.name
        if (
            name in ("floordiv", "mod")
            and kind == "i"
            and args[1].range[0] <= 0 <= args[1].range[1]
        ):
            raise NotProved
        if name not in CONTINUOUS and not all(arg.exact for arg in args):
            raise NotProved
        bounds = REALS
        if kind != "f":
            bounds = record.range(*(arg.range for arg in args)) if record.range else REALS
            if not max(-bounds[0], bounds[1]) < EXACT:
                raise NotProved
        if name == "where" and not args[0].exact:
            raise NotProved
        axes = union(args)
        cast = _cast(name, kind)
        places = [alignment(arg.axes, axes) for arg in args]
        function = record.numpy
        if function is None:
            raise NotProved
        check = kind == "f" and name not in TOTAL

        def run(*arrays: Array) -> Array:
            aligned = [
                kernels.aligned(cast(array), order, fill)
                for array, (order, fill) in zip(arrays, places, strict=True)
            ]
            result = np.asarray(function(*aligned))
            return kernels.checked(result) if check else result

        return self.plan.add((record.key, axes), run, args, axes, kind, bounds)

    def _join(self, value: Pieces) -> Ref:
        """Concatenate the pieces along their axis."""
        refs = [self.refs[id(part)] for _, part in value.parts]
        digits = [digits_of(self.space, axis) for axis, _ in value.parts]
        own = {digit for part in digits for digit in part}
        others = tuple(axis for axis in union(refs) if axis not in own)
        spread = [
            self.plan.spread(ref, (*others, *part)) for ref, part in zip(refs, digits, strict=True)
        ]
        shapes = [(*(a.size for a in others), axis.size) for axis, _ in value.parts]
        result = (*others, *digits_of(self.space, value.axis))
        shape = tuple(axis.size for axis in result)

        def run(*arrays: Array) -> Array:
            flat = [a.reshape(s) for a, s in zip(arrays, shapes, strict=True)]
            joined: Array = np.concatenate(flat, axis=-1)
            return joined.reshape(shape)

        low = min(ref.range[0] for ref in refs)
        high = max(ref.range[1] for ref in refs)
        return self.plan.add(("join", result), run, spread, result, value.kind, (low, high))

    # ---------------------------------------------------------------- means

    def _factors(self, mean: Mean) -> Product:
        if id(mean) not in self.products:
            self.products[id(mean)] = as_product(mean.value)
        return self.products[id(mean)]

    def _free(self, axes: Iterable[Axis]) -> set[Axis]:
        return {digit for axis in axes for digit in digits_of(self.space, axis)}

    def _mean(self, mean: Mean) -> Ref:
        product = self._factors(mean)
        factors = [self.refs[id(value)] for value in product.factors]
        weights = [self.refs[id(weight)] for weight in mean.weights]
        if len(weights) == 1 and len(factors) == 1 and weights[0].register in self.maxima:
            peak, score = self.maxima[weights[0].register]
            if score.register == factors[0].register and not product.scales:
                return or_default(self.plan, peak, mean.default)
        if not all(weight.exact for weight in weights):
            raise NotProved  # which keys have the greatest score may depend on the rounding
        free = self._free(mean.free)
        self._describe(mean, product.factors, factors, free)
        found = mean_of_product(self.plan, factors, product.scales, weights, free, mean.default)
        return replace(found, kind=mean.kind)

    def _best(self, best: Best) -> Ref:
        score = self.refs[id(best.score)]
        weights = [self.refs[id(weight)] for weight in best.weights]
        found, peak = greatest_among(self.plan, score, weights, self._free(best.free))
        self.maxima[found.register] = peak, score
        return found

    def _describe(self, mean: Mean, values: list[Value], refs: list[Ref], free: set[Axis]) -> None:
        """A line for ``explain``."""
        letter = self.plan.letter
        axes = [axis for axis in union(refs) if axis.size > 1]
        names = " * ".join(
            f"{_name(value)}[{','.join(map(letter, ref.axes))}]"
            for value, ref in zip(values, refs, strict=True)
        )
        label = f"{mean.name} = " if mean.name else ""
        over = ",".join(letter(axis) for axis in axes if axis in free)
        sizes = ", ".join(f"{letter(axis)}={axis.size}" for axis in axes)
        points = math.prod(axis.size for axis in axes)
        how = f"contraction, {points:,} products not formed" if len(refs) > 1 else "sum"
        self.plan.lines.append(
            f"  {label}mean over {over or 'nothing'} of {names or '1'}"
            f"{' where selected' if mean.weights else ''} ({sizes or 'one value'}): {how}"
        )


def _cast(name: str, kind: str) -> Callable[[Array], Array]:
    """What makes Python's meaning of truth values and ints NumPy's."""
    if name in ("and", "or", "not", "where", "indicator", "to_bool"):
        return lambda array: array
    if kind == "f":
        return lambda array: array if array.dtype.kind == "f" else array.astype(np.float64)
    return lambda array: array if array.dtype.kind != "b" else array.astype(np.int64)


def _node_name(node: Node) -> str:
    if isinstance(node, Apply):
        return node.label or f"{node.primitive.name}(...)"
    return node.label or f"{type(node).__name__.lower()}(...)"


def _name(value: Value) -> str:
    if isinstance(value, Read):
        return _node_name(value.access.node)
    if isinstance(value, Pieces):
        names = [_name(part) for _, part in value.parts]
        return "(" + " | ".join(names[:3] + ["..."] * (len(names) > 3)) + ")"
    if isinstance(value, Literal):
        return str(value.value)
    return value.record.name if isinstance(value, Map) else type(value).__name__.lower()
