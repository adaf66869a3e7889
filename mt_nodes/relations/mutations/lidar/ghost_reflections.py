# SPDX-License-Identifier: Apache-2.0
"""Mirror images behind a flat, shiny surface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.lidar.placement import RANGE_FIELDS, intensity_from, write_intensity
from mt_nodes.relations.mutations.lidar.rays import (
    RAY_TOLERANCE_RAD,
    at_rows,
    columns,
    ranges_m,
    refuse_whole_numbers,
    returns,
    rounding_m,
    smallest,
    write_range_fields,
)

#: Numbers of the search for a mirror: returns tried, size of the first patch, least flat returns, and largest share of
#: its lean.
_TRIES, _FIRST_M, _LEAST_POINTS, _LEANS = 32, 0.5, 30, 0.3
_SLACK_DB = 0.01
#: Least distance of mirrored objects before the surface.
_BEFORE_M = 0.3
#: If there are more images, every second, third … one is used: enough for any ghosts.
_MOST = 2000


@dataclass(frozen=True)
class GhostReflections(EachCloud):
    """Adds mirror images behind a flat surface, each on a beam that hits the surface, as a window or a car's side does.

    A shiny surface throws part of a beam on, by the law of reflection; what comes back from an object q on that
    way took the path |m| + |q − m| over the point m of the surface, so that the sensor sees the object at that range on
    the beam through m: at its mirror image (X. Zhao, Z. Yang, S. Schwertfeger, Mapping with Reflection – Detection and
    Utilization of Reflection in 3D Lidar Scans). The surface is found in the cloud: an upright plane through returns
    around a random one. Ghosts are images of returns q that lie within ``beam_rad`` of a beam through the surface; of
    several on one beam the nearest is seen. A ghost has its beam's direction, the image's range and the object's
    intensity times ``strength`` (two reflections; a material property, assumed). A dual-return sensor reports it as a
    second return of the beam, after which it is put with that return's other fields. An organised cloud has one place
    a beam: it has no honest ghost. Guaranteed: every old return remains; each ghost is on the beam of a return on the
    surface and behind it, where the mirror image of another return lies, and is weaker than that one.
    """

    ghosts: int = param(50, low=1, high=100_000, neutral=1, help="ghosts in each cloud")
    strength: float = param(
        0.2, low=0.0, high=1.0, neutral=0.0, help="a ghost's intensity over that of what is mirrored"
    )
    max_range_m: float = param(
        120.0, low=1.0, high=500.0, unit="m", aspect="fixed", help="the sensor's range: no ghost beyond it"
    )
    size_m: float = param(
        3.0, low=0.5, high=50.0, unit="m", aspect="fixed", help="how far the surface reaches from its middle"
    )
    flatness_m: float = param(
        0.03, low=0.001, high=0.2, unit="m", aspect="fixed", help="returns this near to the plane are on it"
    )
    beam_rad: float = param(
        0.003, low=1e-4, high=0.02, unit="rad", aspect="fixed", help="an image is seen by beams as near as this"
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Find a mirror, under ``plane`` (4,), ascending beams ``rows`` (n,), and what each shows, ``images`` (n,)."""
        if cloud.organised:
            raise NotApplicable(f"organised {cloud.topic} of {cloud.height} x {cloud.width} holds one return a beam")
        if cloud.intensity_field is None:
            raise NotApplicable(f"{cloud.topic} has no intensity to give a ghost its own")
        refuse_whole_numbers(cloud)
        cloud.echoes.refuse_doubt()
        known, xyz, squares = self._within_reach(cloud)
        most = 0
        for seed in rng.integers(len(known), size=_TRIES).tolist():
            plane = self._plane(xyz, xyz[:, seed])
            if plane is None:
                continue
            beams, images = self._mirrored(xyz, squares, plane, xyz[:, seed])
            most = max(most, len(beams))
            if len(beams) >= self.ghosts:
                chosen = np.sort(rng.choice(len(beams), self.ghosts, replace=False, shuffle=False))
                return {
                    "plane": plane,
                    "rows": smallest(known[beams[chosen]]),
                    "images": smallest(known[images[chosen]]),
                }
        raise NotApplicable(
            f"the best of {_TRIES} places looked at in {cloud.topic} shows {most} mirror images in a flat, upright "
            f"surface, {self.ghosts} are needed"
        )

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Add a ghost after each beam's return, next in the scan."""
        rows, image_m = draw["rows"].astype(np.int64), _image_m(cloud, draw)
        ratio = image_m / ranges_m(cloud, rows)
        added = cloud.raw.take(rows)
        points = added.view(cloud.points.dtype)
        for axis in "xyz":
            points[axis] = points[axis] * ratio
        write_range_fields(points, cloud, slice(None), ratio)
        intensity = intensity_from(cloud, draw["images"].astype(np.int64), image_m, self.strength)
        if intensity is not None:
            write_intensity(points, slice(None), intensity, image_m, cloud)
        return cloud.with_raw(np.insert(cloud.raw, rows + 1, added))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Remove the ghosts again, and compare each with its beam's return and the mirror image."""
        rows = draw["rows"].astype(np.int64)
        at = rows + 1 + np.arange(len(rows))
        if len(new) != len(old) + self.ghosts or len(rows) != self.ghosts or (np.diff(rows) <= 0).any():
            return f"{len(new)} points, expected {len(old)} and {self.ghosts} ghosts, each on a beam of its own"
        if np.delete(new.raw, at).tobytes() != old.raw.tobytes():
            return "an old point was changed, moved or lost"
        return self._at_the_image(old, new, rows, at, draw) or self._otherwise_the_same(old, new, rows, at, draw)

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the places of the ghosts."""
        rows = {topic: draws[topic]["rows"].astype(np.int64) for topic in clouds}
        added = {t: cloud.xyz[rows[t] + 1 + np.arange(len(rows[t]))].astype(np.float64) for t, cloud in clouds.items()}
        return Effects(numbers={"points_added": float(sum(map(len, added.values())))}, added_points=added)

    def _within_reach(self, cloud: Cloud) -> tuple[Rows, Singles, Singles]:
        """Return the rows (n,) of returns in the sensor's range, their places (3, n) and squared ranges (n,)."""
        rows = returns(cloud)
        at = at_rows(cloud, rows)
        xyz = np.stack([cloud.points[name][at].astype(np.float32) for name in "xyz"])
        squares = np.einsum("ij,ij->j", xyz, xyz)
        near = squares < self.max_range_m**2
        if not near.any():
            raise NotApplicable(f"no return of {cloud.topic} lies within {self.max_range_m:g} m")
        return (rows, xyz, squares) if near.all() else (rows[near], xyz[:, near], squares[near])

    def _plane(self, xyz: Singles, seed: Singles) -> Floats | None:
        """Return the plane (4,) through returns around one, its normal away from the sensor; None for no mirror."""
        near = np.flatnonzero(np.abs(xyz[0] - seed[0]) < _FIRST_M)
        for row, middle_m in zip(xyz[1:], seed[1:], strict=True):
            near = near[np.abs(row[near] - middle_m) < _FIRST_M]
        patch = xyz[:, near].astype(np.float64)
        if patch.shape[1] < _LEAST_POINTS:
            return None
        middle = patch.mean(axis=1, keepdims=True)
        spread, axes = np.linalg.eigh((patch - middle) @ (patch - middle).T / patch.shape[1])
        normal = axes[:, 0] * np.sign(axes[:, 0] @ middle[:, 0])
        if spread[0] > (0.8 * self.flatness_m) ** 2 or spread[1] < 16.0 * spread[0] or abs(normal[2]) > _LEANS:
            return None
        return np.array([*normal, -float(normal @ middle[:, 0])])

    def _mirrored(self, xyz: Singles, squares: Singles, plane: Floats, seed: Singles) -> tuple[Rows, Rows]:
        """Return ascending beams (n,) through the mirror, and the nearest return (n,) that each shows."""
        height = _along(plane[:3], xyz, plane[3])
        mirror = np.flatnonzero(np.abs(height) < self.flatness_m)
        mirror = mirror[np.abs(xyz[:, mirror] - seed[:, None]).max(axis=0) < self.size_m]
        surface = xyz[:, mirror].astype(np.float64)
        surface_m = np.sqrt(np.square(surface).sum(axis=0))
        way = surface / surface_m
        centre = way.mean(axis=1) / np.linalg.norm(way.mean(axis=1))
        before = self._behind(xyz, squares, plane, height, (centre, float((centre @ way).min()) - 1e-4))
        before = before[:: 1 + len(before) // _MOST]
        reflected, normal = xyz[:, before].astype(np.float64), plane[:3, None]
        image = reflected - 2.0 * (normal.T @ reflected + plane[3]) * normal
        image_m = np.sqrt(np.square(image).sum(axis=0))
        off, beam = cKDTree(way.T).query((image / image_m).T, distance_upper_bound=self.beam_rad)
        hit = np.flatnonzero(np.isfinite(off))
        hit = hit[(image_m[hit] > surface_m[beam[hit]] + _BEFORE_M) & (image_m[hit] < self.max_range_m)]
        hit = hit[np.lexsort((image_m[hit], beam[hit]))]
        beams, first = np.unique(beam[hit], return_index=True)
        return mirror[beams], before[hit[first]]

    def _behind(
        self, xyz: Singles, squares: Singles, plane: Floats, height: Singles, cone: tuple[Floats, float]
    ) -> Rows:
        """Return which returns (m,) before the plane, at heights (n,), have images within range and a cone.

        An image is p − 2 h n with h = n·p + d: its square is p² + 4 h d, and its component along a direction is linear
        in p, so that images need not be computed.
        """
        normal, (axis, cosine) = plane[:3], cone
        over = float(axis @ normal)
        image_m = squares + np.float32(4.0 * plane[3]) * height
        image_m = np.sqrt(np.maximum(image_m, 0.0, out=image_m), out=image_m)
        visible = _along(axis - 2.0 * over * normal, xyz, -2.0 * over * plane[3]) > np.float32(cosine) * image_m
        return np.flatnonzero(visible & (height < -_BEFORE_M) & (image_m < self.max_range_m))

    def _at_the_image(self, old: Cloud, new: Cloud, rows: Rows, at: Rows, draw: Draw) -> str | None:
        mirror, ghost, reflected = (
            cloud.xyz[of].astype(np.float64) for cloud, of in ((old, rows), (new, at), (old, draw["images"]))
        )
        normal, slack = draw["plane"][:3], rounding_m(old, ranges_m(new, at)) + 1e-6
        if not (np.abs(mirror @ normal + draw["plane"][3]) <= self.flatness_m + 1e-3).all():
            return "a ghost's beam does not hit the surface"
        # Householder matrix of the reflection, about a point of the plane.
        fixed = -draw["plane"][3] * normal
        image = (reflected - fixed) @ (np.eye(3) - 2.0 * np.outer(normal, normal)) + fixed
        far, image_m = ranges_m(new, at), np.linalg.norm(image, axis=1)
        wrong = np.abs(far - image_m) > slack + 1e-5 * far
        wrong |= _angle_rad(ghost, image) > self.beam_rad * 1.01 + 1e-4
        wrong |= (far <= ranges_m(old, rows)) | (far > self.max_range_m + slack + 1e-3)
        wrong |= ~(_angle_rad(mirror, ghost) <= RAY_TOLERANCE_RAD)
        return f"{int(wrong.sum())} ghosts are not at mirror images on their beams" if wrong.any() else None

    def _otherwise_the_same(self, old: Cloud, new: Cloud, rows: Rows, at: Rows, draw: Draw) -> str | None:
        mirrored = draw["images"].astype(np.int64)
        strength_db = 10.0 * np.log10(self.strength) if self.strength else -np.inf
        for field in old.echoes.fields:
            grain = _grain(old, field.name)
            shown = field.convention.decibels(
                old.points[field.name][mirrored].astype(np.float64) + grain, ranges_m(old, mirrored)
            )
            value = np.maximum(new.points[field.name][at].astype(np.float64) - grain, 0.0)
            if (field.convention.decibels(value, ranges_m(new, at)) > shown + strength_db + _SLACK_DB).any():
                return f"a ghost is stronger than {self.strength:g} of what it shows, in '{field.name}'"
        for other in set(old.fields) - {*"xyz", *old.echo_names, *filter(old.single, RANGE_FIELDS)}:
            if new.points[other][at].tobytes() != old.points[other][rows].tobytes():
                return f"field '{other}' of a ghost is not its beam's"
        return None


def _grain(cloud: Cloud, name: str) -> float:
    """Return how much a value is rounded, and a value that another was derived from before."""
    return 1.0 if cloud.points.dtype[name].kind in "iu" else 0.0


def _along(direction: Floats, xyz: Singles, more: float) -> Singles:
    """Return the scalar product (n,) of a direction with places (3, n), and ``more``."""
    a, b, c = direction.astype(np.float32)
    total = a * xyz[0]
    total += b * xyz[1]
    total += c * xyz[2]
    total += np.float32(more)
    return np.asarray(total)


def _image_m(cloud: Cloud, draw: Draw) -> Floats:
    """Return the ranges (n,) of the mirror images."""
    a, b, c, d = draw["plane"].tolist()
    x, y, z = columns(cloud, draw["images"])
    twice = 2.0 * (a * x + b * y + c * z + d)
    return np.asarray(np.sqrt((x - twice * a) ** 2 + (y - twice * b) ** 2 + (z - twice * c) ** 2))


def _angle_rad(first: Floats, second: Floats) -> Floats:
    """Return the angle (n,) between vectors (n, 3)."""
    return np.asarray(np.arctan2(np.linalg.norm(np.cross(first, second), axis=1), np.einsum("ij,ij->i", first, second)))
