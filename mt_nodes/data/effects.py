# SPDX-License-Identifier: Apache-2.0
"""Effects of a mutation on the world that the follow-up shows."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.data.transforms import Matrix, TransformTree

#: Names of the volumes of :class:`Effects`.
_VOLUMES = ("added", "removed", "occluded", "revealed")


@dataclass(frozen=True)
class Volume:
    """An oriented box in a named frame: centre (x, y, z) and size (length, width, height) in metres, yaw about z.

    ``outline_m``, corners (x, y) in the same frame, is its shape from above where that is no rectangle, such as a
    sector; the box is then the one around it.
    """

    frame_id: str
    center_m: tuple[float, float, float]
    size_m: tuple[float, float, float]
    yaw_rad: float = 0.0
    label: str = "unknown"
    outline_m: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class ImageBox:
    """Where an image shows an added object.

    Attributes:
        box_px: (x0, y0, x1, y1) around the part of the object within the image, occluded parts included; pixel centres
            lie at whole numbers.
        visible: share of all of the object's pixels that are visible: within the image, and not occluded.
        label: class that a detector should give it.
    """

    topic: str
    box_px: tuple[float, float, float, float]
    visible: float
    label: str = "unknown"


@dataclass(frozen=True, eq=False)
class DoubtfulDepth:
    """Where the depth of an image, and so its change by air, is not known well enough.

    ``cell_px``: width and height of a cell. ``cells``: (h, w) mask of those in doubt.
    """

    cell_px: int
    cells: Mask

    def shares(self, box_px: Floats) -> Floats:
        """Return the share (M,) of boxes (M, 4), as (x0, y0, x1, y1), that is in doubt."""
        sums = np.pad(np.cumsum(np.cumsum(self.cells, axis=0, dtype=np.int64), axis=1), ((1, 0), (1, 0)))
        height, width = self.cells.shape
        first = np.floor(np.asarray(box_px)[:, :2] / self.cell_px).astype(int).clip(0, (width - 1, height - 1))
        last = np.ceil(np.asarray(box_px)[:, 2:] / self.cell_px).astype(int).clip(first + 1, (width, height))
        (x0, y0), (x1, y1) = first.T, last.T
        doubtful = sums[y1, x1] - sums[y0, x1] - sums[y1, x0] + sums[y0, x0]
        return np.asarray(doubtful / ((x1 - x0) * (y1 - y0)))

    def joined(self, other: DoubtfulDepth | None) -> DoubtfulDepth:
        """Return both together; they are of the same image."""
        return self if other is None else replace(self, cells=self.cells | other.cells)

    def as_plain(self) -> dict[str, Any]:
        """Return plain data: the mask's bits, deflated, in base64."""
        bits = base64.b64encode(zlib.compress(np.packbits(self.cells).tobytes())).decode()
        return {"cell_px": self.cell_px, "shape": list(self.cells.shape), "bits": bits}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> DoubtfulDepth:
        """Read what :meth:`as_plain` made."""
        height, width = data["shape"]
        bits = np.frombuffer(zlib.decompress(base64.b64decode(data["bits"])), np.uint8)
        return cls(data["cell_px"], np.unpackbits(bits, count=height * width).reshape(height, width) != 0)


@dataclass(frozen=True, eq=False)
class Effects:
    """Differences between the follow-up's world and the source's, as far as checks need them.

    Attributes:
        added, removed, occluded: volumes; an obstacle in a removed or occluded one is not demanded of the follow-up.
        revealed: volumes that a removed object hid. What is there was estimated: an obstacle seen in part may have
            become a whole one, so that none in it is demanded either.
        output_transform: 4×4 that takes the source's expected output to the follow-up's, None for "the same place".
        output_frame_id: frame of ``output_transform``.
        numbers: measured values, such as the number of added points.
        added_points: (N, 3) points added to clouds, by topic, for pictures and evidence.
        image_boxes: where images show added objects.
        image_mirrored: whether left and right of every image are swapped: steering to the other side is expected.
        image_transforms: 3×3 by image topic that takes a pixel (x, y, 1) of the source to the follow-up's; images
            without one keep their pixels in place.
        unchanged: why a message of a sensor that the mutation changes stays as it is, by topic.
        doubtful_depth: by image topic, where the change depends on a depth that is not known; boxes there are not
            demanded.
        invented: why the follow-up does not show the source's instant, such as a video that goes on by itself: no pair
            of outputs is compared then; empty: it does.
    """

    added: tuple[Volume, ...] = ()
    removed: tuple[Volume, ...] = ()
    occluded: tuple[Volume, ...] = ()
    revealed: tuple[Volume, ...] = ()
    output_transform: Matrix | None = None
    output_frame_id: str = ""
    numbers: dict[str, float] = field(default_factory=dict)
    added_points: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    image_boxes: tuple[ImageBox, ...] = ()
    image_mirrored: bool = False
    image_transforms: dict[str, Matrix] = field(default_factory=dict)
    unchanged: dict[str, str] = field(default_factory=dict)
    doubtful_depth: dict[str, DoubtfulDepth] = field(default_factory=dict)
    invented: str = ""

    @property
    def mirrored(self) -> bool:
        """Whether left and right are swapped, in images or by ``output_transform``: steer to the other side."""
        carried = self.output_transform
        return self.image_mirrored or (carried is not None and bool(carried[0, 0] > 0.0 > carried[1, 1]))

    @property
    def change_truth(self) -> bool:
        """Whether the follow-up shows other objects than the source, or shows them elsewhere."""
        moved = self.output_transform is not None or self.image_mirrored or bool(self.image_transforms)
        return moved or bool(self.added or self.removed or self.occluded or self.image_boxes or self.invented)

    def carry(self, frame_id: str, transforms: TransformTree) -> Matrix | None:
        """Return the 4×4 in this frame that takes the expected output to its new place; None where it stays.

        Raises UnknownTransform: there is no transform from that frame to the one of ``output_transform``.
        """
        if self.output_transform is None:
            return None
        frame_to_frame = transforms.lookup(frame_id, self.output_frame_id or frame_id)
        return np.asarray(frame_to_frame @ self.output_transform @ np.linalg.inv(frame_to_frame))

    def merged(self, later: Effects) -> Effects:
        """Return these effects followed by those of a later mutation."""
        first, second = self.output_transform, later.output_transform
        both = second if first is None else first if second is None else np.asarray(second @ first)
        return Effects(
            self.added + later.added,
            self.removed + later.removed,
            self.occluded + later.occluded,
            self.revealed + later.revealed,
            both,
            later.output_frame_id or self.output_frame_id,
            {**self.numbers, **later.numbers},
            {**self.added_points, **later.added_points},
            (*(_warped(box, later.image_transforms) for box in self.image_boxes), *later.image_boxes),
            self.image_mirrored != later.image_mirrored,
            {
                topic: np.asarray(
                    later.image_transforms.get(topic, np.eye(3)) @ self.image_transforms.get(topic, np.eye(3))
                )
                for topic in {**self.image_transforms, **later.image_transforms}
            },
            {**self.unchanged, **later.unchanged},
            {
                **self.doubtful_depth,
                **{t: own.joined(self.doubtful_depth.get(t)) for t, own in later.doubtful_depth.items()},
            },
            self.invented or later.invented,
        )

    def beyond(self, baseline: Effects) -> Effects:
        """Return these effects without the volumes and boxes that the source shows, too, for it has a baseline."""
        left: dict[str, Any] = {
            name: tuple(v for v in getattr(self, name) if v not in getattr(baseline, name))
            for name in (*_VOLUMES, "image_boxes")
        }
        return replace(self, **left)

    def as_plain(self) -> dict[str, Any]:
        """Return plain data for the ledger: volumes, transform and numbers (points are made again from the draw)."""
        boxes: dict[str, Any] = {
            name: [_plain(volume) for volume in getattr(self, name)] for name in _VOLUMES if getattr(self, name)
        }
        if self.output_transform is not None:
            boxes["output_transform"] = self.output_transform.tolist()
        if self.output_frame_id:
            boxes["output_frame_id"] = self.output_frame_id
        if self.image_boxes:
            boxes["image_boxes"] = [dict(vars(box)) for box in self.image_boxes]
        if self.image_mirrored:
            boxes["image_mirrored"] = True
        if self.image_transforms:
            boxes["image_transforms"] = {topic: m.tolist() for topic, m in self.image_transforms.items()}
        if self.unchanged:
            boxes["unchanged"] = self.unchanged
        if self.doubtful_depth:
            boxes["doubtful_depth"] = {topic: mask.as_plain() for topic, mask in self.doubtful_depth.items()}
        if self.invented:
            boxes["invented"] = self.invented
        return {**boxes, "numbers": self.numbers} if self.numbers else boxes

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Effects:
        """Read what :meth:`as_plain` made; added points are missing."""

        def volumes(name: str) -> tuple[Volume, ...]:
            return tuple(
                Volume(
                    v["frame_id"],
                    tuple(v["center_m"]),
                    tuple(v["size_m"]),
                    v["yaw_rad"],
                    v["label"],
                    tuple(tuple(corner) for corner in v.get("outline_m", ())),
                )
                for v in data.get(name, ())
            )

        matrix = data.get("output_transform")
        named: dict[str, Any] = {name: volumes(name) for name in _VOLUMES}
        return cls(
            **named,
            output_transform=None if matrix is None else np.array(matrix, dtype=np.float64),
            output_frame_id=data.get("output_frame_id", ""),
            numbers=dict(data.get("numbers", {})),
            image_boxes=tuple(
                ImageBox(b["topic"], tuple(b["box_px"]), b["visible"], b["label"]) for b in data.get("image_boxes", ())
            ),
            image_mirrored=bool(data.get("image_mirrored", False)),
            image_transforms={
                topic: np.array(m, dtype=np.float64) for topic, m in data.get("image_transforms", {}).items()
            },
            unchanged=dict(data.get("unchanged", {})),
            doubtful_depth={t: DoubtfulDepth.from_plain(m) for t, m in data.get("doubtful_depth", {}).items()},
            invented=data.get("invented", ""),
        )


def _plain(volume: Volume) -> dict[str, Any]:
    return {name: value for name, value in vars(volume).items() if name != "outline_m" or value}


def _warped(box: ImageBox, transforms: Mapping[str, Matrix]) -> ImageBox:
    """Return a box after a later transform of its image: the box around its corners."""
    if box.topic not in transforms:
        return box
    x0, y0, x1, y1 = box.box_px
    moved = transforms[box.topic] @ np.array([[x0, x1, x0, x1], [y0, y0, y1, y1], [1.0, 1.0, 1.0, 1.0]])
    (x, y), (right, bottom) = (moved[:2] / moved[2]).min(axis=1).tolist(), (moved[:2] / moved[2]).max(axis=1).tolist()
    return replace(box, box_px=(x, y, right, bottom))
