"""Files called .npz that are none."""

import io

import numpy as np
import pytest

from raspire.errors import RaspLoadError
from raspire.simulator.weights import Weights


def archive(**arrays):
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def test_an_npz_file_is_read(tmp_path):
    path = tmp_path / "w.npz"
    path.write_bytes(archive(q=np.eye(2)))
    assert Weights.open(path).read("q").tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_what_is_no_npz_file_is_refused(tmp_path):
    path, single = tmp_path / "w.npz", io.BytesIO()
    np.save(single, np.eye(2))
    whole = archive(q=np.arange(64.0))
    broken = bytearray(whole)
    broken[160] ^= 255  # a wrong checksum
    for content in (b"PK\x03\x04junk", b"", b"junk", single.getvalue(), whole[:-30],
                    bytes(broken)):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(RaspLoadError, match=r"w\.npz is not an \.npz file of arrays"):
            Weights.open(path)
