# SPDX-License-Identifier: Apache-2.0
"""Frames before and after a mutation, with what their pictures show where: for measures of pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
import numpy.typing as npt

import mt_nodes as mt
from mt_nodes.base.errors import InfrastructureError, NotApplicable
from mt_nodes.data.effects import Effects
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import move
from mt_nodes.relations.manipulations import mutations_named
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.camera.model import CameraModel

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Pixels = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
#: Brightness of red, green and blue samples (ITU-R BT.601).
LUMA = np.array([0.299, 0.587, 0.114])
#: Things that are added: more than the page has, so that no one mesh decides.
KINDS = ("adult", "child", "cyclist", "wheelchair_user", "deer", "cow", "dog", "car", "van", "cone", "barrier", "box")
_PLACE = {"where": "bearing", "bearing_rad": [-0.5, 0.5], "range_m": [6.0, 18.0], "clearance_m": 0.3}
#: Seeds that are tried for a place in full view, and what that is.
SEEDS, _LEAST_PX, _LEAST_VISIBLE = 12, 40.0, 0.6
#: A sample that differs by so much shows the added thing.
_CHANGED = 4
#: A return hides what is farther by this; its width in pixels; and the largest shift between a beam's two places.
_BEFORE_M, _RETURN_PX, _PARALLAX_PX = 1.0, 3.0, 80.0
#: Recorded things lie within these heights above the ground and distances: as added ones do.
_ABOVE_M, _NEAR_M = (0.4, 3.0), (5.0, 22.0)


@dataclass(frozen=True, eq=False)
class Change:
    """One frame before and after a mutation."""

    source: mt.Frame
    bundle: Bundle
    effects: Effects

    @cached_property
    def before(self) -> Pixels:
        """The source's first picture (H, W, 3), RGB."""
        return np.asarray(self.source.image)

    @cached_property
    def after(self) -> Pixels:
        """The changed picture (H, W, 3), RGB."""
        return np.asarray(decode(self.bundle.images[0]).rgb8())

    @property
    def box(self) -> tuple[slice, slice] | None:
        """Rows and columns of the added thing; None if it is not in full view, or too small to measure."""
        for box in self.effects.image_boxes:
            left, top, right, bottom = (round(v) for v in box.box_px)
            if box.visible >= _LEAST_VISIBLE and bottom - top >= _LEAST_PX:
                return slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
        return None

    def silhouette(self, least: int = _CHANGED) -> Mask:
        """Return where (H, W) the picture shows the added thing: what changed within its box, by so many steps."""
        mask = np.zeros(self.before.shape[:2], np.uint8)
        if (box := self.box) is not None:
            old, new = (np.asarray(p[box], np.int16) for p in (self.before, self.after))
            mask[box] = np.abs(new - old).max(axis=-1) >= least
        return np.asarray(cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8)) != 0)


class Broken(list[str]):
    """Pairs that broke their guarantee: INVALID ones. They are told at once, and show nothing that may be measured."""

    def add(self, pair: str) -> None:
        """Count a pair, once."""
        if pair in self:
            return
        print(f"INVALID: {pair}", flush=True)
        self.append(pair)


def changes(
    frames: Sequence[mt.Frame],
    mutation: str,
    parameters: Mapping[str, object],
    seed: int = 0,
    broken: Broken | None = None,
) -> list[Change]:
    """Return what a mutation makes of each frame that has a follow-up, in their order, as one segment.

    Args:
        broken: where pairs whose guarantee is broken are counted; None raises.

    Raises:
        InfrastructureError: the mutation broke its guarantee.
    """
    pipeline = MutationPipeline(mutations_named(mutation, parameters, "measure"), seed, "mutate")
    made = []
    for frame in frames:
        try:
            derived = pipeline.derive(frame.bundle)
        except NotApplicable:
            continue
        if derived.broken is None:
            made.append(Change(frame, derived.followup.first, derived.effects))
            continue
        pair = f"{mutation} {dict(parameters)}, seed {seed}, frame {frame.index}: guarantee broken: {derived.broken}"
        if broken is None:
            raise InfrastructureError(pair)
        broken.add(pair)
    return made


def added_things(frames: Sequence[mt.Frame], broken: Broken) -> Iterator[tuple[str, list[Change]]]:
    """Yield each kind of thing with the frames that show it: the first seed that puts it into a picture counts."""
    kinds: dict[str, tuple[str, dict[str, object]]] = {k: ("object_added", {**_PLACE, "kind": k}) for k in KINDS}
    kinds |= {"sign": ("sign_added", {}), "traffic light": ("light_added", {})}
    for kind, (name, parameters) in kinds.items():
        for seed in range(SEEDS):
            if any(change.box is not None for change in changes(frames[:1], name, parameters, seed, broken)):
                yield kind, [c for c in changes(frames, name, parameters, seed, broken) if c.box is not None]
                break


def camera_of(frame: mt.Frame) -> CameraModel:
    """Return the model of a frame's first camera."""
    return CameraModel.of(frame.bundle.camera_infos[0], decode(frame.bundle.images[0]).size)


def in_picture(frame: mt.Frame, xyz: npt.NDArray[np.floating], frame_id: str) -> tuple[Rows, Floats, Floats]:
    """Return which points (N, 3) of a coordinate frame lie in the first picture: rows, pixels (n, 2), ranges (n,)."""
    camera, image = camera_of(frame), frame.bundle.images[0]
    seen = move(np.asarray(frame.bundle.transforms.lookup(image.frame_id, frame_id)), xyz)
    pixel = camera.project(seen)
    with np.errstate(invalid="ignore"):
        inside = (pixel >= 0.0).all(axis=1) & (pixel <= (camera.width - 1.0, camera.height - 1.0)).all(axis=1)
    rows = np.flatnonzero(inside)
    return rows, pixel[rows], np.linalg.norm(seen[rows], axis=1)


def returns_in(frame: mt.Frame) -> tuple[Rows, Floats, Floats]:
    """Return the returns in a frame's first picture: rows of the cloud, pixels x, y (n, 2), ranges from the camera."""
    cloud = frame.bundle.clouds[0]
    return in_picture(frame, cloud.xyz, cloud.frame_id)


def real_returns(frame: mt.Frame) -> tuple[Floats, Floats]:
    """Return the returns (n, 3) of ``base_link`` on recorded things above the ground, and their pixels (n, 2)."""
    rows, pixel, _ = returns_in(frame)
    xyz = frame.points_in("base_link")[rows, :3].astype(np.float64)
    distance = np.hypot(xyz[:, 0], xyz[:, 1])
    chosen = (xyz[:, 2] > _ABOVE_M[0]) & (xyz[:, 2] < _ABOVE_M[1]) & (distance > _NEAR_M[0]) & (distance < _NEAR_M[1])
    return xyz[chosen], pixel[chosen]


def real_things(frame: mt.Frame) -> Mask:
    """Return where (H, W) a picture shows recorded things, by the returns on them."""
    mask = np.zeros(np.asarray(frame.image).shape[:2], np.uint8)
    x, y = np.rint(real_returns(frame)[1]).astype(int).T
    mask[y, x] = 1
    return np.asarray(cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8)) != 0)


def hits_of(change: Change) -> Floats:
    """Return the returns (n, 3) of ``base_link`` that an added thing gives."""
    cloud = change.source.bundle.clouds[0]
    xyz = np.asarray(change.effects.added_points.get(cloud.topic, np.zeros((0, 3))), np.float64)
    return move(np.asarray(change.source.bundle.transforms.lookup("base_link", cloud.frame_id)), xyz)


def hidden_from_camera(change: Change, hits_m: Floats) -> Mask:
    """Return which hits (n, 3) of ``base_link`` a nearer return may hide from the camera, though the LiDAR sees them.

    A beam that passes beside a return passes it at its distance, and ends behind it, at two places of the picture.
    What lies between the two, and a return's own width, may hide the end.
    """
    frame, image, cloud = change.source, change.source.bundle.images[0], change.source.bundle.clouds[0]
    _, near_px, near_m = in_picture(frame, cloud.xyz, cloud.frame_id)
    lookup, camera = frame.bundle.transforms.lookup, camera_of(frame)
    sensor_m = np.asarray(lookup(image.frame_id, cloud.frame_id))[:3, 3]
    ends_m = move(np.asarray(lookup(image.frame_id, "base_link")), hits_m)
    hidden = np.zeros(len(hits_m), bool)
    for number, (end_m, pixel) in enumerate(zip(ends_m, camera.project(ends_m), strict=True)):
        before = near_m < np.linalg.norm(end_m) - _BEFORE_M
        some = np.flatnonzero(before & (np.abs(near_px - pixel).max(axis=1) < _PARALLAX_PX))
        along = (end_m - sensor_m) / np.linalg.norm(end_m - sensor_m)
        part = along @ sensor_m
        with np.errstate(invalid="ignore"):  # no beam is so near
            reach_m = np.sqrt(part * part - sensor_m @ sensor_m + near_m[some] ** 2) - part
            passes = np.linalg.norm(camera.project(sensor_m + along * reach_m[:, None]) - pixel, axis=1)
            hidden[number] = (np.linalg.norm(near_px[some] - pixel, axis=1) <= passes + _RETURN_PX).any()
    return hidden
