# SPDX-License-Identifier: Apache-2.0
"""Base of mutations of the world: one draw changes clouds and images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle, Cloud, Image
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.camera.each_image import ChangesImages, View
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, refuse_implausible
from mt_nodes.relations.mutations.radar.each_radar import ChangesRadars
from mt_nodes.relations.mutations.untouched import refuse_without_effect
from mt_nodes.world.camera.surroundings import Surroundings, surroundings_of

#: At 20 m/s a car moves a metre in 50 ms, more than an added object may be out of place. Drives at 10 Hz are joined
#: within half a period anyway.
SYNC_NS = 50_000_000


def refuse_out_of_sync(bundle: Bundle, bound_ns: int = SYNC_NS) -> None:
    """Refuse a bundle in which any two sensors are further apart in time than a bound.

    Clouds that serve as additional input only (``bundle.extra_clouds``) count, too.
    Raises NotApplicable: naming both topics, how far apart they are, and the bound.
    """
    skew_ns = bundle.skew_ns
    if not skew_ns:
        return
    first, last = min(skew_ns, key=skew_ns.__getitem__), max(skew_ns, key=skew_ns.__getitem__)
    apart_ns = skew_ns[last] - skew_ns[first]
    if apart_ns > bound_ns:
        raise NotApplicable(
            f"{first} and {last} of bundle {bundle.index} are {apart_ns / 1e6:.1f} ms apart, expected at most "
            f"{bound_ns / 1e6:g} ms"
        )


class EverySensor(ChangesRadars, ChangesImages, EachCloud):
    """Changes every cloud, image and radar message from one state: the world is the same for all sensors.

    Every message shows the change, or the follow-up says why it cannot (``Effects.unchanged``). A bundle without images
    is changed as its clouds alone would be, byte for byte; without clouds of the stack's own, the depth of images comes
    from additional clouds. Sensors more than 50 ms apart are refused.
    """

    sensors: ClassVar[tuple[str, ...]] = ("lidar", "camera")
    joint = True

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every cloud, then for every image, then for every radar.

        Raises NotApplicable: there is none, one of them has no valid follow-up, or the change reaches none of them.
        """
        messages: tuple[Cloud | Image, ...] = (*bundle.clouds, *bundle.images, *bundle.radars)
        if not messages:
            raise NotApplicable(f"bundle {bundle.index} has no cloud, no image and no radar message")
        if bundle.images:
            refuse_out_of_sync(bundle)
        for cloud in bundle.clouds:
            refuse_implausible(cloud)
        draws = self.draw_clouds(rng, bundle, state)
        draws |= self.draw_images(rng, bundle, state)
        draws |= self.draw_radars(rng, bundle, state)
        refuse_without_effect(draws, [message.topic for message in messages])
        return draws

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every cloud, image and radar message."""
        followup = self.apply_to_clouds(bundle, draw)
        if bundle.images:
            pictures, effects = self.apply_to_images(bundle, draw)
            changed = replace(followup.first, images=pictures.images, camera_infos=pictures.camera_infos)
            followup = Followup(((0, changed),), followup.effects.merged(effects))
        return self.apply_to_radars(bundle, followup, draw) if bundle.radars else followup

    def apply_to_clouds(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every cloud."""
        return EachCloud.apply(self, bundle, draw)

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Prove clouds, images and radars, each separately."""
        if len(followup.bundles) != 1:
            return f"{len(followup.bundles)} bundles, expected one"
        changed = followup.first
        clouds = replace(changed, images=source.images, camera_infos=source.camera_infos, radars=source.radars)
        broken = EachCloud.guarantee(self, source, Followup(((0, clouds),), followup.effects), draw)
        if broken is None and source.images:
            broken = self.prove_images(source, replace(changed, radars=source.radars), draw)
        return broken or self.prove_radars(source, changed, draw)


def surroundings(view: View) -> Surroundings:
    """Return depth and directions of a view's cells.

    Raises NotApplicable: the camera is not calibrated, or no depth or transform is known.
    """
    return surroundings_of(view.bundle, view.image, view.camera())
