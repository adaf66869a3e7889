# SPDX-License-Identifier: Apache-2.0
"""How long objects could stand at many places: coarse grids of what stands around the ego, now and soon.

It only ranks places: whether one is free is found in the clouds themselves (:mod:`.free_place`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.ndimage import minimum_filter

from mt_nodes.base.arrays import Floats, Ints, Singles
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.data.transforms import EGO_FRAME, Matrix, inverse, pose_matrix
from mt_nodes.relations.mutations.objects.in_scene import ego_from
from mt_nodes.relations.mutations.objects.world_place import NEAR_M, frame_to_ego
from mt_nodes.world.scene.placement_solver import BUMP_M, OVERHEAD_M, Footprint

Counts = npt.NDArray[np.int64]
Steps = Sequence[tuple[float, "ObstaclePoints", Matrix]]
"""Seconds from now, what is around the ego then, and the matrix (4, 4) from the ego's frame now to that then."""

#: Half the side of the square that is looked at, more than any place is away, and the side of its cells: for what
#: stands there, and for the ground.
_REACH_M, _CELL_M, _GROUND_CELL_M = 110.0, 0.25, 1.0
#: The ground of a cell is the lowest return of so many cells around it: what stands there hides its own.
_GROUND_CELLS = 5
#: Returns are not taken for ground, nor for what stands on it, at such heights from the ego's ground.
_LOWEST_M, _HIGHEST_M = -3.0, 6.0
#: Cells of azimuth and of range in which lines of sight end, and lines of sight to an object over its width.
_AZIMUTHS, _RANGE_CELL_M, _LINES = 720, 1.0, 9
#: What is higher over the ground hides no more than what is under it (assumed: trees, signs, bridges).
_HIDING_M = 2.5
#: An object that is hidden altogether is as far from one in sight as one with something in so many cells (assumed).
_CELLS_OF_ALL = 40.0
#: Bundles to come are foreseen in such steps where they cannot be known.
_STEP_S, _FORESEEN_S = 0.5, 3.0
#: An object that the ego passes is useful if that takes it so long (assumed).
ENOUGH_S = 1.0
EndOf = Callable[[Bundle], bool]


@dataclass(frozen=True, eq=False)
class ObstaclePoints:
    """What stands around the ego in a cloud, in the ego's frame.

    ``xyz``: (3, n) returns that are not of the ground. ``above_m``: (n,) their heights over it. ``sensor_m``: (3,)
    where the rays come from.
    """

    xyz: Singles
    above_m: Singles
    sensor_m: Floats

    @classmethod
    def of(cls, cloud: Cloud, to_ego: Matrix) -> ObstaclePoints:
        """Sort the returns of a cloud into ground and what stands on it; ``to_ego`` (4, 4) is cloud to ego."""
        xyz = _moved(to_ego, np.stack([cloud.points[name].astype(np.float32) for name in "xyz"]))
        with np.errstate(invalid="ignore"):
            near = (np.abs(xyz[:2]) < _REACH_M).all(axis=0) & (xyz[2] > _LOWEST_M) & (xyz[2] < _HIGHEST_M)
        xyz = xyz[:, near]
        cell, count = _cells(xyz, _GROUND_CELL_M)
        ground = np.full(count * count, _HIGHEST_M, np.float32)
        np.minimum.at(ground, cell, xyz[2])
        above_m = xyz[2] - minimum_filter(ground.reshape(count, count), _GROUND_CELLS).reshape(-1)[cell]
        stands = above_m > BUMP_M
        return cls(xyz[:, stands], above_m[stands], to_ego[:3, 3])

    def foreseen_from(self, to_ego: Matrix) -> ObstaclePoints:
        """Return them as the ego finds them when it has moved; ``to_ego`` (4, 4) is its frame now to that then."""
        return ObstaclePoints(_moved(to_ego, self.xyz), self.above_m, self.sensor_m)

    def obstruction(self, places: Floats, footprint: Footprint, clearance_m: float, least_visible: float) -> Floats:
        """Return what is against an object at places (C, 3) of the ego's frame: 0 where it stands free and in sight.

        In cells within its footprint and the clearance in which something stands, else by the share that is hidden.
        """
        taken = self._taken(places, footprint, clearance_m).astype(np.float64)
        free = taken == 0.0
        taken[free] = _CELLS_OF_ALL * np.maximum(0.0, least_visible - self._visible_share(places[free], footprint))
        return taken

    def _taken(self, places: Floats, footprint: Footprint, clearance_m: float) -> Counts:
        """Return in how many cells within the footprint and the clearance something stands, at places (C, 3)."""
        low = self.above_m < footprint.height_m + OVERHEAD_M
        cell, count = _cells(self.xyz[:, low], _CELL_M)
        taken = np.zeros(count * count, dtype=bool)
        taken[cell] = True
        sides = (
            np.linspace(center - half, center + half, int(np.ceil(2.0 * half / _CELL_M)) + 1)
            for center, half in zip(footprint.center_m, np.add(footprint.half_m, clearance_m).tolist(), strict=True)
        )
        ahead, left = (side.reshape(-1).astype(np.float32) for side in np.meshgrid(*sides))
        x, y, c, s = (
            row[:, None].astype(np.float32) for row in (*places.T[:2], np.cos(places[:, 2]), np.sin(places[:, 2]))
        )
        over = np.stack([x + c * ahead - s * left, y + s * ahead + c * left]).reshape(2, -1)
        return np.asarray(taken[_cells(over, _CELL_M)[0]].reshape(len(places), len(ahead)).sum(axis=1))

    def _visible_share(self, places: Floats, footprint: Footprint) -> Floats:
        """Return which share of an object's height over its width is over what stands before it (C,)."""
        x, y = (places[:, :2] - self.sensor_m[:2]).T
        range_m, azimuth = np.hypot(x, y), np.arctan2(y, x)
        turned, (length, width) = places[:, 2] - azimuth, footprint.half_m
        half = np.abs(length * np.sin(turned)) + np.abs(width * np.cos(turned))
        deep = np.abs(length * np.cos(turned)) + np.abs(width * np.sin(turned))
        rays = azimuth[:, None] + (np.arctan2(half, range_m))[:, None] * np.linspace(-1.0, 1.0, _LINES)
        row = np.floor(rays / (2.0 * np.pi) * _AZIMUTHS).astype(np.int64) % _AZIMUTHS
        column = np.maximum(((range_m - deep) / _RANGE_CELL_M).astype(np.int64) - 1, 0)
        slopes = self._slopes()
        line_m = self.sensor_m[2] + range_m[:, None] * slopes[row, np.minimum(column, slopes.shape[1] - 1)[:, None]]
        return np.asarray((1.0 - np.clip(line_m / footprint.height_m, 0.0, 1.0)).mean(axis=1))

    def _slopes(self) -> Singles:
        """Return how steeply the lowest free line of sight rises at each azimuth, up to each range (720, R)."""
        count = int(np.ceil(1.5 * _REACH_M / _RANGE_CELL_M)) + 1
        slopes = np.full(_AZIMUTHS * count, -np.inf, np.float32)
        x, y, z = self.xyz[:, self.above_m < _HIDING_M] - self.sensor_m.astype(np.float32)[:, None]
        range_m = np.hypot(x, y)
        row = np.floor(np.arctan2(y, x) / np.float32(2.0 * np.pi) * _AZIMUTHS).astype(np.int64) % _AZIMUTHS
        column = np.minimum((range_m / _RANGE_CELL_M).astype(np.int64), count - 1)
        np.maximum.at(slopes, row * count + column, z / np.maximum(range_m, 0.1))
        return np.asarray(np.maximum.accumulate(slopes.reshape(_AZIMUTHS, count), axis=1))


def _cells(xyz: Singles, cell_m: float) -> tuple[Ints, int]:
    """Return the cell (n,) of each point (3, n) in the square that is looked at, and the cells of its side."""
    count = int(2.0 * _REACH_M / cell_m) + 1
    row, column = np.clip((xyz[:2] + np.float32(_REACH_M)) * np.float32(1.0 / cell_m), 0, count - 1).astype(np.int64)
    return row * count + column, count


def _moved(matrix: Matrix, xyz: Singles) -> Singles:
    """Return points (3, n) moved by a matrix (4, 4), row by row: a product of so thin a matrix takes longer."""
    turn, shift = matrix[:3, :3].astype(np.float32), matrix[:3, 3].astype(np.float32)
    return np.stack(
        [row[0] * xyz[0] + row[1] * xyz[1] + row[2] * xyz[2] + at for row, at in zip(turn, shift, strict=True)]
    )


def steps_of(bundle: Bundle, coming: Sequence[Bundle], ego_frame_id: str) -> Steps:
    """Return what is around the ego now, and in bundles to come.

    Without those, what is around now is taken to stay, and the ego to keep its speed and turn rate.
    """
    now = _obstacles(bundle, ego_frame_id)
    steps = [(0.0, now, np.eye(4))]
    motion = bundle.motion
    if motion is None or motion.pose is None:
        return steps
    from_now = inverse(frame_to_ego(bundle, "", ego_frame_id))
    for ahead in coming:
        there = ahead.motion
        if ahead.known_clouds and there is not None and there.pose is not None and there.since == motion.since:
            to_then = frame_to_ego(ahead, "", ego_frame_id) @ from_now
            steps.append(((ahead.stamp_ns - bundle.stamp_ns) * 1e-9, _obstacles(ahead, ego_frame_id), to_then))
    if coming or motion.velocity_mps is None:
        return steps
    base = np.eye(4) if ego_frame_id == EGO_FRAME else ego_from(bundle, EGO_FRAME, ego_frame_id, "object_added")
    for time_s in np.arange(_STEP_S, _FORESEEN_S + _STEP_S / 2, _STEP_S).tolist():
        to_then = base @ inverse(_pose_after(motion.velocity_mps, motion.yaw_rate_radps or 0.0, time_s)) @ inverse(base)
        steps.append((time_s, now.foreseen_from(to_then), to_then))
    return steps


def _obstacles(bundle: Bundle, ego_frame_id: str) -> ObstaclePoints:
    cloud = bundle.known_clouds[0]
    return ObstaclePoints.of(cloud, ego_from(bundle, cloud.frame_id, ego_frame_id, cloud.topic))


def _pose_after(velocity_mps: Floats, turn_radps: float, time_s: float) -> Matrix:
    """Return the pose (4, 4) after a time at constant speed and turn rate: along the chord of the arc."""
    half = pose_matrix((0.0, 0.0, 0.0), quaternion_of_yaw(0.5 * turn_radps * time_s))
    x, y, _ = (half[:3, :3] @ velocity_mps * time_s).tolist()
    return pose_matrix((x, y, 0.0), quaternion_of_yaw(turn_radps * time_s))


def by_duration(
    steps: Steps,
    places: Floats,
    velocities_mps: Floats,
    footprint: Footprint,
    demands: tuple[float, float],
    far_m: float,
) -> tuple[list[int], Floats]:
    """Return the numbers of places (C, 3), those first at which an object lasts longest, and how long (C,) in seconds.

    It lasts until something takes its place or hides it, or the ego passes it or is farther away than ``far_m``. Those
    that the ego passes only after a second are as good as those that last to the end; equally good ones stay in order,
    those that seem not free now come by how little is against them.
    ``velocities_mps``: (C, 3) along the ego's axes now. ``demands``: free space around it in metres, and the share of
    it that must be in sight.
    """
    end_s = steps[-1][0] + _STEP_S
    lasts, going, first = np.full(len(places), end_s), np.ones(len(places), dtype=bool), None
    for time_s, around, to_then in steps:
        then = places.copy()
        then[:, :2] += velocities_mps[:, :2] * time_s
        seen = np.column_stack([then[:, :2], np.zeros(len(then)), np.ones(len(then))]) @ to_then.T
        then[:, :2] = seen[:, :2]
        then[:, 2] += np.arctan2(to_then[1, 0], to_then[0, 0])
        away_m = np.hypot(then[:, 0], then[:, 1])
        within = (away_m >= NEAR_M) & (away_m <= far_m) & ((then[:, 0] > 0.0) | (places[:, 0] <= 0.0))
        against = np.where(within, 0.0, np.inf)
        asked = within & going
        against[asked] = around.obstruction(then[asked], footprint, *demands)
        first = against if first is None else first
        usable = going & (against == 0.0)
        ends = going & ~usable
        lasts[ends] = time_s
        lasts[ends & ~within & (time_s >= ENOUGH_S)] = end_s
        going &= usable
    assert first is not None, "there is a step for now"
    return np.lexsort((first, -lasts)).tolist(), lasts


def lasts_s(bundle: Bundle, coming: Sequence[Bundle], ended: EndOf, passed: EndOf) -> float:
    """Return how long an object can stand somewhere in bundles to come, infinite to the last; passed late is as good.

    ``ended``: whether it cannot stand there any longer. ``passed``: whether that is because the ego has passed it.
    """
    for ahead in coming:
        if ended(ahead):
            until_s = (ahead.stamp_ns - bundle.stamp_ns) * 1e-9
            return np.inf if until_s >= ENOUGH_S and passed(ahead) else until_s
    return np.inf
