# SPDX-License-Identifier: Apache-2.0
"""Draws the images of a frame before and after a mutation, side by side, with added objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.patches import Rectangle

from mt_nodes.base.arrays import Pixels
from mt_nodes.base.errors import UsageError
from mt_nodes.data.effects import ImageBox
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.report.picture_colours import VERMILLION
from mt_nodes.report.pictures.frame_inspection import MutatedFrame

_MAX_IMAGES, _MAX_WIDTH_PX, _MARGIN_IN = 3, 1000, 0.35


@dataclass(frozen=True, eq=False)
class PicturePair:
    """One image before and after: red, green, blue (H, W, 3), its topic, and the boxes of added objects."""

    topic: str
    before: Pixels
    after: Pixels
    boxes: tuple[ImageBox, ...]


def changed_pictures(frame: MutatedFrame) -> tuple[PicturePair, ...]:
    """Return the first images that the follow-up changes and that can be decoded."""
    if frame.of_times or not frame.derived.followup.bundles:
        return ()
    baseline = frame.derived.baseline
    source = frame.source if baseline is None else baseline.followup.first
    after = {image.topic: image for image in frame.derived.followup.first.images}
    changed = [(old, after[old.topic]) for old in source.images if after.get(old.topic, old) is not old]
    pairs = [(old.topic, _rgb(old), _rgb(new)) for old, new in changed[:_MAX_IMAGES]]
    boxes = frame.derived.effects.image_boxes
    return tuple(
        PicturePair(topic, before, now, tuple(box for box in boxes if box.topic == topic))
        for topic, before, now in pairs
        if before is not None and now is not None
    )


def clouds_differ(source: Bundle, followup: Bundle) -> bool:
    """Return whether a follow-up has other clouds than its source."""
    after = {cloud.topic: cloud for cloud in followup.clouds}
    return any(after.get(cloud.topic) is not cloud for cloud in source.clouds)


def height_in(pairs: tuple[PicturePair, ...], width_in: float) -> float:
    """Return the height of the panels where each pair shares a width."""
    return float(sum(0.5 * width_in * pair.before.shape[0] / pair.before.shape[1] + _MARGIN_IN for pair in pairs))


def draw_pictures(figure: FigureBase, pairs: tuple[PicturePair, ...]) -> None:
    """Draw a row for each pair; added objects are outlined in the second picture."""
    grid: Any = figure.subplots(len(pairs), 2, squeeze=False)
    for row, pair in zip(grid, pairs, strict=True):
        for axes, pixels, when in zip(row, (pair.before, pair.after), ("before", "after"), strict=True):
            scale = min(1.0, _MAX_WIDTH_PX / pixels.shape[1])
            small = cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
            axes.imshow(small, interpolation="antialiased")
            axes.set_title(f"{when}, {pair.topic}", fontsize=9)
            axes.set_axis_off()
            if when == "after":
                _outline(axes, pair.boxes, scale)


def _outline(axes: Axes, boxes: tuple[ImageBox, ...], scale: float) -> None:
    for box in boxes:
        x0, y0, x1, y1 = (scale * v for v in box.box_px)
        outline = Rectangle((x0 - 3, y0 - 3), x1 - x0 + 6, y1 - y0 + 6, fill=False, edgecolor=VERMILLION, linewidth=1.0)
        axes.add_patch(outline)
        axes.text(x0 - 3, y0 - 6, f"{box.label}, {box.visible:.0%} visible", color=VERMILLION, fontsize=7)


def _rgb(image: Image) -> Pixels | None:
    try:
        return decode(image).rgb8()
    except UsageError:
        return None
