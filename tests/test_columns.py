"""Characters that take two columns stay in their columns."""

import pytest
from rich.cells import cell_len

from raspire import aggregate, indices, select
from raspire.columns import left, right, width
from raspire.session.printing import matrix_lines
from raspire.show.flow import draw

WORDS = ["東京", "a", "é", "xy"]


@pytest.mark.parametrize("word", [*WORDS, "", "e\u0301"])
def test_padding_fills_the_columns(word):
    assert width(left(word, 6)) == width(right(word, 6)) == 6
    assert left(word, 6).startswith(word)
    assert right(word, 6).endswith(word)


def places(line, of):
    """The columns at which a mark begins."""
    return [cell_len(line[:i]) for i, character in enumerate(line) if character in of]


def test_a_matrix_of_wide_tokens_is_aligned():
    identity = [[i == j for j in range(4)] for i in range(4)]
    header, *rows = (line.expandtabs(8) for line in matrix_lines(identity, WORDS))
    starts = [places(header, word[0])[0] for word in WORDS]
    assert [places(row.partition("|")[0] + "|", "|")[0] for row in rows] == [starts[0] - 2] * 4
    assert [places(row, "1")[0] for row in rows] == starts


def test_a_drawing_of_wide_tokens_is_aligned():
    program = aggregate(select(indices, indices, "<="), indices)
    text = draw(program, WORDS).text()
    rows = [line for line in text.splitlines() if " | " in line]
    assert len({places(row, "|")[0] for row in rows}) == 1
    header = text.splitlines()[text.splitlines().index(rows[0]) - 1]
    assert places(rows[-1], "1") == [places(header, word[0])[-1] for word in WORDS]
