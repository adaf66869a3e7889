# SPDX-License-Identifier: Apache-2.0
"""Shared code of mutations that add an object: its place, the rays that hit it, the proof."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import UsageError
from mt_nodes.data.effects import Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix, UnknownTransform, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.placement import intensity_of, rounded
from mt_nodes.relations.mutations.lidar.rays import smallest
from mt_nodes.relations.mutations.objects.changed_returns import proof_of_rays
from mt_nodes.world.scene.returns import within_box
from mt_nodes.world.scene.shadow import shadow
from mt_nodes.world.scene.sight import Hits, RaycastBody

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SURROUNDINGS_M = 3.0
#: Range noise is cut at so many standard deviations, so that the proof has a bound.
CUT = 3.0
_SURFACE_M = 1e-3


@dataclass(frozen=True)
class Sensor:
    """A sensor's measurement: noise along the ray in metres, largest range in metres, and weakest echo.

    ``sensitivity`` is the reflectivity times cosine of incidence just detected at ``max_range_m``; at range R the limit
    is ``sensitivity * (R / max_range_m)**2``, because the power of an echo falls with the square of the range.
    """

    sigma_m: float
    max_range_m: float
    sensitivity: float


def ego_from(bundle: Bundle, frame_id: str, ego_frame_id: str, owner: str) -> Matrix:
    """Return the 4×4 matrix from a frame to the ego's.

    Raises:
        UsageError: no transform joins the two.
    """
    try:
        return bundle.transforms.lookup(ego_frame_id, frame_id)
    except UnknownTransform as error:
        raise UsageError(f"{owner}: {error}") from error


def surroundings(cloud: Cloud, to_ego: Matrix, center_m: tuple[float, float], reach_m: float) -> tuple[Rows, Floats]:
    """Return the points in a cube of half side ``reach_m`` around a place of the ego's ground.

    Returns:
        Their rows (n,), rising, and their coordinates (n, 3) in the ego's frame.
    """
    middle = move(np.asarray(np.linalg.inv(to_ego), dtype=np.float64), np.array([[*center_m, 0.0]]))[0]
    rows, xyz = within_box(cloud, middle - reach_m, middle + reach_m)
    return rows, move(to_ego, xyz)


@dataclass(frozen=True, eq=False)
class ObjectVisibility:
    """Rays that hit an object: those with a return, those without, and the directions (n, 3) of the latter."""

    hits: Hits
    silent: Hits
    direction: Floats

    @property
    def count(self) -> int:
        """Number of rays that detect the object."""
        return int(self.hits.visible.sum() + self.silent.visible.sum())

    @property
    def share(self) -> float:
        """Share of the rays towards the object that detect it."""
        return self.count / max(1, len(self.hits.rows) + len(self.silent.rows))


def look_at(cloud: Cloud, body: RaycastBody, pose: Matrix) -> ObjectVisibility:
    """Cast all rays of a cloud to an object; ``pose`` (4, 4) is object to cloud."""
    return ObjectVisibility(body.cast(cloud, pose), *body.cast_silent(cloud, pose))


def draw_hits(rng: np.random.Generator, cloud: Cloud, look: ObjectVisibility, sensor: Sensor) -> Draw:
    """Return the draw of one cloud: the effect of the object on its rays.

    ``rows`` with ``range_m`` and ``intensity`` are returns that it replaces, ``lost`` those whose echo is too weak;
    ``new_rows`` with ``new_xyz`` and ``new_intensity`` are returns on rays that had none.
    """
    hits, silent = look.hits, look.silent
    detected, range_m = _measured(rng, hits, sensor)
    echo, silent_m = _measured(rng, silent, sensor)
    draw: Draw = {
        "rows": smallest(hits.rows[detected]),
        "range_m": range_m.astype(np.float32),
        "lost": smallest(hits.rows[hits.visible & ~detected]),
        "new_rows": smallest(silent.rows[echo]),
        "new_xyz": rounded(cloud, look.direction[echo] * silent_m[:, None]).astype(cloud.xyz.dtype),
    }
    if (intensity := intensity_of(cloud, hits.brightness[detected], range_m)) is not None:
        draw["intensity"] = intensity
        draw["new_intensity"] = intensity_of(cloud, silent.brightness[echo], silent_m)
    return draw


def _measured(rng: np.random.Generator, hits: Hits, sensor: Sensor) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Return which hits (n,) the sensor detects, and the ranges (k,) that it measures."""
    weakest = sensor.sensitivity * (hits.range_m / sensor.max_range_m) ** 2
    echo = hits.visible & (hits.brightness >= weakest) & (hits.range_m < sensor.max_range_m)
    noise = np.clip(rng.standard_normal(len(hits.rows)), -CUT, CUT) * sensor.sigma_m
    # A measured range never exceeds the old one: that return was farther away.
    return echo, np.minimum(hits.range_m + noise, hits.own_m * (1.0 - 1e-6))[echo]


def proof_of_hits(old: Cloud, new: Cloud, draw: Draw, body: RaycastBody, pose: Matrix, sensor: Sensor) -> str | None:
    """Prove that only drawn returns changed, that these are on their rays and on the object, and none lies beyond.

    Distances to the surface are measured to the nearest triangle in space, not along a ray.
    """
    drawn, broken = proof_of_rays(old, new, draw)
    if broken is not None:
        return broken
    off = body.off_surface_m(drawn, pose)
    if not (off <= CUT * sensor.sigma_m + _SURFACE_M).all():
        return f"a return of the object is {off.max():.3f} m off its surface"
    behind = body.hides(new, pose, 2 * CUT * sensor.sigma_m + _SURFACE_M)
    return f"{len(behind)} returns are left behind the object" if len(behind) else None


def volume_of(body: RaycastBody, pose: Matrix, frame_id: str, label: str) -> Volume:
    """Return the box around an object; ``pose`` is object to frame."""
    x, y, z = move(pose, body.center_m[None])[0].tolist()
    yaw = float(np.arctan2(pose[1, 0], pose[0, 0]))
    return Volume(frame_id, (x, y, z), body.size_m, yaw, label)


def shadow_of(body: RaycastBody, pose: Matrix, to_ego: Matrix, frame_id: str, to_m: float) -> Volume:
    """Return the wedge behind an object; ``pose`` is object to ego, ``to_ego`` is sensor to ego."""
    low, high = body.low_m, body.high_m
    corners = np.array([[x, y, 0.0] for x in (low[0], high[0]) for y in (low[1], high[1])])
    return shadow(move(pose, corners)[:, :2], to_ego[:2, 3], frame_id, to_m)
