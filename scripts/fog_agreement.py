# SPDX-License-Identifier: Apache-2.0
"""Whether fog makes a camera detector fail where plain physics does: verdicts of three renderings of the same fog.

The first is the mutation's. The second, *plain*, is Koschmieder's law at the ranges of LiDAR returns over the source
picture, with no depth of the package: a box that the detector finds in clear air is one surface at the median range of
its returns, and every other pixel is as far away as the return that lies nearest in the picture. So the sky is as near
as what is below it, the sun still shines, and no lamp glows. The third, *at LiDAR range*, is the same law at the same
ranges in the mutation's light: without the sun's part that its fog takes away, in its air, with its glow of lamps; and
it is the mutation's picture where no return lies near, for there the law has no range. It differs from the mutation by
depth alone. A box that only the mutation's picture loses is an artefact of its depth; one that only the third loses is
damage that the mutation hides.

A detector in fog is near its threshold, so boxes flip by themselves. How often is measured on the third picture: with
samples one step up or down, shifted by one pixel, and at a visibility of 5 % more. A box is *sure* if each picture and
each of these copies of it say the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import yaml
from picture_changes import returns_in

import mt_nodes as mt
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Image
from mt_nodes.data.verdict import Outcome
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.air_in_pictures import air_light
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.relations.mutations.joint.fog_dust_smoke import Fog
from mt_nodes.relations.mutations.joint.weather_light import WeatherLight
from mt_nodes.stacks.callables import load_callable
from mt_nodes.stacks.stack import load_stack

Floats = npt.NDArray[np.float64]
Pixels = npt.NDArray[np.uint8]
Singles = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
FIGURES = Path(__file__).with_name("fog_agreement.json")
VISIBILITIES_M = (40.0, 80.0, 200.0)
#: Boxes so high are demanded: those of cars within some 30 m on pictures of 375 lines.
LEAST_HEIGHT_PX = 40.0
#: Contrast of 5 % at the visibility (World Meteorological Organization, meteorological optical range).
_LN20 = float(np.log(20.0))
#: Samples to light, as nearly as the mutation's own: sRGB is within 2 % of it.
_GAMMA = 2.2
#: A return this near in the picture says how far a pixel is: rings of an HDL-64E are some 8 pixels apart at 375 lines.
_COVERED_PX = 12.0
_WIDER = 1.05
#: Pictures in their order: names of the first three, and copies of the first and the third.
OURS, PLAIN, AT_RANGE = range(3)
COPIES = {"one step": (3, AT_RANGE), "one pixel": (4, AT_RANGE), "5 % of visibility": (5, AT_RANGE)}
_OUR_COPIES = (6, 7)
GOAL_PERCENT = 95.0


@dataclass(frozen=True)
class FogPair:
    """One frame in fog, several times.

    Attributes:
        verdicts: of each picture: see :data:`OURS`, :data:`COPIES`.
        demanded: boxes of the source. lost: those that each picture loses, by their edges in pixels.
    """

    stack: str
    visibility_m: float
    frame: int
    verdicts: tuple[str, ...]
    demanded: int
    lost: tuple[tuple[Any, ...], ...]


def pictures_in_fog(changed: mt.ChangedFrame, light: FogLight, boxes_px: Floats) -> list[Pixels]:
    """Return the pictures (H, W, 3) RGB of a frame in fog: I e^(-αr) + A (1 - e^(-αr)), α = ln 20 / V.

    A of the plain one is fitted to the changed picture where returns lie.

    Args:
        boxes_px: (M, 4) left, upper, right, lower edges of what is one surface at the median range of its returns.
    """
    _, place, own_m = returns_in(changed.source)
    pixel = np.rint(place).astype(np.int64)
    ours, size = np.asarray(changed.image), np.asarray(changed.image).shape[:2]
    range_m, covered = plain_range_m(pixel, own_m, size, boxes_px), near_return(pixel, size)
    source, passes = _light(np.asarray(changed.source.image)), np.exp(-_LN20 / light.visibility_m * own_m)
    plain = _law(source, _fitted_air(source, _light(ours), pixel, passes), light.visibility_m, range_m)
    at_range, farther = (
        np.where(covered[..., None], light.at(more * light.visibility_m, range_m), ours) for more in (1.0, _WIDER)
    )
    step = np.random.default_rng(changed.index).integers(-1, 2, plain.shape)
    copies = [
        _stepped(at_range, step),
        np.roll(at_range, 1, axis=1),
        farther,
        _stepped(ours, step),
        np.roll(ours, 1, 1),
    ]
    return [ours, plain, at_range, *copies]


def _light(rgb: Pixels) -> Singles:
    return np.asarray(cv2.pow(rgb.astype(np.float32) / np.float32(255.0), _GAMMA))


def _law(source: Singles, air: Floats, visibility_m: float, range_m: Floats, glow: Singles | float = 0.0) -> Pixels:
    share = np.exp(-_LN20 / visibility_m * range_m).astype(np.float32)[..., None]
    light = source * share + np.clip(air, 0.0, 1.0).astype(np.float32) * (1.0 - share) + glow
    return np.rint(255.0 * cv2.pow(np.clip(light, 0.0, 1.0), 1.0 / _GAMMA)).astype(np.uint8)


def _fitted_air(source: Singles, fogged: Singles, pixel: Rows, passes: Floats) -> Floats:
    (x, y), far = pixel.T, passes < 0.7
    share = passes[far, None]
    return np.asarray(np.median((fogged[y, x][far] - share * source[y, x][far]) / (1.0 - share), axis=0))


def _stepped(rgb: Pixels, step: npt.NDArray[np.int64]) -> Pixels:
    return np.clip(rgb + step, 0, 255).astype(np.uint8)


class FogLight:
    """What the mutation says of light: the source without the sun's own, the air's, and the glow of lamps."""

    def __init__(self, changed: mt.ChangedFrame, visibility_m: float) -> None:
        self.visibility_m, self._fog = visibility_m, Fog(visibility_m=visibility_m, patchiness=0.0)
        bundle = changed.source.bundle
        self._view = View.of(bundle, bundle.images[0])
        self._air = air_light(self._view, self._fog.tint).astype(np.float64)
        light = WeatherLight(self._view, self._fog.direct)
        self._source = _light(np.asarray(self._view.picture.with_pixels(light.pixels()).rgb8()))
        self._dark = light.light

    def at(self, visibility_m: float, range_m: Floats) -> Pixels:
        """Return the picture (H, W, 3) in fog at ranges (H, W)."""
        around = surroundings(self._view)
        cells = cv2.resize(range_m, around.shape[::-1], interpolation=cv2.INTER_NEAREST)
        lamps = WeatherLight(self._view, self._fog.direct)
        lamps.lamps_in_air(np.exp(-_LN20 / visibility_m * cells))
        glow = np.moveaxis((lamps.light - self._dark).mean(axis=1), 0, -1)
        glow = cv2.resize(np.ascontiguousarray(glow), range_m.shape[::-1])
        return _law(self._source, self._air, visibility_m, range_m, glow)


def near_return(pixel: Rows, size: tuple[int, int]) -> Mask:
    """Return which pixels of a picture (height, width) have a return at pixels (N, 2) near by."""
    free = np.ones(size, np.uint8)
    free[pixel[:, 1], pixel[:, 0]] = 0
    return np.asarray(cv2.distanceTransform(free, cv2.DIST_L2, 5) <= _COVERED_PX)


def plain_range_m(pixel: Rows, range_m: Floats, size: tuple[int, int], boxes_px: Floats) -> Floats:
    """Return the range (H, W) of each pixel by returns at pixels (N, 2), in boxes at most their inner half's median."""
    whole = nearest_m(pixel, range_m, size)
    for left, top, right, bottom in boxes_px:
        middle, half = np.array([left + right, top + bottom]) / 2.0, np.array([right - left, bottom - top]) / 4.0
        inner = range_m[(np.abs(pixel - middle) <= half).all(axis=1)]
        if len(inner):
            part = whole[max(round(top), 0) : round(bottom) + 1, max(round(left), 0) : round(right) + 1]
            np.minimum(part, np.median(inner), out=part)
    return whole


def nearest_m(pixel: Rows, range_m: Floats, size: tuple[int, int]) -> Floats:
    """Return for each pixel of a picture (height, width) the range of the return that lies nearest in it."""
    at = np.full(size, np.inf)
    np.minimum.at(at, (pixel[:, 1], pixel[:, 0]), range_m)
    free = (~np.isfinite(at)).astype(np.uint8)
    _, label = cv2.distanceTransformWithLabels(free, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    of_label = np.zeros(int(label.max()) + 1)
    of_label[label[free == 0]] = at[free == 0]
    return np.asarray(of_label[label])


def relation_of(visibility_m: float, folder: Path) -> Path:
    """Write the relation that judges fog of a visibility, and return its file."""
    path = folder / f"fog_{visibility_m:g}_boxes.yaml"
    relation = {
        "id": path.stem,
        "kind": "expected",
        "because": "Two renderings of the same fog are compared by it.",
        "requires": ["camera"],
        "mutate": [{"fog": {"visibility_m": visibility_m, "patchiness": 0.0}}],
        "check": {"boxes_kept": {"least_height_px": LEAST_HEIGHT_PX}},
    }
    path.write_text(yaml.safe_dump(relation), encoding="utf-8")
    return path


def fog_pairs(frames: Sequence[mt.Frame], stacks: Sequence[str], folder: Path) -> Iterator[FogPair]:
    """Yield every frame at every visibility for every stack, each judged on both pictures."""
    detectors: dict[str, tuple[Any, dict[int, Any]]] = {name: (load_callable(load_stack(name)), {}) for name in stacks}
    for visibility_m in VISIBILITIES_M:
        relation = relation_of(visibility_m, folder)
        for frame in frames:
            try:
                changed = mt.mutate(frame, relation)
            except NotApplicable as reason:
                print(f"{visibility_m:g} m, frame {frame.index}: no pair: {reason}")
                continue
            light = FogLight(changed, visibility_m)
            for name, (detect, sources) in detectors.items():
                if frame.index not in sources:
                    sources[frame.index] = detect(np.asarray(frame.image))
                yield _judged(name, detect, sources[frame.index], changed, light, relation)


def _judged(name: str, detect: Any, source: Any, changed: mt.ChangedFrame, light: FogLight, relation: Path) -> FogPair:
    sure = np.asarray(source.box_px, np.float64)[np.asarray(source.score) >= load_stack(name).scores["boxes"].high]
    pictures = pictures_in_fog(changed, light, sure)
    verdicts = [mt.judge(relation, source, detect(rgb), _showing(changed, rgb), stack=name) for rgb in pictures]
    return FogPair(
        Path(name).stem,
        light.visibility_m,
        changed.index,
        tuple(verdict.outcome.value for verdict in verdicts),
        int(verdicts[0].judgement.bound or 0),
        tuple(_edges(verdict) for verdict in verdicts),
    )


def _showing(changed: mt.ChangedFrame, rgb: Pixels) -> mt.ChangedFrame:
    image = changed.bundle.images[0]
    other = Image(image.topic, image.stamp_ns, image.frame_id, rgb, "rgb8")
    return replace(changed, bundle=replace(changed.bundle, images=(other,)))


def _edges(verdict: mt.FrameVerdict) -> tuple[Any, ...]:
    return tuple(tuple(round(float(edge)) for edge in place[:4]) for place in verdict.lost)


def agreement(made: Sequence[FogPair]) -> dict[str, dict[str, float]]:
    """Return the figures by stack: pairs and boxes that are decided, and how many of them in the same way.

    Boxes count: where a pair has many, both pictures lose one of them, and so the pairs agree whatever was drawn.
    """
    found = {}
    for stack in dict.fromkeys(pair.stack for pair in made):
        of_stack = [p for p in made if p.stack == stack]
        decided = [p for p in of_stack if {*p.verdicts} <= {Outcome.HOLDS.value, Outcome.VIOLATED.value}]
        boxes = sum(p.demanded for p in decided)
        figures = {
            "pairs": float(len(of_stack)),
            "pairs decided": float(len(decided)),
            "pairs violated, ours": float(sum(p.verdicts[OURS] == Outcome.VIOLATED.value for p in decided)),
            "pairs violated, plain": float(sum(p.verdicts[PLAIN] == Outcome.VIOLATED.value for p in decided)),
            "pairs violated, at LiDAR range": float(
                sum(p.verdicts[AT_RANGE] == Outcome.VIOLATED.value for p in decided)
            ),
            "pairs that agree, %": _percent(
                sum(p.verdicts[OURS] == p.verdicts[AT_RANGE] for p in decided), len(decided)
            ),
            "boxes": float(boxes),
            "boxes that agree with plain, %": _percent(boxes - _apart(decided, OURS, PLAIN), boxes),
            "boxes lost in ours alone": float(_lost_alone(decided, OURS, AT_RANGE)),
            "boxes lost at LiDAR range alone": float(_lost_alone(decided, AT_RANGE, OURS)),
            "boxes that agree, %": _percent(boxes - _apart(decided, OURS, AT_RANGE), boxes),
        }
        for name, (copy, of) in COPIES.items():
            figures[f"boxes that stay after {name}, %"] = _percent(boxes - _apart(decided, copy, of), boxes)
        sure, apart = _sure(decided)
        found[stack] = figures | {"sure boxes": float(sure), "sure boxes that agree, %": _percent(sure - apart, sure)}
    return found


def _sure(pairs: Sequence[FogPair]) -> tuple[int, int]:
    """Return how many boxes each copy of a picture shows like it, and how many of these ours and the law tell apart."""
    unsure, apart = 0, 0
    for pair in pairs:
        lost = [{*boxes} for boxes in pair.lost]
        flips = [lost[copy] ^ lost[of] for copy, of in COPIES.values()] + [lost[c] ^ lost[OURS] for c in _OUR_COPIES]
        doubtful = set().union(*flips)
        unsure += len(doubtful)
        apart += len((lost[OURS] ^ lost[AT_RANGE]) - doubtful)
    return sum(p.demanded for p in pairs) - unsure, apart


def _apart(pairs: Sequence[FogPair], arm: int, other: int) -> int:
    return _lost_alone(pairs, arm, other) + _lost_alone(pairs, other, arm)


def _lost_alone(pairs: Sequence[FogPair], arm: int, other: int) -> int:
    return sum(len({*pair.lost[arm]} - {*pair.lost[other]}) for pair in pairs)


def _percent(part: int, whole: int) -> float:
    """Return NaN for nothing: a detector that finds nothing agrees with nobody."""
    return 100.0 * part / whole if whole else float("nan")


def main() -> int:
    """Print and write the figures; return 1 if the boxes of a stack do not agree as often as they should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bag", type=Path, help="a recorded drive with LiDAR and camera")
    parser.add_argument("--stack", action="append", default=[], help="a camera detector (default: reference_yolo)")
    parser.add_argument("--state", default="now", help="what the figures are of: 'before' or 'now' (default)")
    parser.add_argument("--json", type=Path, help=f"put the figures into this file, such as {FIGURES.name}")
    args = parser.parse_args()
    frames = list(mt.frames(args.bag, sensors=("lidar", "camera")))
    with tempfile.TemporaryDirectory() as folder:
        made = list(fog_pairs(frames, args.stack or ["reference_yolo"], Path(folder)))
    found = agreement(made)
    for stack, figures in found.items():
        print(f"{stack}: " + ", ".join(f"{name} {value:.4g}" for name, value in figures.items()))
    for pair in made:
        ours, at_range = {*pair.lost[OURS]}, {*pair.lost[AT_RANGE]}
        if ours != at_range:
            where = f"{pair.stack}, {pair.visibility_m:g} m, frame {pair.frame}"
            print(f"  {where}: lost in ours alone {ours - at_range}, at LiDAR range alone {at_range - ours}")
    if args.json:
        known = json.loads(args.json.read_text(encoding="utf-8")) if args.json.exists() else {}
        known[args.state] = {
            s: {k: None if np.isnan(v) else round(v, 2) for k, v in of.items()} for s, of in found.items()
        }
        args.json.write_text(json.dumps(known, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return int(not all(figures["boxes that agree, %"] >= GOAL_PERCENT for figures in found.values()))


if __name__ == "__main__":
    sys.exit(main())
