"""Value domains: every reachable mean is there, and no domain is too small."""

import itertools
from fractions import Fraction

from raspire.compile.domain import Finite, Ratio, Real, combine, finite, mean_of
from raspire.compile.facts import Facts
from raspire.compile.lowering import lower
from raspire.compile.sampling import sample
from raspire.evaluate.reference import reference


def test_means_of_truth_values_hold_two_thirds():
    found = mean_of(Finite((0, 1)), 6).values
    wanted = {Fraction(a, b) for b in range(1, 7) for a in range(b + 1)}
    assert set(found) == wanted
    assert Fraction(2, 3) in found
    assert Fraction(2, 5) in found


def test_means_of_any_numbers_cover_every_selection():
    values = (Fraction(-3, 2), 0, 4)
    found = set(mean_of(Finite(values), 4).values)
    for size in range(1, 5):
        for chosen in itertools.combinations_with_replacement(values, size):
            assert sum(chosen) / Fraction(size) in found


def test_too_many_means_become_a_bound():
    domain = mean_of(Finite(tuple(range(2000))), 40)
    assert isinstance(domain, Ratio)
    assert (domain.low, domain.high, domain.denominator) == (0, 1999, 40)
    assert isinstance(mean_of(Finite((0.1, 0.7)), 4), Real)


def test_values_that_python_calls_equal_are_one():
    assert finite([True, 1, 1.0, False]).values == (0, 1)
    assert finite([True, False]).values == (False, True)


def test_differences_of_bounded_rationals_keep_a_denominator():
    domain = combine("sub", Ratio(0, 1, 80), Ratio(0, 1, 80))
    assert domain == Ratio(-1, 1, 6400)


def test_the_domain_of_a_random_program_holds_all_its_values():
    for seed in range(25):
        program = sample(seed, 10)
        domain = Facts(tuple("abc"), 5).domain(lower(program))
        for tokens in (["a"], list("cab"), list("bbcaa"), list("ccccc")):
            for value in reference(program, tokens, "exact"):
                if isinstance(domain, Finite):
                    assert value in domain.place
                else:
                    assert domain.low <= value <= domain.high
