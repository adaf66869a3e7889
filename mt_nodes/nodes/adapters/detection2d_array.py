# SPDX-License-Identifier: Apache-2.0
"""Boxes in an image as ``vision_msgs/Detection2DArray``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mt_nodes.data.outputs import ImageBoxes
from mt_nodes.nodes.adapters.arrays import best, frame_of
from mt_nodes.nodes.adapters.base import Adapter, Said
from mt_nodes.nodes.message_classes import message_class, set_header, stamp_of


class Detection2dArrayBoxes(Adapter):
    """Boxes of detections, in pixels, in the image of the header's frame; all detections must be in one frame.

    Class and score are those of the hypothesis with the highest score (unknown, 1 without any). A turned box is read as
    the upright one around it. ``id``, poses and the lesser hypotheses are not read. An empty array with the image's
    stamp says that nothing was seen.
    """

    type: ClassVar[str] = "vision_msgs/msg/Detection2DArray"
    role: ClassVar[str] = "boxes"

    def stamp_ns(self, message: Any) -> int | None:
        """Header stamp of the array."""
        return stamp_of(message)

    def decode(self, message: Any) -> ImageBoxes:
        """Read the box of every detection."""
        rows = message.detections
        sides = [
            (b.center.position.x, b.center.position.y, b.center.theta, b.size_x, b.size_y)
            for b in (row.bbox for row in rows)
        ]
        x, y, turn, width, height = np.array(sides, dtype=np.float64).reshape(-1, 5).T
        with np.errstate(invalid="ignore"):  # what is not finite is nobody's to judge
            cos, sin = np.abs(np.cos(turn)), np.abs(np.sin(turn))
            across, down = (width * cos + height * sin) / 2, (width * sin + height * cos) / 2
            edges = np.column_stack([x - across, y - down, x + across, y + down])
        chosen = [best(row) for row in rows]
        return ImageBoxes.make(
            frame_of(message, rows),
            stamp_of(message),
            edges,
            [(c and c.hypothesis.class_id) or "unknown" for c in chosen],
            [1.0 if c is None else c.hypothesis.score for c in chosen],
        )

    def encode(self, said: Said) -> Any:
        """Write one upright detection with one hypothesis a box."""
        assert isinstance(said, ImageBoxes)
        message = message_class(self.type)()
        set_header(message.header, said.frame_id, said.stamp_ns)
        for (x0, y0, x1, y1), label, score in zip(said.box_px.tolist(), said.label, said.score.tolist(), strict=True):
            row = message_class("vision_msgs/msg/Detection2D")(header=message.header)
            chosen = message_class("vision_msgs/msg/ObjectHypothesisWithPose")()
            chosen.hypothesis.class_id, chosen.hypothesis.score = str(label), score
            row.bbox.center.position.x, row.bbox.center.position.y = (x0 + x1) / 2, (y0 + y1) / 2
            row.bbox.size_x, row.bbox.size_y = x1 - x0, y1 - y0
            row.results = [chosen]
            message.detections.append(row)
        return message
