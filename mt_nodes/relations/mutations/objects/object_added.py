# SPDX-License-Identifier: Apache-2.0
"""Adds an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.objects.changed_returns import changed, placed_points
from mt_nodes.relations.mutations.objects.cutout_looks import CutoutLooks, absolute_folder
from mt_nodes.relations.mutations.objects.free_place import TRIALS, FreePlace
from mt_nodes.relations.mutations.objects.in_radar import ObjectInRadars
from mt_nodes.relations.mutations.objects.in_scene import (
    ObjectVisibility,
    Sensor,
    draw_hits,
    ego_from,
    proof_of_hits,
    shadow_of,
    volume_of,
)
from mt_nodes.relations.mutations.objects.moving_hits import SLOWEST_MPS, look_at_moving, proof_of_moving_hits
from mt_nodes.relations.mutations.objects.object_place import ObjectPlace, refuse_looks
from mt_nodes.relations.mutations.objects.place_outlook import EndOf, by_duration, lasts_s, steps_of
from mt_nodes.relations.mutations.objects.world_place import (
    ACROSS,
    ALONG,
    FAR_M,
    STANDS,
    WorldPlace,
    heading,
    velocity_of,
)
from mt_nodes.world.modelling.model_variants import VARIANTS, variants_of
from mt_nodes.world.scene.figures import Figure, figure_of
from mt_nodes.world.scene.lamps import LAMPS, OFF
from mt_nodes.world.scene.materials import PAINTS
from mt_nodes.world.scene.objects import KINDS
from mt_nodes.world.scene.placement_solver import NoRoom, Place, Wish, upright
from mt_nodes.world.scene.sight import RaycastBody, body_of

_LAMPS = sorted({lamps for of_kind in LAMPS.values() for lamps in of_kind})


@dataclass(frozen=True)
class ObjectAdded(ObjectInRadars, CutoutLooks):
    """Adds an object on free ground, as the sensor's own rays would detect it.

    The object's mesh is cast along the rays of the cloud's returns. A return behind the object on its ray becomes the
    hit, with range noise and the intensity of its material at that incidence (:mod:`mt_nodes.world.scene.materials`) in
    the cloud's scale, or is lost where that echo is too weak for its range and the receiver's noise. Glass lets light
    pass: to the seats, or to the return behind, which dims. A return before the object stays, so nothing floats in
    front of an occluder; rays that miss stay byte for byte.

    Its place is on ground found in the cloud and tilted with it, with free space around and mostly in sight: of those
    drawn, the one where it lasts longest, by the clouds to come of a recording, else by the ego's motion. There it
    stays, fixed in the world by that motion (/tf, odometry, or KISS-ICP from the clouds), or from there it moves on.
    When its place is taken or hidden, or the ego has left it behind, another one is added elsewhere; while no place is
    free, or the ego's motion is unknown, there is no follow-up. Each ray of a sweep meets a moving object where it is
    at that time. Rays that brought no return are found as gaps of the beam pattern (or as the empty returns of an
    organised cloud) and get theirs, too, where beams can be told. Guaranteed: every hit is on a ray of the sensor and
    on the object, nothing remains behind it on the same ray, and everything else is unchanged; in pictures, pixels
    change only where a line of sight meets the object or its shadow with nothing nearer in between, half visibly.

    In pictures the same mesh stands at the same place: projected through CameraInfo (distortion included) and the
    transforms, hidden where a return lies nearer, in the light of the ground around it, with its shadow on the ground:
    that of the sky, and that of the sun where the shadows of the first picture tell where it stands. People, cyclists,
    motorcyclists, cars and animals come in ten variants, of which an episode draws one. Behind the glass of a recorded
    car it shows by the share that two panes let through, and beams that ended there without a return get none. Images
    that do not see it pass byte for byte. A cloud that the stack does not take serves to find the ground; without any
    there is no follow-up, since nobody can tell what is free.
    """

    kind: str = param("adult", choices=tuple(KINDS), help="what is put there")
    where: str = param("beside", choices=("path", "beside", "bearing"), help="in the ego's way, beside it, or anywhere")
    range_m: tuple[float, float] = param(
        (8.0, 20.0), low=3.0, high=100.0, unit="m", aspect="place", help="nearest and farthest from the ego"
    )
    bearing_rad: tuple[float, float] = param(
        (-3.1416, 3.1416), low=-6.2832, high=6.2832, unit="rad", aspect="place", help="0 ahead, left positive"
    )
    yaw_rad: float | None = param(
        None, low=-6.2832, high=6.2832, unit="rad", aspect="place", help="which way it looks; any if unset"
    )
    frame_id: str = param(
        "", help="frame it stands still in; empty: the world, by the ego's motion; the ego's own: goes along with it"
    )
    moves: str = param(STANDS, choices=(STANDS, ALONG, ACROSS), help="not at all, along the ego's way, or across it")
    speed_mps: float = param(
        0.0, low=-60.0, high=60.0, unit="m/s", aspect="fixed", help="of what moves; along: below 0 towards the ego"
    )
    closing_mps: float = param(
        0.0, low=-60.0, high=60.0, unit="m/s", aspect="fixed", help="how fast it comes nearer along x, as at first"
    )
    clearance_m: float = param(1.0, low=0.0, high=20.0, unit="m", aspect="fixed", help="free space around it")
    least_visible: float = param(0.7, low=0.0, high=1.0, aspect="fixed", help="share of it that must be in sight")
    least_points: int = param(10, low=1, high=100_000, aspect="fixed", help="returns it must give, in the first cloud")
    places: int = param(512, low=1, high=4096, aspect="fixed", help="how many to choose from when the episode begins")
    ego_frame_id: str = param("base_link", help="frame on the road under the ego, x ahead, z up")
    range_sigma_m: float = param(
        0.02, low=0.0, high=0.5, unit="m", aspect="fixed", help="noise of a range, cut at 3 sigma"
    )
    max_range_m: float = param(120.0, low=1.0, high=1000.0, unit="m", aspect="fixed", help="the sensor's range")
    lamps: str = param(OFF, choices=(OFF, *_LAMPS), help="what of its lamps shines, in pictures")
    sensitivity: float = param(
        0.2, low=0.001, high=1.0, aspect="fixed", help="brightness that is seen half of the time at max_range_m"
    )
    variant: int = param(
        0, low=0, high=VARIANTS, aspect="fixed", help="which person, car, …: 1 to 10; 0: drawn once an episode"
    )
    paint: str = param(
        "own", choices=("own", *PAINTS), help="of a vehicle: its reflectivity, and its colour in pictures"
    )
    cutouts: str = param(
        "", convert=absolute_folder, help="folder of `mt models cutouts`: a recorded object of the kind; empty: a model"
    )

    def __post_init__(self) -> None:
        for name in ("range_m", "bearing_rad"):
            if (low := getattr(self, name)[0]) > (high := getattr(self, name)[1]):
                raise UsageError(f"{name}: got {low:g} to {high:g}, expected low before high")
        if (self.moves == STANDS) != (self.speed_mps == 0.0):
            got = f"moves: got '{self.moves}' at speed_mps {self.speed_mps:g}"
            raise UsageError(f"{got}, expected 'along' or 'across' with a speed, or 'stands' with none")
        self.refuse_cutouts(self.moves != STANDS)
        refuse_looks(self.kind, self.lamps, 0 if self.cutouts else self.variant, self._paint)

    def body_in(self, draw: Draw) -> RaycastBody:
        """Return the mesh for rays of the variant, or of the cut-out, that is drawn."""
        cutout = self.cutout_in(draw)
        return body_of(self.kind, self._paint, int(draw.get("variant", 1))) if cutout is None else cutout.body

    def figure_in(self, draw: Draw) -> Figure:
        """Return the mesh for cameras of the variant, or of the cut-out, that is drawn."""
        cutout = self.cutout_in(draw)
        number = int(draw.get("variant", 1))
        return figure_of(self.kind, self.lamps, self._paint, number) if cutout is None else cutout.figure

    def looks(self, state: Any) -> Draw:
        """Return the variant, and the sun on it in its own frame."""
        return dict(state.looks(self.variants))

    @property
    def variants(self) -> int:
        """Number of variants of its kind, 0 for one mesh."""
        return variants_of(self.kind)

    @property
    def label(self) -> str:
        """The class that a detector should give it."""
        return KINDS[self.kind].label

    @property
    def _paint(self) -> str:
        return "" if self.paint == "own" else self.paint

    @property
    def _sensor(self) -> Sensor:
        return Sensor(self.range_sigma_m, self.max_range_m, self.sensitivity)

    @property
    def needs_motion(self) -> bool:
        """Whether it is fixed in the world."""
        return not self.frame_id

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        """Choose the place of an episode; it is free in its first cloud.

        Raises NotApplicable: there is no free ground as requested.
        """
        if not bundle.known_clouds:
            raise NotApplicable(f"bundle {bundle.index} has no cloud to find free ground in")
        wish = Wish(self.where, self.range_m, self.bearing_rad, self.yaw_rad)
        drawn = [wish.place(rng) for _ in range(self.places)]
        if self.yaw_rad is None:
            drawn = [heading(self.moves, self.speed_mps, place) for place in drawn]
        looks, drawn = self.draw_looks(rng, bundle, drawn)
        velocities = [velocity_of(self.moves, self.speed_mps, self.closing_mps, place) for place in drawn]
        free = self._free(bundle, looks)
        if self.frame_id:
            first = next(free.among(drawn[:TRIALS]))
            return self._way(bundle, drawn[first], velocities[first], looks).in_sun(bundle, self.ego_frame_id)
        coming = () if bundle.track is None else bundle.track.coming(bundle)
        steps, demands = steps_of(bundle, coming, self.ego_frame_id), (self.clearance_m, self.least_visible)
        order, foreseen_s = by_duration(
            steps, np.array(drawn), np.array(velocities), free.footprint, demands, self._reach_m
        )

        def way(number: int) -> ObjectPlace:
            return self._way(bundle, drawn[order[number]], velocities[order[number]], looks)

        places = [drawn[number] for number in order]
        longest = free.longest(places, foreseen_s[order], lambda n: lasts_s(bundle, coming, *self._ends(way(n))))
        return way(longest).in_sun(bundle, self.ego_frame_id)

    def _ends(self, way: ObjectPlace) -> tuple[EndOf, EndOf]:
        """Return what tells of a bundle whether it ends before, and whether it does because the ego has passed."""
        passed = partial(way.left_behind, ego_frame_id=self.ego_frame_id, reach_m=self._reach_m)
        return partial(self.ended, way), passed

    def _way(self, bundle: Bundle, place: Place, velocity: Floats, looks: Draw) -> ObjectPlace:
        way = WorldPlace.begin(bundle, upright(place), velocity, self.frame_id, self.ego_frame_id)
        return ObjectPlace.of(way, looks)

    def ended(self, state: Any, bundle: Bundle) -> bool:
        """Whether the ego has left the object behind, or its place is taken or hidden: another one stands elsewhere."""
        if not isinstance(state, WorldPlace) or state.frame_id:
            return False
        if state.left_behind(bundle, self.ego_frame_id, self._reach_m):
            return True
        try:
            pose, _ = self._stand(bundle, state)
            return self.cutout_refusal(bundle, self.looks(state), pose) is not None
        except (NoRoom, NotApplicable) as reason:
            return isinstance(reason, NoRoom)

    @property
    def _reach_m(self) -> float:
        return max(self.range_m[1], FAR_M)

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Place the object on the ground of the first cloud, and measure it in this one."""
        (pose, look), looks = self._placement(bundle, state), self.looks(state)
        velocity, to_cloud = state.velocity_in(bundle, self.ego_frame_id), self._to_cloud(bundle, cloud)
        moves = bool(np.linalg.norm(velocity) >= SLOWEST_MPS)
        if cloud is not bundle.clouds[0] or moves:
            look = look_at_moving(cloud, self.body_in(looks), to_cloud @ pose, to_cloud[:3, :3] @ velocity)
        draw: Draw = {"pose": pose, "since_bundle": state.index, **looks, **draw_hits(rng, cloud, look, self._sensor)}
        if moves:
            draw["velocity_mps"] = velocity
        if self.needs_motion:
            draw["ego_motion"] = "unknown" if bundle.motion is None else bundle.motion.source
        return draw

    def for_radar(self, bundle: Bundle, pose: Matrix, state: Any) -> Any:
        """Return its pose, and its velocity (3,) over ground."""
        return pose, state.velocity_in(bundle, self.ego_frame_id)

    def pose_in(self, bundle: Bundle, state: Any) -> Matrix:
        """Return the object's pose in a bundle."""
        return self._placement(bundle, state)[0]

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Write the hits."""
        return changed(cloud, draw)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check that hits are on rays and on the object, and that nothing is left behind it."""
        to_cloud = self._to_cloud(bundle, old)
        pose, body = to_cloud @ draw["pose"], self.body_in(draw)
        if "velocity_mps" in draw:
            velocity = to_cloud[:3, :3] @ draw["velocity_mps"]
            return proof_of_moving_hits(old, new, draw, body, pose, velocity, self._sensor)
        return proof_of_hits(old, new, draw, body, pose, self._sensor)

    def radar_motion(self, bundle: Bundle, state: WorldPlace) -> tuple[Floats, bool]:
        """Return its velocity (3,) along the ego's axes, and whether it is over ground or relative to the ego."""
        return state.velocity_in(bundle, self.ego_frame_id), self.frame_id != self.ego_frame_id

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the object's place and what it hides."""
        first = next(iter(draws.values()))
        pose, body = first["pose"], self.body_in(first)
        added = {c.topic: placed_points(c, draws[c.topic]) for c in bundle.clouds}
        hidden = (
            shadow_of(body, pose, self._to_ego(bundle, c), self.ego_frame_id, self.max_range_m) for c in bundle.clouds
        )
        return Effects(
            added=(volume_of(body, pose, self.ego_frame_id, self.label),),
            occluded=tuple(hidden),
            numbers={"points_on_object": float(sum(map(len, added.values())))},
            added_points=added,
        )

    @property
    def _what(self) -> str:
        where = {"path": "on the path", "beside": "beside the path", "bearing": "in the sector"}[self.where]
        return f"'{self.kind}' {where} at {self.range_m[0]:g} to {self.range_m[1]:g} m"

    def _placement(self, bundle: Bundle, standing: ObjectPlace) -> tuple[Matrix, ObjectVisibility]:
        """Return pose and visibility at the place of the episode."""
        try:
            return self._stand(bundle, standing)
        except NoRoom as reason:
            x, y, _ = standing.place(bundle, self.ego_frame_id)
            away_m = float(np.hypot(x, y))
            raise NotApplicable(f"the '{self.kind}' cannot be where it is, {away_m:.1f} m away: {reason}") from reason

    def _stand(self, bundle: Bundle, standing: WorldPlace) -> tuple[Matrix, ObjectVisibility]:
        """Return the same; found once for a cloud.

        Raises NoRoom: it cannot stand there. NotApplicable: where that is, is not known.
        """
        if not bundle.known_clouds:
            raise NotApplicable(f"bundle {bundle.index} has no cloud to find free ground in")
        stand = partial(self._free(bundle, self.looks(standing)).stand, known=self.needs_motion)
        return standing.found_at(standing.place(bundle, self.ego_frame_id), bundle.known_clouds[0], stand)

    def _free(self, bundle: Bundle, looks: Draw) -> FreePlace:
        cloud = bundle.known_clouds[0]
        demands = self.clearance_m, self.least_visible, self.least_points
        return FreePlace(self.body_in(looks), self._sensor, cloud, self._to_ego(bundle, cloud), *demands, self._what)

    def _to_ego(self, bundle: Bundle, cloud: Cloud) -> Matrix:
        return ego_from(bundle, cloud.frame_id, self.ego_frame_id, cloud.topic)

    def _to_cloud(self, bundle: Bundle, cloud: Cloud) -> Matrix:
        return np.asarray(np.linalg.inv(self._to_ego(bundle, cloud)))
