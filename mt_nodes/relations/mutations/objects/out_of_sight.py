# SPDX-License-Identifier: Apache-2.0
"""Refuses a cloud-only change that a camera would contradict."""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.relations.mutations.camera.each_image import View


def refuse_in_sight(bundle: Bundle, cloud: Cloud, xyz: Floats) -> None:
    """Refuse a change at places (n, 3) of a cloud that a picture of the same instant shows, or may show.

    Raises NotApplicable: naming the picture; or the camera's pose is unknown.
    """
    for image in bundle.images:
        camera = View.of(bundle, image).camera()
        try:
            pixels = camera.project(move(bundle.transforms.lookup(image.frame_id, cloud.frame_id), xyz))
        except UnknownTransform as error:
            raise NotApplicable(f"{image.topic}: where the camera stands is not known: {error}") from error
        with np.errstate(invalid="ignore"):  # NaN is out of sight
            within = ((pixels > -0.5) & (pixels < (camera.width - 0.5, camera.height - 0.5))).all(axis=1)
        if within.any():
            raise NotApplicable(
                f"{image.topic} goes on to show what only clouds are freed of ({int(within.sum())} of {len(xyz)} of "
                "its returns are in sight); for clouds alone say pictures: stay, or test a stack without that camera"
            )
