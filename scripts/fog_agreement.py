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

import numpy as np
import numpy.typing as npt
import yaml
from fog_pictures import AT_RANGE, COPIES, OUR_COPIES, OURS, PLAIN, FogLight, pictures_in_fog

import mt_nodes as mt
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Image
from mt_nodes.data.verdict import Outcome
from mt_nodes.stacks.callables import load_callable
from mt_nodes.stacks.stack import load_stack

Floats = npt.NDArray[np.float64]
Pixels = npt.NDArray[np.uint8]
FIGURES = Path(__file__).with_name("fog_agreement.json")
VISIBILITIES_M = (40.0, 80.0, 200.0)
#: Boxes so high are demanded: those of cars within some 30 m on pictures of 375 lines.
LEAST_HEIGHT_PX = 40.0
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
        flips = [lost[copy] ^ lost[of] for copy, of in COPIES.values()] + [lost[c] ^ lost[OURS] for c in OUR_COPIES]
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
