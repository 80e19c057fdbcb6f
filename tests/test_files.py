"""Files are written whole or not at all."""

import os
import stat
import subprocess
import sys
import threading

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


def test_a_link_stays_a_link_and_what_it_points_to_is_written(tmp_path):
    (tmp_path / "real").mkdir()
    link, real = tmp_path / "link.json", tmp_path / "real" / "a.json"
    link.symlink_to("real/a.json")
    for content in ("first", "second"):  # a link to nothing yet, and to a file
        write_whole(link, content)
        assert link.is_symlink()
        assert real.read_text() == content
    assert [p.name for p in real.parent.iterdir()] == ["a.json"]


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path):
    pipe, read = tmp_path / "pipe.txt", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, lambda path: path.write_text("through"))
    reader.join(10)
    assert read == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_devices_stay_devices():
    write_whole("/dev/null", "x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    if os.path.exists("/dev/full"):
        with pytest.raises(RaspLoadError, match="cannot write /dev/full"):
            write_whole("/dev/full", "x")


def test_standard_output_is_written_by_its_name():
    code = "from raspire.files import write_whole; write_whole('/dev/stdout', 'said')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"said"
