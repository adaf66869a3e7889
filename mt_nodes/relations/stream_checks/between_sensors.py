# SPDX-License-Identifier: Apache-2.0
"""Checks between sensors that see the same place: two cameras, camera and LiDAR, radar and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.params import param
from mt_nodes.data.image_boxes import iou
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Detections, ImageBoxes
from mt_nodes.data.radar import Radar
from mt_nodes.data.radar_motion import sensor_motion
from mt_nodes.data.transforms import EGO_FRAME, UnknownTransform, move
from mt_nodes.relations.stream_checks.base import (
    Breach,
    LastingDisagreements,
    StreamCheck,
    StreamFinding,
    StreamMemory,
    WatchedInstant,
    nothing_watched,
)
from mt_nodes.relations.stream_checks.scene_facts import CalibratedCamera, camera_of, hidden_share, in_ego_frame

#: A disagreement about boxes that overlap so much is the same as in the instant before; about obstacles, so near.
_SAME_IOU, _SAME_M = 0.3, 2.5
_DEPTHS = 24
#: So much of an obstacle may be behind a nearer one, for the camera to be asked for it.
_HIDDEN = 0.2


def _alike(a: tuple[str, Floats], b: tuple[str, Floats]) -> bool:
    """Tell whether two disagreements (kind, place or box) are about one object."""
    if a[0] != b[0] or len(a[1]) != len(b[1]):
        return False
    if len(a[1]) == 4:
        return bool(iou(a[1][None], b[1][None])[0, 0] >= _SAME_IOU)
    return bool(np.hypot(*(a[1] - b[1])[:2]) <= _SAME_M)


@dataclass(frozen=True)
class CamerasAgree(StreamCheck):
    """What one camera sees where two overlap, the other one sees, too.

    The corners of each box are put at every depth from ``nearest_m`` to ``farthest_m`` and projected into the other
    picture. If they are inside of it at all depths, by ``margin_px``, the box is demanded there: some box must overlap
    its projection at some depth by ``min_iou``. Boxes with ``score_high`` are demanded, those with ``score_low`` fulfil
    it. A disagreement counts once it has lasted for ``for_s``.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("boxes",), ("second camera",))
    because: ClassVar[str] = "Two cameras that look at one place show the same objects there."

    nearest_m: float = param(4.0, low=0.1, high=500.0, unit="m", help="least depth of an object")
    farthest_m: float = param(80.0, low=0.2, high=2000.0, unit="m", help="largest depth of an object")
    min_iou: float = param(0.3, low=0.01, high=1.0, help="overlap of a box and the projection of another camera's")
    margin_px: float = param(10.0, low=0.0, high=1000.0, unit="px", help="so far from the edge of the other picture")
    score_high: float = param(0.5, low=0.0, high=1.0, help="boxes with this score are demanded")
    score_low: float = param(0.2, low=0.0, high=1.0, help="boxes with this score fulfil it")
    least_px: float = param(24.0, low=1.0, high=1000.0, unit="px", help="boxes of this height or more are demanded")
    for_s: float = param(0.3, low=0.0, high=10.0, unit="s", help="a disagreement that lasts for so long counts")

    def begin(self) -> StreamMemory:
        """Return a memory without disagreements."""
        return _CamerasMemory(self)


class _CamerasMemory(StreamMemory):
    def __init__(self, check: CamerasAgree) -> None:
        self._check = check
        self._lasting = LastingDisagreements(round(check.for_s * 1e9), _alike)
        self._depths = 1.0 / np.linspace(1.0 / check.nearest_m, 1.0 / check.farthest_m, _DEPTHS)

    def look(self, instant: WatchedInstant) -> StreamFinding:
        seen = [(boxes, camera_of(boxes, instant.bundle)) for boxes in instant.boxes]
        if len(seen) < 2:
            return nothing_watched("boxes of one camera only" if seen else "no boxes")
        if unknown := [camera for _, camera in seen if isinstance(camera, str)]:
            return nothing_watched(unknown[0])
        watched, keys, texts = 0, [], []
        for one, camera in seen:
            for other, other_camera in seen:
                if one is other or isinstance(camera, str) or isinstance(other_camera, str):
                    continue
                count, lost, best = self._unseen(one, camera, other, other_camera)
                watched += count
                for row, overlap in zip(lost, best, strict=True):
                    keys.append((f"{one.frame_id}>{other.frame_id}", one.box_px[row]))
                    texts.append(
                        (f"a {one.label[row]} that camera {one.frame_id} sees is not seen by {other.frame_id}", overlap)
                    )
        breaches = [
            Breach(subject, None, round(texts[row][1], 3), self._check.min_iou, "IoU", texts[row][0], since_ns)
            for row, subject, since_ns in self._lasting.update(instant.stamp_ns, keys)
        ]
        return StreamFinding((None,) * watched, tuple(breaches), "" if watched else "no box that two cameras must see")

    def _unseen(
        self, one: ImageBoxes, camera: CalibratedCamera, other: ImageBoxes, other_camera: CalibratedCamera
    ) -> tuple[int, list[int], list[float]]:
        """Return how many boxes of one camera another must see, rows of those that it does not, and their overlap."""
        check, box = self._check, one.box_px
        rows = np.flatnonzero(one.finite & (one.score >= check.score_high) & (box[:, 3] - box[:, 1] >= check.least_px))
        rows = rows[camera.inside(box[rows], check.margin_px)]
        if not len(rows):
            return 0, [], []
        places = camera.at_depths(one.take(rows), self._depths)
        outlines = other_camera.around(places.reshape(-1, 4, 3)).reshape(len(rows), _DEPTHS, 4)
        demanded = other_camera.inside(outlines, check.margin_px).all(axis=1)
        answers = other.take(other.finite & (other.score >= check.score_low))
        overlap = np.zeros(len(rows))
        if len(answers):
            each = iou(np.nan_to_num(outlines).reshape(-1, 4), answers.box_px)
            overlap = each.reshape(len(rows), -1).max(axis=1)
        lost = np.flatnonzero(demanded & (overlap < check.min_iou))
        return int(demanded.sum()), rows[lost].tolist(), overlap[lost].tolist()


@dataclass(frozen=True)
class CameraAgreesWithLidar(StreamCheck):
    """An obstacle has a box in the image where it projects to, and a box an obstacle behind it.

    Demanded is what is of the classes that both find (``classes``), within ``within_m``, wholly in the picture, and not
    behind a nearer obstacle. Enough is an object of any class: a rider is a person for one and a cyclist for the other.
    Demanded are scores from ``score_high``, enough are ``score_low``. ``demand`` says which way: what the LiDAR finds
    the camera finds (``boxes``), the reverse (``detections``), or ``both``. A disagreement counts once it has lasted
    for ``for_s``.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("boxes",), ("detections", "tracks"))
    because: ClassVar[str] = "Camera and LiDAR look at one world: an object that is there is there for both."

    classes: tuple[str, ...] = param(("pedestrian",), help="classes that camera and LiDAR both find")
    demand: str = param("both", choices=("both", "boxes", "detections"), help="what must be there")
    within_m: float = param(25.0, low=0.0, high=500.0, unit="m", help="obstacles so near count")
    min_iou: float = param(0.2, low=0.01, high=1.0, help="overlap of box and projected obstacle")
    margin_px: float = param(10.0, low=0.0, high=1000.0, unit="px", help="so far from the edge of the picture")
    score_high: float = param(0.5, low=0.0, high=1.0, help="obstacles and boxes with this score are demanded")
    score_low: float = param(0.2, low=0.0, high=1.0, help="with this score they fulfil it")
    least_px: float = param(40.0, low=1.0, high=5000.0, unit="px", help="boxes of this height or more are demanded")
    for_s: float = param(0.3, low=0.0, high=10.0, unit="s", help="a disagreement that lasts for so long counts")

    def begin(self) -> StreamMemory:
        """Return a memory without disagreements."""
        return _CameraLidarMemory(self)


class _CameraLidarMemory(StreamMemory):
    def __init__(self, check: CameraAgreesWithLidar) -> None:
        self._check = check
        self._lasting = LastingDisagreements(round(check.for_s * 1e9), _alike)

    def look(self, instant: WatchedInstant) -> StreamFinding:
        detections = instant.output.detections if instant.output.detections is not None else instant.output.tracks
        if detections is None or not instant.boxes:
            return nothing_watched("no detections" if detections is None else "no boxes")
        found = in_ego_frame(detections.take(detections.score >= self._check.score_low), instant.bundle)
        if isinstance(found, str):
            return nothing_watched(found)
        ranges: list[float | None] = []
        keys, texts, why = [], [], "no obstacle or box of these classes in the picture"
        for boxes in instant.boxes:
            camera = camera_of(boxes, instant.bundle)
            if isinstance(camera, str):
                why = camera
                continue
            seen = boxes.take(boxes.finite & (boxes.score >= self._check.score_low))
            for range_m, key, text in self._compared(found, seen, camera):
                ranges.append(range_m)
                if key is not None:
                    keys.append(key)
                    texts.append((range_m, text))
        breaches = [
            Breach(subject, texts[row][0], 0.0, self._check.min_iou, "IoU", texts[row][1], since_ns)
            for row, subject, since_ns in self._lasting.update(instant.stamp_ns, keys)
        ]
        return StreamFinding(tuple(ranges), tuple(breaches), "" if ranges else why)

    def _compared(
        self, found: Detections, boxes: ImageBoxes, camera: CalibratedCamera
    ) -> list[tuple[float | None, tuple[str, Floats] | None, str]]:
        """Return of everything that is demanded: range, the disagreement about it (None: they agree), and its text."""
        check, outlines = self._check, camera.outlines(found)
        range_m = np.hypot(*found.center_m[:, :2].T)
        wholly = camera.inside(outlines, check.margin_px)
        overlap = iou(np.nan_to_num(outlines), boxes.box_px)
        result: list[tuple[float | None, tuple[str, Floats] | None, str]] = []
        if check.demand != "detections":
            high = outlines[:, 3] - outlines[:, 1] >= check.least_px
            asked = wholly & (found.score >= check.score_high) & (range_m <= check.within_m) & high
            asked &= np.isin(found.label, check.classes) & (hidden_share(outlines, range_m) <= _HIDDEN)
            for row in np.flatnonzero(asked):
                agrees = bool((overlap[row] >= check.min_iou).any())
                text = (
                    f"a {found.label[row]} that the LiDAR finds at {range_m[row]:.1f} m has no box in {boxes.frame_id}"
                )
                result.append((float(range_m[row]), None if agrees else ("no box", found.center_m[row]), text))
        if check.demand != "boxes":
            inside = camera.inside(boxes.box_px, check.margin_px) & (boxes.score >= check.score_high)
            inside &= boxes.box_px[:, 3] - boxes.box_px[:, 1] >= check.least_px
            inside &= np.isin(boxes.label, check.classes)
            for row in np.flatnonzero(inside):
                agrees = bool((overlap[:, row] >= check.min_iou).any())
                text = f"a {boxes.label[row]} with a box in {boxes.frame_id} is no obstacle for the LiDAR"
                result.append((None, None if agrees else ("no obstacle", boxes.box_px[row]), text))
        return result


@dataclass(frozen=True)
class RadarAgreesWithBoxes(StreamCheck):
    """The speed that the stack gives an obstacle is, along the ray, the one that the radar measured there.

    Compared are obstacles with a velocity and ``least_returns`` radar detections in their box, ``around_m`` larger: the
    median of the range rates without the radar's own motion, which what stands tells (Kellner et al., ITSC 2013), and
    the radial part of the velocity over ground. To ``relative`` ``velocities`` the own motion is added.
    A disagreement counts once it has lasted for ``for_s``.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("detections", "tracks"), ("radar",))
    because: ClassVar[str] = "A radar measures radial speeds: what drives along a ray does so for every sensor."

    velocities: str = param(
        "ground", choices=("ground", "relative"), help="what the stack's velocities are relative to"
    )
    by_at_most_mps: float = param(1.5, low=0.01, high=50.0, unit="m/s", help="most that the two may differ")
    around_m: float = param(0.5, low=0.0, high=5.0, unit="m", help="radar detections so near to a box are the object's")
    least_returns: int = param(1, low=1, high=100, help="so many radar detections must be there")
    for_s: float = param(0.3, low=0.0, high=10.0, unit="s", help="a disagreement that lasts for so long counts")

    def begin(self) -> StreamMemory:
        """Return a memory without disagreements."""
        return _RadarMemory(self)


class _RadarMemory(StreamMemory):
    def __init__(self, check: RadarAgreesWithBoxes) -> None:
        self._check = check
        self._lasting = LastingDisagreements(round(check.for_s * 1e9), _alike)

    def look(self, instant: WatchedInstant) -> StreamFinding:
        output = instant.output
        detections = output.detections if output.detections is not None else output.tracks
        if detections is None or not instant.bundle.radars:
            return nothing_watched("no detections" if detections is None else "no radar message")
        moving = np.asarray(np.isfinite(detections.velocity_mps[:, :2]).all(axis=1))
        found = in_ego_frame(detections.take(moving), instant.bundle)
        if isinstance(found, str) or not len(found):
            return nothing_watched(found if isinstance(found, str) else "no obstacle with a velocity")
        ranges: list[float | None] = []
        keys, texts, why = [], [], "no radar detection in a box"
        for radar in instant.bundle.radars:
            rows, off, reason = self._off_mps(found, radar, instant.bundle)
            why = reason or why
            for row, value in zip(rows, off, strict=True):
                range_m = float(np.hypot(*found.center_m[row, :2]))
                ranges.append(range_m)
                if abs(value) > self._check.by_at_most_mps:
                    keys.append(("speed", found.center_m[row]))
                    texts.append((range_m, abs(value), str(found.label[row])))
        return StreamFinding(tuple(ranges), tuple(self._breaches(instant.stamp_ns, keys, texts)), "" if ranges else why)

    def _breaches(
        self, stamp_ns: int, keys: list[tuple[str, Floats]], texts: list[tuple[float, float, str]]
    ) -> list[Breach]:
        breaches = []
        for row, subject, since_ns in self._lasting.update(stamp_ns, keys):
            range_m, off, label = texts[row]
            reason = (
                f"the radial speed of a {label} at {range_m:.1f} m is {off:.1f} m/s off what the radar measured there"
            )
            bound = self._check.by_at_most_mps
            breaches.append(Breach(subject, range_m, round(off, 3), bound, "m/s", reason, since_ns))
        return breaches

    def _off_mps(self, found: Detections, radar: Radar, bundle: Bundle) -> tuple[Sequence[int], Sequence[float], str]:
        """Return rows of obstacles with radar detections, how far their speeds are off, or why there are none."""
        own = sensor_motion(radar)
        if own is None:
            return (), (), "the radar's own motion is not known: too few of its detections stand"
        try:
            to_ego = bundle.transforms.lookup(EGO_FRAME, radar.frame_id)
        except UnknownTransform as error:
            return (), (), str(error)
        places = move(to_ego, radar.xyz)
        rays = places - to_ego[:3, 3]
        rays /= np.maximum(np.linalg.norm(rays, axis=1, keepdims=True), 1e-6)
        axes = to_ego[:3, :3] @ np.array([*own.velocity_mps, 0.0])
        over_ground = radar.doppler_mps + rays @ axes
        velocity = np.where(np.isfinite(found.velocity_mps), found.velocity_mps, 0.0)
        if self._check.velocities == "relative":
            velocity = velocity + axes
        rows, off = [], []
        for row in range(len(found)):
            inside = _in_box(places, found, row, self._check.around_m)
            if inside.sum() >= self._check.least_returns:
                ray = rays[inside].mean(axis=0)
                rows.append(row)
                off.append(float(velocity[row] @ ray - np.median(over_ground[inside])))
        return rows, off, ""


def _in_box(places: Floats, found: Detections, row: int, around_m: float) -> Mask:
    """Return which places (N, 3) are in an obstacle's box, seen from above."""
    c, s = np.cos(found.yaw_rad[row]), np.sin(found.yaw_rad[row])
    local = places[:, :2] - found.center_m[row, :2]
    half = 0.5 * found.size_m[row, :2] + around_m
    along, across = local @ np.array([c, s]), local @ np.array([-s, c])
    return np.asarray((np.abs(along) <= half[0]) & (np.abs(across) <= half[1]))
