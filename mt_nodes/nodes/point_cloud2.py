# SPDX-License-Identifier: Apache-2.0
"""``sensor_msgs_py.point_cloud2`` where it is installed, and the same three functions where it is not."""

from __future__ import annotations

import array
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from sensor_msgs.msg import PointCloud2, PointField

DATATYPES = {
    PointField.INT8: "i1",
    PointField.UINT8: "u1",
    PointField.INT16: "i2",
    PointField.UINT16: "u2",
    PointField.INT32: "i4",
    PointField.UINT32: "u4",
    PointField.FLOAT32: "f4",
    PointField.FLOAT64: "f8",
}


def own_dtype_from_fields(fields: Any, point_step: int | None = None) -> np.dtype[Any]:
    """Return the structured dtype of a list of ``PointField``; a field of count k becomes ``name_0`` … ``name_k-1``."""
    names, formats, offsets = [], [], []
    for i, field in enumerate(fields):
        base = np.dtype(DATATYPES[field.datatype])
        name = field.name or f"unnamed_field_{i}"
        for k in range(field.count):
            names.append(name if field.count == 1 else f"{name}_{k}")
            formats.append(base)
            offsets.append(field.offset + k * base.itemsize)
    layout = {"names": names, "formats": formats, "offsets": offsets}
    return np.dtype(layout if point_step is None else {**layout, "itemsize": point_step})  # type: ignore[call-overload]


def own_read_points(cloud: PointCloud2) -> npt.NDArray[Any]:
    """Return the points as a structured array (N,), in native byte order; a view of the message where possible."""
    dtype = own_dtype_from_fields(cloud.fields, cloud.point_step)
    points: npt.NDArray[Any] = np.ndarray((cloud.width * cloud.height,), dtype, buffer=cloud.data)
    if cloud.is_bigendian != (sys.byteorder == "big"):
        points = points.byteswap()
    return points


def own_create_cloud(header: Any, fields: Any, points: npt.NDArray[Any], step: int | None = None) -> PointCloud2:
    """Return an unorganised message of a structured array (N,) whose dtype is that of the fields."""
    dtype = own_dtype_from_fields(fields, step)
    points = np.ascontiguousarray(points, dtype=dtype)
    # Assigning a bytes object would convert byte by byte; array.array takes the buffer whole (rclpy#763).
    data = array.array("B")
    data.frombytes(points.view(np.uint8).data)
    return PointCloud2(
        header=header,
        height=1,
        width=len(points),
        fields=list(fields),
        is_bigendian=sys.byteorder == "big",
        point_step=dtype.itemsize,
        row_step=dtype.itemsize * len(points),
        data=data,
        is_dense=False,
    )


try:
    from sensor_msgs_py.point_cloud2 import create_cloud, dtype_from_fields, read_points
except ImportError:
    create_cloud, dtype_from_fields, read_points = own_create_cloud, own_dtype_from_fields, own_read_points

__all__ = ["create_cloud", "dtype_from_fields", "read_points"]
