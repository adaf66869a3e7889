# SPDX-License-Identifier: Apache-2.0
"""Rays that hit a moving object: each meets it where it is at that ray's time of the sweep.

A sweep of a spinning LiDAR takes a tenth of a second, in which an oncoming car goes 1.5 m. A cloud whose own motion is
compensated still shows moving things where each ray met them: displaced, and sheared by their own speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Rows
from mt_nodes.data.messages import Cloud
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.motion_distorted import sweep_clock
from mt_nodes.relations.mutations.objects.changed_returns import proof_of_rays, rows_of
from mt_nodes.relations.mutations.objects.in_scene import CUT, SURFACE_M, ObjectVisibility, Sensor, enclosed, look_at
from mt_nodes.world.scene.sight import Hits, RaycastBody

#: Rays are cast together while the object moves by so much.
_STEP_M = 0.01
#: Of a sweep of a cloud without times (assumed: the usual 10 Hz).
_PERIOD_S = 0.1
#: Share of a slice at its border.
_BORDER = 1e-3
#: A slower object stands: within a sweep it moves by less than a tenth of the range noise.
SLOWEST_MPS = 0.02


@dataclass(frozen=True, eq=False)
class BodyInSweep:
    """The times of a cloud's returns, and a body that moves through it.

    ``pose``: (4, 4) body to cloud at the cloud's stamp. ``velocity_mps``: (3,) of the body in the cloud's frame.
    ``seconds``: (N,) when each return was measured, from the middle of the sweep.
    """

    body: RaycastBody
    pose: Matrix
    velocity_mps: Floats
    seconds: Floats

    @classmethod
    def of(cls, cloud: Cloud, body: RaycastBody, pose: Matrix, velocity_mps: Floats) -> BodyInSweep:
        """Take the times from the cloud's fields or azimuths."""
        return cls(body, pose, velocity_mps, _seconds(cloud))

    def at(self, second: float) -> Matrix:
        """Return the pose (4, 4) of the body at a time of the sweep."""
        moved = self.pose.copy()
        moved[:3, 3] += self.velocity_mps * second
        return moved

    def slices(self, cloud: Cloud, step_m: float) -> Iterator[tuple[Matrix, Mask]]:
        """Yield poses of the body, and which returns (N,) are measured while it is within half a step of each."""
        step_s = step_m / float(np.linalg.norm(self.velocity_mps))
        number = np.round(self.seconds / step_s).astype(np.int64)
        # Where it can be at all: seen from the sensor, it stays within the cones around its first and last place.
        ends = [self.at(float(end)) for end in (self.seconds.min(), 0.0, self.seconds.max())]
        near = np.unique(np.concatenate([self.body.around(cloud, end) for end in ends]))
        for one in np.unique(number[near]).tolist():
            yield self.at(one * step_s), number == one


def look_at_moving(cloud: Cloud, body: RaycastBody, pose: Matrix, velocity_mps: Floats) -> ObjectVisibility:
    """Cast all rays of a cloud to a moving object; ``pose`` (4, 4) is object to cloud at the cloud's stamp."""
    if np.linalg.norm(velocity_mps) < SLOWEST_MPS or not len(cloud):
        return look_at(cloud, body, pose)
    sweep = BodyInSweep.of(cloud, body, pose, velocity_mps)
    rays = body.silent_around(cloud, pose, float(np.abs(sweep.seconds).max() * np.linalg.norm(velocity_mps)))
    hits, silents, directions = [], [], []
    for at, own in sweep.slices(cloud, _STEP_M):
        hits.append(body.cast(cloud, at, own))
        silent, direction = body.cast_silent(rays.of(own[rays.rows]), at)
        silents.append(silent)
        directions.append(direction)
    if not hits:
        return look_at(cloud, body, pose)
    silent, order = _joined(silents)
    direction = np.concatenate(directions)[order]
    return ObjectVisibility(_joined(hits)[0], enclosed(cloud, silent, direction), direction)


def proof_of_moving_hits(
    old: Cloud, new: Cloud, draw: Draw, body: RaycastBody, pose: Matrix, velocity_mps: Floats, sensor: Sensor
) -> str | None:
    """Prove what ``proof_of_hits`` does of an object that moves: each return is taken back by its own time.

    That is another way than the casts, which go by slices of the sweep.
    """
    drawn, broken = proof_of_rays(old, new, draw)
    if broken is not None:
        return broken
    sweep = BodyInSweep.of(old, body, pose, velocity_mps)
    seconds = sweep.seconds[np.concatenate([rows_of(draw, "rows"), rows_of(draw, "new_rows")])]
    off = body.off_surface_m(drawn - seconds[:, None] * velocity_mps, pose)
    slack_m = CUT * sensor.sigma_m + SURFACE_M + _STEP_M
    if not (off <= slack_m).all():
        return f"a return of the object is {off.max():.3f} m off its surface"
    behind = sum(map(len, _hidden(replace(sweep, seconds=_seconds(new)), new, slack_m + CUT * sensor.sigma_m)))
    return f"{behind} returns are left behind the object" if behind else None


def _hidden(sweep: BodyInSweep, cloud: Cloud, slack_m: float) -> Iterator[Rows]:
    """Yield the returns behind the body at their time.

    Between two slices, times that rounding moves from one to the other are left out.
    """
    step_s = _STEP_M / float(np.linalg.norm(sweep.velocity_mps))
    share = sweep.seconds / step_s - np.floor(sweep.seconds / step_s)
    within = np.abs(share - 0.5) > _BORDER
    for at, own in sweep.slices(cloud, _STEP_M):
        rows = sweep.body.hides(cloud, at, slack_m)
        yield rows[own[rows] & within[rows]]


def _joined(parts: list[Hits]) -> tuple[Hits, Rows]:
    """Return the rays of several parts by rising rows, and their order in the parts one after the other."""
    columns = [np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Hits)]
    order = np.argsort(columns[0], kind="stable")
    return Hits(*(column[order] for column in columns)), order


def _seconds(cloud: Cloud) -> Floats:
    """Return when each return (N,) was measured, from the middle of the sweep; those without a place at 0."""
    return np.nan_to_num(sweep_clock(cloud, _PERIOD_S)(slice(None)))
