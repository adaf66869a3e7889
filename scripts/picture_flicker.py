# SPDX-License-Identifier: Apache-2.0
"""How unsteady pictures and their depth are from frame to frame, with the ego's motion taken out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt
from physics import poses_by_icp
from picture_changes import LUMA, Change, Pixels, camera_of, hits_of, in_picture, real_returns

import mt_nodes as mt
from mt_nodes.data.effects import Effects
from mt_nodes.data.transforms import move
from mt_nodes.world.camera.depth import depth_of

Floats = npt.NDArray[np.float64]
Figures = dict[str, float]
Things = dict[str, list[Change]]
#: Depth differs visibly by more than this.
_DIFFERS = 0.1


def poses_of(frames: Sequence[mt.Frame]) -> dict[int, Floats]:
    """Return the pose (4, 4) of ``base_link`` by number of the frame, by ICP that the package does not use."""
    poses = poses_by_icp([frame.points_in("base_link")[:, :3].astype(np.float64) for frame in frames])
    return {frame.index: pose for frame, pose in zip(frames, poses, strict=True)}


def steps(made: Sequence[Change], poses: dict[int, Floats], points: Callable[[Change], Floats], old: bool) -> Floats:
    """Return how much the brightness of the same places differs from each frame to the next, in samples.

    Args:
        points: places (n, 3) of ``base_link`` in a frame, which stand still in the world.
        old: in the source's pictures, not in the changed ones.
    """
    found = [np.zeros(0)]
    for first, second in pairwise(made):
        if second.source.index != first.source.index + 1:
            continue
        xyz = points(first)
        then = move(np.linalg.inv(poses[second.source.index]) @ poses[first.source.index], xyz)
        rows, pixel, _ = in_picture(first.source, xyz, "base_link")
        again, there, _ = in_picture(second.source, then, "base_link")
        both, one, other = np.intersect1d(rows, again, return_indices=True)
        light = [_light(c.before if old else c.after, p) for c, p in ((first, pixel[one]), (second, there[other]))]
        found.append(np.abs(light[1] - light[0]) if len(both) else np.zeros(0))
    return np.concatenate(found)


def _light(rgb: Pixels, pixel: Floats) -> Floats:
    """Return the brightness (n,) of a picture at places (n, 2), over the width of a beam."""
    luma = cv2.GaussianBlur((rgb @ LUMA).astype(np.float32), (0, 0), 1.2)
    x, y = pixel.astype(np.float32).T
    return np.asarray(cv2.remap(luma, x[None], y[None], cv2.INTER_LINEAR)[0], np.float64)


def unsteady(made: Sequence[Change], poses: dict[int, Floats]) -> Figures:
    """How much recorded things change their brightness from frame to frame, after the change over before."""
    before, after = (steps(made, poses, lambda c: real_returns(c.source)[0], old) for old in (True, False))
    return {"flicker over the source's": _ratio(after, before)}


def _ratio(one: Floats, other: Floats) -> float:
    return float(np.mean(one) / max(float(np.mean(other)), 1e-6)) if len(one) and len(other) else float("nan")


def thing_flicker(frames: Sequence[mt.Frame], things: Things) -> Figures:
    """How much added things change their brightness from frame to frame, over recorded things; 1 is right."""
    poses = poses_of(frames)
    still = [Change(frame, frame.bundle, Effects()) for frame in frames]
    host = steps(still, poses, lambda c: real_returns(c.source)[0], True)
    found = {"of recorded things, samples": float(np.mean(host))}
    for kind, made in things.items():
        found[f"of {kind}, over recorded things'"] = _ratio(steps(made, poses, hits_of, False), host)
    return found


def depth_flicker(frames: Sequence[mt.Frame]) -> Figures:
    """How often the depth of a place differs by more than 10 % between a frame and the next, with the ego's motion."""
    poses, apart, measured = poses_of(frames), [], []
    maps = [depth_of(f.bundle, f.bundle.images[0], camera_of(f)) for f in frames]
    for first, second, old, new in zip(frames[:-1], frames[1:], maps[:-1], maps[1:], strict=True):
        grid = camera_of(first).grid(old.step_px)
        known = np.isfinite(old.range_m)
        to_base = np.asarray(first.bundle.transforms.lookup("base_link", first.bundle.images[0].frame_id))
        then = np.linalg.inv(poses[second.index]) @ poses[first.index]
        xyz = move(then, move(to_base, (grid * old.range_m[..., None])[known]))
        rows, pixel, range_m = in_picture(second, xyz, "base_link")
        column, row = np.clip(np.rint(pixel / new.step_px).astype(int), 0, np.array(new.range_m.shape)[::-1] - 1).T
        with np.errstate(divide="ignore"):
            apart.append(np.abs(np.log(new.range_m[row, column] / range_m)) > _DIFFERS)
        measured.append(old.measured[known][rows])
    differs, near = np.concatenate(apart), np.concatenate(measured)
    return {
        "differs, where a return lies, %": 100.0 * float(differs[near].mean()),
        "differs, elsewhere, %": 100.0 * float(differs[~near].mean()),
    }
