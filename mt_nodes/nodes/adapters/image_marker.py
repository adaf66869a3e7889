# SPDX-License-Identifier: Apache-2.0
"""Boxes in an image as ``visualization_msgs/ImageMarker``, which viewers draw over the image."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import ImageMarker

from mt_nodes.data.cdr.image_markers import LINES, OUTLINE
from mt_nodes.data.outputs import ImageBoxes
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.message_classes import set_header, stamp_of


class ImageMarkerBoxes(Adapter):
    """One marker of type LINE_LIST an image: four lines, so eight points in pixels, a box.

    ``ns`` names the classes: one for each box, separated by commas, or one for all. The alpha of a box's first outline
    colour is its score; without outline colours every score is 1. A marker without points, stamped with the image's
    stamp, says that nothing was seen.
    """

    type: ClassVar[str] = "visualization_msgs/msg/ImageMarker"
    role: ClassVar[str] = "boxes"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp."""
        return stamp_of(message)

    def decode(self, message: Any) -> ImageBoxes:
        """Read the boxes around every eight points."""
        count, rest = divmod(len(message.points), len(LINES))
        if message.type != ImageMarker.LINE_LIST or rest:
            raise ValueError(
                f"got an ImageMarker of type {message.type} with {len(message.points)} points, expected LINE_LIST "
                f"({ImageMarker.LINE_LIST}) with eight points a box"
            )
        points = np.array([(p.x, p.y) for p in message.points]).reshape(count, len(LINES), 2)
        edges = np.column_stack([points.min(axis=1), points.max(axis=1)]) if count else np.empty((0, 4))
        colours = message.outline_colors[:: len(LINES)]
        scores = [float(c.a) for c in colours] if len(colours) == count else None
        names = message.ns.split(",")
        return ImageBoxes.make(
            message.header.frame_id,
            stamp_of(message),
            edges,
            [name or "unknown" for name in (names if len(names) == count else names[:1] * count)],
            scores,
        )

    def encode(self, said: Said) -> ImageMarker:
        """Write four lines a box."""
        assert isinstance(said, ImageBoxes)
        message = ImageMarker(ns=",".join(said.label.tolist()), type=ImageMarker.LINE_LIST, action=ImageMarker.ADD)
        message.scale = 1.0
        set_header(message.header, said.frame_id, said.stamp_ns)
        for box, score in zip(said.box_px.tolist(), said.score.tolist(), strict=True):
            colour = ColorRGBA(**dict(zip("rgb", OUTLINE, strict=True)), a=score)
            message.points += [Point(x=box[x], y=box[y]) for x, y in LINES]
            message.outline_colors += [colour] * len(LINES)
        return message
