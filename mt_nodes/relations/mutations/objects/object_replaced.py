# SPDX-License-Identifier: Apache-2.0
"""Replaces an object by one of another class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.open3d_late import open3d
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import LEAST_VISIBLE, View
from mt_nodes.relations.mutations.lidar.each_cloud import without
from mt_nodes.relations.mutations.objects.in_pictures import LEAST_PIXELS, camera_from, shot_of, with_object
from mt_nodes.relations.mutations.objects.in_scene import (
    Sensor,
    draw_hits,
    look_at,
    proof_of_hits,
    shadow_of,
    surroundings,
    volume_of,
)
from mt_nodes.relations.mutations.objects.object_exchange import ObjectExchanged, Rectangle, rectangle
from mt_nodes.relations.mutations.objects.object_removed import standing_within
from mt_nodes.relations.mutations.objects.picture_exchange import ObjectExchange, PictureChange
from mt_nodes.relations.mutations.objects.picture_proof import Sight, sight_of
from mt_nodes.relations.mutations.objects.removal_in_pictures import StandingBody
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.measures import Mask
from mt_nodes.world.modelling.model_variants import variants_of
from mt_nodes.world.scene.figures import Figure, figure_of
from mt_nodes.world.scene.objects import KINDS
from mt_nodes.world.scene.placement_solver import Footprint, NoRoom, Place, solve, stand_on
from mt_nodes.world.scene.sight import RaycastBody, body_of

#: The rear of a car is at most this wide (2.55 m by Directive 96/53/EC): a longer side is its flank.
_REAR_M = 2.55
#: How many of the nearest objects are tried in pictures.
_THINGS = 4
#: At least this share of the new object's visible pixels must change; so few pixels prove nothing.
_VISIBLE_SHARE, _TOO_FEW_PX = 0.5, 30


@dataclass(frozen=True)
class ObjectReplaced(ObjectExchanged):
    """Replaces the nearest object of a size by one of another class on the same spot.

    The old object vanishes as in ``object_removed``, the new one appears as in ``object_added``: its mesh is cast along
    the rays of the remaining cloud. It stands on the ground around the old one, with its near faces in the same place,
    so that it comes no nearer to the ego. If the old one shows a flank longer than a rear can be, the new one is
    aligned with it, facing away from the ego; else it is square to the wider side. A person's heading is unknown and
    drawn once per episode. Nearest objects without room for it, or where it would be hidden, are skipped. In pictures
    the old one is removed as in ``object_removed``, then the new one drawn as in ``object_added``.

    Guaranteed: as for both mutations, each against the cloud before it.
    """

    size: str = param("person", choices=("any", "person", "car"), help="what is looked for: as large as that")
    by: str = param("child", choices=tuple(KINDS), help="what stands there then")
    clearance_m: float = param(0.1, low=0.0, high=20.0, unit="m", aspect="fixed", help="free space around it")
    least_returns: int = param(10, low=1, high=100_000, aspect="fixed", help="returns it must give, in the first cloud")
    least_visible: float = param(0.7, low=0.0, high=1.0, aspect="fixed", help="share of it that must be in sight")
    sensitivity: float = param(
        0.2, low=0.001, high=1.0, aspect="fixed", help="brightness that is seen half of the time at max_range_m"
    )

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> tuple[float, int]:
        """Draw a person's heading, in radians, and the variant of the kind."""
        heading = float(rng.uniform(-np.pi, np.pi))
        count = variants_of(self.by)
        return heading, int(rng.integers(1, count + 1)) if count else 1

    def ready(self) -> None:
        """Load the ray caster."""
        open3d()

    def choose(self, bundle: Bundle, state: Any) -> ObjectExchange:
        """Choose the nearest object that can be replaced, in pictures, too."""
        return solve(self._candidates(bundle), partial(self._stand_in_sight, bundle, state), f"'{self.by}'")[1]

    def picture_change(self, view: View, exchange: ObjectExchange) -> PictureChange | None:
        """Return a picture with the new object in place of the old one; None if it shows neither.

        Raises NotApplicable: the old one cannot be removed cleanly.
        """
        removal = self.removal(view, exchange)
        pixels = view.picture.pixels if removal is None else removal.pixels(view.picture)
        empty = self._empty(view, pixels, exchange.body)
        figure = self._figure(exchange.draw)
        shot = shot_of(empty, figure, exchange.draw["pose"], self.image_label, self.ego_frame_id)
        if shot is not None and shot.sight.sum() >= LEAST_PIXELS:
            box = replace(shot.box, topic=view.image.topic)
            return PictureChange(with_object(empty, shot), removal, box)
        return None if removal is None else PictureChange(pixels, removal)

    def affected(self, view: View, draw: Draw) -> Mask:
        """Return where the old object, or the new one, may show."""
        return super().affected(view, draw) | self.new_object(view, draw)

    def new_object(self, view: View, draw: Draw) -> Mask:
        """Return where (H, W) the new object may be visible."""
        return self._sight(view, draw).may

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check the removal, and that the new object is visible where lines of sight meet it."""
        must = self._sight(old, draw).must
        if "box_px" in draw and np.count_nonzero(must) >= _TOO_FEW_PX:
            share = measures.share_changed(old.picture, new.picture, LEAST_VISIBLE, must)
            if share < _VISIBLE_SHARE:
                return f"only {share:.0%} of the new object's pixels differ from before"
        return super().prove_image(old, new, draw)

    @property
    def image_label(self) -> str:
        """The class that an image detector should give to the new object."""
        return KINDS[self.by].label

    def _candidates(self, bundle: Bundle) -> Iterator[tuple[Floats, Floats]]:
        things = self.things(bundle)
        return islice(things, _THINGS) if self.changes_pictures(bundle) else things

    def _stand_in_sight(self, bundle: Bundle, state: tuple[float, int], thing: tuple[Floats, Floats]) -> ObjectExchange:
        return self.refuse_unclean(bundle, self._stand(bundle, state, thing))

    def _empty(self, view: View, pixels: Pixels, body: StandingBody) -> View:
        """Return a view of the scene without the old object: its pixels, and clouds for occlusion."""
        order = view.picture.order
        encoding = f"{order}{8 * pixels.dtype.itemsize}"
        image = replace(view.image, pixels=pixels, encoding=encoding, compressed=None)
        rows = self.standing_rows(view.bundle, body)
        left = tuple(without(cloud, own) for cloud, own in zip(view.bundle.known_clouds, rows, strict=True))
        bundle = replace(view.bundle, clouds=left, extra_clouds=(), images=(image,))
        return View.of(bundle, image)

    def _sight(self, view: View, draw: Draw) -> Sight:
        """Return where the new object may be visible, and must be, without the old one before it."""
        empty = self._empty(view, view.picture.pixels, self._body(draw))
        pose = camera_from(view, self.ego_frame_id) @ draw["pose"]
        return sight_of(empty, self._body_of_new(draw), pose, self._figure(draw).feet_m)

    def draw_addition(
        self, rng: np.random.Generator, bundle: Bundle, old: Cloud, left: Cloud, draw: Draw, known: Any
    ) -> Draw:
        """Cast the object."""
        pose = self._to_cloud(bundle, old) @ draw["pose"]
        return draw_hits(rng, left, look_at(left, self._body_of_new(draw), pose), self._sensor)

    def prove_addition(self, bundle: Bundle, left: Cloud, new: Cloud, draw: Draw, addition: Draw) -> str | None:
        """Check that hits are on rays and on the object, and that nothing is left behind it."""
        pose = self._to_cloud(bundle, left) @ draw["pose"]
        return proof_of_hits(left, new, addition, self._body_of_new(draw), pose, self._sensor)

    def describe_addition(self, bundle: Bundle, draw: Draw) -> Effects:
        """Report the object's place and what it hides."""
        pose, frame_id, body = draw["pose"], self.ego_frame_id, self._body_of_new(draw)
        hidden = (
            shadow_of(body, pose, self.to_ego(bundle, c), frame_id, self.max_range_m)
            for c in bundle.clouds or bundle.known_clouds[:1]
        )
        return Effects(added=(volume_of(body, pose, frame_id, KINDS[self.by].label),), occluded=tuple(hidden))

    def _body_of_new(self, draw: Draw) -> RaycastBody:
        return body_of(self.by, variant=int(draw.get("variant", 1)))

    def _figure(self, draw: Draw) -> Figure:
        return figure_of(self.by, variant=int(draw.get("variant", 1)))

    @property
    def _sensor(self) -> Sensor:
        return Sensor(self.range_sigma_m, self.max_range_m, self.sensitivity)

    def _stand(self, bundle: Bundle, state: tuple[float, int], thing: tuple[Floats, Floats]) -> ObjectExchange:
        """Return the draw of an object and the pose in its place; raises NoRoom."""
        (outline, plane), (yaw_rad, variant) = thing, state
        looks: Draw = {"variant": variant} if variants_of(self.by) else {}
        cloud, body = bundle.known_clouds[0], self._body_of_new(looks)
        to_ego, (length, width, _) = self.to_ego(bundle, cloud), body.size_m
        footprint = Footprint(
            (float(body.center_m[0]), float(body.center_m[1])), (length / 2, width / 2), body.high_m[2]
        )
        x, y, yaw = self._place(rectangle(outline), footprint, yaw_rad)
        removed = standing_within(cloud, to_ego, outline, plane)
        rows, around = surroundings(cloud, to_ego, (x, y), footprint.radius_m + self.clearance_m)
        rest = around[np.isin(rows, removed, invert=True)]
        ground_m = plane[0] + plane[1] * (x - plane[3]) + plane[2] * (y - plane[4])
        ground = np.array([ground_m, *plane[1:3]])
        pose = stand_on(rest, footprint, (x, y, yaw), self.clearance_m, ground)
        hits = body.cast(cloud, self._to_cloud(bundle, cloud) @ pose)
        visible = hits.visible | np.isin(hits.rows, removed)
        if visible.sum() < self.least_returns:
            raise NoRoom(f"with fewer than {self.least_returns} returns from it")
        if visible.mean() < self.least_visible:
            raise NoRoom("hidden")
        return ObjectExchange({"outline_m": outline, "plane": plane, "pose": pose, **looks}, removed)

    def _place(self, rectangle: Rectangle, footprint: Footprint, yaw_rad: float) -> Place:
        """Return the new object's place: its near faces where the old ones were."""
        half = rectangle.half_m
        if self.size == "person":
            yaw, half = yaw_rad, (max(half), max(half))
        elif 2 * rectangle.half_m[0] > _REAR_M:
            yaw = rectangle.yaw_rad
        else:
            yaw, half = rectangle.yaw_rad + np.pi / 2, half[::-1]
        yaw = yaw if self.size == "person" or np.cos(yaw) >= 0 else yaw + np.pi
        axes = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
        center = axes @ rectangle.center_m
        # The ego is at the origin: find the visible side along each axis.
        corner = np.where(np.abs(center) > half, np.sign(center), 0.0)
        middle = center + corner * (np.array(footprint.half_m) - half)
        x, y = (axes.T @ (middle - footprint.center_m)).tolist()
        return x, y, float(yaw)

    def _to_cloud(self, bundle: Bundle, cloud: Cloud) -> Matrix:
        return np.asarray(np.linalg.inv(self.to_ego(bundle, cloud)))
