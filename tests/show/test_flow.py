"""Drawings: layers, heads and values, as text and as SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from raspire.errors import RaspTypeError
from raspire.evaluate.reference import reference
from raspire.language import from_rasp
from raspire.library.sources import source_names, source_program
from raspire.program.embedding import full, indices, select, selector_width, tokens
from raspire.show.flow import draw

SVG = "{http://www.w3.org/2000/svg}"


def test_heads_layers_and_values() -> None:
    sort = source_program("sort")
    drawing = draw(sort, "banana")
    assert [len(layer.heads) for layer in drawing.layers] == [2, 1]
    assert drawing.result == list("aaabnn")
    last = drawing.layers[-1].heads[0]
    assert last.creates[0].values == drawing.result
    selector = sort.args[0]
    assert last.pattern == reference(selector, "banana")


def test_a_width_is_two_heads_with_their_own_patterns() -> None:
    drawing = draw(selector_width(select(tokens, tokens, "==")), "aba")
    both, either = drawing.layers[0].heads
    assert both.pattern == [[True, False, False], [False] * 3, [True, False, False]]
    assert either.pattern == [[True, False, True], [True, True, False], [True, False, True]]
    assert drawing.layers[0].feed_forward[0].values == [2, 1, 2]


def test_a_head_used_in_two_layers_is_drawn_in_both() -> None:
    drawing = draw(from_rasp("upto = select(indices, indices, <=); a = aggregate(upto, indices);"
                           "aggregate(upto, a);"), "abc")  # fmt: skip
    assert [[head.selector for head in layer.heads] for layer in drawing.layers] == [
        ["upto"],
        ["upto"],
    ]


def test_elementwise_work_alone_is_before_the_first_layer() -> None:
    drawing = draw((indices * 2).named("twice"), "ab")
    assert (
        drawing.text()
        == "twice on a b\nbefore the first layer\n  feed-forward -> twice = [0, 2] (ints)"
    )


@pytest.mark.parametrize("name", ["reverse", "dyck1", "most_frequent", "shuffle_dyck"])
def test_the_picture_is_sound_xml_with_a_cell_for_every_pair(name: str) -> None:
    drawing = draw(source_program(name), "<(&)>")
    root = ET.fromstring(drawing.svg())
    cells = [r for r in root.iter(f"{SVG}rect") if r.get("class") in ("g", "on")]
    heads = [head for layer in drawing.layers for head in layer.heads]
    marked = sum(sum(map(sum, head.pattern or [])) for head in heads)
    assert len(cells) == 25 * len(heads)
    assert sum(cell.get("class") == "on" for cell in cells) == marked
    size = float(root.get("width", "0")), float(root.get("height", "0"))
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("x"):
            assert float(rect.get("x", "0")) + float(rect.get("width", "0")) <= size[0]
            assert float(rect.get("y", "0")) + float(rect.get("height", "0")) <= size[1]


def test_a_long_input_is_drawn_without_values() -> None:
    drawing = draw(source_program("reverse"), "ab" * 500)
    assert all(head.pattern is None for layer in drawing.layers for head in layer.heads)
    assert drawing.text().count("\n") == 5
    ET.fromstring(drawing.svg())


def test_every_source_can_be_drawn() -> None:
    for name in source_names():
        tokens = "1+2" if name == "addition" else [1.0, 2.0, 4.0, 3.0, 7.0, 5.0, 8.0, 9.0, 2.0]
        assert draw(source_program(name), tokens).text()


def test_saving_leaves_one_file(tmp_path: Path) -> None:
    drawing = draw(source_program("reverse"), "a/../b")
    path = drawing.save(tmp_path / "new" / f"{drawing.file_name}.svg")
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert "/" not in drawing.file_name


def test_only_sops_are_drawn() -> None:
    with pytest.raises(RaspTypeError, match="only an s-op can be drawn"):
        draw(full, "abc")
