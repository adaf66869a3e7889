# SPDX-License-Identifier: Apache-2.0
"""An added object as a radar sees it: a handful of detections on its visible side, and what it hides.

The body's surface that faces the radar is sampled by rays; the hits in one cell of range and azimuth make one target
with its share of the class's mean cross-section (:data:`mt_nodes.world.scene.radar_model.CROSS_SECTIONS`). Each is
detected by chance (Swerling I) and reported with a strength that fluctuates likewise. Places that a LiDAR's return
before the object hides give a tenth of their power, because a radar's wave also passes under and around (assumed);
detections behind the object lose 15 dB (assumed).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.errors import NoEffect, NotApplicable
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.radar import Radar, polar
from mt_nodes.data.transforms import Matrix, UnknownTransform, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.objects.in_scene import ego_from, shadow_of
from mt_nodes.relations.mutations.radar.each_radar import (
    ChangesRadars,
    added_draw,
    added_part,
    motion_of,
    with_detections,
)
from mt_nodes.relations.mutations.radar.weaker_echoes import missed, proof_of_weakening, weakened
from mt_nodes.world.scene.radar_model import cross_section_dbsm, front_radar
from mt_nodes.world.scene.sight import RaycastBody

#: Rays over the width and the height of the body; share of power past an occluder; loss behind the body, dB.
_ACROSS, _UP, _PASSING, _BEHIND_DB = 40, 12, 0.1, 15.0
#: Width of the azimuth cells in which occluders are looked for, and how far before the body they stand at least.
_CELL_RAD, _BEFORE_M = 0.01, 1.0
#: Heights over the radar at which returns stand in its way.
_LOW_M, _HIGH_M = -0.2, 1.0


@dataclass(frozen=True, eq=False)
class RadarObject:
    """An object before a radar.

    ``pose``: (4, 4), body to the radar's frame. ``label``: class, for its cross-section. ``velocity_mps``: (2,) along
    the radar's axes, over ground, or relative to the radar.
    """

    body: RaycastBody
    pose: Matrix
    label: str
    velocity_mps: Floats
    over_ground: bool

    def relative_mps(self, radar: Radar) -> Floats:
        """Return the velocity (2,) relative to the radar, whose own the detections of standing things tell."""
        return self.velocity_mps - motion_of(radar).velocity_mps if self.over_ground else self.velocity_mps

    def surface(self) -> Floats:
        """Return places (n, 3) of the visible side in the radar's frame, each of about the same area."""
        centre = move(self.pose, self.body.center_m[None])[0]
        away, around = float(np.linalg.norm(centre)), self.body.radius_m
        half = float(np.arcsin(min(1.0, around / max(away, 1e-6))))
        _, azimuth, elevation = polar(centre[None])
        a = float(azimuth[0]) + half * np.linspace(-1.0, 1.0, _ACROSS)
        e = float(elevation[0]) + half * np.linspace(-1.0, 1.0, _UP)
        grid_a, grid_e = (grid.reshape(-1) for grid in np.meshgrid(a, e))
        level = np.cos(grid_e)
        ray = np.column_stack([level * np.cos(grid_a), level * np.sin(grid_a), np.sin(grid_e)])
        range_m = self.body.ranges(ray, self.pose)
        hit = np.isfinite(range_m)
        return np.asarray(ray[hit] * range_m[hit, None])


def draw_object(rng: np.random.Generator, bundle: Bundle, radar: Radar, thing: RadarObject) -> Draw:
    """Draw the detections of an object, and which of those behind it are missed.

    Raises NotApplicable: the message has tracks. NoEffect: the object is out of the radar's field, or is missed by
    chance and hides nothing.
    """
    if radar.tracks or not len(radar):
        raise NotApplicable(f"{radar.topic}: got {len(radar)} tracks or detections, expected detections")
    surface, model = thing.surface(), front_radar()
    range_m, azimuth, _ = polar(surface)
    seen_m, seen_rad, seen_up = radar.polar
    inside = (azimuth >= seen_rad.min()) & (azimuth <= seen_rad.max()) & (range_m <= seen_m.max())
    if not inside.any():
        raise NoEffect(f"{radar.topic}: the object is out of its field, by its other detections")
    power = np.where(_hidden(bundle, radar, surface), _PASSING, 1.0) / len(surface)
    key = np.stack([np.floor(range_m / model.range_step_m), np.floor(azimuth / model.azimuth_step_rad)])
    _, cell = np.unique(key[:, inside], axis=1, return_inverse=True)
    weight = np.bincount(cell.reshape(-1), power[inside])
    place = np.stack([np.bincount(cell.reshape(-1), (power * v)[inside]) / weight for v in (range_m, azimuth)])
    mean_dbsm = cross_section_dbsm(thing.label) + 10.0 * np.log10(weight)
    detected = rng.random(len(weight)) < model.detection_probability(model.snr_db(mean_dbsm, place[0]))
    strength = mean_dbsm + 10.0 * np.log10(np.maximum(rng.exponential(size=len(weight)), 0.5))
    lost = missed(rng, radar, behind_db(radar, thing))
    if not detected.any() and not len(lost):
        raise NoEffect(f"{radar.topic}: it misses the object, by chance, and none behind it")
    range_m, azimuth = place[:, detected]
    level = np.full(len(range_m), float(np.median(seen_up)))
    ray = np.column_stack([np.cos(azimuth), np.sin(azimuth)]) * np.cos(level)[:, None]
    like = rng.integers(len(radar), size=len(range_m))
    doppler, shown = ray @ thing.relative_mps(radar), _on_scale(radar, strength[detected])
    return {"lost": lost, **added_draw((range_m, azimuth, level), doppler, shown, like)}


def with_object_in(radar: Radar, thing: RadarObject, draw: Draw) -> Radar:
    """Return a radar with the object of a draw, and without what it hides."""
    return with_detections(radar, draw, onto=weakened(radar, behind_db(radar, thing), draw["lost"]))


def behind_db(radar: Radar, thing: RadarObject) -> Floats:
    """Return the loss (N,) of detections behind an object: the same for all in its shadow, 0 elsewhere."""
    surface = thing.surface()
    if not len(surface):
        return np.zeros(len(radar))
    range_m, azimuth, _ = polar(surface)
    middle = float(np.arctan2(np.sin(azimuth).mean(), np.cos(azimuth).mean()))
    half = float(np.abs(np.angle(np.exp(1j * (azimuth - middle)))).max())
    own_m, own_rad, _ = radar.polar
    length = 2.0 * thing.body.radius_m
    shadow = np.abs(np.angle(np.exp(1j * (own_rad - middle)))) <= half
    return np.where(shadow & (own_m > float(range_m.min()) + length), _BEHIND_DB, 0.0)


def proof_of_object(old: Radar, new: Radar, thing: RadarObject, draw: Draw) -> str | None:
    """Check that the new detections lie on the body, with the rate at which its places come nearer, and the losses."""
    count = len(draw["range_m"])
    rest = new.take(np.arange(len(new) - count))
    added = added_part(rest, new, count)
    if isinstance(added, str):
        return added
    broken = proof_of_weakening(old, rest, behind_db(old, thing), draw["lost"])
    if broken is not None or not count:
        return broken
    inverse = np.asarray(np.linalg.inv(thing.pose))
    height = float(move(thing.pose, thing.body.center_m[None])[0, 2])
    flat = added.xyz.copy()
    flat[:, 2] = height
    own, slack = move(inverse, flat), np.linalg.norm(added.xyz, axis=1) * front_radar().azimuth_step_rad + 0.5
    low, high = thing.body.low_m[:2] - slack[:, None], thing.body.high_m[:2] + slack[:, None]
    if not ((own[:, :2] >= low) & (own[:, :2] <= high)).all():
        return "a detection lies beside the object"
    step_s = 1e-3
    later = added.xyz.copy()
    later[:, :2] += step_s * thing.relative_mps(old)
    rate = (np.linalg.norm(later, axis=1) - np.linalg.norm(added.xyz, axis=1)) / step_s
    off = np.abs(added.doppler_mps - rate)
    return None if (off <= 0.05 + 1e-3 * np.abs(rate)).all() else f"a range rate is {off.max():.2f} m/s off"


def _hidden(bundle: Bundle, radar: Radar, surface: Floats) -> Mask:
    """Return before which places (n,) of the body a LiDAR's return stands in the radar's way."""
    range_m, azimuth, _ = polar(surface)
    cells, at = np.unique(np.floor(azimuth / _CELL_RAD).astype(np.int64), return_inverse=True)
    nearest = np.full(len(cells), np.inf)
    for cloud in bundle.known_clouds:
        try:
            matrix = bundle.transforms.lookup(radar.frame_id, cloud.frame_id)
        except UnknownTransform:
            continue
        xyz = move(matrix, cloud.xyz.astype(np.float32))
        with np.errstate(invalid="ignore"):
            rows = np.flatnonzero((xyz[:, 2] > _LOW_M) & (xyz[:, 2] < _HIGH_M) & (np.hypot(xyz[:, 0], xyz[:, 1]) > 0.5))
        own_m, own_rad, _ = polar(xyz[rows].astype(np.float64))
        own = np.floor(own_rad / _CELL_RAD).astype(np.int64)
        place = np.searchsorted(cells, own)
        known = (place < len(cells)) & (cells[np.minimum(place, len(cells) - 1)] == own)
        np.minimum.at(nearest, place[known], own_m[known])
    return np.asarray(nearest[at.reshape(-1)] < range_m - _BEFORE_M)


def _on_scale(radar: Radar, strength_dbsm: Floats) -> Floats:
    """Return strengths (n,) on a radar's scale: of other scales than cross-sections the rank among its own decides."""
    if radar.named(("rcs",)):
        return strength_dbsm
    middle, spread = float(np.median(radar.strength_db)), float(radar.strength_db.std())
    return np.asarray(middle + np.clip((strength_dbsm + 5.0) / 10.0, -1.0, 1.0) * spread)


class ObjectInRadars(ChangesRadars):
    """Base of mutations that add a body: its detections in every radar, by the draw that places it for all sensors."""

    sensors: ClassVar[tuple[str, ...]] = ("lidar", "camera", "radar")

    ego_frame_id: str
    max_range_m: float

    @abstractmethod
    def body_in(self, draw: Draw) -> RaycastBody:
        """Return the mesh for rays of the body that is drawn."""

    def looks(self, state: Any) -> Draw:
        """Return what an episode's draws say of the body: which variant of its kind it is."""
        return {}

    @property
    @abstractmethod
    def label(self) -> str:
        """The class that a detector should give it."""

    @abstractmethod
    def radar_motion(self, bundle: Bundle, state: Any) -> tuple[Floats, bool]:
        """Return its velocity (3,) along the ego's axes, and whether it is over ground or relative to the ego."""

    def draw_radar(self, rng: np.random.Generator, bundle: Bundle, radar: Radar, state: Any) -> Draw:
        """Draw its detections; ``state`` is the pose, and the state of the episode."""
        pose, of_episode = state
        velocity, over_ground = self.radar_motion(bundle, of_episode)
        draw: Draw = {"pose": pose, **self.looks(of_episode), "radar_mps": velocity, "over_ground": over_ground}
        return {**draw, **draw_object(rng, bundle, radar, self._before(bundle, radar, draw))}

    def change_radar(self, bundle: Bundle, radar: Radar, draw: Draw) -> Radar:
        """Add its detections."""
        return with_object_in(radar, self._before(bundle, radar, draw), draw)

    def prove_radar(self, bundle: Bundle, old: Radar, new: Radar, draw: Draw) -> str | None:
        """Check their places and range rates, and what is lost behind it."""
        return proof_of_object(old, new, self._before(bundle, old, draw), draw)

    def describe_radars(self, bundle: Bundle, changed: dict[str, Radar], draws: dict[str, Draw]) -> Effects:
        """Report its detections, and what it hides from each radar."""
        hidden = []
        for radar in (radar for radar in bundle.radars if radar.topic in changed):
            to_ego = ego_from(bundle, radar.frame_id, self.ego_frame_id, radar.topic)
            body, pose = self.body_in(draws[radar.topic]), draws[radar.topic]["pose"]
            hidden.append(shadow_of(body, pose, to_ego, self.ego_frame_id, self.max_range_m))
        added = {topic: radar.xyz[len(radar) - len(draws[topic]["range_m"]) :] for topic, radar in changed.items()}
        numbers = {"detections_on_object": float(sum(map(len, added.values())))} if changed else {}
        return Effects(occluded=tuple(hidden), numbers=numbers, added_points=added)

    def _before(self, bundle: Bundle, radar: Radar, draw: Draw) -> RadarObject:
        to_radar = np.asarray(np.linalg.inv(ego_from(bundle, radar.frame_id, self.ego_frame_id, radar.topic)))
        velocity = (to_radar[:3, :3] @ draw["radar_mps"])[:2]
        return RadarObject(self.body_in(draw), to_radar @ draw["pose"], self.label, velocity, bool(draw["over_ground"]))
