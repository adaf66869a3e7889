# SPDX-License-Identifier: Apache-2.0
"""Whether fog makes a camera detector fail where plain physics does: verdicts of two renderings of the same fog.

The first is the mutation's. The second is Koschmieder's law at the ranges of LiDAR returns, with no depth of the
package: a box that the detector finds in clear air is one surface at the median range of its returns, and every other
pixel is as far away as the return that lies nearest in the picture. A box that only the mutation's picture loses is an
artefact of its depth; one that only the plain picture loses is damage that the mutation hides. A third picture is the
plain one with samples one step up or down: as often as its verdict differs, the detector is unsure by itself.
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
from mt_nodes.data.messages import Image
from mt_nodes.data.verdict import Outcome
from mt_nodes.stacks.callables import load_callable
from mt_nodes.stacks.stack import load_stack

Floats = npt.NDArray[np.float64]
Pixels = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int64]
FIGURES = Path(__file__).with_name("fog_agreement.json")
VISIBILITIES_M = (60.0, 150.0, 400.0)
#: Boxes so high are demanded: those of cars within some 30 m on pictures of 375 lines.
LEAST_HEIGHT_PX = 40.0
#: Contrast of 5 % at the visibility (World Meteorological Organization, meteorological optical range).
_LN20 = float(np.log(20.0))
#: Samples to light, as nearly as the mutation's own: sRGB is within 2 % of it.
_GAMMA = 2.2
GOAL_PERCENT = 95.0


@dataclass(frozen=True)
class FogPair:
    """One frame in fog, twice.

    Attributes:
        verdicts: of the mutation's picture, of the plain one, and of the plain one with other last bits.
        demanded: boxes of the source. lost: those that each picture loses, by their edges in pixels.
    """

    stack: str
    visibility_m: float
    frame: int
    verdicts: tuple[str, ...]
    demanded: int
    lost: tuple[tuple[Any, ...], ...]


def plain_fog(changed: mt.ChangedFrame, visibility_m: float, boxes_px: Floats) -> Pixels:
    """Return the source picture (H, W, 3) RGB in fog by Koschmieder's law: I e^(-αr) + A (1 - e^(-αr)), α = ln 20 / V.

    A is fitted to the changed picture where returns lie: the same air, so that verdicts differ by the range r alone.

    Args:
        boxes_px: (M, 4) left, upper, right, lower edges of what is one surface at the median range of its returns.
    """
    _, place, range_m = returns_in(changed.source)
    pixel = np.rint(place).astype(np.int64)
    source, fogged = (np.asarray(f.image, np.float64) / 255.0 for f in (changed.source, changed))
    source, fogged = source**_GAMMA, fogged**_GAMMA
    passes = np.exp(-_LN20 / visibility_m * range_m)[:, None]
    x, y = pixel.T
    air = np.median((fogged[y, x] - passes * source[y, x])[passes[:, 0] < 0.7] / (1.0 - passes[passes[:, 0] < 0.7]), 0)
    share = np.exp(-_LN20 / visibility_m * plain_range_m(pixel, range_m, source.shape[:2], boxes_px))[..., None]
    light = source * share + np.clip(air, 0.0, 1.0) * (1.0 - share)
    return np.rint(255.0 * light ** (1.0 / _GAMMA)).astype(np.uint8)


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
    detectors = {name: load_callable(load_stack(name)) for name in stacks}
    for visibility_m in VISIBILITIES_M:
        relation = relation_of(visibility_m, folder)
        for frame in frames:
            changed = mt.mutate(frame, relation)
            for name, detect in detectors.items():
                yield _judged(name, detect, changed, visibility_m, relation)


def _judged(name: str, detect: Any, changed: mt.ChangedFrame, visibility_m: float, relation: Path) -> FogPair:
    source = detect(np.asarray(changed.source.image))
    sure = np.asarray(source.box_px, np.float64)[np.asarray(source.score) >= load_stack(name).scores["boxes"].high]
    plain = plain_fog(changed, visibility_m, sure)
    step = np.random.default_rng(changed.index).integers(-1, 2, plain.shape)
    pictures = (np.asarray(changed.image), plain, np.clip(plain + step, 0, 255).astype(np.uint8))
    verdicts = [mt.judge(relation, source, detect(rgb), _showing(changed, rgb), stack=name) for rgb in pictures]
    return FogPair(
        Path(name).stem,
        visibility_m,
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
        ours, plain = (_lost_alone(decided, *arms) for arms in ((0, 1), (1, 0)))
        unsure = _lost_alone(decided, 1, 2) + _lost_alone(decided, 2, 1)
        found[stack] = {
            "pairs": float(len(of_stack)),
            "pairs decided": float(len(decided)),
            "pairs violated, ours": float(sum(p.verdicts[0] == Outcome.VIOLATED.value for p in decided)),
            "pairs violated, plain": float(sum(p.verdicts[1] == Outcome.VIOLATED.value for p in decided)),
            "pairs that agree, %": _percent(sum(p.verdicts[0] == p.verdicts[1] for p in decided), len(decided)),
            "boxes": float(boxes),
            "boxes lost in ours alone": float(ours),
            "boxes lost in the plain alone": float(plain),
            "boxes that agree, %": _percent(boxes - ours - plain, boxes),
            "boxes that agree with themselves, %": _percent(boxes - unsure, boxes),
        }
    return found


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
        if {*pair.lost[0]} != {*pair.lost[1]}:
            where = f"{pair.stack}, {pair.visibility_m:g} m, frame {pair.frame}"
            print(f"  {where}: ours loses {pair.lost[0]}, plain {pair.lost[1]}")
    if args.json:
        known = json.loads(args.json.read_text(encoding="utf-8")) if args.json.exists() else {}
        known[args.state] = {
            s: {k: None if np.isnan(v) else round(v, 2) for k, v in of.items()} for s, of in found.items()
        }
        args.json.write_text(json.dumps(known, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return int(not all(figures["boxes that agree, %"] >= GOAL_PERCENT for figures in found.values()))


if __name__ == "__main__":
    sys.exit(main())
