# SPDX-License-Identifier: Apache-2.0
"""Base of mutations that take an object out of the scene, for LiDAR and camera by one draw."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.effects import Effects, ImageBox
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor, refuse_out_of_sync
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.mutations.objects import removal_proof
from mt_nodes.relations.mutations.objects.removal_in_pictures import (
    EARLIER,
    PictureRemoval,
    StandingBody,
    changed_pixels,
    drawn_pixels,
    numbers_of,
    removal_of,
    returns_of,
    standing_object,
    with_changed_pixels,
)
from mt_nodes.relations.mutations.untouched import UNTOUCHED, refuse_without_effect
from mt_nodes.world.camera.depth import depth_of
from mt_nodes.world.camera.fill_quality import MOST_LIGHT
from mt_nodes.world.camera.measures import Mask
from mt_nodes.world.camera.silhouette import occluder_mask
from mt_nodes.world.camera.standing_object import StandingObject
from mt_nodes.world.scene.placement_solver import NoRoom

#: Of the returns in sight, so many must lie on changed pixels; fewer pixels than this prove nothing.
_LEAST_COVERED, _TOO_FEW = 0.9, 20
#: An object is whole if up to so many returns, or this share of its own, stand within so many metres of its outline.
_MOST_MORE, _SHARE_MORE, _ASIDE_M = 5, 0.05, 0.5
_OUT_OF_SIGHT = "the picture does not show the object"


@dataclass(frozen=True, eq=False)
class ObjectExchange:
    """An object, and its replacement if there is one.

    ``draw``: its ``outline_m`` and ``plane`` as from ``ObjectRemoved.things``, and the replacement. ``rows``: (n,) its
    returns in the first known cloud. ``known``: other results for that cloud that are used again.
    """

    draw: Draw
    rows: Rows
    known: Any = None

    @property
    def body(self) -> StandingBody:
        """The object that is taken out."""
        return StandingBody(self.draw["outline_m"], self.draw["plane"])


@dataclass(frozen=True, eq=False)
class PictureChange:
    """A changed picture: its pixels, the removal (None if it showed no old object), and the new object's box."""

    pixels: Pixels
    removal: PictureRemoval | None
    box: ImageBox | None = None


class PictureExchange(EverySensor):
    """Changes each cloud and, with ``pictures: change``, each picture; a bundle without images changes as before."""

    ego_frame_id: str
    pictures: str

    @property
    def changes(self) -> tuple[str, ...]:
        """Both sensors; LiDAR alone where pictures stay."""
        return self.sensors if self.pictures == "change" else ("lidar",)

    def contradiction(self, inputs: Collection[str], sync_s: float) -> str:
        """Say that the effect on a radar is not known; nothing where pictures are not changed: the user wants that."""
        return super().contradiction(inputs, sync_s) if self.pictures == "change" else ""

    @property
    def draw_history(self) -> int:
        """Earlier pictures show what is behind the object now."""
        return EARLIER if self.pictures == "change" else 0

    @abstractmethod
    def standing_rows(self, bundle: Bundle, body: StandingBody) -> list[Rows]:
        """Return the rows (n,) of the object's returns in each known cloud."""

    def changes_pictures(self, bundle: Bundle) -> bool:
        """Whether a bundle has pictures to change."""
        return self.pictures == "change" and bool(bundle.images)

    def draw_exchange(self, rng: np.random.Generator, bundle: Bundle, choice: Callable[[], ObjectExchange]) -> Draw:
        """Draw for every cloud, then for every picture; a radar would contradict changed pictures.

        Raises NotApplicable: there is a radar, or no honest follow-up of the others.
        """
        if self.pictures == "change":
            self.draw_radars(rng, bundle, choice)
        if not self.changes_pictures(bundle):
            return EachCloud.draw(self, rng, bundle, choice)
        refuse_out_of_sync(bundle)
        if not bundle.known_clouds:
            raise NotApplicable(f"bundle {bundle.index} has no cloud that says where objects are in its pictures")
        draws = EachCloud.draw(self, rng, bundle, choice) if bundle.clouds else {}
        draws |= self.draw_images(rng, bundle, choice)
        topics = [cloud.topic for cloud in bundle.clouds] + [image.topic for image in bundle.images]
        refuse_without_effect(draws, topics)
        return draws

    def refuse_unclean(self, bundle: Bundle, exchange: ObjectExchange) -> ObjectExchange:
        """Return an exchange of which every picture can be changed cleanly. Raises NoRoom: one cannot."""
        if self.changes_pictures(bundle):
            self._refuse_part(bundle, exchange)
            try:
                for image in bundle.images:
                    self.picture_change(View.of(bundle, image), exchange)
            except NotApplicable as reason:
                raise NoRoom(f"({reason})") from reason
        return exchange

    def _refuse_part(self, bundle: Bundle, exchange: ObjectExchange) -> None:
        """Refuse a part of an object: a picture would show the other one."""
        body = exchange.body
        middle = body.outline_m.mean(axis=0)
        away = body.outline_m - middle
        wide = middle + away * (1.0 + _ASIDE_M / np.linalg.norm(away, axis=1, keepdims=True))
        around = self.standing_rows(bundle, StandingBody(wide, body.plane))[0]
        more = len(around) - len(exchange.rows)
        if more > max(_MOST_MORE, _SHARE_MORE * len(exchange.rows)):
            raise NoRoom("a part of something larger")

    def picture_change(self, view: View, exchange: ObjectExchange) -> PictureChange | None:
        """Return a changed picture; None if it shows neither the old object nor the new one.

        Raises NotApplicable: it cannot be changed cleanly.
        """
        removal = self.removal(view, exchange)
        return None if removal is None else PictureChange(removal.pixels(view.picture), removal)

    def removal(self, view: View, exchange: ObjectExchange) -> PictureRemoval | None:
        """Return a picture without the old object; None if it does not show it."""
        rows = self.standing_rows(view.bundle, exchange.body)
        return removal_of(view, exchange.body, returns_of(view.bundle, rows), self.ego_frame_id)

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Draw the changed pixels of an image: they hold what was taken from earlier images, too."""
        exchange: ObjectExchange = state()
        change = self.picture_change(view, exchange)
        if change is None:
            return {**exchange.draw, UNTOUCHED: f"{view.image.topic}: {_OUT_OF_SIGHT}"}
        draw = {**exchange.draw, **changed_pixels(view.picture, change.pixels, change.removal)}
        return (
            draw
            if change.box is None
            else {**draw, "box_px": np.array(change.box.box_px), "visible": change.box.visible}
        )

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Write the drawn pixels."""
        return with_changed_pixels(view.picture, draw)

    def describe_images(self, views: Mapping[str, View], draws: Mapping[str, Draw]) -> Effects:
        """Report which pictures changed, how good the fills are, and where pictures show the new object."""
        boxes = tuple(
            ImageBox(topic, tuple(draws[topic]["box_px"].tolist()), float(draws[topic]["visible"]), self.image_label)
            for topic in views
            if "box_px" in draws[topic]
        )
        return Effects(image_boxes=boxes, numbers=numbers_of(draws))

    @property
    def image_label(self) -> str:
        """The class that an image detector should give to the new object."""
        return "unknown"

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every cloud and every picture."""
        return super().apply(bundle, draw) if self.changes_pictures(bundle) else EachCloud.apply(self, bundle, draw)

    def apply_to_clouds(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every cloud of the stack; report the object's place even if it takes none."""
        if bundle.clouds:
            return super().apply_to_clouds(bundle, draw)
        head = f"{bundle.images[0].topic}|"
        own = {name.removeprefix(head): value for name, value in draw.items() if name.startswith(head)}
        return Followup(((0, bundle),), self.describe_change(bundle, {}, {"": own}))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Prove clouds and pictures, each by itself."""
        if self.changes_pictures(source):
            return super().guarantee(source, followup, draw)
        return EachCloud.guarantee(self, source, followup, draw)

    def affected(self, view: View, draw: Draw) -> Mask:
        """Return where pixels may change: where lines of sight meet the box of the object, or the ground around it."""
        return self._region(view, draw, np.eye(4))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check that the fill keeps its bound, that it covers the object's returns, and that nothing is like before."""
        if "fill_error" not in draw:
            return None
        if not float(draw["fill_error"]) <= MOST_LIGHT:
            return f"the fill is {float(draw['fill_error']):.3f} of full light off, allowed {MOST_LIGHT:.3f}"
        thing = standing_object(old, self._body(draw), self._returns(old.bundle, draw), self.ego_frame_id)
        covered = self._covered(old, thing, draw)
        if covered is not None and covered < _LEAST_COVERED:
            return (
                f"{covered:.0%} of the object's returns in sight lie on changed pixels, expected {_LEAST_COVERED:.0%}"
            )
        alike = removal_proof.likeness(old.picture, new.picture, self._core(old, thing, draw))
        if alike is not None and alike > removal_proof.MOST_ALIKE:
            return f"the picture is like before where the object was: correlation {alike:.2f}"
        return None

    def _region(self, view: View, draw: Draw, motion: Matrix) -> Mask:
        """Return where a picture may change by an object after a rigid motion (4, 4) of the ego's frame."""
        body = self._body(draw)
        thing = standing_object(view, body, self._returns(view.bundle, draw), self.ego_frame_id)
        outline = move(motion, np.column_stack([body.outline_m, body.ground_m(body.outline_m)]))
        shift = move(motion, np.array([[*body.plane[3:], body.plane[0]]]))[0]
        plane = np.array([shift[2], *(motion[:2, :2] @ body.plane[1:3]), *shift[:2]])
        return removal_proof.may_change(view, outline[:, :2], plane, thing.height_m, self.ego_frame_id)

    def _body(self, draw: Draw) -> StandingBody:
        return StandingBody(draw["outline_m"], draw["plane"])

    def _returns(self, bundle: Bundle, draw: Draw) -> list[Floats]:
        return returns_of(bundle, self.standing_rows(bundle, self._body(draw)))

    def _covered(self, view: View, thing: StandingObject, draw: Draw) -> float | None:
        """Return the share of the object's returns in sight whose pixels are drawn; None if there are too few."""
        (rows, columns), drawn = drawn_pixels(draw)
        seen = thing.pixels[thing.in_picture]
        x, y = np.rint(seen).astype(int).T
        inside = (y >= rows.start) & (y < rows.stop) & (x >= columns.start) & (x < columns.stop)
        if not inside.any():
            return 0.0 if len(x) >= _TOO_FEW else None
        depth = depth_of(view.bundle, view.image, thing.camera)
        hidden = np.zeros(view.picture.size, bool)
        hidden[rows, columns] = (
            cv2.dilate(occluder_mask(thing, depth, (rows, columns)).astype(np.uint8), np.ones((5, 5))) != 0
        )
        sight = inside & ~hidden[y, x]
        if sight.sum() < _TOO_FEW:
            return None
        return float(drawn[y[sight] - rows.start, x[sight] - columns.start].mean())

    def _core(self, view: View, thing: StandingObject, draw: Draw) -> Mask:
        """Return the drawn pixels (H, W) around the object's returns, less those of a new object."""
        dots = np.zeros(view.picture.size, np.uint8)
        x, y = np.rint(thing.pixels[thing.in_picture]).astype(int).T
        dots[np.clip(y, 0, dots.shape[0] - 1), np.clip(x, 0, dots.shape[1] - 1)] = 255
        window, drawn = drawn_pixels(draw)
        whole = np.zeros_like(dots)
        whole[window] = drawn
        near = cv2.dilate(dots, np.ones((5, 5), np.uint8))
        return np.asarray(near * whole * (self.new_object(view, draw) == 0), np.uint8)

    def new_object(self, view: View, draw: Draw) -> Mask:
        """Return where (H, W) a picture may show a new object."""
        return np.zeros(view.picture.size, np.uint8)
