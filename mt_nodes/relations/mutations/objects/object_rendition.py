# SPDX-License-Identifier: Apache-2.0
"""Base of mutations that add an object for every sensor: the same mesh at the same place in clouds and pictures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from mt_nodes.base.errors import NoEffect, NotApplicable
from mt_nodes.base.open3d_late import open3d
from mt_nodes.data.effects import Effects
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor, refuse_out_of_sync
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, of_cloud
from mt_nodes.relations.mutations.objects.in_pictures import (
    LEAST_PIXELS,
    ObjectImage,
    camera_from,
    shot_of,
    with_object,
)
from mt_nodes.relations.mutations.objects.picture_proof import Sight, sight_of
from mt_nodes.relations.mutations.untouched import UNTOUCHED
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.measures import Mask
from mt_nodes.world.camera.sun_direction import SunLight
from mt_nodes.world.scene.figures import Figure
from mt_nodes.world.scene.sight import RaycastBody

#: A pixel counts as changed from this difference on; at least this share of the visible pixels must change.
_VISIBLE_STEP, _VISIBLE_SHARE = 1.0 / 255.0, 0.5
_TOO_FEW_PX = 30
#: Largest share of the object's vertices off the lines of sight that meet it.
_OFF_SHARE = 0.02


class CloudAndPictureChange(EverySensor):
    """Base: changes each cloud and each picture; a bundle without images changes as before.

    A cloud that the stack does not take (``bundle.extra_clouds``) finds the ground and occluders. Images that do not
    show the object stay byte for byte.
    """

    ego_frame_id: str

    def ready(self) -> None:
        """Load the ray caster."""
        open3d()

    @abstractmethod
    def body_in(self, draw: Draw) -> RaycastBody:
        """Return the mesh for rays of the object that is drawn."""

    @abstractmethod
    def figure_in(self, draw: Draw) -> Figure:
        """Return the mesh for cameras of the object that is drawn."""

    def looks(self, state: Any) -> Draw:
        """Return what an episode's draws say of the object: which variant of its kind it is, and the sun on it."""
        return {}

    @property
    @abstractmethod
    def label(self) -> str:
        """The class that a detector should give it."""

    @property
    def image_label(self) -> str:
        """The class that an image detector should give it."""
        return self.label

    @abstractmethod
    def pose_in(self, bundle: Bundle, state: Any) -> Matrix:
        """Return the object's pose in a bundle: (4, 4), object to the ego's frame.

        Raises NotApplicable: there is no room.
        """

    def for_radar(self, bundle: Bundle, pose: Matrix, state: Any) -> Any:
        """Return what ``draw_radar`` is given of the object: its pose in the bundle."""
        return pose

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every cloud, then find which images and radars show the object."""
        if bundle.images:
            refuse_out_of_sync(bundle)
        alone = not bundle.images and not bundle.radars
        clouds = EachCloud.draw(self, rng, bundle, state) if bundle.clouds or alone else {}
        pose = clouds[f"{bundle.clouds[0].topic}|pose"] if bundle.clouds else self.pose_in(bundle, state)
        clouds = _with_reasons(bundle, clouds)
        others = self.draw_images(rng, bundle, {"pose": pose, **self.looks(state)}) if bundle.images else {}
        others |= self.draw_radars(rng, bundle, (pose, state))
        if not bundle.clouds and not any(name.endswith("|pose") for name in others):
            raise NotApplicable("no sensor sees the place where the object stands")
        return {**clouds, **others}

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Draw the object's pose and looks, if this image shows it; ``state`` is these.

        Raises NoEffect: it does not.
        """
        shot = self._shot(view, state)
        if shot is None:
            raise NoEffect(f"{view.image.topic}: the object is out of its view")
        if shot.sight.sum() < LEAST_PIXELS:
            raise NoEffect(
                f"{view.image.topic}: {shot.sight.sum():.0f} pixels show the object, the others are hidden; expected "
                f"{LEAST_PIXELS:.0f} or more"
            )
        return dict(state)

    def apply_to_clouds(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every cloud of the stack; report the object's place even if it takes none."""
        if bundle.clouds:
            return super().apply_to_clouds(bundle, draw)
        pose = next(value for name, value in draw.items() if name.endswith("|pose"))
        return Followup(((0, bundle),), self.describe_change(bundle, {}, {"": {"pose": pose}}))

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Draw the visible part of the object."""
        if "pose" not in draw:
            return view.picture.pixels
        shot = self._shot(view, draw)
        return view.picture.pixels if shot is None else with_object(view, shot)

    def describe_images(self, views: Mapping[str, View], draws: Mapping[str, Draw]) -> Effects:
        """Report where images show the object."""
        shots = [self._shot(view, draws[topic]) for topic, view in views.items() if "pose" in draws[topic]]
        return Effects(image_boxes=tuple(shot.box for shot in shots if shot is not None))

    def affected(self, view: View, draw: Draw) -> Mask:
        """Return where the object, and its shadow, may be visible."""
        return np.zeros(view.picture.size, np.uint8) if "pose" not in draw else self._sight(view, draw).may

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check that the object is visible where lines of sight meet it, unless something is before it."""
        if "pose" not in draw:
            return None
        sight = self._sight(old, draw)
        if sight.off > _OFF_SHARE:
            return f"{sight.off:.0%} of the object's vertices are projected beside the lines of sight that meet it"
        must = sight.must
        if np.count_nonzero(must) < _TOO_FEW_PX:
            return None
        share = measures.share_changed(old.picture, new.picture, _VISIBLE_STEP, must)
        return f"only {share:.0%} of the object's pixels differ from before" if share < _VISIBLE_SHARE else None

    def _sight(self, view: View, draw: Draw) -> Sight:
        pose = camera_from(view, self.ego_frame_id) @ draw["pose"]
        sun = sun_in(draw)
        return sight_of(
            view, self.body_in(draw), pose, self.figure_in(draw).feet_m, None if sun is None else sun.to_sun
        )

    def _shot(self, view: View, draw: Draw) -> ObjectImage | None:
        figure = self.figure_in(draw)
        return shot_of(view, figure, draw["pose"], self.image_label, self.ego_frame_id, sun_in(draw))


def sun_in(draw: Draw) -> SunLight | None:
    """Return the sun of a draw, in the object's frame; None if it has none."""
    return SunLight.of_numbers(draw["sun"]) if "sun" in draw else None


def _with_reasons(bundle: Bundle, draw: Draw) -> Draw:
    """Return the draw of clouds with the reason for each in which no ray meets the object."""
    result = dict(draw)
    for cloud in bundle.clouds:
        own = of_cloud(draw, cloud)
        if not any(len(own.get(name, ())) for name in ("rows", "lost", "new_rows")):
            for name in own:
                del result[f"{cloud.topic}|{name}"]
            result[f"{cloud.topic}|{UNTOUCHED}"] = f"{cloud.topic}: none of its rays meets the object"
    return result
