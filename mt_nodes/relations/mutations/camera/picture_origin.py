# SPDX-License-Identifier: Apache-2.0
"""Proof that places of a changed picture show what other places of the original showed."""

from __future__ import annotations

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.data.images.codecs import Picture, decode, encode, lossy, spread_px
from mt_nodes.relations.mutations.camera.each_image import View

_ROUNDING = 1.0
#: A displacement that is wrong by half a pixel must be noticed: half of the effect of a whole pixel.
_SHARE_OF_A_PIXEL = 0.5


def differs_from_origin(old: View, new: View, new_px: Floats, old_px: Floats) -> str | None:
    """Compare the brightness at places (N, 2) of the new picture with that of the old places, averaged over 3 x 3.

    Differences may be at most the rounding, half of the effect of a shift by one pixel, and the loss of encoding.
    Places near the edges do not count; ``None`` if nothing is wrong.
    """
    bounds = np.array(old.picture.size[::-1]) - 3.0
    inside = ((old_px >= 2.0) & (old_px <= bounds) & (new_px >= 1.0) & (new_px <= bounds + 1.0)).all(axis=1)
    if not inside.any():
        return "nothing of the picture is left"
    before, after = _averaged(old.picture), _averaged(new.picture)
    is_now, was, neighbour = (
        _at(luma, places[inside]) for luma, places in ((after, new_px), (before, old_px), (before, old_px + 1.0))
    )
    off, pixel = float(np.abs(is_now - was).mean()), float(np.abs(neighbour - was).mean())
    bound = _ROUNDING * old.picture.full_scale / 255.0 + _SHARE_OF_A_PIXEL * pixel + _loss(old)
    return None if off <= bound else f"places differ from where they came from by {off:.1f}, allowed {bound:.1f}"


def _averaged(picture: Picture) -> Singles:
    return np.asarray(cv2.blur(picture.luma().astype(np.float32), (3, 3)))


def _at(luma: Singles, pixels: Floats) -> Singles:
    places = pixels.astype(np.float32)[:, None]
    return np.asarray(cv2.remap(luma, places, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE))[:, 0]


def _loss(view: View) -> float:
    """Return how much encoding changes this picture's averaged brightness after a shift, on average."""
    if not (lossy(view.image) or spread_px(view.image)):
        return 0.0
    shifted = view.picture.with_pixels(np.roll(view.picture.pixels, (3, 5), (0, 1)))
    encoded = decode(encode(shifted, view.image))
    return float(np.abs(_averaged(encoded) - _averaged(shifted)).mean())
