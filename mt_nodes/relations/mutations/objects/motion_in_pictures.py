# SPDX-License-Identifier: Apache-2.0
"""Shows an object of the scene in another place of a picture."""

from __future__ import annotations

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.effects import ImageBox
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.objects.picture_exchange import PictureChange
from mt_nodes.relations.mutations.objects.removal_in_pictures import PictureRemoval
from mt_nodes.world.camera.cutout import after_motion, composite, motion_refusal
from mt_nodes.world.camera.depth import depth_of
from mt_nodes.world.camera.standing_object import StandingObject


def change_by_motion(view: View, removal: PictureRemoval, motion: Matrix) -> PictureChange:
    """Return a picture with an object after a rigid motion (4, 4) of the camera's frame.

    Raises NotApplicable: the picture cannot show it there.
    """
    thing, without = removal.thing, removal.pixels(view.picture)
    depth = depth_of(view.bundle, view.image, thing.camera)
    in_sight = after_motion(thing, motion).in_picture.any()
    if in_sight and (reason := motion_refusal(thing, removal.silhouette, motion)):
        raise NotApplicable(f"{view.image.topic}: the object cannot be shown in its new place: {reason}")
    new = composite(thing, removal.silhouette, view.picture, without, motion, depth)
    if new is None:
        return PictureChange(without, removal)
    return PictureChange(new.pixels, removal, ImageBox(view.image.topic, new.box_px, new.visible))


def refuse_appearance(view: View, thing: StandingObject, motion: Matrix) -> None:
    """Refuse an object that comes into a picture which does not show it yet.

    Raises NotApplicable: the picture would have to show what it never did.
    """
    if after_motion(thing, motion).in_picture.any():
        raise NotApplicable(f"{view.image.topic}: does not show the object that would come into its sight")
