"""Heads: what a selector's score is made of, and what the head carries."""

from __future__ import annotations

import numpy as np

from raspire.compile.domain import Finite, Vector
from raspire.compile.facts import Selection
from raspire.compile.grid import lifted
from raspire.compile.linear import BOS, Cell, Form, constant, of
from raspire.compile.lowering import Share
from raspire.compile.naming import text_of
from raspire.compile.parts import HeadPart, Pair
from raspire.compile.score import is_causal, score_of
from raspire.compile.workshop import Workshop
from raspire.errors import UnsupportedError
from raspire.program.nodes import Aggregate, Selector, SOp


class Attention(Workshop):
    """The part of the compiler that makes heads."""

    def _head(self, owner: SOp | Selector, selector: Selector, sink: str) -> HeadPart:
        key = (selector, sink)
        if key not in self._heads:
            selection = self.selection(selector)
            part = self._scored(selection, text_of(selector), sink)
            part.node = owner if isinstance(owner, SOp) else None
            self._heads[key] = self._scores.setdefault(part.signature, part)
            if self._heads[key] is part:
                self.parts.append(part)
        return self._heads[key]

    def _scored(self, selection: Selection, label: str, sink: str) -> HeadPart:
        causal = any(is_causal(c) for c in selection.clauses)
        if self.one_mask is not None:
            causal = self.one_mask == "causal"
        pairs: list[Pair] = []
        top = 0.0
        for clause in selection.clauses:
            if not (causal and is_causal(clause)):
                score = score_of(clause, self, exact=sink == "share" or not selection.copies)
                pairs += score.pairs
                top += score.top
        if selection.greatest is not None:
            pairs, top = self._greatest(selection, pairs, top)
            if sink == "share":
                raise UnsupportedError(
                    f"the width of {label} is no share of one head",
                    where=selection.greatest.place,
                    hint="aggregate over a hardmax instead of counting it",
                )
        level = top if sink == "share" else top - 1
        pairs.append((constant(level) + of(BOS, 2.0), of(BOS)))
        head = HeadPart(label, pairs, causal, selection.copies, sink)
        if selection.greatest is not None and not self.finite(selection.greatest.score):
            head.gap = None
            head.outright = True  # until another value is read through it
        return head

    def _greatest(
        self, selection: Selection, pairs: list[Pair], top: float
    ) -> tuple[list[Pair], float]:
        """Conditions first, then the score itself: one more unit of it never outweighs them."""
        assert selection.greatest is not None
        score = selection.greatest.score
        domain = self.domain(score)
        if isinstance(domain, Finite) and domain.numeric:
            rank = np.arange(len(domain), dtype=float)
            ranked, reach = self.form(score, rank * 2 + 2, True), 2.0 * len(domain)
        elif isinstance(self.alphabet, tuple):
            raise UnsupportedError(
                f"hardmax of {text_of(score)} cannot be certified: equal scores may be rounded",
                where=selection.greatest.place,
                expected="a score with finitely many values",
                found=str(domain),
            )
        elif domain.numeric and np.isfinite([domain.low, domain.high]).all():
            ranked = self.number(score) + constant(2 - domain.low)
            reach = domain.high - domain.low + 2
        else:
            raise UnsupportedError(
                f"hardmax of {text_of(score)} needs to know how far its scores may lie apart",
                where=selection.greatest.place,
                expected="numbers within bounds",
                found=str(domain),
                hint="compile with alphabet=Real(low, high)",
            )
        factor = float(2 ** np.ceil(np.log2(reach + 2)))
        raised = [(query * factor, key) for query, key in pairs]
        return [*raised, (constant(1), ranked)], top * factor + 2

    def share(self, node: Share) -> Cell:
        head = self._head(node, node.selector, "share")
        if not head.values:
            cell = Cell("head", text_of(node), node, source=head, at_bos=1.0)
            head.values[cell] = of(BOS)
        return next(iter(head.values))

    def mean_form(self, node: Aggregate, exact: bool) -> Form:
        domain = self.domain(node)
        if isinstance(domain, Finite) and self.single_valued(node):
            return self.function(node, domain.floats, exact)
        if exact and isinstance(domain, Finite):
            return self.stepped(node, domain.floats, exact)
        default = 0.0 if self.selection(node.selector).reaches else float(lifted(node.default))
        return of(self._mean(node, default)) + constant(default)

    def _mean(self, node: Aggregate, default: float) -> Cell:
        """The cell of a mean less its default."""
        head = self._head(node, node.selector, "rest")
        key = ("mean", id(head), node.value, default)
        if key not in self._cells:
            greatest = self.selection(node.selector).greatest
            head.outright &= greatest is not None and greatest.score is node.value
            value = self.number(node.value) - constant(default)
            domain = self.domain(node)
            ends = [value.bound] if not isinstance(domain, Finite) else [
                abs(float(v) - default) for v in domain.values if v is not None
            ]  # fmt: skip
            cell = Cell("head", text_of(node), node, source=head, bound=max(ends))
            if isinstance(domain, Finite) and domain.numeric:
                cell.table = domain.floats - default
            head.values[cell] = value
            self._cells[key] = cell
        return self._cells[key]

    def _present(self, node: Aggregate) -> Cell:
        """The cell that is 1 where anything is selected."""
        head = self._head(node, node.selector, "rest")
        key = ("present", id(head))
        if key not in self._cells:
            cell = Cell("head", f"anything selected for {text_of(node)}", node, source=head)
            head.values[cell] = constant(1)
            self._cells[key] = cell
        return self._cells[key]

    def copied(self, node: Aggregate, table: Vector, exact: bool) -> Form:
        """A function of a copied value: that function of the value, copied."""
        domain = self.domain(node)
        assert isinstance(domain, Finite)
        value = self.domain(node.value)
        assert isinstance(value, Finite)
        default = lifted(node.default)
        base = 0.0
        if not self.selection(node.selector).reaches and default in domain.place:
            base = float(table[domain.place[default]])
        wanted = np.array([table[domain.place[v]] for v in value.values])
        head = self._head(node, node.selector, "rest")
        key = ("copy", id(head), node.value, wanted.tobytes(), base, exact)
        if key not in self._cells:
            source = self.form(node.value, wanted, exact) - constant(base)
            label = self.feature(node, table)
            bound = float(np.abs(table - base).max())
            cell = Cell("head", label, node, table - base, source=head, bound=bound)
            head.values[cell] = source
            self._cells[key] = cell
        return of(self._cells[key]) + constant(base)
