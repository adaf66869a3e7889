# SPDX-License-Identifier: Apache-2.0
"""Draws what a mutation does to the pictures of a frame: before and after, side by side, with what was added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.patches import Rectangle

from mt_nodes.base.errors import UsageError
from mt_nodes.data.effects import ImageBox
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.report.birdseye import VERMILLION
from mt_nodes.report.pictures.frame_inspection import MutatedFrame

_MOST, _WIDEST_PX, _MARGIN_IN = 3, 1000, 0.35
Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class PicturePair:
    """One image before and after: red, green, blue (H, W, 3), its topic, and what was put there."""

    topic: str
    before: Pixels
    after: Pixels
    boxes: tuple[ImageBox, ...]


def changed_pictures(look: MutatedFrame) -> tuple[PicturePair, ...]:
    """Return the images that the follow-up shows otherwise, the first few; none that cannot be decoded."""
    if look.of_times or not look.derived.followup.bundles:
        return ()
    milder = look.derived.baseline
    source = look.source if milder is None else milder.followup.first
    after = {image.topic: image for image in look.derived.followup.first.images}
    changed = [(old, after[old.topic]) for old in source.images if after.get(old.topic, old) is not old]
    pairs = [(old.topic, _rgb(old), _rgb(new)) for old, new in changed[:_MOST]]
    boxes = look.derived.effects.image_boxes
    return tuple(
        PicturePair(topic, before, now, tuple(box for box in boxes if box.topic == topic))
        for topic, before, now in pairs
        if before is not None and now is not None
    )


def clouds_differ(source: Bundle, made: Bundle) -> bool:
    """Tell whether a follow-up has other clouds than its source."""
    after = {cloud.topic: cloud for cloud in made.clouds}
    return any(after.get(cloud.topic) is not cloud for cloud in source.clouds)


def height_in(pairs: tuple[PicturePair, ...], width_in: float) -> float:
    """Return how high the panels are when each pair shares a width."""
    return float(sum(0.5 * width_in * pair.before.shape[0] / pair.before.shape[1] + _MARGIN_IN for pair in pairs))


def draw_pictures(figure: FigureBase, pairs: tuple[PicturePair, ...]) -> None:
    """Draw a row a pair, what was added outlined in the second picture."""
    grid: Any = figure.subplots(len(pairs), 2, squeeze=False)
    for row, pair in zip(grid, pairs, strict=True):
        for axes, pixels, when in zip(row, (pair.before, pair.after), ("before", "after"), strict=True):
            scale = min(1.0, _WIDEST_PX / pixels.shape[1])
            small = cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
            axes.imshow(small, interpolation="antialiased")
            axes.set_title(f"{when}, {pair.topic}", fontsize=9)
            axes.set_axis_off()
            if when == "after":
                _outline(axes, pair.boxes, scale)


def _outline(axes: Axes, boxes: tuple[ImageBox, ...], scale: float) -> None:
    for box in boxes:
        x0, y0, x1, y1 = (scale * v for v in box.box_px)
        frame = Rectangle((x0 - 3, y0 - 3), x1 - x0 + 6, y1 - y0 + 6, fill=False, edgecolor=VERMILLION, linewidth=1.0)
        axes.add_patch(frame)
        axes.text(x0 - 3, y0 - 6, f"{box.label}, {box.visible:.0%} in sight", color=VERMILLION, fontsize=7)


def _rgb(image: Image) -> Pixels | None:
    try:
        return decode(image).rgb8()
    except UsageError:
        return None
