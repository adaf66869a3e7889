# SPDX-License-Identifier: Apache-2.0
"""Removes an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats, Mask, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import of_cloud
from mt_nodes.relations.mutations.lidar.placement import intensity_from
from mt_nodes.relations.mutations.lidar.rays import smallest
from mt_nodes.relations.mutations.objects.changed_returns import (
    along_rays,
    changed,
    on_rays,
    proof_of_direction,
    replaced_and_added,
    rows_of,
)
from mt_nodes.relations.mutations.objects.in_scene import CUT, ego_from, surroundings
from mt_nodes.relations.mutations.objects.out_of_sight import refuse_in_sight
from mt_nodes.relations.mutations.objects.picture_exchange import ObjectExchange, PictureExchange
from mt_nodes.relations.mutations.objects.removal_in_pictures import StandingBody
from mt_nodes.world.scene.nearest_object import Search, nearest_objects
from mt_nodes.world.scene.placement_solver import NoRoom, ground_plane
from mt_nodes.world.scene.returns import box_around, lengths, places, returns_at, within_box
from mt_nodes.world.scene.scan_lines import scan_lines_of
from mt_nodes.world.scene.shadow import shadow

_ABOVE_GROUND_M = 0.12
_PLANE_M = 10.0
#: How far beside the object its neighbours on a ring may be.
_ASIDE_RAD = 0.3
_TALLEST_M = 5.0
#: Radius of the ground around an object, and largest height difference between its ground and the ego's.
_GROUND_M, _HIGHEST_M = 3.0, 30.0
#: How many of the nearest objects are tried in pictures.
_THINGS = 4


@dataclass(frozen=True)
class ObjectRemoved(PictureExchange):
    """Removes the nearest object ahead; its rays continue to what is behind it.

    Ray by ray along each ring (each band of elevation, in a scan without rings): if the returns left and right of the
    object have similar ranges, beyond the object, the ground or wall on which they lie continues behind it, and the ray
    ends there. Else it ends on the plane of the ground around the object, if that is near enough, or has no return.
    Noise is along the ray. Every other return stays, byte for byte. What stood in the object's shadow is unknown: only
    ground and walls seen on both sides are filled in. Effects: the object is removed, its shadow revealed.

    In pictures its silhouette (its returns, dilate_mask to the picture's edges) and its shadow are filled: from up to a
    second of earlier pictures, moved by the ego's motion and depth, else with ground and background beside it, shifted
    as they recede. The same fill in a hole of the same shape beside it, whose pixels are known, must be at most 0.1 of
    full light off; else that object is skipped. A picture that does not show the object stays, byte for byte.

    Guaranteed: no return of the object remains; the new ones are on its rays and within the sensor's range; everything
    else is unchanged. Pixels change only where lines of sight meet the box of the object or the ground around it; those
    of its returns do, and their fine structure is no longer the object's.
    """

    ahead_m: tuple[float, float] = param(
        (4.0, 30.0), low=0.0, high=200.0, unit="m", aspect="place", help="nearest and farthest x of all of it"
    )
    aside_m: float = param(
        6.0, low=0.5, high=100.0, unit="m", aspect="place", help="farthest from the path, to either side"
    )
    least_points: int = param(30, low=3, high=100_000, aspect="fixed", help="returns that make an object")
    largest_m: float = param(6.0, low=0.5, high=50.0, unit="m", aspect="fixed", help="what is longer is no object")
    similar: float = param(
        0.15, low=0.0, high=1.0, aspect="fixed", help="ranges that differ by this share are of one surface"
    )
    range_sigma_m: float = param(
        0.02, low=0.0, high=0.5, unit="m", aspect="fixed", help="noise of a range, cut at 3 sigma"
    )
    max_range_m: float = param(120.0, low=1.0, high=1000.0, unit="m", aspect="fixed", help="the sensor's range")
    ego_frame_id: str = param("base_link", help="frame on the road under the ego, x ahead, z up")
    pictures: str = param(
        "change",
        choices=("change", "refuse", "stay"),
        help="what of it is in sight of a camera: removed there, too; NOT_APPLICABLE; or left as it is",
    )

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every cloud and every picture; the object is chosen once."""
        draw = self.draw_exchange(rng, bundle, cache(partial(self.choose, bundle, state)))
        if self.pictures == "refuse":
            for cloud in bundle.clouds:
                refuse_in_sight(bundle, cloud, self.touched(cloud, of_cloud(draw, cloud)))
        return draw

    def choose(self, bundle: Bundle, state: Any) -> ObjectExchange:
        """Choose the nearest object; with pictures, the first of the nearest that they can do without."""
        things = (self.exchange_of(bundle, *thing) for thing in self.things(bundle))
        if not self.changes_pictures(bundle):
            return next(things)
        reasons: list[str] = []
        for exchange in islice(things, _THINGS):
            try:
                return self.refuse_unclean(bundle, exchange)
            except NoRoom as reason:
                reasons.append(str(reason))
        raise NotApplicable(f"none of the nearest {len(reasons)} objects can be removed: {', '.join(reasons)}")

    def exchange_of(self, bundle: Bundle, outline: Floats, plane: Floats) -> ObjectExchange:
        """Return an object of :meth:`things` to take out."""
        cloud = bundle.known_clouds[0]
        rows = standing_within(cloud, self.to_ego(bundle, cloud), outline, plane)
        return ObjectExchange({"outline_m": outline, "plane": plane}, rows)

    def touched(self, cloud: Cloud, draw: Draw) -> Floats:
        """Return the places (n, 3) in a cloud where the scene changes."""
        return np.concatenate([places(cloud, rows_of(draw, name)) for name in ("rows", "lost")])

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Find what is behind the object in this cloud."""
        exchange: ObjectExchange = state()
        outline, plane, rows = exchange.draw["outline_m"], exchange.draw["plane"], exchange.rows
        if cloud is not bundle.clouds[0]:
            rows = standing_within(cloud, self.to_ego(bundle, cloud), outline, plane)
        return self.draw_removal(rng, bundle, cloud, outline, plane, rows)

    def standing_rows(self, bundle: Bundle, body: StandingBody) -> list[Rows]:
        """Return the rows (n,) of the object's returns in each known cloud."""
        return [
            standing_within(cloud, self.to_ego(bundle, cloud), body.outline_m, body.plane)
            for cloud in bundle.known_clouds
        ]

    def draw_removal(
        self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, outline: Floats, plane: Floats, rows: Rows
    ) -> Draw:
        """Find what is behind an object with returns (n,) within outline (k, 2) on ground (5,)."""
        to_ego = self.to_ego(bundle, cloud)
        if not len(rows):
            raise NotApplicable(f"{cloud.topic} has no return of the object")
        range_m, source = self._behind(cloud, rows, to_ego, plane)
        noise = np.clip(rng.standard_normal(len(rows)), -CUT, CUT) * self.range_sigma_m
        range_m = range_m + noise
        known = np.isfinite(range_m)
        ending = along_rays(cloud, rows[known], range_m[known])
        known[known] = ~_inside(move(to_ego, ending), outline, plane)
        draw: Draw = {
            "outline_m": outline,
            "plane": plane,
            "rows": smallest(rows[known]),
            "range_m": range_m[known].astype(np.float32),
            "lost": smallest(rows[~known]),
        }
        intensity = intensity_from(cloud, source[known], range_m[known])
        return draw if intensity is None else {**draw, "intensity": intensity}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Extend the rays."""
        return changed(cloud, draw)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check that nothing is left of the object, and that its rays continue as rays."""
        after, _, broken = replaced_and_added(old, new, draw)
        if broken is None:
            broken = proof_of_direction(places(old, rows_of(draw, "rows")), after)
        if broken is not None:
            return broken
        if not (lengths(after) <= self.max_range_m + CUT * self.range_sigma_m).all():
            return "a return is beyond the sensor's range"
        left = standing_within(new, self.to_ego(bundle, old), draw["outline_m"], draw["plane"])
        return f"{len(left)} returns are left of the object" if len(left) else None

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report what was removed, and where its rays end now."""
        points_behind = {c.topic: on_rays(c, draws[c.topic]) for c in bundle.clouds}
        return replace(self.describe_removal(bundle, draws), added_points=points_behind)

    def describe_removal(self, bundle: Bundle, draws: Mapping[str, Draw]) -> Effects:
        """Report what was removed, and its shadow: what stood there is known in part at best."""
        first = next(iter(draws.values()))
        outline, plane = first["outline_m"], first["plane"]
        (x0, y0), (x1, y1) = outline.min(axis=0).tolist(), outline.max(axis=0).tolist()
        center = ((x0 + x1) / 2, (y0 + y1) / 2, float(plane[0]) + 1.0)
        corners = tuple((float(x), float(y)) for x, y in outline.tolist())
        removed = Volume(self.ego_frame_id, center, (x1 - x0, y1 - y0, 2.0), label="removed", outline_m=corners)
        sensors_m = [self.to_ego(bundle, c)[:2, 3] for c in bundle.clouds or bundle.known_clouds[:1]]
        return Effects(
            removed=(removed,),
            revealed=tuple(shadow(outline, at, self.ego_frame_id, self.max_range_m) for at in sensors_m),
            numbers={
                "returns_going_on": float(sum(len(rows_of(d, "rows")) for d in draws.values())),
                "returns_lost": float(sum(len(rows_of(d, "lost")) for d in draws.values())),
            },
        )

    def to_ego(self, bundle: Bundle, cloud: Cloud) -> Matrix:
        """Return the 4×4 from the cloud's frame to the ego's."""
        return ego_from(bundle, cloud.frame_id, self.ego_frame_id, cloud.topic)

    @property
    def search(self) -> Search:
        """The search parameters."""
        return Search(self.ahead_m, self.aside_m, self.least_points, (0.0, self.largest_m))

    def things(self, bundle: Bundle) -> Iterator[tuple[Floats, Floats]]:
        """Yield outlines (k, 2) of objects in the first cloud, nearest first, each with the ground around it.

        The ground (5,): its height, its slopes along x and y, and the place x, y of that height.
        Raises NotApplicable: there is none, or no ground around one.
        """
        return things_ahead(bundle, self.to_ego(bundle, bundle.known_clouds[0]), self.search)

    def _behind(self, cloud: Cloud, rows: Rows, to_ego: Matrix, plane: Floats) -> tuple[Floats, Rows]:
        """Return the ranges of rays (n,) without the object, NaN for none, and where intensities come from (n,)."""
        left, right = _neighbours(cloud, rows)
        own, a, b = (lengths(places(cloud, r)) for r in (rows, left, right))
        share = _share(cloud, left, rows, right)
        near, far = np.minimum(a, b), np.maximum(a, b)
        surface = (far - near <= self.similar * near) & (near > own)
        ground = _to_ground(cloud, rows, to_ego, plane)
        # The plane is only known near the object, and as far as there are returns on either side.
        reaches = (ground > own) & (ground <= np.minimum(np.maximum(far, own + _PLANE_M), self.max_range_m))
        onward = np.where(surface, a + share * (b - a), np.where(reaches, ground, np.nan))
        return np.where(onward <= self.max_range_m, onward, np.nan), np.where(a > own, left, right)


def things_ahead(bundle: Bundle, to_ego: Matrix, search: Search) -> Iterator[tuple[Floats, Floats]]:
    """Yield outlines and ground of objects in the first cloud, as :meth:`ObjectRemoved.things` says."""
    cloud, (near_m, far_m), aside_m = bundle.known_clouds[0], search.around.ahead_m, search.around.aside_m
    low, high = np.array([near_m, -aside_m, -_HIGHEST_M]), np.array([far_m, aside_m, _HIGHEST_M])
    _, xyz = within_box(cloud, *box_around(to_ego, low, high))
    return ((outline, ground_around(cloud, to_ego, outline)) for outline in nearest_objects(move(to_ego, xyz), search))


def ground_around(cloud: Cloud, to_ego: Matrix, outline: Floats) -> Floats:
    """Return the ground (5,) around an outline (k, 2): height, slopes along x and y, place x, y of that height.

    Raises NotApplicable: there is none.
    """
    x, y = outline.mean(axis=0).tolist()
    reach = float(np.hypot(*np.ptp(outline, axis=0))) + _GROUND_M
    _, around = surroundings(cloud, to_ego, (x, y), reach)
    near = around[(around[:, 0] - x) ** 2 + (around[:, 1] - y) ** 2 <= reach**2]
    try:
        return np.array([*ground_plane(near, (x, y)), x, y])
    except NoRoom as reason:
        raise NotApplicable(f"the object at ({x:.1f}, {y:.1f}) m stands {reason}") from reason


def standing_within(cloud: Cloud, to_ego: Matrix, outline: Floats, plane: Floats) -> Rows:
    """Return the rows (n,) of points on the ground within an outline."""
    ground_m = plane[0] + (outline - plane[3:]) @ plane[1:3]
    low = np.append(outline.min(axis=0), ground_m.min())
    high = np.append(outline.max(axis=0), ground_m.max() + _TALLEST_M)
    rows, xyz = within_box(cloud, *box_around(to_ego, low, high))
    return rows[_inside(move(to_ego, xyz), outline, plane)]


def _inside(xyz: Floats, outline: Floats, plane: Floats) -> Mask:
    """Return which points (n, 3) stand on the ground within a convex outline."""
    x, y, z = xyz.T
    ring = outline if shapely.is_ccw(shapely.linearrings(outline)) else outline[::-1]
    height = z - (plane[0] + plane[1] * (x - plane[3]) + plane[2] * (y - plane[4]))
    inside = (height > _ABOVE_GROUND_M) & (height < _TALLEST_M)
    for (x0, y0), (x1, y1) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        inside &= (x1 - x0) * (y - y0) >= (y1 - y0) * (x - x0)
    return np.asarray(inside)


def _neighbours(cloud: Cloud, rows: Rows) -> tuple[Rows, Rows]:
    """Return for each row (n,) the nearest ones on its ring, on either side, that are not among the rows."""
    beams = scan_lines_of(cloud)
    middle = float(beams.azimuth_rad[rows[0]])
    widest = float(np.abs(beams.azimuth_from(middle, rows)).max())
    near, _ = beams.within(middle, widest + _ASIDE_RAD)
    near, _ = returns_at(cloud, near[beams.of_rings(beams.ring[rows], near)])
    order = near[beams.along_rings(middle, near)]
    own = np.isin(order, rows)
    place = np.arange(len(order))
    before = np.maximum.accumulate(np.where(own, -1, place))[own]
    after = np.minimum.accumulate(np.where(own, len(order), place)[::-1])[::-1][own]
    # In ring order; results are needed in ascending order of the rows.
    back = np.argsort(order[own])
    ring = beams.ring[rows]
    # At the seam of a revolution, or alone on its ring, a ray is its own neighbour: no surface.
    sides = (order[np.clip(side[back], 0, len(order) - 1)] for side in (before, after))
    left, right = (np.where(beams.ring[side] == ring, side, rows) for side in sides)
    return left, right


def _share(cloud: Cloud, left: Rows, rows: Rows, right: Rows) -> Floats:
    """Return the positions of rays between their neighbours (n,): 0 at the left, 1 at the right."""
    azimuth = scan_lines_of(cloud).azimuth_rad
    start, at, end = (azimuth[side].astype(np.float64) for side in (left, rows, right))
    whole, before = np.mod(end - start, 2.0 * np.pi), np.mod(at - start, 2.0 * np.pi)
    return np.divide(before, whole, out=np.zeros(len(rows)), where=whole > 0)


def _to_ground(cloud: Cloud, rows: Rows, to_ego: Matrix, plane: Floats) -> Floats:
    """Return the range (n,) at which rays meet the plane, infinite if they do not."""
    xyz = places(cloud, rows)
    ray = (xyz / lengths(xyz)[:, None]) @ to_ego[:3, :3].T
    x, y, z = to_ego[:3, 3]
    above = z - (plane[0] + plane[1] * (x - plane[3]) + plane[2] * (y - plane[4]))
    falls = plane[1] * ray[:, 0] + plane[2] * ray[:, 1] - ray[:, 2]
    return np.asarray(np.divide(above, falls, out=np.full(len(rows), np.inf), where=falls > 1e-6))
