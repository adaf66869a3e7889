# SPDX-License-Identifier: Apache-2.0
"""What mutations that put an object into a scene have in common: where it stands, what the rays see, the proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.effects import Volume
from mt_nodes.errors import NotApplicable, UsageError
from mt_nodes.frames import Bundle, Cloud
from mt_nodes.mutations.base import Draw
from mt_nodes.mutations.lidar.each_cloud import proof_of_change, without
from mt_nodes.mutations.lidar.placement import RANGE_FIELDS, empty_returns, intensities, rounded, write_points
from mt_nodes.mutations.lidar.rays import smallest
from mt_nodes.scene.beams import beams_of
from mt_nodes.scene.objects import KINDS
from mt_nodes.scene.shadow import shadow
from mt_nodes.scene.sight import Body, Hits
from mt_nodes.transforms import Matrix, UnknownTransform, move

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SURROUNDINGS_M = 3.0
#: Range noise is cut at so many standard deviations, so that proofs have a bound.
CUT = 3.0
_RAY_TOLERANCE_RAD = 1e-4
_SURFACE_M = 1e-3
#: By so much may returns of one ring differ in elevation (beams start beside the frame's origin), and so much more for
#: each radian of azimuth between them (a frame tilted against the axis of the sensor).
_BEAM_RAD, _TILT = 0.01, 0.06


@dataclass(frozen=True)
class Sensor:
    """How a sensor measures: noise along the ray in metres, farthest range in metres, and its weakest echo.

    ``sensitivity`` is the reflectivity times cosine of incidence just seen at ``max_range_m``; at range R the limit is
    ``sensitivity * (R / max_range_m)**2``, since an echo's power falls with the square of the range.
    """

    sigma_m: float
    max_range_m: float
    sensitivity: float


def ego_from(bundle: Bundle, frame_id: str, ego_frame_id: str, who: str) -> Matrix:
    """Return the 4×4 from a frame to the ego's.

    Raises:
        UsageError: no transform joins the two.
    """
    try:
        return bundle.transforms.lookup(ego_frame_id, frame_id)
    except UnknownTransform as error:
        raise UsageError(f"{who}: {error}") from error


def near_rows(cloud: Cloud, to_ego: Matrix, center_m: tuple[float, float], reach_m: float) -> Rows:
    """Return the rows (n,) of points in a cube of half side ``reach_m`` around a place of the ego's ground."""
    middle = move(np.asarray(np.linalg.inv(to_ego), dtype=np.float64), np.array([[*center_m, 0.0]]))[0]
    near = np.ones(len(cloud), dtype=bool)
    with np.errstate(invalid="ignore"):
        for name, at in zip("xyz", middle.tolist(), strict=True):
            near &= np.abs(cloud.points[name] - at) <= reach_m
    return np.flatnonzero(near)


def surroundings(cloud: Cloud, to_ego: Matrix, center_m: tuple[float, float], reach_m: float) -> Floats:
    """Return the points (n, 3) of :func:`near_rows` in the ego's frame."""
    return move(to_ego, cloud.xyz[near_rows(cloud, to_ego, center_m, reach_m)])


@dataclass(frozen=True, eq=False)
class Look:
    """What rays see of an object: those with a return, those without, and the directions (n, 3) of the latter."""

    hits: Hits
    silent: Hits
    direction: Floats

    @property
    def count(self) -> int:
        """Rays that see the object."""
        return int(self.hits.seen.sum() + self.silent.seen.sum())

    @property
    def share(self) -> float:
        """Share of the rays meeting the object that see it."""
        return self.count / max(1, len(self.hits.rows) + len(self.silent.rows))


def look_at(cloud: Cloud, body: Body, pose: Matrix) -> Look:
    """Follow all rays of a cloud to an object; ``pose`` (4, 4) is object to cloud."""
    return Look(body.cast(cloud, pose), *body.cast_silent(cloud, pose))


def draw_hits(rng: np.random.Generator, cloud: Cloud, look: Look, sensor: Sensor) -> Draw:
    """Return the draw of one cloud: what the object does to its rays.

    ``rows`` with ``range_m`` and ``intensity`` are returns that it takes, ``lost`` those whose echo is too weak;
    ``new_rows`` with ``new_xyz`` and ``new_intensity`` are returns on rays that had none.
    """
    hits, silent = look.hits, look.silent
    seen, range_m = _measured(rng, hits, sensor)
    echo, silent_m = _measured(rng, silent, sensor)
    draw: Draw = {
        "rows": smallest(hits.rows[seen]),
        "range_m": range_m.astype(np.float32),
        "lost": smallest(hits.rows[hits.seen & ~seen]),
        "new_rows": smallest(silent.rows[echo]),
        "new_xyz": rounded(cloud, look.direction[echo] * silent_m[:, None]).astype(cloud.xyz.dtype),
    }
    if cloud.intensity_field is not None:
        draw["intensity"] = _intensity(rng, cloud, hits.brightness[seen])
        draw["new_intensity"] = _intensity(rng, cloud, silent.brightness[echo])
    return draw


def _measured(rng: np.random.Generator, hits: Hits, sensor: Sensor) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Tell which hits (n,) the sensor sees, and the ranges (k,) that it reads of those."""
    weakest = sensor.sensitivity * (hits.range_m / sensor.max_range_m) ** 2
    echo = hits.seen & (hits.brightness >= weakest) & (hits.range_m < sensor.max_range_m)
    noise = np.clip(rng.standard_normal(len(hits.rows)), -CUT, CUT) * sensor.sigma_m
    # What is read never lies behind what was read before: that return was farther.
    return echo, np.minimum(hits.range_m + noise, hits.own_m * (1.0 - 1e-6))[echo]


def changed(cloud: Cloud, draw: Draw) -> Cloud:
    """Return the cloud with the drawn returns, without the lost ones."""
    raw, rows, new_rows = cloud.raw.copy(), _rows(draw, "rows"), _rows(draw, "new_rows")
    write_points(raw.view(cloud.points.dtype), rows, on_rays(cloud, draw), draw.get("intensity"), cloud)
    if cloud.organised:
        write_points(raw.view(cloud.points.dtype), new_rows, draw["new_xyz"], draw.get("new_intensity"), cloud)
        written = cloud.with_raw(raw, height=cloud.height)
        return without(written, _rows(draw, "lost")) if len(draw["lost"]) else written
    added = cloud.raw.take(new_rows)
    write_points(added.view(cloud.points.dtype), slice(None), draw["new_xyz"], draw.get("new_intensity"), cloud)
    kept, before = _without_lost(len(cloud), draw)
    return cloud.with_raw(np.insert(raw[kept], before, added))


def on_rays(cloud: Cloud, draw: Draw) -> Floats:
    """Return the drawn returns (n, 3) that replace others, on the rays of those."""
    old = cloud.xyz[_rows(draw, "rows")].astype(np.float64)
    return np.asarray(old * (draw["range_m"].astype(np.float64) / np.linalg.norm(old, axis=1))[:, None])


def placed_points(cloud: Cloud, draw: Draw) -> Floats:
    """Return every drawn return (n, 3)."""
    return np.concatenate([on_rays(cloud, draw), draw["new_xyz"]])


def proof_of_hits(old: Cloud, new: Cloud, draw: Draw, body: Body, pose: Matrix, sensor: Sensor) -> str | None:
    """Prove that nothing changed but the drawn returns, that these are on their rays and on the object, none beyond.

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


def proof_of_rays(old: Cloud, new: Cloud, draw: Draw) -> tuple[Floats, str | None]:
    """Return the drawn returns (n, 3) as the new cloud has them; prove that they are on rays, and all that changed."""
    rows, lost, new_rows = (_rows(draw, name) for name in ("rows", "lost", "new_rows"))
    at = np.concatenate([rows, new_rows if old.organised else lost[:0], lost])
    if len(np.unique(at)) != len(at):
        return np.empty((0, 3)), "a return is drawn twice"
    replaced, added, broken = _told_apart(old, new, draw)
    if broken is None:
        broken = _on_rays(old.xyz[rows].astype(np.float64), replaced) or _on_beams(old, new_rows, added)
    return np.concatenate([replaced, added]), broken


def _told_apart(old: Cloud, new: Cloud, draw: Draw) -> tuple[Floats, Floats, str | None]:
    """Return the replaced (n, 3) and the added (k, 3) points of the new cloud, and what else changed."""
    rows, lost, new_rows = (_rows(draw, name) for name in ("rows", "lost", "new_rows"))
    fields = (*"xyz", *filter(old.single, RANGE_FIELDS), old.intensity_field)
    left = without(old, lost) if len(lost) else old
    if old.organised:
        broken = proof_of_change(left, new, np.concatenate([rows, new_rows]), fields)
        if broken is None and not empty_returns(old)[new_rows].all():
            broken = "a point was put over an existing return"
        return new.xyz[rows].astype(np.float64), new.xyz[new_rows].astype(np.float64), broken
    _, before = _without_lost(len(old), draw)
    inserted = np.empty(len(before), dtype=np.int64)
    order = np.argsort(before, kind="stable")
    inserted[order] = before[order] + np.arange(len(before))
    if len(new) != len(left) + len(inserted):
        return np.empty((0, 3)), np.empty((0, 3)), f"{len(new)} points, expected {len(left)} and {len(inserted)} more"
    rest, at = new.with_raw(np.delete(new.raw, inserted)), rows - np.searchsorted(lost, rows)
    broken = proof_of_change(left, rest, at, fields)
    return rest.xyz[at].astype(np.float64), new.xyz[inserted].astype(np.float64), broken


def _on_rays(before: Floats, after: Floats) -> str | None:
    if not np.isfinite(after).all():
        return "a new return is not finite"
    if not (np.linalg.norm(after, axis=1) < np.linalg.norm(before, axis=1)).all():
        return "a new return is not nearer than the one it replaces"
    turned = np.arctan2(np.linalg.norm(np.cross(before, after), axis=1), np.einsum("ij,ij->i", before, after))
    return None if (turned <= _RAY_TOLERANCE_RAD).all() else f"a point left its ray by {turned.max():.2g} rad"


def _on_beams(old: Cloud, rows: Rows, added: Floats) -> str | None:
    """Look whether returns on rays that had none are as high as the other returns of their ring."""
    if not len(rows):
        return None
    x, y, z = added.T
    if old.organised:
        beams = beams_of(old)
        ring, turned = beams.elevations_rad[beams.place[rows]], 0.0
    else:
        a, b, c = old.xyz[rows].astype(np.float64).T
        ring, turned = np.arctan2(c, np.hypot(a, b)), np.abs(np.arctan2(a * y - b * x, a * x + b * y))
    off = np.abs(np.arctan2(z, np.hypot(x, y)) - ring) - _TILT * turned
    return None if (off <= _BEAM_RAD).all() else f"an added return is {off.max():.2g} rad off its ring"


def _without_lost(count: int, draw: Draw) -> tuple[npt.NDArray[np.bool_], Rows]:
    """Tell which of ``count`` rows stay, and before which of those each added return comes (k,)."""
    kept = np.ones(count, dtype=bool)
    kept[_rows(draw, "lost")] = False
    return kept, np.cumsum(kept)[_rows(draw, "new_rows")]


def _rows(draw: Draw, name: str) -> Rows:
    return np.asarray(draw[name].astype(np.int64))


def volume_of(body: Body, pose: Matrix, frame_id: str, kind: str) -> Volume:
    """Return the box around an object; ``pose`` takes its coordinates to the frame's."""
    x, y, z = move(pose, body.center_m[None])[0].tolist()
    yaw = float(np.arctan2(pose[1, 0], pose[0, 0]))
    return Volume(frame_id, (x, y, z), body.size_m, yaw, KINDS[kind].label)


def shadow_of(body: Body, pose: Matrix, to_ego: Matrix, frame_id: str, to_m: float) -> Volume:
    """Return the wedge behind an object; ``pose`` is object to ego, ``to_ego`` is sensor to ego."""
    low, high = body.low_m, body.high_m
    corners = np.array([[x, y, 0.0] for x in (low[0], high[0]) for y in (low[1], high[1])])
    return shadow(move(pose, corners)[:, :2], to_ego[:2, 3], frame_id, to_m)


def _intensity(rng: np.random.Generator, cloud: Cloud, brightness: Floats) -> npt.NDArray[Any]:
    """Intensities (n,) in the cloud's own scale and type: full scale times brightness, range-compensated.

    Velodyne's calibrated intensity is so: a diffuse surface reads its reflectivity at any range.
    """
    scale = intensities(rng, len(brightness), cloud, full_scale=True)
    if scale is None:
        raise NotApplicable(f"{cloud.topic} has no intensity")
    values = scale * brightness
    return values.astype(scale.dtype) if scale.dtype.kind == "f" else np.rint(values).astype(scale.dtype)
