# SPDX-License-Identifier: Apache-2.0
"""Noise points outside the region of interest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.base.seeds import drawn_ahead
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.regions import Region, RegionGiven, load_region
from mt_nodes.data.transforms import move
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.lidar.added_points import added_rows, free_rows, with_added
from mt_nodes.relations.mutations.lidar.angle_fields import angle_fields, proof_of_angles
from mt_nodes.relations.mutations.lidar.placement import (
    RANGE_FIELDS,
    Space,
    empty_returns,
    intensities,
    scattered,
    shortened,
    to_region,
    write_points,
)
from mt_nodes.relations.mutations.lidar.scatter_ahead import ScatterAhead

_RAY_TOLERANCE_RAD = 1e-3


@dataclass(frozen=True)
class NoiseOutsideRoi(RegionGiven, Mutation):
    """Scatters points outside the region of interest, after MR1 of Zhou and Sun (CACM 62(3), 2019).

    ``paper``: points uniform by area outside the region and its margin, z uniform between the frame's lowest and
    highest, inserted at random places of the scan; every old point stays, in order. Fields other than coordinates,
    intensity and range are those of the previous point in the scan, so that rings exist and times ascend. An organised
    cloud takes the points in its empty returns.

    ``on_ray``: as many returns outside the region and its margin are replaced by nearer ones on the same beam, as by
    an insect, a rain drop or dust: physically possible. Rays start at the origin of the cloud's frame.

    Guaranteed: every noise point is outside region and margin, and within the sensor's range; everything else is
    unchanged.
    """

    sensors = ("lidar",)

    points: int = param(1000, low=1, high=1_000_000, neutral=1, help="noise points in each cloud")
    mode: str = param("paper", choices=("paper", "on_ray"), help="scattered anywhere, or each on a beam of the sensor")
    region: Region = param("front_40m", convert=load_region, help="what the noise stays out of")
    margin_m: float = param(
        1.0, low=0.0, high=100.0, unit="m", aspect="place", help="noise-free margin around the region"
    )
    within_m: float | None = param(
        None,
        low=0.01,
        high=1000.0,
        unit="m",
        aspect="place",
        help="only in a band of this width around region and margin",
    )
    max_range_m: float = param(120.0, low=1.0, high=1000.0, unit="m", aspect="fixed", help="the sensor's range")
    ego_radius_m: float = param(
        3.0, low=0.0, high=50.0, unit="m", aspect="fixed", help="no noise this near the sensor (over ground)"
    )
    intensity: str = param(
        "frame", choices=("frame", "full_scale"), help="uniform over the frame's own, or a retro-reflector's"
    )

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Choose places, rows and intensities for every cloud, under ``<topic>|<name>``."""
        if not bundle.clouds:
            raise NotApplicable(f"bundle {bundle.index} has no cloud")
        draw: Draw = {}
        for cloud in bundle.clouds:
            for name, value in self._draw_cloud(rng, bundle, cloud).items():
                draw[f"{cloud.topic}|{name}"] = value
        return draw

    def foresee(self, rng: np.random.Generator, last: Bundle) -> ScatterAhead | None:
        """Draw all but what the next cloud decides, where there is one cloud and the region stays."""
        if self.mode == "on_ray" or len(last.clouds) != 1 or not self.region.fixed:
            return None
        return ScatterAhead.draw(rng, self.points, last.cloud(), self._space(last, last.cloud()))

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Add the drawn points to every cloud."""
        clouds = [self._changed(cloud, *_drawn(draw, cloud)) for cloud in bundle.clouds]
        added = {c.topic: _drawn(draw, c)[1] for c in bundle.clouds}
        effects = Effects(numbers={"points_added": float(sum(map(len, added.values())))}, added_points=added)
        return Followup(((0, bundle.with_clouds(clouds)),), effects)

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Check the places of the new points, and that nothing else changed."""
        for old in source.clouds:
            new, rows = followup.first.cloud(old.topic), _drawn(draw, old)[0]
            broken = self._changed_point(old, new, rows)
            if broken is None:
                at = added_rows(old, rows) if self._inserts(old) else rows
                broken = self._within_bounds(source, old, new.xyz[at].astype(np.float64))
                broken = broken or proof_of_angles(old, new, at)
            if broken is None and self.mode == "on_ray":
                broken = self._outside(self._away_m(source, old, old.xyz[rows]), "a replaced return")
            if broken is not None:
                return f"{old.topic}: {broken}"
        return None

    def _inserts(self, cloud: Cloud) -> bool:
        return self.mode == "paper" and not cloud.organised

    def _space(self, bundle: Bundle, cloud: Cloud) -> Space:
        region, matrix = to_region(bundle, cloud, self.region)
        # Without a limit the band extends to the sensor's largest possible range.
        within = np.inf if self.within_m is None else self.within_m
        return Space(region, matrix, self.margin_m, within, self.max_range_m, self.ego_radius_m)

    def _draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud) -> Draw:
        space, ahead = self._space(bundle, cloud), drawn_ahead(rng, ScatterAhead)
        if self.mode == "on_ray":
            rows, xyz = shortened(rng, self.points, cloud, space)
        elif ahead is not None and ahead.fits(cloud, space) and (found := ahead.rows(len(cloud) + 1)) is not None:
            rows, rng = found, ahead.rng
            xyz = scattered(rng, self.points, cloud, space, partial(ahead.points, cloud))
        else:
            rows, xyz = free_rows(rng, cloud, self.points), scattered(rng, self.points, cloud, space)
        intensity = intensities(rng, self.points, cloud, self.intensity == "full_scale")
        drawn = {"rows": rows, "xyz": xyz}
        return drawn if intensity is None else {**drawn, "intensity": intensity}

    def _changed(self, cloud: Cloud, rows: Rows, xyz: Any, intensity: Any) -> Cloud:
        if self.mode == "paper":
            return with_added(cloud, rows, xyz, intensity)
        raw = cloud.raw.copy()
        write_points(raw.view(cloud.points.dtype), rows, xyz, intensity, cloud)
        return cloud.with_raw(raw, height=cloud.height)

    def _changed_point(self, old: Cloud, new: Cloud, rows: Rows) -> str | None:
        if self._inserts(old):
            if len(new) != len(old) + self.points:
                return f"{len(new)} points, expected {len(old)} and {self.points} more"
            rest = np.delete(new.raw, added_rows(old, rows))
            return None if np.array_equal(_bytes(rest), _bytes(old.raw)) else "an old point was changed, moved or lost"
        if len(new) != len(old) or new.height != old.height:
            return f"{len(new)} points in {new.height} rows, expected {len(old)} in {old.height}"
        before, after = _bytes(old.raw).copy(), _bytes(new.raw)
        before[rows] = after[rows]
        if not np.array_equal(before, after) or len(np.unique(rows)) != self.points:
            return f"other points changed than the {self.points} replaced ones"
        return _changed_field(old, new, rows) or self._replaced(old, new, rows)

    def _replaced(self, old: Cloud, new: Cloud, rows: Rows) -> str | None:
        if self.mode == "paper":
            return None if empty_returns(old)[rows].all() else "a point was put over an existing return"
        before, after = old.xyz[rows].astype(np.float64), new.xyz[rows].astype(np.float64)
        far, near = np.linalg.norm(before, axis=1), np.linalg.norm(after, axis=1)
        if not (near < far).all():
            return "a replaced return is not nearer than the old one"
        turned = np.arctan2(np.linalg.norm(np.cross(before, after), axis=1), np.einsum("ij,ij->i", before, after))
        return None if (turned <= _RAY_TOLERANCE_RAD).all() else f"a point left its ray by {turned.max():.2g} rad"

    def _within_bounds(self, bundle: Bundle, cloud: Cloud, xyz: Floats) -> str | None:
        if not np.isfinite(xyz).all():
            return "a noise point is not finite"
        away, reached = self._away_m(bundle, cloud, xyz), np.linalg.norm(xyz, axis=1)
        if self.within_m is not None and not (away <= self.margin_m + self.within_m + 1e-6).all():
            return f"a noise point is {away.max():.3f} m from region '{self.region.name}', beyond the band"
        if not (reached <= self.max_range_m).all():
            return f"a noise point is {reached.max():.1f} m from the sensor"
        return self._outside(away, "a noise point")

    def _outside(self, away: Floats, what: str) -> str | None:
        if (away > self.margin_m).all():
            return None
        return f"{what} is {away.min():.3f} m from region '{self.region.name}', the margin is {self.margin_m:g} m"

    def _away_m(self, bundle: Bundle, cloud: Cloud, xyz: npt.NDArray[Any]) -> Floats:
        """Return distances (N,) to the region, edge by edge: independent of the measure in :meth:`draw`."""
        region, matrix = to_region(bundle, cloud, self.region)
        x, y = move(matrix, xyz.astype(np.float64))[:, :2].T
        away = np.full(len(x), np.inf)
        for outline in region.polygon_m:
            for start, end in zip(outline, (*outline[1:], outline[0]), strict=True):
                away = np.minimum(away, _to_segment_m(x, y, start, end))
        return np.where(shapely.intersects_xy(region.geometry, x, y), 0.0, away)


def _drawn(draw: Draw, cloud: Cloud) -> tuple[Rows, Any, Any]:
    return draw[f"{cloud.topic}|rows"], draw[f"{cloud.topic}|xyz"], draw.get(f"{cloud.topic}|intensity")


def _to_segment_m(x: Floats, y: Floats, start: tuple[float, float], end: tuple[float, float]) -> Floats:
    """Return distances (N,) of points to a straight line from ``start`` to ``end``."""
    (ax, ay), (dx, dy) = start, (end[0] - start[0], end[1] - start[1])
    length2 = dx * dx + dy * dy
    along = np.clip(((x - ax) * dx + (y - ay) * dy) / length2, 0.0, 1.0) if length2 else 0.0
    return np.asarray(np.hypot(x - ax - along * dx, y - ay - along * dy))


def _bytes(raw: Any) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(raw).view(np.uint8).reshape(len(raw), raw.dtype.itemsize)


def _changed_field(old: Cloud, new: Cloud, rows: Rows) -> str | None:
    place = {"x", "y", "z", *filter(old.single, RANGE_FIELDS), *angle_fields(old)}
    for name in set(old.fields) - {*old.echo_names, *place}:
        if old.points[name][rows].tobytes() != new.points[name][rows].tobytes():
            return f"field '{name}' of a replaced return changed"
    return None
