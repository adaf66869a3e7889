# SPDX-License-Identifier: Apache-2.0
"""Calibration that drifts: transforms and intrinsics that are wrong while the data are right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.transform import Rotation

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, CameraInfo
from mt_nodes.data.transforms import Matrix, Transform, TransformTree
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.stream.drift import DURATION, OVER, Drifting

#: What double precision and quaternions leave, far below any error worth a test.
_ANGLE_RAD, _PLACE_M, _PIXELS = 1e-7, 1e-6, 1e-6


@dataclass(frozen=True)
class CalibrationDrifted(Drifting):
    """Gives the stack a wrong pose of a sensor in the transforms, while all data stay as they are.

    T' = T E: E is the sensor's apparent pose relative to its true one, rotated by Rz(yaw) Ry(pitch) Rx(roll) and then
    moved, in the sensor's frame. That is how a vehicle is miscalibrated whose sensor was knocked, or whose mount moves
    with temperature; ``extrinsic_shifted`` is the same error seen in the data, with the transforms unchanged. Sensors
    drift gradually and are knocked out of place in service, which is why there is online calibration (J. Levinson and
    S. Thrun, "Automatic Online Calibration of Cameras and Lasers", RSS 2013); the default of 0.3 degrees is assumed.
    All sensors mounted on this one move along. Checks and other mutations know the true transforms: a stack that
    reports obstacles in another frame reports them displaced by the error, which a check must tolerate or demand.
    Over ROS topics transforms go out as recorded; such runs are refused.

    Guaranteed: the pose in its parent's frame differs by exactly the error; no other transform and no message changes.
    """

    about_transforms = True
    sensors = ("lidar", "camera")

    frame: str = param("", help="frame of the sensor; empty: that of the first cloud, else of the first picture")
    roll_deg: float = param(0.0, low=-30.0, high=30.0, unit="deg", neutral=0.0, help="about the sensor's x axis")
    pitch_deg: float = param(0.0, low=-30.0, high=30.0, unit="deg", neutral=0.0, help="about its y axis")
    yaw_deg: float = param(0.3, low=-180.0, high=180.0, unit="deg", neutral=0.0, help="about its z axis")
    x_m: float = param(0.0, low=-2.0, high=2.0, unit="m", neutral=0.0, help="along its x axis")
    y_m: float = param(0.0, low=-2.0, high=2.0, unit="m", neutral=0.0, help="along its y axis")
    z_m: float = param(0.0, low=-2.0, high=2.0, unit="m", neutral=0.0, help="along its z axis")
    over: str = param("constant", **OVER)
    duration_s: float = param(600.0, **DURATION)

    def __post_init__(self) -> None:
        if not self._full.any():
            raise UsageError("got no rotation and no translation, expected one of them")

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Determine the error at this instant: (6,) roll, pitch, yaw in degrees, x, y, z in metres."""
        frame = self._frame(bundle)
        if _edge(bundle.transforms, frame) is None:
            known = ", ".join(sorted(bundle.transforms.frames)) or "none"
            raise NotApplicable(f"no transform has '{frame}' as its child frame; frames: {known}")
        error = self._full * self.shares(bundle, state, 6)
        if not error.any():
            raise NotApplicable("the drift begins here: the error is still 0")
        return {"frame": frame, "error": error}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Replace the one transform of the tree that is published."""
        given = bundle.transforms.given
        edge = _edge(given, draw["frame"])
        assert edge is not None, "draw found it"
        wrong = replace(edge, matrix=edge.matrix @ _pose(draw["error"]))
        numbers = dict(
            zip(("roll_deg", "pitch_deg", "yaw_deg", "x_m", "y_m", "z_m"), draw["error"].tolist(), strict=True)
        )
        changed = replace(bundle, transforms=bundle.transforms.given_as(given.extended([wrong])))
        return Followup(((0, changed),), Effects(numbers=numbers))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Compare rotation vectors and the sensor's origin, and see that the rest is the same object."""
        if [delay for delay, _ in followup.bundles] != [0]:
            return f"{len(followup.bundles)} bundles, expected one at once"
        new = followup.first
        if new.changed_topics(source) or new.wires is not source.wires:
            return "more changed than the transforms that the stack is given"
        if new.transforms.other_than(source.transforms) or source.transforms.other_than(new.transforms):
            return "the true transforms changed, too"
        before, after = source.transforms.given, new.transforms.given
        if [t.child for t in after.other_than(before)] != [draw["frame"]] or len(after.transforms) != len(
            before.transforms
        ):
            return f"got {[t.child for t in after.other_than(before)]} changed, expected '{draw['frame']}' alone"
        return self._differs_by(_edge(before, draw["frame"]), _edge(after, draw["frame"]), draw["error"])

    @staticmethod
    def _differs_by(old: Transform | None, new: Transform | None, error: Floats) -> str | None:
        """Compare two poses with an error by quaternions: their turn is the product of three about single axes."""
        if old is None or new is None or (old.parent, old.static) != (new.parent, new.static):
            return "the transform has another parent, or none"
        turns = [
            Rotation.from_rotvec(axis * np.radians(angle)) for axis, angle in zip(np.eye(3), error[:3], strict=True)
        ]
        expected = Rotation.from_matrix(old.matrix[:3, :3]) * turns[2] * turns[1] * turns[0]
        off_rad = (expected.inv() * Rotation.from_matrix(new.matrix[:3, :3])).magnitude()
        moved = old.matrix[:3, :3].T @ (new.matrix[:3, 3] - old.matrix[:3, 3])
        off_m = float(np.linalg.norm(moved - error[3:]))
        wrong = off_rad > _ANGLE_RAD or off_m > _PLACE_M
        return f"the pose is off by {off_rad:.2g} rad and {off_m:.2g} m from the error" if wrong else None

    @property
    def _full(self) -> Floats:
        return np.array([self.roll_deg, self.pitch_deg, self.yaw_deg, self.x_m, self.y_m, self.z_m])

    def _frame(self, bundle: Bundle) -> str:
        frames = [*(cloud.frame_id for cloud in bundle.clouds), *(image.frame_id for image in bundle.images)]
        if not self.frame and not frames:
            raise NotApplicable(f"bundle {bundle.index} has no cloud and no picture")
        return (self.frame or frames[0]).lstrip("/")


def _edge(tree: TransformTree, frame: str) -> Transform | None:
    return next((t for t in tree.transforms if t.child == frame), None)


def _pose(error: Floats) -> Matrix:
    """Return the 4×4 of roll, pitch, yaw in degrees and x, y, z in metres (6,)."""
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_euler("xyz", error[:3], degrees=True).as_matrix()
    matrix[:3, 3] = error[3:]
    return matrix


@dataclass(frozen=True)
class IntrinsicsDrifted(Drifting):
    """Gives the stack wrong intrinsics of its cameras, while the pictures stay as they are.

    fx' = (1 + focal) fx and fy likewise, cx' = cx + right · W, cy' = cy + down · H, k1' = k1 + distortion: K' = A K and
    P' = A P. A lens refocuses and its mount expands with temperature: M. J. Smith and E. Cope, "The effects of
    temperature variation on single-lens-reflex digital camera calibration parameters" (ISPRS Archives XXXVIII-5, 2010),
    measured changes of the focal length and the principal point; a thousandth of the focal length is assumed here.

    Guaranteed: every calibrated direction comes to lie where the stated change of the intrinsics puts it; pictures and
    everything else are unchanged.
    """

    sensors: ClassVar[tuple[str, ...]] = ("camera",)

    focal: float = param(0.001, low=-0.2, high=0.2, neutral=0.0, help="change of the focal lengths, as a share")
    right: float = param(0.0, low=-0.2, high=0.2, neutral=0.0, help="shift of the principal point, share of the width")
    down: float = param(0.0, low=-0.2, high=0.2, neutral=0.0, help="the same downward, share of the height")
    distortion: float = param(0.0, low=-0.5, high=0.5, neutral=0.0, help="added to the first radial coefficient")
    over: str = param("constant", **OVER)
    duration_s: float = param(600.0, **DURATION)

    def __post_init__(self) -> None:
        if not self._full.any():
            raise UsageError("got no change of focal length, principal point or distortion, expected one of them")

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Determine the error at this instant: (4,) focal, right, down, distortion."""
        if not bundle.camera_infos:
            raise NotApplicable(f"bundle {bundle.index} has no CameraInfo")
        if self.distortion and (bare := next((i for i in bundle.camera_infos if not len(i.d)), None)) is not None:
            raise NotApplicable(f"{bare.topic} has no distortion coefficients to change")
        if (blank := next((i for i in bundle.camera_infos if i.k[0, 0] == 0.0), None)) is not None:
            raise NotApplicable(f"{blank.topic} is not calibrated: its focal length is 0")
        error = self._full * self.shares(bundle, state, 4)
        if not error.any():
            raise NotApplicable("the drift begins here: the error is still 0")
        return {"error": error}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every CameraInfo."""
        infos = tuple(drifted_info(info, draw["error"]) for info in bundle.camera_infos)
        numbers = dict(zip(("focal", "right", "down", "distortion"), draw["error"].tolist(), strict=True))
        return Followup(((0, replace(bundle, camera_infos=infos)),), Effects(numbers=numbers))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Project directions by the old and the new matrices, and compare with the stated change."""
        if [delay for delay, _ in followup.bundles] != [0]:
            return f"{len(followup.bundles)} bundles, expected one at once"
        new = followup.first
        if others := new.changed_topics(source) - {info.topic for info in source.camera_infos}:
            return f"{', '.join(sorted(others))} changed, too"
        pairs = zip(source.camera_infos, new.camera_infos, strict=True)
        return next((f"{a.topic}: {broken}" for a, b in pairs if (broken := _wrong_info(a, b, draw["error"]))), None)

    @property
    def _full(self) -> Floats:
        return np.array([self.focal, self.right, self.down, self.distortion])


def drifted_info(info: CameraInfo, error: Floats) -> CameraInfo:
    """Return intrinsics with an error (4,): focal, right, down, distortion."""
    focal, right, down, distortion = error.tolist()
    change = np.diag([1.0 + focal, 1.0 + focal, 1.0])
    k, p = change @ info.k, change @ info.p
    for matrix, old in ((k, info.k), (p, info.p)):
        matrix[:2, 2] = old[:2, 2] + [right * info.width, down * info.height]
    d = info.d.copy()
    d[:1] += distortion
    return replace(info, k=k, p=p, d=d)


#: Directions that are projected, x and y over z, and a place behind a baseline.
_RAYS = np.array(
    [[0.0, 0.0, 1.0, 0.0], [0.5, 0.0, 1.0, 0.0], [0.0, 0.3, 1.0, 0.0], [-0.4, -0.2, 1.0, 0.0], [0, 0, 1, 1]]
)


def _wrong_info(old: CameraInfo, new: CameraInfo, error: Floats) -> str | None:
    focal, right, down, distortion = error.tolist()
    for name in ("topic", "stamp_ns", "frame_id", "width", "height", "distortion_model"):
        if getattr(old, name) != getattr(new, name):
            return f"{name} changed"
    d = [*(old.d[:1] + distortion).tolist(), *old.d[1:].tolist()]
    if not np.array_equal(old.r, new.r) or not np.allclose(new.d, d, atol=1e-12):
        return "rectification or distortion changed otherwise"
    middle = np.array([right * old.width, down * old.height])
    for before, after in ((old.k, new.k), (old.p, new.p)):
        rays = _RAYS[:, : before.shape[1]]
        was, now = (((m @ rays.T)[:2] / np.maximum((m @ rays.T)[2], 1e-9)).T for m in (before, after))
        expected = (was - before[:2, 2]) * (1.0 + focal) + before[:2, 2] + middle
        if not np.allclose(now, expected, atol=_PIXELS, rtol=1e-9):
            return f"a direction is projected {float(np.abs(now - expected).max()):.3g} px from where it should"
    return None
