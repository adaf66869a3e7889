# SPDX-License-Identifier: Apache-2.0
"""Corruptions of one object's shape: sheared, scaled, rotated, smeared by its own motion.

They follow 3D_Corruptions_AD (Y. Dong et al., CVPR 2023), which moves the points in an object's box. Here the sensor
measures the changed object again: its returns span a surface, the surface is changed, and the sensor's rays are cast to
it, so that each return stays on a ray, and what the object hides and no longer hides follows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.spatial import cKDTree

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.motion_distorted import sweep_clock
from mt_nodes.relations.mutations.lidar.placement import rounded
from mt_nodes.relations.mutations.lidar.rays import smallest
from mt_nodes.relations.mutations.objects.changed_returns import proof_of_rays, rows_of
from mt_nodes.relations.mutations.objects.freed_rays import freed_rays
from mt_nodes.relations.mutations.objects.object_exchange import (
    CHOICES,
    ObjectExchanged,
    Outline,
    objects_of,
    rectangle,
)
from mt_nodes.relations.mutations.objects.object_removed import standing_within
from mt_nodes.relations.mutations.objects.picture_exchange import ObjectExchange
from mt_nodes.relations.mutations.objects.turned_view import ray_steps_rad
from mt_nodes.world.scene.return_surface import ReturnSurface, behind, separation, spanning
from mt_nodes.world.scene.returns import places
from mt_nodes.world.scene.shadow import shadow

#: A return is replaced if the object is nearer by more than this share: rounding never decides.
_NEARER = 1e-5
#: Returns of the object that are compared with a new one.
_NEAREST = 8
#: Rays beside the object are a little earlier or later than those that met it.
_DRIFT_SLACK = 1.2


@dataclass(frozen=True)
class ObjectDeformed(ObjectExchanged):
    """Base: replaces the nearest object ahead by a changed copy of itself.

    The object vanishes as in ``object_removed``. Neighbours among its returns span a surface of triangles; gaps that
    are wider than a few rays stay gaps. Of the changed surface each ray of the sensor measures the first point that
    nothing hides, with the intensity of the nearest return.
    """

    chosen_by: str = param("auto", choices=CHOICES, help="labels, or what stands in the cloud; auto: labels if any")
    pictures: str = param(
        "refuse",
        choices=("refuse", "stay"),
        help="what of it is in sight of a camera: NOT_APPLICABLE, or left as it is",
    )

    sensors: ClassVar[tuple[str, ...]] = ("lidar",)

    @abstractmethod
    def matrix(self, state: Any, outline: Floats, plane: Floats) -> Matrix:
        """Return the change of the object (4, 4) in the ego's frame, given its outline (k, 2) and ground (5,)."""

    def velocity_mps(self, state: Any) -> Floats:
        """Return the object's velocity (3,) in the ego's frame, which smears it."""
        return np.zeros(3)

    def things(self, bundle: Bundle) -> Any:
        """Yield outline and ground of objects ahead, nearest first."""
        return objects_of(bundle, self.to_ego(bundle, bundle.clouds[0]), self.search, self.chosen_by, self.ego_frame_id)

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every cloud; the object must show in the first."""
        draw = super().draw(rng, bundle, state)
        first = f"{bundle.clouds[0].topic}|put_"
        if not len(draw[f"{first}rows"]) + len(draw[f"{first}new_rows"]):
            raise NotApplicable("no ray measures the changed object")
        return draw

    def choose(self, bundle: Bundle, state: Any) -> ObjectExchange:
        """Choose the nearest object."""
        thing: Outline = next(iter(self.things(bundle)))
        cloud = bundle.clouds[0]
        rows = standing_within(cloud, self.to_ego(bundle, cloud), *thing)
        draw = {"outline_m": thing[0], "plane": thing[1], "matrix": self.matrix(state, *thing)}
        return ObjectExchange({**draw, "velocity_mps": self.velocity_mps(state)}, rows)

    def draw_addition(
        self, rng: np.random.Generator, bundle: Bundle, old: Cloud, left: Cloud, draw: Draw, known: Any
    ) -> Draw:
        """Measure the changed object with the rays of the cloud without it."""
        rows = _object_rows(draw)
        own = places(old, rows)
        steps = ray_steps_rad(old, rows, _angles(own))
        surface = ReturnSurface(move(self._change(bundle, old, draw), own), own, steps)
        drift, clock = self._drift_mps(bundle, old, draw), self._clock(left)
        most_s = float(np.abs(self._clock(old)(rows)).max())
        hits = surface.hits(left, drift, clock, _DRIFT_SLACK * most_s * float(np.linalg.norm(drift)))
        nearer = hits.range_m < hits.own_m * (1.0 - _NEARER)
        free = freed_rays(old, rows_of(draw, "lost"), surface.window)
        silent = surface.meet(free.rows, free.direction, free.clear_m, drift, clock)
        new = silent.range_m < silent.own_m
        at = free.direction[silent.rays[new]] * silent.range_m[new, None]
        addition: Draw = {
            "rows": smallest(hits.rows[nearer]),
            "range_m": hits.range_m[nearer].astype(np.float32),
            "lost": np.empty(0, np.uint8),
            "new_rows": smallest(silent.rows[new]),
            "new_xyz": rounded(left, at).astype(left.xyz.dtype),
        }
        if old.intensity_field is None:
            return addition
        values = old.points[old.intensity_field][rows]
        of_hits, of_silent = hits.vertex[nearer], silent.vertex[new]
        return {**addition, "intensity": values[of_hits], "new_intensity": values[of_silent]}

    def prove_addition(self, bundle: Bundle, left: Cloud, new: Cloud, draw: Draw, addition: Draw) -> str | None:
        """Undo the change for each new return, and compare it with the object's own; look for returns behind."""
        placed, broken = proof_of_rays(left, new, addition)
        if broken is not None:
            return broken
        old, drift = bundle.cloud(left.topic), self._drift_mps(bundle, left, draw)
        own, change = places(old, _object_rows(draw)), self._change(bundle, left, draw)
        clock = self._clock(left)
        rows = np.concatenate([rows_of(addition, "rows"), rows_of(addition, "new_rows")])
        undone = move(np.asarray(np.linalg.inv(change)), placed - np.outer(clock(rows), drift))
        _, nearest = cKDTree(own).query(undone, k=range(1, min(_NEAREST, len(own)) + 1))
        apart = separation(undone, own[nearest]).min(axis=1)
        if not (apart <= 1.0).all():
            return f"{int((apart > 1.0).sum())} returns are farther from the object's own than these from each other"
        hidden = behind(left, rows_of(addition, "rows"), move(change, own), own, (drift, clock))
        return f"{len(hidden)} returns are left behind the object" if len(hidden) else None

    def describe_addition(self, bundle: Bundle, draw: Draw) -> Effects:
        """Report the changed object's place and what it hides; the old one counts as removed."""
        cloud = bundle.clouds[0]
        to_ego = self.to_ego(bundle, cloud)
        outline = move(draw["matrix"], np.column_stack([draw["outline_m"], np.zeros(len(draw["outline_m"]))]))[:, :2]
        top = move(to_ego @ self._change(bundle, cloud, draw), places(cloud, _object_rows(draw)))[:, 2].max()
        shape, ground = rectangle(outline), float(draw["plane"][0])
        height, size = float(top) - ground, (2.0 * shape.half_m[0], 2.0 * shape.half_m[1])
        center = (*shape.center_m, ground + height / 2.0)
        sensors = (self.to_ego(bundle, each)[:2, 3] for each in bundle.clouds)
        hidden = tuple(shadow(outline, at, self.ego_frame_id, self.max_range_m) for at in sensors)
        volume = Volume(self.ego_frame_id, center, (*size, height), shape.yaw_rad, "unknown")
        return Effects(added=(volume,), occluded=hidden)

    def _clock(self, cloud: Cloud) -> Callable[[Rows], Floats]:
        """Return the time of returns (n,) of a sweep, in seconds from its middle; 0 where nothing moves."""
        return lambda rows: np.zeros(len(rows))

    def _change(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Matrix:
        """Return the change of the object (4, 4) in a cloud's frame."""
        to_ego = self.to_ego(bundle, cloud)
        return np.asarray(np.linalg.inv(to_ego) @ draw["matrix"] @ to_ego)

    def _drift_mps(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Floats:
        """Return the object's velocity (3,) in a cloud's frame."""
        return np.asarray(self.to_ego(bundle, cloud)[:3, :3].T @ draw["velocity_mps"])


def _angles(xyz: Floats) -> Floats:
    """Return azimuth from the mean bearing, and elevation (n, 2), of returns (n, 3)."""
    x, y, z = xyz.T
    azimuth = np.angle((x + 1j * y) / complex(x.mean(), y.mean()))
    return np.column_stack([azimuth, np.arctan2(z, np.hypot(x, y))])


def _object_rows(draw: Draw) -> Rows:
    """Return the rows (n,) of the source's returns that span the object, of those that continue or are lost."""
    return spanning(np.sort(np.concatenate([draw["rows"], draw["lost"]]).astype(np.int64)))


def _about(change: Floats, plane: Floats) -> Matrix:
    """Return the 4×4 of a linear change (3, 3) about the ground under the object."""
    foot = np.array([plane[3], plane[4], plane[0]])
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = change, foot - change @ foot
    return matrix


def _sign(rng: np.random.Generator) -> float:
    return float(rng.choice([-1.0, 1.0]))


@dataclass(frozen=True)
class ObjectScaled(ObjectDeformed):
    """Makes the nearest object larger or smaller, about the ground under it; the sensor measures it again.

    Guaranteed: as for ``object_removed``; in addition, each new return is on a ray of the sensor and, scaled back, on
    the object's own surface; none remains behind it; nothing else changes.
    """

    factor: float = param(0.9, low=0.5, high=2.0, neutral=1.0, help="by which its length, width and height change")

    def __post_init__(self) -> None:
        if self.factor == 1.0:
            raise UsageError("factor is 1, which changes nothing")

    def matrix(self, state: Any, outline: Floats, plane: Floats) -> Matrix:
        """Scale all axes."""
        return _about(np.eye(3) * self.factor, plane)


@dataclass(frozen=True)
class ObjectSheared(ObjectDeformed):
    """Leans the nearest object to a side: each point moves by ``shear`` times its height above the ground.

    Guaranteed: as for ``object_removed``; in addition, each new return is on a ray of the sensor and, moved back, on
    the object's own surface; none remains behind it; nothing else changes.
    """

    shear: float = param(0.1, low=0.01, high=0.5, neutral=0.01, help="displacement per height, drawn to either side")

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> float:
        """Choose the direction of the lean in the ego's plane, in radians."""
        return float(rng.uniform(-np.pi, np.pi))

    def matrix(self, state: Any, outline: Floats, plane: Floats) -> Matrix:
        """Move x and y with z."""
        change = np.eye(3)
        change[:2, 2] = self.shear * np.cos(state), self.shear * np.sin(state)
        return _about(change, plane)


@dataclass(frozen=True)
class ObjectRotated(ObjectDeformed):
    """Rotates the nearest object about the vertical through its middle; the sensor measures its known side again.

    Guaranteed: as for ``object_removed``; in addition, each new return is on a ray of the sensor and, rotated back, on
    the object's own surface; none remains behind it; nothing else changes.
    """

    angle_deg: float = param(
        10.0, low=0.5, high=45.0, unit="deg", neutral=0.5, help="by which it is rotated, to either side"
    )

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> float:
        """Choose the side."""
        return _sign(rng)

    def matrix(self, state: Any, outline: Floats, plane: Floats) -> Matrix:
        """Rotate about z."""
        c, s = np.cos(np.radians(state * self.angle_deg)), np.sin(np.radians(state * self.angle_deg))
        return _about(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), plane)


@dataclass(frozen=True)
class ObjectSmeared(ObjectDeformed):
    """Measures the nearest object as if it moved during the sweep: each return by its velocity times its own time.

    The time of a return, from the middle of the sweep, comes from the cloud's time field, else from its azimuth (see
    ``motion_distorted``). The ray of time t meets the object displaced by v t. Recorded clouds are compensated for the
    ego's motion at most, so a moving object is smeared in them. Pictures stay: the object is where it was in the middle
    of the sweep.

    Guaranteed: as for ``object_removed``; in addition, each new return is on a ray of the sensor and, moved back by v
    t, on the object's own surface; none remains behind it; nothing else changes.
    """

    speed_mps: float = param(15.0, low=0.5, high=60.0, unit="m/s", neutral=0.5, help="of the object over the ground")
    heading_deg: float = param(
        180.0, low=-180.0, high=180.0, unit="deg", aspect="place", help="of that motion: 0 ahead, positive left"
    )
    sweep_s: float = param(
        0.1, low=0.02, high=0.5, unit="s", aspect="fixed", help="of one sweep, for clouds without a time field"
    )
    least_m: float = param(
        0.005, low=0.0, high=1.0, unit="m", aspect="fixed", help="least displacement of a return that is a smear"
    )
    pictures: str = param(
        "stay", choices=("refuse", "stay"), help="what of it is in sight of a camera: NOT_APPLICABLE, or left as it is"
    )

    def _clock(self, cloud: Cloud) -> Callable[[Rows], Floats]:
        """Return the time of returns (n,) of a sweep, in seconds from its middle."""
        return sweep_clock(cloud, self.sweep_s)

    def matrix(self, state: Any, outline: Floats, plane: Floats) -> Matrix:
        """Nothing but the motion."""
        return np.eye(4)

    def velocity_mps(self, state: Any) -> Floats:
        """Return the velocity over the ground."""
        heading = np.radians(self.heading_deg)
        return self.speed_mps * np.array([np.cos(heading), np.sin(heading), 0.0])

    def choose(self, bundle: Bundle, state: Any) -> ObjectExchange:
        """Choose the nearest object; refuse where the sweep meets it in its middle, so that nothing is smeared."""
        choice = super().choose(bundle, state)
        times = self._clock(bundle.clouds[0])(choice.rows)
        most_m = self.speed_mps * float(np.abs(times).max())
        if most_m < self.least_m:
            raise NotApplicable(f"the sweep meets the object in its middle: it is smeared by {1000 * most_m:.1f} mm")
        return choice
