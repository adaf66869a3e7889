# SPDX-License-Identifier: Apache-2.0
"""Rigid transforms between named frames, from a bag, a YAML file or live ``/tf``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import read_list, refuse_unknown
from mt_nodes.data.rotations import quaternion_of, quaternion_of_rpy, rotation_by, rotation_matrix, rotation_vector

Matrix = npt.NDArray[np.float64]
#: Frames of the ego vehicle and of the map, as REP 105 names them.
EGO_FRAME, MAP_FRAME = "base_link", "map"
#: The frame on the ground below the ego vehicle, in REP 120.
FOOTPRINT_FRAME = "base_footprint"


class UnknownTransform(UsageError):
    """No chain of known transforms connects the two frames."""


#: A rotation times its inverse, and by how much rounding may spoil it.
_UPRIGHT, _NEARLY = np.eye(3), 1e-6 + 1e-5 * np.eye(3)


@dataclass(frozen=True, eq=False)
class Transform:
    """Pose of ``child`` in ``parent``: ``p_parent = matrix @ p_child`` (homogeneous, 4×4, metres)."""

    parent: str
    child: str
    matrix: Matrix
    stamp_ns: int = 0
    static: bool = True


class TransformTree:
    """Looks up transforms between frames; immutable, cheap to extend.

    ``wrong``: what a stack is given in place of this tree, a wrong calibration of which neither checks nor other
    mutations know; None: this tree.
    """

    def __init__(self, transforms: Iterable[Transform] = (), wrong: TransformTree | None = None) -> None:
        self.wrong = wrong
        self._edges: dict[str, Transform] = {t.child: t for t in transforms}
        self._found: dict[tuple[str, str], Matrix] = {}

    def extended(self, transforms: Iterable[Transform]) -> TransformTree:
        """Return a tree in which each given transform replaces the former one of its child frame."""
        return TransformTree([*self._edges.values(), *transforms])

    def given_as(self, wrong: TransformTree) -> TransformTree:
        """Return this tree, in place of which a stack is given another one."""
        return TransformTree(self._edges.values(), wrong)

    @property
    def given(self) -> TransformTree:
        """The tree that a stack is given."""
        return self if self.wrong is None else self.wrong

    @property
    def transforms(self) -> tuple[Transform, ...]:
        """Every transform known."""
        return tuple(self._edges.values())

    def other_than(self, tree: TransformTree) -> tuple[Transform, ...]:
        """Return the transforms that are not, or otherwise, in another tree."""
        return tuple(t for child, t in self._edges.items() if not _same(t, tree._edges.get(child)))

    @property
    def frames(self) -> frozenset[str]:
        """Every frame named by a transform."""
        return frozenset(self._edges) | {t.parent for t in self._edges.values()}

    def lookup(self, target: str, source: str) -> Matrix:
        """Return the 4×4 matrix that takes points from ``source`` to ``target``. Raises UnknownTransform."""
        # Frame names of ROS 1 may begin with a slash, those of transforms never do.
        names = target.lstrip("/"), source.lstrip("/")
        if names not in self._found:
            self._found[names] = self._joined(*names)
            self._found[names].setflags(write=False)
        return self._found[names]

    def chain(self, frame: str) -> tuple[Transform, ...]:
        """Return the transforms from a frame up to the one that the tree begins with, the frame's own first."""
        found: list[Transform] = []
        while frame in self._edges and self._edges[frame] not in found:
            found.append(self._edges[frame])
            frame = found[-1].parent
        return tuple(found)

    def _joined(self, target: str, source: str) -> Matrix:
        if target == source:
            return np.eye(4)
        target_root, target_from = self._to_root(target)
        source_root, source_from = self._to_root(source)
        if target_root != source_root:
            known = ", ".join(sorted(self.frames)) or "(none)"
            raise UnknownTransform(
                f"no transform from frame '{source}' to '{target}'; known frames: {known}; "
                f"give the missing one with --transforms FILE{self._hint(source, target)}"
            )
        return np.asarray(np.linalg.solve(target_from, source_from), dtype=np.float64)

    def _hint(self, *frames: str) -> str:
        """Return what to write if only the frame below the ego vehicle is known."""
        if EGO_FRAME not in frames or EGO_FRAME in self.frames or FOOTPRINT_FRAME not in self.frames:
            return ""
        row = f"{{parent: {FOOTPRINT_FRAME}, child: {EGO_FRAME}, translation_m: [0, 0, 0], rpy_rad: [0, 0, 0]}}"
        return f", such as - {row} if the two are the same place (else z is the height of {EGO_FRAME} above the ground)"

    def _to_root(self, frame: str) -> tuple[str, Matrix]:
        matrix, visited = np.eye(4), {frame}
        while frame in self._edges:
            edge = self._edges[frame]
            matrix, frame = edge.matrix @ matrix, edge.parent
            if frame in visited:
                raise UnknownTransform(f"the transforms form a loop through frame '{frame}'")
            visited.add(frame)
        return frame, matrix


def _same(one: Transform, other: Transform | None) -> bool:
    return other is not None and one.parent == other.parent and bool(np.array_equal(one.matrix, other.matrix))


def pose_matrix(translation_m: Iterable[float], quaternion_xyzw: Iterable[float]) -> Matrix:
    """Return the 4×4 matrix of a translation in metres and a unit quaternion (x, y, z, w).

    Raises ValueError: a number is not finite, or the quaternion is (nearly) zero or beyond all measure.
    """
    matrix = np.eye(4)
    matrix[:3, :3] = rotation_matrix(quaternion_xyzw)
    matrix[:3, 3] = list(translation_m)
    if not np.isfinite(matrix).all():
        raise ValueError("a number is not finite")
    if not (np.abs(matrix[:3, :3] @ matrix[:3, :3].T - _UPRIGHT) <= _NEARLY).all():
        raise ValueError("the quaternion is too large or too near zero to be made a unit one")
    return matrix


def pose_between(a: Matrix, b: Matrix, share: float) -> Matrix:
    """Return the pose (4, 4) a share of the way from one pose to another at constant velocity and turn rate.

    Also before and after the two. The way is a screw in SE(3) divided into its translation, linear, and its rotation,
    by the axis and angle between the two (slerp; Shoemake, Animating Rotation with Quaternion Curves, SIGGRAPH 1985).
    """
    pose = np.eye(4)
    turn = rotation_vector(a[:3, :3].T @ b[:3, :3])
    pose[:3, :3] = a[:3, :3] @ rotation_by(share * turn)
    pose[:3, 3] = (1.0 - share) * a[:3, 3] + share * b[:3, 3]
    return pose


def inverse(matrix: Matrix) -> Matrix:
    """Return the inverse of a 4×4 matrix."""
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def move(matrix: Matrix, xyz: npt.NDArray[Any]) -> Floats:
    """Apply a 4×4 matrix to points of shape (N, 3); each column of the result is contiguous.

    Column by column: a matrix product of so thin a matrix takes five times as long, twenty when its threads have to
    wait for a core.
    """
    x, y, z = (np.asarray(column, dtype=np.float64) for column in xyz.T)
    moved = np.empty((3, len(xyz)))
    with np.errstate(invalid="ignore", over="ignore"):  # points that are not finite stay so
        for i, (a, b, c, shift) in enumerate(matrix[:3].tolist()):
            np.multiply(x, a, out=moved[i])
            moved[i] += y * b
            moved[i] += z * c
            moved[i] += shift
    return moved.T


def load_transforms(path: Path) -> TransformTree:
    """Read transforms from YAML: a list of ``{parent, child, translation_m: [x, y, z], quaternion_xyzw: […]}``.

    ``rpy_rad: [roll, pitch, yaw]`` may stand in place of the quaternion.
    """
    return transforms_of_rows(read_list(path), str(path))


def transforms_of_rows(rows: Iterable[Any], where: str) -> TransformTree:
    """Return the transforms of a list as :func:`load_transforms` reads it; errors begin with ``where``."""
    return TransformTree([_from_row(row, f"{where}[{i}]") for i, row in enumerate(rows)])


def dump_transforms(tree: TransformTree, path: Path) -> None:
    """Write what :func:`load_transforms` reads."""
    rows = [
        {
            "parent": t.parent,
            "child": t.child,
            "translation_m": [float(v) for v in t.matrix[:3, 3]],
            "quaternion_xyzw": list(quaternion_of(t.matrix[:3, :3])),
        }
        for t in tree.transforms
    ]
    path.write_text(yaml.safe_dump(rows, sort_keys=False), encoding="utf-8")


def _from_row(row: Any, where: str) -> Transform:
    if isinstance(row, dict):
        refuse_unknown(row, ("parent", "child", "translation_m", "quaternion_xyzw", "rpy_rad"), where)
    if not isinstance(row, dict) or not {"parent", "child", "translation_m"} <= set(row):
        raise UsageError(
            f"{where}: got {row!r}, expected keys parent, child, translation_m and quaternion_xyzw or rpy_rad"
        )
    if {"quaternion_xyzw", "rpy_rad"} <= set(row):
        raise UsageError(f"{where}: got quaternion_xyzw and rpy_rad, expected one of them")
    quaternion = row.get("quaternion_xyzw")
    try:
        if quaternion is None:
            angles = np.asarray(row.get("rpy_rad", [0, 0, 0]), dtype=np.float64)
            if angles.shape != (3,):
                raise ValueError("rpy_rad is not three numbers")
            quaternion = quaternion_of_rpy(*angles.tolist())
        return Transform(str(row["parent"]), str(row["child"]), pose_matrix(row["translation_m"], quaternion))
    except (TypeError, ValueError) as error:
        expected = "translation_m: [x, y, z], quaternion_xyzw: [x, y, z, w] that is not zero, rpy_rad: [r, p, y]"
        raise UsageError(f"{where}: got {row!r}, expected finite numbers in {expected}: {error}") from error
