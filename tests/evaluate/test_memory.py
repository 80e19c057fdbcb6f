"""Keeping freed memory is offered or not, and changes no result."""

import subprocess
import sys

CODE = """
import numpy as np
from raspire import indices
from raspire.evaluate import evaluate, keep_freed_memory
kept = keep_freed_memory(1 << 26)
assert kept in (True, False)
print(evaluate(indices * 2, np.zeros(100_000)).sum())
"""


def test_results_are_the_same():
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(2 * sum(range(100_000)))


def test_sums_in_parts_are_those_of_python():
    import numpy as np

    from raspire import aggregate, full, tokens
    from raspire.evaluate.parts import PART

    values = np.arange(-3, 2 * PART + 5)
    assert aggregate(full, tokens)(values)[0] == sum(map(int, values)) / len(values)
    large = np.full(PART + 7, 2**62)
    large[0] += 2
    total = sum(map(int, large))
    assert aggregate(full, tokens)(large)[0] == total / len(large)
