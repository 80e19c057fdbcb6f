"""Files are written whole or not at all."""

import stat

import pytest

from raspire.errors import RaspLoadError
from raspire.files import write_whole


def test_bytes_text_and_writers(tmp_path):
    path = tmp_path / "a.json"
    for content, found in ((b"x", b"x"), ("é", "é".encode()), (lambda p: p.write_text("w"), b"w")):
        assert write_whole(path, content) == path
        assert path.read_bytes() == found
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert stat.S_IMODE(path.stat().st_mode) & stat.S_IRUSR


def test_a_failing_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.npy"
    path.write_text("old")

    def broken(temporary):
        assert temporary.suffix == ".npy"
        temporary.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, broken)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(RaspLoadError, match="cannot write"):
        write_whole(tmp_path / "none" / "a.txt", "x")
