# SPDX-License-Identifier: Apache-2.0
"""Point clouds in files: ``.bin`` of floats, NumPy's ``.npy`` and ``.npz``, ``.pcd`` and ``.ply`` through Open3D."""

from __future__ import annotations

import io
import re
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.cdr.point_fields import fields_of
from mt_nodes.data.messages import Points

#: Endings of files that hold a cloud.
SUFFIXES = (".pcd", ".ply", ".bin", ".npy", ".npz")
#: What columns without a name hold.
COLUMNS = ("x", "y", "z", "intensity", "ring")
_HEADER_BYTES = 4096
_ONE_HEADER = threading.Lock()
#: Type of a property of PLY -> bytes.
_PLY_BYTES = {
    **dict.fromkeys(("char", "uchar", "int8", "uint8"), 1),
    **dict.fromkeys(("short", "ushort", "int16", "uint16"), 2),
    **dict.fromkeys(("int", "uint", "float", "int32", "uint32", "float32"), 4),
    **dict.fromkeys(("double", "float64"), 8),
}


def layout(columns: Sequence[str]) -> np.dtype[Any]:
    """Return the type of points whose columns are all float32."""
    return np.dtype([(name, "<f4") for name in columns])


def column_names(count: int) -> tuple[str, ...]:
    """Return the names of columns that have none: x y z intensity ring c5 …"""
    return (*COLUMNS[:count], *(f"c{i}" for i in range(len(COLUMNS), count)))


def read_bin(path: Path, columns: Sequence[str]) -> Points:
    """Return the points (N,) of a file of float32, one row a point.

    Raises InfrastructureError: its size is not that of whole points.
    """
    data, dtype = path.read_bytes(), layout(columns)
    if len(data) % dtype.itemsize:
        expected = f"a multiple of {dtype.itemsize} ({' '.join(columns)}, each float32)"
        raise InfrastructureError(f"{path}: got {len(data)} bytes, expected {expected}")
    return np.frombuffer(data, dtype)


def read_points(path: Path, columns: int = 4) -> Points:
    """Return the points (N,) of a file by its ending, with every field that it has.

    ``columns``: floats a point of a ``.bin`` file.
    Raises InfrastructureError: the file is damaged, or holds no x, y and z.
    """
    if path.suffix == ".bin":
        return read_bin(path, column_names(columns))
    points = _read_numpy(path) if path.suffix in (".npy", ".npz") else _read_open3d(path)
    missing = [name for name in "xyz" if name not in (points.dtype.names or ())]
    if missing:
        raise InfrastructureError(f"{path}: got fields {', '.join(points.dtype.names or ())}, expected x, y and z")
    fields_of(points.dtype, str(path))  # refuses what a PointCloud2 cannot hold
    return points


def points_bytes(points: Points, suffix: str) -> bytes:
    """Return the content of a file with these points; what :func:`read_points` reads is the same again.

    Of ``.bin`` every field is written as float32, in its order.
    """
    names = points.dtype.names or ()
    if suffix == ".bin":
        return np.column_stack([points[name].astype("<f4") for name in names]).tobytes() if len(points) else b""
    if suffix in (".npy", ".npz"):
        packed, file = _packed(points), io.BytesIO()
        np.save(file, packed) if suffix == ".npy" else np.savez_compressed(file, points=packed)
        return file.getvalue()
    return _open3d_bytes(points, suffix)


def _packed(points: Points) -> Points:
    """Return points without padding, which files of NumPy cannot name."""
    dtype = np.dtype([(name, points.dtype[name]) for name in points.dtype.names or ()])
    made = np.empty(len(points), dtype)
    for name in dtype.names or ():
        made[name] = points[name]
    return made


def numpy_arrays(path: Path, one: str = "") -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an ``.npz`` by their names, or the one of an ``.npy``; threads may call it at once.

    ``one``: of an ``.npz`` return this alone, or the first where it is missing.
    Raises what NumPy and zipfile raise for damaged files.
    """
    with path.open("rb") as file:
        if file.read(2) != b"PK":
            file.seek(0)
            return {one: _array(file)}
        with zipfile.ZipFile(file) as members:
            names = [name for name in members.namelist() if name.endswith(".npy")]
            if one:
                names = [f"{one}.npy"] if f"{one}.npy" in names else names[:1]
            return {name.removesuffix(".npy"): _array(io.BytesIO(members.read(name))) for name in names}


def _array(file: BinaryIO) -> npt.NDArray[Any]:
    # NumPy parses the header with `ast`, which fails in two threads at once before Python 3.12
    # (https://github.com/python/cpython/issues/106905).
    with _ONE_HEADER:
        return np.lib.format.read_array(file, allow_pickle=False)


def _read_numpy(path: Path) -> Points:
    try:
        (array,) = numpy_arrays(path, "points").values()
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InfrastructureError(f"{path}: cannot be read as an array of NumPy: {error}") from error
    if array.dtype.names:
        return np.ascontiguousarray(array.reshape(-1))
    if array.ndim != 2 or array.shape[1] < 3 or array.dtype.kind != "f":
        expected = "(N, 3 or more) of floats, or a structured array with x, y and z"
        raise InfrastructureError(f"{path}: got an array {array.shape} of {array.dtype}, expected {expected}")
    return _joined(column_names(array.shape[1]), list(array.astype("<f4" if array.itemsize < 8 else "<f8").T))


def _joined(names: Sequence[str], columns: Sequence[npt.NDArray[Any]]) -> Points:
    dtype = np.dtype([(name, c.dtype.newbyteorder("<"), c.shape[1:]) for name, c in zip(names, columns, strict=True)])
    made = np.empty(len(columns[0]), dtype)
    for name, column in zip(names, columns, strict=True):
        made[name] = column
    return made


def _read_open3d(path: Path) -> Points:
    import open3d

    expected, order = _header(path)
    with open3d.utility.VerbosityContextManager(open3d.utility.VerbosityLevel.Error):
        read = open3d.t.io.read_point_cloud(path).point  # the tensor API keeps every field
    columns = {name: read[name].numpy() for name in read if name != "positions"}
    xyz = read["positions"].numpy() if "positions" in read else np.empty((0, 3), np.float32)
    if len(xyz) != expected:
        raise InfrastructureError(f"{path}: its header counts {expected} points, and {len(xyz)} can be read")
    names = sorted(columns, key=lambda name: (order.index(name) if name in order else len(order), name))
    parts = [columns[name][:, 0] if columns[name].shape[1] == 1 else columns[name] for name in names]
    return _joined(["x", "y", "z", *names], [*xyz.T, *parts])


def _header(path: Path) -> tuple[int, list[str]]:
    """Return how many points a ``.pcd`` or ``.ply`` says that it has, and the names of its fields.

    Raises:
        InfrastructureError: it has no header, or is shorter than its points: Open3D makes some up for those of a PLY.
    """
    with path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    found = re.search(rb"\nDATA[^\n]*\n|\nend_header\r?\n", head)
    text = head[: found.end() if found else 0].decode("ascii", "replace")
    count = re.search(r"^POINTS\s+(\d+)|^element vertex\s+(\d+)", text, re.MULTILINE)
    if found is None or count is None:
        raise InfrastructureError(f"{path}: has no header of a {path.suffix} file with POINTS or element vertex")
    points, fields = int(count[1] or count[2]), re.search(r"^FIELDS\s+(.*)$", text, re.MULTILINE)
    properties = re.findall(r"^property\s+(\w+)\s+(\w+)", text.partition("element face")[0], re.MULTILINE)
    _refuse_cut(path, text, found.end(), points, [kind for kind, _ in properties])
    return points, fields[1].split() if fields else [name for _, name in properties]


def _refuse_cut(path: Path, header: str, begin: int, points: int, kinds: Sequence[str]) -> None:
    """Refuse a file with fewer lines, or a PLY with fewer bytes, than its points need."""
    if "ascii" in header:
        got, least, what = path.read_bytes()[begin:].count(b"\n"), points, "lines of points"
    elif path.suffix == ".ply":
        least = points * sum(_PLY_BYTES.get(kind, 0) for kind in kinds)
        got, what = path.stat().st_size - begin, "bytes of points"
    else:
        return  # Open3D refuses a PCD that is cut
    if got < least:
        raise InfrastructureError(f"{path}: is cut off: got {got} {what}, expected {least}")


def _open3d_bytes(points: Points, suffix: str) -> bytes:
    import open3d
    from open3d.core import Tensor

    cloud = open3d.t.geometry.PointCloud()
    cloud.point.positions = Tensor(np.column_stack([points[name].astype(np.float32) for name in "xyz"]))
    for name in points.dtype.names or ():
        if name not in "xyz":
            column = np.ascontiguousarray(points[name]).astype(points.dtype[name].base.newbyteorder("="))
            cloud.point[name] = Tensor(column.reshape(len(points), -1))
    with tempfile.TemporaryDirectory(prefix="mt_cloud_") as folder:
        path = Path(folder) / f"cloud{suffix}"
        try:
            written = open3d.t.io.write_point_cloud(path, cloud)
        except RuntimeError:  # Open3D writes no int8, int16 and uint32 into a PLY, though it reads them
            written = False
        if not written:
            fields = ", ".join(f"{name} ({points.dtype[name].base})" for name in points.dtype.names or ())
            raise InfrastructureError(f"Open3D writes no {suffix} file with the fields {fields}; write another format")
        return path.read_bytes()
