# SPDX-License-Identifier: Apache-2.0
"""Finds free ground for an object in a cloud, or the reason why there is none.

Everything here is in a frame on the road: x ahead, y left, z up (``base_link``). The driving path is assumed to go
straight ahead along x.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.transforms import Matrix

P = TypeVar("P")
T = TypeVar("T")
Place = tuple[float, float, float]
"""Where an object stands and which way it looks: x, y in metres, yaw in radians."""

#: Half the width of the ego's path, and lateral range of "beside".
PATH_HALF_WIDTH_M, LATERAL_M = 0.8, (2.2, 6.0)
#: What is higher over the ground than a bump, and no higher than so much over an object, is in its way.
BUMP_M, OVERHEAD_M = 0.3, 0.3
_INLIER_M = 0.15
_ENOUGH = 1000  # points for a plane
_GROUND_POINTS, _OCCUPANTS = 5, 2


class NoRoom(Exception):
    """An object cannot stand at a place; the text is the reason in a word or two."""


@dataclass(frozen=True)
class Footprint:
    """Footprint of an object: half sizes about a centre, and a height, all in metres."""

    center_m: tuple[float, float]
    half_m: tuple[float, float]
    height_m: float

    @property
    def radius_m(self) -> float:
        """Distance of the farthest corner from the object's origin."""
        return float(np.hypot(*self.center_m) + np.hypot(*self.half_m))


@dataclass(frozen=True)
class Wish:
    """Where an object may be placed.

    Attributes:
        where: ``path`` (in the ego's way), ``beside`` it, or ``bearing``: anywhere within ``bearing_rad``.
        range_m: nearest and farthest distance over ground from the frame's origin.
        bearing_rad: lowest and highest direction, 0 ahead, positive to the left; for ``bearing`` only.
        yaw_rad: its heading, None for any.
    """

    where: str
    range_m: tuple[float, float]
    bearing_rad: tuple[float, float]
    yaw_rad: float | None

    def place(self, rng: np.random.Generator) -> Place:
        """Draw a place."""
        range_m = rng.uniform(*self.range_m)
        if self.where == "bearing":
            bearing = rng.uniform(*self.bearing_rad)
            x, y = range_m * np.cos(bearing), range_m * np.sin(bearing)
        else:
            low, high = (0.0, PATH_HALF_WIDTH_M) if self.where == "path" else LATERAL_M
            y = min(rng.uniform(low, high), range_m) * rng.choice([-1.0, 1.0])
            x = np.sqrt(range_m**2 - y**2)
        yaw = rng.uniform(-np.pi, np.pi) if self.yaw_rad is None else self.yaw_rad
        return float(x), float(y), float(yaw)


def solve(places: Iterable[P], accepts: Callable[[P], T], what: str) -> tuple[int, T]:
    """Return the number of the first accepted place, and the result of its acceptance.

    ``accepts``: raises :class:`NoRoom` if the object cannot stand there.
    Raises NotApplicable: no place is accepted; gives the number of failures by reason.
    """
    reasons: Counter[str] = Counter()
    for number, place in enumerate(places):
        try:
            return number, accepts(place)
        except NoRoom as reason:
            reasons[str(reason)] += 1
    counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    raise NotApplicable(f"no free ground for {what}: of {reasons.total()} places tried {counts}")


def stand(xyz: Floats, footprint: Footprint, place: Place, clearance_m: float) -> Matrix:
    """Return the pose (4, 4) of an object at a place, on and parallel to the ground found there.

    Raises NoRoom: too few ground points, or something is in the way, steep ground included.
    ``xyz``: (N, 3) points, at least all those within the footprint's radius, clearance and 3 m of the place.
    ``clearance_m``: free space required around the footprint.
    """
    x, y, yaw = place
    dx, dy = xyz[:, 0] - x, xyz[:, 1] - y
    near = np.flatnonzero(dx * dx + dy * dy <= (footprint.radius_m + clearance_m + 3.0) ** 2)
    dx, dy, z = dx[near], dy[near], xyz[near, 2]
    plane = _ground(dx, dy, z, 0.5 + 0.05 * float(np.hypot(x, y)))
    above = _free(dx, dy, z - (plane[0] + plane[1] * dx + plane[2] * dy), footprint, yaw, clearance_m)
    if (np.abs(above) <= _INLIER_M).sum() < _GROUND_POINTS:
        raise NoRoom("without ground points")
    return _pose(x, y, float(plane[0]), yaw, plane[1:])


def stand_on(xyz: Floats, footprint: Footprint, place: Place, clearance_m: float, plane: Floats) -> Matrix:
    """Return the pose (4, 4) of an object at a place on known ground. Raises NoRoom: something is in the way.

    ``xyz``: (N, 3) points, at least all those within the footprint's radius and clearance of the place. ``plane``: (3,)
    height of the ground at the place, and its slopes along x and y.
    """
    x, y, yaw = place
    dx, dy = xyz[:, 0] - x, xyz[:, 1] - y
    _free(dx, dy, xyz[:, 2] - (plane[0] + plane[1] * dx + plane[2] * dy), footprint, yaw, clearance_m)
    return _pose(x, y, float(plane[0]), yaw, plane[1:])


def _free(dx: Floats, dy: Floats, height: Floats, footprint: Footprint, yaw: float, clearance_m: float) -> Floats:
    """Return the heights (n,) of points over the footprint and its clearance; raises if one is in the way."""
    c, s = np.cos(yaw), np.sin(yaw)
    ahead, left = c * dx + s * dy, c * dy - s * dx
    over = (np.abs(ahead - footprint.center_m[0]) <= footprint.half_m[0] + clearance_m) & (
        np.abs(left - footprint.center_m[1]) <= footprint.half_m[1] + clearance_m
    )
    above: Floats = height[over]
    if ((above > BUMP_M) & (above < footprint.height_m + OVERHEAD_M)).sum() >= _OCCUPANTS:
        raise NoRoom("occupied")
    return above


def upright(place: Place) -> Matrix:
    """Return the pose (4, 4) at a place on level ground at z = 0."""
    x, y, yaw = place
    return _pose(x, y, 0.0, yaw, np.zeros(2))


def ground_plane(xyz: Floats, at: tuple[float, float]) -> Floats:
    """Return height and the slopes along x and y (3,) of the ground about a place, from points (N, 3) around it.

    Raises NoRoom: there are too few points that may be ground.
    """
    x, y = at
    return _ground(xyz[:, 0] - x, xyz[:, 1] - y, xyz[:, 2], 0.5 + 0.05 * float(np.hypot(x, y)))


def _ground(dx: Floats, dy: Floats, z: Floats, plausible_m: float) -> Floats:
    """Return height and the slopes along x and y (3,) of the ground about a place: least squares, trimmed three times.

    Slopes that the points do not determine (all on one line) tend to zero, by a prior worth a few points.
    """
    usable = np.flatnonzero(np.abs(z) <= plausible_m)
    usable = usable[:: 1 + len(usable) // _ENOUGH]
    dx, dy, z = dx[usable], dy[usable], z[usable]
    if len(z) < _GROUND_POINTS:
        raise NoRoom("without ground points")
    plane = np.array([np.percentile(z, 20), 0.0, 0.0])
    terms = np.column_stack([np.ones(len(z)), dx, dy])
    for _ in range(3):
        inlier = np.abs(z - terms @ plane) <= _INLIER_M
        chosen = terms[inlier]
        normal = chosen.T @ chosen + np.diag([1e-9, 10.0, 10.0])
        plane = np.linalg.solve(normal, chosen.T @ z[inlier])
    return np.asarray(plane)


def _pose(x: float, y: float, z: float, yaw: float, slopes: Floats) -> Matrix:
    """Return the pose with z along the ground's normal and x along ``yaw``."""
    up = np.array([-slopes[0], -slopes[1], 1.0])
    up /= np.linalg.norm(up)
    left = np.cross(up, [np.cos(yaw), np.sin(yaw), 0.0])
    left /= np.linalg.norm(left)
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([np.cross(left, up), left, up])
    pose[:3, 3] = x, y, z
    return pose
