# SPDX-License-Identifier: Apache-2.0
"""Clouds in files: every field survives, and a file that is cut is refused."""

from __future__ import annotations

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dataset_trees as trees
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.datasets.point_files import points_bytes, read_points


@pytest.mark.parametrize(("how", "close"), [({"write_ascii": True}, 1e-6), ({"compressed": True}, 0.0)])
def test_other_kinds_of_pcd_are_read(how: dict[str, bool], close: float, tmp_path: Path) -> None:
    import open3d

    home = trees.folder(tmp_path)
    path = home / "clouds" / "1317013200.0.pcd"
    before = read_points(path)
    assert open3d.t.io.write_point_cloud(str(path), open3d.t.io.read_point_cloud(str(path)), **how)
    after = read_points(path)
    assert set(after.dtype.names or ()) == set(before.dtype.names or ())
    for name in before.dtype.names or ():
        assert np.allclose(after[name], before[name], rtol=close or 1e-12, atol=close)


LAYOUTS = st.lists(st.sampled_from(["u1", "i1", "<u2", "<i2", "<u4", "<i4", "<f4", "<f8"]), min_size=0, max_size=3).map(
    lambda kinds: np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), *((f"f{i}", k) for i, k in enumerate(kinds))])
)


@settings(max_examples=25, deadline=None)
@given(layout=LAYOUTS, data=st.data(), suffix=st.sampled_from([".npy", ".npz", ".pcd", ".ply"]))
def test_points_survive_a_file_bit_for_bit(
    layout: np.dtype[Any], data: st.DataObject, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    finite = {"allow_nan": False, "allow_infinity": False}
    points = data.draw(npst.arrays(layout, st.integers(1, 4), elements=_elements(layout, finite)))
    path = tmp_path_factory.getbasetemp() / f"points{suffix}"
    if suffix == ".ply" and {layout[name].str[1:] for name in layout.names or ()} & {"i1", "i2", "u4"}:
        with pytest.raises(InfrastructureError, match=r"writes no .ply file with the fields x \(float32\), .*f0 \("):
            points_bytes(points, suffix)
        return
    path.write_bytes(points_bytes(points, suffix))
    again = read_points(path)
    assert again.dtype.names == layout.names or set(again.dtype.names or ()) == set(layout.names or ())
    for name in layout.names or ():
        assert again[name].tobytes() == points[name].tobytes() and again.dtype[name] == layout[name]


def _elements(layout: np.dtype[Any], finite: dict[str, bool]) -> st.SearchStrategy[Any]:
    return st.tuples(*(npst.from_dtype(layout[name], **finite) for name in layout.names or ()))


@pytest.mark.parametrize("suffix", [".pcd", ".ply"])
def test_a_cut_cloud_in_text_is_refused(suffix: str, tmp_path: Path) -> None:
    import open3d

    path = trees.folder(tmp_path, suffix) / "clouds" / f"1317013200.1{suffix}"
    assert open3d.t.io.write_point_cloud(str(path), open3d.t.io.read_point_cloud(str(path)), write_ascii=True)
    assert len(read_points(path)) == 600
    path.write_bytes(path.read_bytes()[:-700])
    with pytest.raises(InfrastructureError, match=r"is cut off: got 58\d lines of points, expected 600"):
        read_points(path)


class _Circle:
    """Garbage that runs Python code when it is collected, which lets another thread in."""

    def __init__(self) -> None:
        self.circle = self

    def __del__(self) -> None:
        for _ in range(50):
            pass


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 parses in threads")
def test_threads_read_files_of_numpy_at_once(tmp_path: Path) -> None:
    path = tmp_path / "cloud.npz"
    fields = [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("ring", "<u2"), ("time", "<f8")]
    path.write_bytes(points_bytes(np.zeros(6, fields), ".npz"))

    def read(_: int) -> int:
        _Circle()
        return len(read_points(path))

    interval_s, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(20)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(read, range(1000))) == {6}
    finally:
        sys.setswitchinterval(interval_s)
        gc.set_threshold(*thresholds)
