# SPDX-License-Identifier: Apache-2.0
"""Moves an object."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.lidar.placement import intensity_from, rounded
from mt_nodes.relations.mutations.lidar.rays import smallest
from mt_nodes.relations.mutations.objects.changed_returns import proof_of_rays, rows_of
from mt_nodes.relations.mutations.objects.in_pictures import camera_from
from mt_nodes.relations.mutations.objects.in_scene import SURROUNDINGS_M, surroundings
from mt_nodes.relations.mutations.objects.motion_in_pictures import change_by_motion, refuse_appearance
from mt_nodes.relations.mutations.objects.object_exchange import ObjectExchanged, Rectangle, left_rows, rectangle
from mt_nodes.relations.mutations.objects.object_removed import standing_within
from mt_nodes.relations.mutations.objects.picture_exchange import ObjectExchange, PictureChange
from mt_nodes.relations.mutations.objects.removal_in_pictures import returns_of, standing_object
from mt_nodes.relations.mutations.objects.turned_view import TurnedRays, TurnedView
from mt_nodes.world.camera.measures import Mask
from mt_nodes.world.scene.placement_solver import Footprint, NoRoom, Place, solve, stand
from mt_nodes.world.scene.returns import lengths, places, within_cone
from mt_nodes.world.scene.shadow import shadow
from mt_nodes.world.scene.silent_rays import silent_rays

_TRIES, _THINGS = 16, 4
#: Largest difference in height between the ground at the new and the old place.
_STEP_M = 0.15
#: A return is replaced if the object is nearer by more than this share: rounding never decides.
_NEARER = 1e-5
#: Tolerances between a moved return and the original: range, and direction as a chord.
_RANGE_M, _DIRECTION = 2e-3, 0.012
#: Another ray this close to a ray on the object hits it, too; a return this far behind is hidden by it.
_SAME_RAY, _BEHIND_M = 5e-4, 0.1


@dataclass(frozen=True, eq=False)
class Thing:
    """An object of a cloud that may be moved: its outline (k, 2) and the ground (5,) under it, in the ego's frame."""

    cloud: Cloud
    to_ego: Matrix
    outline: Floats
    plane: Floats

    @cached_property
    def rows(self) -> Rows:
        """Its returns (n,)."""
        return standing_within(self.cloud, self.to_ego, self.outline, self.plane)

    @cached_property
    def own(self) -> npt.NDArray[np.bool_]:
        """Mask (N,) of those points of the cloud."""
        own = np.zeros(len(self.cloud), dtype=bool)
        own[self.rows] = True
        return own

    @cached_property
    def view(self) -> TurnedView:
        """The sensor's view of it."""
        return TurnedView(self.cloud, self.rows)

    @cached_property
    def rectangle(self) -> Rectangle:
        """Its footprint."""
        return rectangle(self.outline)

    @property
    def ground_m(self) -> float:
        """Height of the ground under it."""
        (x, y), plane = self.rectangle.center_m, self.plane
        return float(plane[0] + plane[1] * (x - plane[3]) + plane[2] * (y - plane[4]))

    @cached_property
    def height_m(self) -> float:
        """Height of its top above that ground."""
        return float(move(self.to_ego, places(self.cloud, self.rows))[:, 2].max()) - self.ground_m

    def turned(self, turn_rad: float) -> tuple[Place, float]:
        """Return place and heading after a rotation about the sensor's axis, and the height of its foot."""
        turn = self.to_ego @ _about_z(turn_rad) @ np.linalg.inv(self.to_ego)
        x, y, z = move(turn, np.array([[*self.rectangle.center_m, self.ground_m]]))[0].tolist()
        return (x, y, self.rectangle.yaw_rad + float(np.arctan2(turn[1, 0], turn[0, 0]))), z


@dataclass(frozen=True)
class ObjectMoved(ObjectExchanged):
    """Moves an object along a circle around the sensor, whose rays measure it there as they did before.

    The object vanishes as in ``object_removed``. Rotated about the sensor's vertical axis, it shows the sensor the same
    side at the same ranges: each ray towards its new place, rotated back, gets range and intensity of the nearest of
    the object's own returns, nothing if that ray passed it, and no return where the object gave none. A return before
    it stays; one behind it is replaced or lost; rays that miss stay byte for byte.

    ``shift_m`` is drawn once per episode, along the circle, to either side. The ground at the new place has the old
    height to within 0.15 m, so that the object stands on it, and free space around. Of the nearest four objects the
    first with such a place, mostly visible, is moved.

    In pictures it is removed as in ``object_removed`` and shown in its new place: cut out and carried along the same
    circle, before what is farther and behind what is nearer, with its shadow, which keeps its direction. An object that
    is hidden in part, or cut off by the picture's edge, is skipped, and so is a place where the camera would see
    another side of it (by more than 6 degrees) or its light would come from elsewhere (by more than 45).

    Guaranteed: as for ``object_removed``; in addition, each new return is on a ray of the sensor and corresponds to one
    of the object's own, rotated; none remains behind the object on a ray through it; nothing else changes.
    """

    shift_m: tuple[float, float] = param(
        (3.0, 8.0), low=0.5, high=100.0, unit="m", aspect="place", help="how far, to either side"
    )
    clearance_m: float = param(
        0.5, low=0.0, high=20.0, unit="m", aspect="fixed", help="free space around the new place"
    )
    least_visible: float = param(0.7, low=0.0, high=1.0, aspect="fixed", help="share of it that must be in sight there")

    def __post_init__(self) -> None:
        low, high = self.shift_m
        if low > high:
            raise UsageError(f"shift_m: got {low:g} to {high:g}, expected low before high")

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Floats:
        """Draw the shifts (n,) in metres to try in turn, positive to the left."""
        return np.asarray(rng.uniform(*self.shift_m, _TRIES) * rng.choice([-1.0, 1.0], _TRIES))

    def choose(self, bundle: Bundle, state: Any) -> ObjectExchange:
        """Choose the first object that has room at one of the shifts, and that pictures can show there."""
        cloud = bundle.known_clouds[0]
        found = islice(self.things(bundle), _THINGS)
        things = (Thing(cloud, self.to_ego(bundle, cloud), *thing) for thing in found)
        choices = ((thing, shift) for thing in things for shift in state.tolist())
        stand = partial(self._stand_in_sight, bundle) if self.changes_pictures(bundle) else self._stand
        return solve(choices, stand, "the moved thing")[1]

    def picture_change(self, view: View, exchange: ObjectExchange) -> PictureChange | None:
        """Return a picture without the object in its old place and with it in its new one; None if it shows neither.

        Raises NotApplicable: it cannot be removed cleanly, or not be shown in its new place.
        """
        removal, motion = self.removal(view, exchange), self._in_camera(view, exchange.draw)
        if removal is None:
            returns = returns_of(view.bundle, self.standing_rows(view.bundle, exchange.body))
            refuse_appearance(view, standing_object(view, exchange.body, returns, self.ego_frame_id), motion)
            return None
        return change_by_motion(view, removal, motion)

    def affected(self, view: View, draw: Draw) -> Mask:
        """Return where the old place, or the new one, may show."""
        return super().affected(view, draw) | self.new_object(view, draw)

    def new_object(self, view: View, draw: Draw) -> Mask:
        """Return where (H, W) the object may be visible in its new place."""
        return self._region(view, draw, self._in_ego(view.bundle, float(draw["turn_rad"])))

    def _stand_in_sight(self, bundle: Bundle, choice: tuple[Thing, float]) -> ObjectExchange:
        return self.refuse_unclean(bundle, self._stand(choice))

    def _in_ego(self, bundle: Bundle, turn_rad: float) -> Matrix:
        """Return the object's motion (4, 4) in the ego's frame."""
        to_ego = self.to_ego(bundle, bundle.known_clouds[0])
        return np.asarray(to_ego @ _about_z(turn_rad) @ np.linalg.inv(to_ego))

    def _in_camera(self, view: View, draw: Draw) -> Matrix:
        to_camera = camera_from(view, self.ego_frame_id)
        return np.asarray(to_camera @ self._in_ego(view.bundle, float(draw["turn_rad"])) @ np.linalg.inv(to_camera))

    def draw_addition(
        self, rng: np.random.Generator, bundle: Bundle, old: Cloud, left: Cloud, draw: Draw, known: Any
    ) -> Draw:
        """Return the rays' measurements of the object at its new place, unless something stands before it."""
        look: TurnedRays = known or TurnedView(old, _thing_rows(draw)).look(float(draw["turn_rad"]))
        view, turn = look.view, look.turn_rad
        stays = ~np.isin(look.rows, rows_of(draw, "lost"))
        rows, visible = left_rows(old, draw, look.rows[stays]), look.result.of(stays)
        nearer = visible.range_m < lengths(places(left, rows)) * (1.0 - _NEARER)
        hit, silent = nearer & (visible.row >= 0), silent_rays(left, view.bearing_rad + turn, view.half_rad)
        more = view.at(silent.direction, turn)
        new = (more.row >= 0) & (more.range_m < silent.clear_m)
        addition: Draw = {
            "rows": smallest(rows[hit]),
            "range_m": visible.range_m[hit].astype(np.float32),
            "lost": smallest(rows[nearer & visible.silent]),
            "new_rows": smallest(silent.rows[new]),
            "new_xyz": rounded(left, silent.direction[new] * more.range_m[new, None]).astype(left.xyz.dtype),
        }
        intensity = intensity_from(old, visible.row[hit], visible.range_m[hit])
        if intensity is None:
            return addition
        return {
            **addition,
            "intensity": intensity,
            "new_intensity": intensity_from(old, more.row[new], more.range_m[new]),
        }

    def prove_addition(self, bundle: Bundle, left: Cloud, new: Cloud, draw: Draw, addition: Draw) -> str | None:
        """Rotate the new returns back, and compare them with the original ones."""
        placed, broken = proof_of_rays(left, new, addition)
        if broken is not None:
            return broken
        old, turn = bundle.cloud(left.topic), float(draw["turn_rad"])
        own = _chords(places(old, _thing_rows(draw)), 0.0)
        bounds = np.array([_DIRECTION] * 3 + [_RANGE_M])
        distance, _ = cKDTree(own / bounds).query(_chords(placed, turn) / bounds)
        if not (distance <= np.sqrt(2.0)).all():
            return "a return put there is none of the thing's own"
        behind = _behind(old, left, draw, addition)
        return f"{behind} returns are left behind the thing" if behind else None

    def describe_addition(self, bundle: Bundle, draw: Draw) -> Effects:
        """Report the object's new place and what it hides."""
        cloud = bundle.known_clouds[0]
        thing = Thing(cloud, self.to_ego(bundle, cloud), draw["outline_m"], draw["plane"])
        (x, y, yaw), ground = thing.turned(float(draw["turn_rad"]))
        height = float(draw["height_m"])
        length, width = (2 * half for half in thing.rectangle.half_m)
        c, s = np.cos(yaw), np.sin(yaw)
        corners = np.array([[i * length, j * width] for i in (-0.5, 0.5) for j in (-0.5, 0.5)])
        corners = corners @ np.array([[c, s], [-s, c]]) + (x, y)
        sensors = (self.to_ego(bundle, cloud)[:2, 3] for cloud in bundle.clouds or (cloud,))
        hidden = tuple(shadow(corners, at, self.ego_frame_id, self.max_range_m) for at in sensors)
        center = (x, y, ground + height / 2)
        volume = Volume(self.ego_frame_id, center, (length, width, height), yaw, "unknown")
        return Effects(added=(volume,), occluded=hidden)

    def _stand(self, choice: tuple[Thing, float]) -> ObjectExchange:
        """Return the draw of an object, its rotation, and its visibility; raises NoRoom."""
        thing, shift_m = choice
        center, half = thing.rectangle.center_m, thing.rectangle.half_m
        turn = shift_m / float(np.hypot(*(np.array(center) - thing.to_ego[:2, 3])))
        place, ground = thing.turned(turn)
        footprint = Footprint((0.0, 0.0), half, thing.height_m)
        reach = footprint.radius_m + self.clearance_m + SURROUNDINGS_M
        rows, around = surroundings(thing.cloud, thing.to_ego, place[:2], reach)
        pose = stand(around[~thing.own[rows]], footprint, place, self.clearance_m)
        if abs(float(pose[2, 3]) - ground) > _STEP_M:
            raise NoRoom("on ground of another height")
        draw = {"outline_m": thing.outline, "plane": thing.plane, "height_m": thing.height_m, "turn_rad": turn}
        return ObjectExchange(draw, thing.rows, self._look(thing, turn))

    def _look(self, thing: Thing, turn_rad: float) -> TurnedRays:
        """Return the rays' measurements of an object; raises NoRoom if there are too few."""
        look = thing.view.look(turn_rad)
        meets = look.result.row >= 0
        clear = meets & ((look.result.range_m < look.own_m) | thing.own[look.rows])
        if clear.sum() < min(self.least_points, len(thing.rows)):
            raise NoRoom(f"with fewer than {self.least_points} returns from it")
        if clear.sum() < self.least_visible * meets.sum():
            raise NoRoom("hidden")
        return look


def _thing_rows(draw: Draw) -> Rows:
    """Return the rows (n,) of the object's returns in the source: those that continue, and those that are lost."""
    return np.sort(np.concatenate([draw["rows"], draw["lost"]]).astype(np.int64))


def _about_z(turn_rad: float) -> Matrix:
    turn = np.eye(4)
    c, s = np.cos(turn_rad), np.sin(turn_rad)
    turn[:2, :2] = [[c, -s], [s, c]]
    return turn


def _chords(xyz: Floats, turn_rad: float) -> Floats:
    """Return unit vectors and ranges (n, 4) of points (n, 3) rotated back by an angle."""
    back = move(_about_z(-turn_rad), xyz)
    range_m = lengths(back)
    return np.column_stack([back / range_m[:, None], range_m])


def _behind(old: Cloud, left: Cloud, draw: Draw, addition: Draw) -> int:
    """Count unchanged returns that, rotated back, lie behind the object on a ray through it."""
    thing, turn = _thing_rows(draw), float(draw["turn_rad"])
    own = _chords(places(old, thing), 0.0)
    middle = own[:, :3].mean(axis=0)
    middle /= np.linalg.norm(middle)
    least = float((own[:, :3] @ middle).min()) - _SAME_RAY
    in_cone = within_cone(left, move(_about_z(turn), middle[None])[0], least)
    stay = np.setdiff1d(
        in_cone, np.concatenate([rows_of(addition, "rows"), rows_of(addition, "lost")]), assume_unique=True
    )
    around = within_cone(old, middle, least)
    stayed, source = _chords(places(left, stay), turn), _chords(places(old, around), 0.0)
    if not len(stayed) or len(source) < 2:
        return 0
    distance, nearest = cKDTree(source[:, :3]).query(stayed[:, :3], k=2)
    amid = (distance[:, 0] <= _SAME_RAY) & np.isin(around, thing)[nearest].all(axis=1)
    return int((stayed[amid, 3] > source[nearest[amid, 0], 3] + _BEHIND_M).sum())
