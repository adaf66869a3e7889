# SPDX-License-Identifier: Apache-2.0
"""Calibration of KITTI's cameras and LiDAR, in the three forms that its benchmarks use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import InfrastructureError, UsageError

Matrix = npt.NDArray[np.float64]
#: Height of the LiDAR above the road (Geiger et al., IJRR 2013, figure 3), in metres.
LIDAR_HEIGHT_M = 1.73
_NAMES = {
    "rect": ("R_rect_00", "R0_rect", "R_rect"),
    "velo": ("Tr_velo_to_cam", "Tr_velo_cam", "Tr"),
    "imu": ("Tr_imu_to_velo", "Tr_imu_velo"),
}


@dataclass(frozen=True, eq=False)
class KittiCalibration:
    """Where the sensors are.

    Attributes:
        projections: camera number -> (3, 4): from the rectified frame of camera 0 to pixels.
        velo_to_rect: 4×4 from the LiDAR to the rectified frame of camera 0: x to the right, y down, z ahead.
        imu_to_velo: 4×4, None where it is not told.
        sizes: camera number -> (width, height) of rectified pictures, where told.
    """

    projections: dict[int, Matrix]
    velo_to_rect: Matrix
    imu_to_velo: Matrix | None
    sizes: dict[int, tuple[int, int]]

    def intrinsics(self, camera: int) -> Matrix:
        """Return ``k`` (3, 3) of a rectified camera."""
        return self.projections[camera][:, :3]

    def velo_to_camera(self, camera: int) -> Matrix:
        """Return the 4×4 from the LiDAR to a rectified camera's own frame.

        ``P = K [I | t]``: the frame lies ``t`` beside that of camera 0, with the same axes.
        """
        beside = np.eye(4)
        beside[:3, 3] = np.linalg.solve(self.intrinsics(camera), self.projections[camera][:, 3])
        return np.asarray(beside @ self.velo_to_rect)


def raw_calibration(folder: Path) -> KittiCalibration:
    """Read ``calib_cam_to_cam.txt``, ``calib_velo_to_cam.txt`` and, where it is, ``calib_imu_to_velo.txt``.

    Source: Geiger et al., Vision meets Robotics: The KITTI Dataset, IJRR 2013, section "Transformations"; the
    development kit's readme.
    Raises UsageError: a file is missing. InfrastructureError: one is damaged.
    """
    cameras, velo = numbers(folder / "calib_cam_to_cam.txt"), numbers(folder / "calib_velo_to_cam.txt")
    imu_file = folder / "calib_imu_to_velo.txt"
    imu = numbers(imu_file) if imu_file.is_file() else None
    file = folder / "calib_cam_to_cam.txt"
    rect = _square(_of_size(cameras, ("R_rect_00",), 9, file).reshape(3, 3))
    projections = {
        int(n[-2:]): _of_size(cameras, (n,), 12, file).reshape(3, 4) for n in cameras if n.startswith("P_rect")
    }
    sizes = {int(n[-2:]): (int(v[0]), int(v[1])) for n, v in cameras.items() if n.startswith("S_rect") and len(v) == 2}
    velo_to_cam = _rigid(velo, folder / "calib_velo_to_cam.txt")
    imu_to_velo = None if imu is None else _rigid(imu, imu_file)
    return KittiCalibration(projections, rect @ velo_to_cam, imu_to_velo, sizes)


def benchmark_calibration(path: Path) -> KittiCalibration:
    """Read one file of the object, tracking or odometry benchmark.

    Odometry's ``Tr`` leads to the rectified frame at once.
    Raises UsageError: the file is missing. InfrastructureError: it is damaged.
    """
    rows = numbers(path)
    projections = {
        int(n[1]): _of_size(rows, (n,), 12, path).reshape(3, 4) for n in rows if n in ("P0", "P1", "P2", "P3")
    }
    rect = np.eye(4)
    if any(name in rows for name in _NAMES["rect"]):
        rect = _square(_of_size(rows, _NAMES["rect"], 9, path).reshape(3, 3))
    velo = np.vstack([_of_size(rows, _NAMES["velo"], 12, path).reshape(3, 4), [0, 0, 0, 1]])
    imu = None
    if any(name in rows for name in _NAMES["imu"]):
        imu = np.vstack([_of_size(rows, _NAMES["imu"], 12, path).reshape(3, 4), [0, 0, 0, 1]])
    return KittiCalibration(projections, np.asarray(rect @ velo), imu, {})


def numbers(path: Path) -> dict[str, Matrix]:
    """Return the rows of numbers of a calibration file by name; the colon behind a name may be missing."""
    if not path.is_file():
        raise UsageError(f"no calibration {path}; expected KITTI's file there")
    rows = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        name, *values = line.split() or [""]
        try:
            rows[name.rstrip(":")] = np.array([float(v) for v in values])
        except ValueError:
            continue  # the time of calibration is no number
    return rows


def _of_size(rows: dict[str, Matrix], names: tuple[str, ...], count: int, path: Path) -> Matrix:
    for name in names:
        if name in rows and len(rows[name]) == count and np.isfinite(rows[name]).all():
            return rows[name]
    got = next((f"{len(rows[name])} under {name}" for name in names if name in rows), "no such row")
    raise InfrastructureError(f"{path}: got {got}, expected {count} numbers under {' or '.join(names)}")


def _rigid(rows: dict[str, Matrix], path: Path) -> Matrix:
    matrix = _square(_of_size(rows, ("R",), 9, path).reshape(3, 3))
    matrix[:3, 3] = _of_size(rows, ("T",), 3, path)
    return matrix


def _square(rotation: Matrix) -> Matrix:
    matrix = np.eye(4)
    matrix[:3, :3] = rotation
    return matrix
