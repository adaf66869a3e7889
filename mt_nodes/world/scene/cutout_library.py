# SPDX-License-Identifier: Apache-2.0
"""Folders of cut-outs: written by ``mt models cutouts``, read by ``object_added``.

A cut-out is ``<name>.png`` (red, green, blue, opacity), ``<name>_depth.png`` (millimetres, 16 bits) and ``<name>.json``
(what it is, and how it was seen). Delete a ``.json`` to leave one out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError, NotApplicable, UsageError
from mt_nodes.world.camera.sun_direction import SunLight
from mt_nodes.world.scene.cutout_objects import MOST_ASIDE_RAD, Cutout
from mt_nodes.world.scene.objects import KINDS
from mt_nodes.world.scene.placement_solver import Place

#: A cut-out is enlarged at most so much: beyond that it is softer than the picture around it.
MOST_ENLARGED = 1.25
#: Farthest from above or below the recorded direction, in radians: as far aside as a car's roof stays plausible
#: (assumed).
MOST_ABOVE_RAD = float(np.radians(8.0))
#: What counts as much as the bounds do: a quarter of the size, and a sun from 90 degrees aside.
_FACTOR = 4.0
_MM = 1000.0


@dataclass(frozen=True)
class HostCamera:
    """The camera that is to see a cut-out: its place (3,) in the ego's frame, and its focal length (None: unknown)."""

    place_m: tuple[float, float, float]
    focal_px: float | None = None


@dataclass(frozen=True, eq=False)
class CutoutLibrary:
    """The cut-outs of a folder, in the order of their names."""

    folder: Path
    cutouts: tuple[Cutout, ...]

    @classmethod
    def at(cls, folder: str) -> CutoutLibrary:
        """Read a folder; cached while its files stay as they are.

        Raises UsageError: there is none, or none in it. InfrastructureError: a file is damaged.
        """
        files = sorted(Path(folder).glob("*.json"))
        if not files:
            raise UsageError(f"cutouts: got '{folder}', expected a folder of cut-outs; make one: mt models cutouts")
        return _read(folder, tuple((str(f), f.stat().st_mtime_ns) for f in files))

    def of(self, kind: str) -> tuple[Cutout, ...]:
        """Return those of a kind. Raises UsageError: there is none."""
        found = tuple(c for c in self.cutouts if c.kind == kind)
        if not found:
            kinds = sorted({c.kind for c in self.cutouts})
            raise UsageError(f"cutouts: '{self.folder}' has none of '{kind}'; it has {', '.join(kinds)}")
        return found

    def named(self, digest: str) -> Cutout:
        """Return one that a draw names. Raises UsageError: it is not there as it was."""
        for cutout in self.cutouts:
            if cutout.digest == digest:
                return cutout
        raise UsageError(f"cutouts: '{self.folder}' no longer has the cut-out {digest}; its files were changed")

    def choose(
        self, kind: str, places: Sequence[Place], turns: bool, camera: HostCamera, sun: SunLight | None, number: int = 0
    ) -> tuple[Cutout, list[Place]]:
        """Return the cut-out that fits the first place for which there is one, and all places that it fits.

        ``turns``: whether an object may be turned so that the camera sees its recorded side. ``number``: that one of
        the kind, 0 for any. Raises NotApplicable: none fits. UsageError: there is none of that kind or number.
        """
        own = self.of(kind)
        if number > len(own):
            raise UsageError(f"variant: got {number}, but '{self.folder}' has {len(own)} of '{kind}'")
        own = own[number - 1 : number] if number else own
        for place in places:
            fits = [(cost, c) for c in own if (cost := _cost(c, _turned(c, place, turns, camera), camera, sun)) <= 1.0]
            if fits:
                chosen = min(fits, key=lambda pair: pair[0])[1]
                turned = [_turned(chosen, p, turns, camera) for p in places]
                return chosen, [p for p in turned if _cost(chosen, p, camera, sun) <= 1.0]
        sides = ", ".join(f"{np.degrees(c.side_rad):.0f}" for c in own[:6])
        raise NotApplicable(
            f"none of the {len(own)} cut-outs of '{kind}' fits: recorded from {sides} degrees, each shown from up to "
            f"{np.degrees(MOST_ASIDE_RAD):.0f} degrees aside and {np.degrees(MOST_ABOVE_RAD):.0f} above, and up to "
            f"{MOST_ENLARGED:g} times as large"
        )


def aside_rad(cutout: Cutout, eye_m: Floats) -> tuple[float, float]:
    """Return how far aside and above a place (3,) of the object's frame is from where a cut-out was recorded."""
    side = float(np.arctan2(eye_m[1], eye_m[0])) - cutout.side_rad
    down = float(np.arctan2(eye_m[2], np.hypot(*eye_m[:2]))) - cutout.down_rad
    return abs(float(np.arctan2(np.sin(side), np.cos(side)))), abs(down)


def refusal(cutout: Cutout, eye_m: Floats, focal_px: float) -> str | None:
    """Return why a camera at a place (3,) of the object's frame cannot be shown a cut-out, None if it can."""
    aside, above = aside_rad(cutout, eye_m)
    for angle, most, where in ((aside, MOST_ASIDE_RAD, "aside of"), (above, MOST_ABOVE_RAD, "above or below")):
        if angle > most:
            return (
                f"would be seen {np.degrees(angle):.0f} degrees {where} where it was recorded from, allowed "
                f"{np.degrees(most):.0f}"
            )
    larger = cutout.pixel_m * focal_px / float(np.linalg.norm(eye_m))
    if larger > MOST_ENLARGED:
        return f"would be shown {larger:.2f} times as large as recorded, allowed {MOST_ENLARGED:g}"
    return None


def _turned(cutout: Cutout, place: Place, turns: bool, camera: HostCamera) -> Place:
    x, y, _ = place
    if not (turns or cutout.faces):
        return place
    towards = float(np.arctan2(camera.place_m[1] - y, camera.place_m[0] - x))
    return x, y, float(np.arctan2(np.sin(turned := towards - cutout.side_rad), np.cos(turned)))


def _cost(cutout: Cutout, place: Place, camera: HostCamera, sun: SunLight | None) -> float:
    """Return how far a cut-out is from what the camera would see at a place: above 1, it is not shown there."""
    x, y, yaw = place
    away = np.array(camera.place_m) - (x, y, 0.0)
    turn = np.array([[np.cos(yaw), np.sin(yaw), 0.0], [-np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]])
    aside, above = aside_rad(cutout, turn @ away)
    bounds = [aside / MOST_ASIDE_RAD, above / MOST_ABOVE_RAD]
    preferred = [0.0]
    if camera.focal_px is not None:
        smaller = float(np.linalg.norm(away)) / camera.focal_px / cutout.pixel_m
        if smaller * MOST_ENLARGED < 1.0:
            return 2.0
        preferred.append(abs(float(np.log(smaller))) / np.log(_FACTOR))
    preferred.append(_other_light(cutout, turn, sun))
    if max(bounds) > 1.0:
        return max(bounds)
    return min(1.0, float(np.mean([*bounds, *preferred])))


def _other_light(cutout: Cutout, turn: Floats, sun: SunLight | None) -> float:
    """Return 0 for light from the same side, 1 for light from a right angle or more aside; ``turn``: ego to object."""
    if cutout.to_sun is None or sun is None:
        return 0.0 if cutout.to_sun is None and sun is None else 0.5
    return 1.0 - max(0.0, float(cutout.to_sun @ (turn @ sun.to_sun)))


def write(cutout: Cutout, folder: Path, about: dict[str, Any]) -> None:
    """Write a cut-out; ``about``: where it comes from."""
    rgb, alpha = cutout.rgba[..., :3], cutout.rgba[..., 3:]
    cv2.imwrite(str(folder / f"{cutout.name}.png"), np.concatenate([rgb[..., ::-1], alpha], axis=-1))
    depth = np.rint(np.clip(cutout.depth_m * _MM, 0, 65535)).astype(np.uint16)
    cv2.imwrite(str(folder / f"{cutout.name}_depth.png"), depth)
    numbers = {
        "kind": cutout.kind,
        "focal_px": cutout.focal_px.tolist(),
        "center_px": cutout.center_px.tolist(),
        "to_object": cutout.to_object.tolist(),
        "white": cutout.white,
        "to_sun": None if cutout.to_sun is None else cutout.to_sun.tolist(),
        "faces": cutout.faces,
        "seen": {
            "range_m": float(np.linalg.norm(cutout.eye_m)),
            "side_deg": float(np.degrees(cutout.side_rad)),
            "down_deg": float(np.degrees(cutout.down_rad)),
            "camera_height_m": float(cutout.eye_m[2]),
        },
        "source": about,
    }
    (folder / f"{cutout.name}.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


@lru_cache(maxsize=4)
def _read(folder: str, files: tuple[tuple[str, int], ...]) -> CutoutLibrary:
    return CutoutLibrary(Path(folder), tuple(_read_one(Path(name)) for name, _ in files))


def _read_one(path: Path) -> Cutout:
    pictures = [path.with_suffix(".png"), path.with_name(f"{path.stem}_depth.png")]
    rgba, depth = (cv2.imread(str(p), cv2.IMREAD_UNCHANGED) for p in pictures)
    try:
        own = json.loads(path.read_text(encoding="utf-8"))
        if rgba is None or depth is None or rgba.shape[2:] != (4,) or rgba.shape[:2] != depth.shape[:2]:
            raise ValueError(f"{pictures[0].name} and {pictures[1].name} are no pictures of one size with opacity")
        if own["kind"] not in KINDS:
            raise ValueError(f"kind '{own['kind']}' is unknown")
        digest = sha256(b"".join(p.read_bytes() for p in (path, *pictures))).hexdigest()[:16]
        to_sun = None if own["to_sun"] is None else np.array(own["to_sun"], np.float64)
        rgba = np.ascontiguousarray(rgba[..., [2, 1, 0, 3]])
        focal, center, to_object = (np.array(own[k], np.float64) for k in ("focal_px", "center_px", "to_object"))
        white = float(own["white"])
        if to_object.shape != (4, 4) or not white > 0.0:
            raise ValueError("to_object is no matrix, or white is not above 0")
        return Cutout(
            path.stem, own["kind"], digest, rgba, depth.astype(np.float32) / np.float32(_MM), focal, center, to_object,
            white, to_sun, bool(own["faces"]),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise InfrastructureError(f"{path}: is no cut-out of `mt models cutouts`: {error}") from error
