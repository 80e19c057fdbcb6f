"""From blocks to steps: each value of a block becomes array operations on registers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from raspire.evaluate import contraction_kernels as kernels
from raspire.evaluate.contraction_kernels import Array
from raspire.evaluate.contraction_products import product_sum
from raspire.evaluate.contraction_steps import (
    MOST_CONSTANT,
    TOKENS,
    Emission,
    Ref,
    alignment,
    union,
)
from raspire.evaluate.contraction_values import (
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
        self.factored: dict[int, tuple[list[Value], list[tuple[str, float]]]] = {}
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
            return (*self._factors(value)[0], *value.weights)
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
            return np.concatenate(flat, axis=-1).reshape(shape)

        low = min(ref.range[0] for ref in refs)
        high = max(ref.range[1] for ref in refs)
        return self.plan.add(("join", result), run, spread, result, value.kind, (low, high))

    # ---------------------------------------------------------------- means

    def _factors(self, mean: Mean) -> tuple[list[Value], list[tuple[str, float]]]:
        """The value as a product: its factors, and the numbers it is scaled by."""
        if id(mean) not in self.factored:
            factors: list[Value] = []
            scales: list[tuple[str, float]] = []
            stack = [mean.value]
            while stack:
                value = stack.pop()
                name = value.record.name if isinstance(value, Map) and value.kind == "f" else ""
                if isinstance(value, Map) and name == "mul":
                    stack.extend(reversed(value.args))
                elif isinstance(value, Map) and name == "neg":
                    scales.append(("mul", -1.0))
                    stack.append(value.args[0])
                elif isinstance(value, Map) and name == "div" and _is_scale(value.args[1]):
                    scales.append(("div", _scale(value.args[1])))
                    stack.append(value.args[0])
                elif _is_scale(value):
                    scales.append(("mul", _scale(value)))
                else:
                    factors.append(value)
            self.factored[id(mean)] = factors, scales
        return self.factored[id(mean)]

    def _mean(self, mean: Mean) -> Ref:
        values, scales = self._factors(mean)
        factors = [self.refs[id(value)] for value in values]
        weights = [self.refs[id(weight)] for weight in mean.weights]
        free = {d for axis in mean.free for d in digits_of(self.space, axis)}
        if len(weights) == 1 and len(factors) == 1 and weights[0].register in self.maxima:
            best, score = self.maxima[weights[0].register]
            if score.register == factors[0].register and not scales:
                return self._or_default(best, mean.default)
        if not all(weight.exact for weight in weights):
            raise NotProved  # which keys have the greatest score may depend on the rounding
        self._describe(mean, values, free)
        return self._mean_of_product(factors, scales, weights, free, mean)

    def _describe(self, mean: Mean, values: list[Value], free: set[Axis]) -> None:
        """A line for ``explain``."""
        plan, refs = self.plan, [self.refs[id(value)] for value in values]
        axes = [axis for axis in union(refs) if axis.size > 1]
        names = " * ".join(
            f"{_name(value)}[{','.join(map(plan.letter, ref.axes))}]"
            for value, ref in zip(values, refs, strict=True)
        )
        over = ",".join(plan.letter(axis) for axis in axes if axis in free) or "nothing"
        sizes = ", ".join(f"{plan.letter(axis)}={axis.size}" for axis in axes)
        how = "contraction" if len(refs) > 1 else "sum"
        products = math.prod(axis.size for axis in axes)
        label = f"{mean.name} = " if mean.name else ""
        where = " where selected" if mean.weights else ""
        plan.lines.append(
            f"  {label}mean over {over} of {names or '1'}{where}: "
            f"{how}, {sizes or 'one value'}, {products:,} products not formed"
        )

    def _mean_of_product(
        self,
        factors: list[Ref],
        scales: list[tuple[str, float]],
        weights: list[Ref],
        free: set[Axis],
        mean: Mean,
    ) -> Ref:
        """The mean of the product of factors over the free axes."""
        summed = free & set(union([*factors, *weights]))
        masked = list(factors)
        for weight in weights:
            _apply_weight(self, masked, weight)
        sums = product_sum(self.plan, masked or [self._one()], summed)
        for name, number in scales:
            scale = partial(_scaled, number=number, divide=name == "div")
            sums = self.plan.add((name, number), scale, [sums], sums.axes)
        counted = summed & set(union(weights))
        rest = math.prod(axis.size for axis in summed - counted)
        if not weights:
            if rest == 1:
                return sums
            return self.plan.add(("count", rest), lambda a: a / rest, [sums], sums.axes)
        counts = product_sum(self.plan, [self._float(w) for w in weights], counted)
        axes = union([sums, counts])
        places = alignment(sums.axes, axes), alignment(counts.axes, axes)
        default = mean.default

        def run(sums: Array, counts: Array) -> Array:
            top, bottom = kernels.aligned(sums, *places[0]), kernels.aligned(counts, *places[1])
            return kernels.quotient(top, bottom * rest, default)

        return self.plan.add(("quotient", rest, default, axes), run, [sums, counts], axes)

    def _one(self) -> Ref:
        return self.plan.constant(1.0, (), "f", (1.0, 1.0))

    def _float(self, ref: Ref) -> Ref:
        if ref.kind == "f":
            return ref
        return self.plan.add("float", lambda a: a.astype(np.float64), [ref], ref.axes)

    def masked(self, factor: Ref, weight: Ref) -> Ref:
        """The factor where the weight is true, 0 elsewhere."""
        order, fill = alignment(weight.axes, factor.axes)

        def run(factor: Array, weight: Array) -> Array:
            return np.where(kernels.aligned(weight, order, fill), factor, 0.0)

        return self.plan.add("masked", run, [factor, weight], factor.axes)

    def _best(self, best: Best) -> Ref:
        score = self.refs[id(best.score)]
        weights = [self.refs[id(weight)] for weight in best.weights]
        free = {d for axis in best.free for d in digits_of(self.space, axis)}
        axes = union([score, *weights])
        kept = tuple(axis for axis in axes if axis not in free)
        axes = kept + tuple(axis for axis in axes if axis in free)
        count = len(axes) - len(kept)
        places = [alignment(ref.axes, axes) for ref in (score, *weights)]

        def parts(score: Array, *weights: Array) -> tuple[Array, Array | None]:
            arrays = [
                kernels.aligned(array, *place)
                for array, place in zip((score, *weights), places, strict=True)
            ]
            mask = np.logical_and.reduce(np.broadcast_arrays(*arrays[1:])) if weights else None
            return arrays[0], mask

        def greatest(*arrays: Array) -> Array:
            return kernels.greatest(*_reordered(parts(*arrays), count))

        def attained(greatest: Array, *arrays: Array) -> Array:
            values, mask = parts(*arrays)
            top = greatest[(..., *(None,) * count)]
            return (values == top) if mask is None else (values == top) & mask

        peak = self.plan.add(("greatest", axes), greatest, [score, *weights], kept)
        found = self.plan.add(("best", axes), attained, [peak, score, *weights], axes, "b", (0, 1))
        self.maxima[found.register] = peak, score
        return found

    def _or_default(self, best: Ref, default: float) -> Ref:
        def run(best: Array) -> Array:
            return np.where(np.isneginf(best), default, best)

        return self.plan.add(("default", default), run, [best], best.axes)


def _reordered(parts: tuple[Array, Array | None], count: int) -> tuple[Array, int, Array | None]:
    return parts[0], count, parts[1]


def _apply_weight(emission: BlockEmission, factors: list[Ref], weight: Ref) -> None:
    """Put a weight into the smallest factor that has its axes, else beside the factors."""
    able = [k for k, factor in enumerate(factors) if set(weight.axes) <= set(factor.axes)]
    if able:
        place = min(able, key=lambda k: factors[k].size)
        factors[place] = emission.masked(factors[place], weight)
    else:
        factors.append(emission._float(weight))


def _cast(name: str, kind: str) -> Callable[[Array], Array]:
    """What makes Python's meaning of truth values and ints NumPy's."""
    if name in ("and", "or", "not", "where", "indicator", "to_bool"):
        return lambda array: array
    if kind == "f":
        return lambda array: array if array.dtype.kind == "f" else array.astype(np.float64)
    return lambda array: array if array.dtype.kind != "b" else array.astype(np.int64)


def _is_scale(value: Value) -> bool:
    return isinstance(value, Literal) and value.value != 0 and math.isfinite(value.value)


def _scale(value: Value) -> float:
    if isinstance(value, Literal):
        return float(value.value)
    raise NotProved


def _node_name(node: Node) -> str:
    if isinstance(node, Apply):
        return node.label or f"{node.primitive.name}(...)"
    return node.label or f"{type(node).__name__.lower()}(...)"


def _name(value: Value) -> str:
    if isinstance(value, Read):
        return _node_name(value.access.node)
    return value.record.name if isinstance(value, Map) else type(value).__name__.lower()


def _scaled(array: Array, number: float, divide: bool) -> Array:
    return array / number if divide else array * number
