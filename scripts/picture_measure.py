# SPDX-License-Identifier: Apache-2.0
"""Measures without a reference how well changed pictures pass for recorded ones: `make picture-figures ARGS=BAG`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from picture_changes import (
    LUMA,
    Broken,
    Change,
    Mask,
    Pixels,
    added_things,
    changes,
    hidden_from_camera,
    hits_of,
    in_picture,
    real_things,
)
from picture_features import COLOUR, EDGES, GRAIN, Windows, corners_in, joined, told_apart, windows
from picture_flicker import depth_flicker, poses_of, thing_flicker, unsteady
from picture_pairs import Operator, drive_of, operators
from picture_peers import described, installed, peers_of

import mt_nodes as mt

Floats = npt.NDArray[np.float64]
Figures = dict[str, float]
Things = dict[str, list[Change]]
FIGURES = Path(__file__).with_name("picture_figures.json")
#: Frames from the middle of the drive, one after the other; of whole pictures every so many count.
_FRAMES, _EVERY = 10, 3
#: Recorded things in one of so many directions are one group: what is learned from some must hold for the others.
_DIRECTIONS = 10
#: Windows of whole pictures, and which share of a picture's is enough.
_SIDE_PX, _STEP_PX = 32, 48
#: Classes of brightness in which grain is compared, and the quantile that stands for windows without texture.
_LUMA_BINS, _FLAT, _LEAST_WINDOWS = np.linspace(16.0, 240.0, 9), 0.1, 15
#: An edge is strong from this step between neighbours on.
_STRONG = 24.0
INVALID = "INVALID pairs"
#: Slopes, in samples a pixel, of an edge that is seen in the changed picture and of one that counts in the source; one
#: within so many pixels is the same.
_VISIBLE, _FAINT, _SAME_PX = 3.0, 2.0, 2


def thing_windows(things: Things) -> Windows:
    """Return windows of added things: a group for each kind."""
    parts = [
        windows(change.after, corners_in(change.silhouette()), group)
        for group, made in enumerate(things.values())
        for change in made
    ]
    return joined(parts)


def real_windows(frames: Sequence[mt.Frame]) -> Windows:
    """Return windows of recorded things: a group for each direction."""
    parts = []
    for frame in frames:
        corners = corners_in(real_things(frame))
        part = windows(np.asarray(frame.image), corners, 0)
        width = np.asarray(frame.image).shape[1]
        parts.append(Windows(part.features, part.names, corners[:, 1] * _DIRECTIONS // width))
    return joined(parts)


def things_told_apart(frames: Sequence[mt.Frame], things: Things) -> Figures:
    """How well a classifier tells added things from recorded ones; beside it, recorded ones from other recorded ones.

    What it judges, kinds and directions, it has not learned from. The second figure is what different contents alone
    come to: the first is bad by as much as it exceeds that.
    """
    real, added = real_windows(frames), thing_windows(things)
    found = {"windows, recorded": float(len(real.group)), "windows, added": float(len(added.group))}
    for name, groups in {"all": (GRAIN, EDGES, COLOUR), GRAIN: (GRAIN,), EDGES: (EDGES,), COLOUR: (COLOUR,)}.items():
        found[f"added from recorded, by {name}"] = told_apart(real, added, groups)
    found["recorded from recorded, by all"] = _among_real(real)
    return found


def _among_real(real: Windows) -> float:
    """Return the mean over halves of the directions, drawn five times."""
    rng, directions = np.random.default_rng(0), np.unique(real.group)
    values = []
    for _ in range(5):
        chosen = np.isin(real.group, rng.permutation(directions)[: len(directions) // 2])
        halves = [Windows(real.features[rows], real.names, real.group[rows]) for rows in (chosen, ~chosen)]
        values.append(told_apart(*halves))
    return float(np.mean(values))


def grain_of(rgb: Pixels, mask: Mask | None = None) -> Floats:
    """Return brightness and grain (n, 2) of the windows of a picture, or of those in a mask.

    Grain is the standard deviation of the residual of Fridrich and Kodovský's 5x5 filter, which a slope does not move.
    """
    corners = corners_in(np.ones(rgb.shape[:2], bool) if mask is None else mask)
    part = windows(rgb, corners, 0)
    first = part.names.index(COLOUR)
    return np.column_stack([part.features[:, first], np.sqrt(np.exp(part.features[:, 0]))])


def grain_ratio(changed: Floats, host: Floats) -> float:
    """Return the grain of changed windows over that of the host's at equal brightness, where neither has texture."""
    ratios = []
    for low, high in pairwise(_LUMA_BINS):
        both = [w[(w[:, 0] >= low) & (w[:, 0] < high), 1] for w in (changed, host)]
        if min(map(len, both)) >= _LEAST_WINDOWS:
            ratios.append(float(np.quantile(both[0], _FLAT) / max(np.quantile(both[1], _FLAT), 1e-3)))
    return float(np.median(ratios)) if ratios else float("nan")


def edge_width_px(rgb: Pixels, mask: Mask) -> float:
    """Return the median width of strong edges in a mask (H, W): the step between both sides over the steepest slope."""
    luma = (rgb @ LUMA).astype(np.float32)
    slope = np.hypot(cv2.Sobel(luma, -1, 1, 0), cv2.Sobel(luma, -1, 0, 1)) / 8.0
    size = np.ones((7, 7), np.uint8)
    crest = (slope >= cv2.dilate(slope, np.ones((3, 3), np.uint8))) & (slope > _STRONG / 2.0) & mask
    step = cv2.dilate(luma, size) - cv2.erode(luma, size)
    return float(np.median(step[crest] / slope[crest])) if crest.sum() >= _LEAST_WINDOWS else float("nan")


def thing_statistics(frames: Sequence[mt.Frame], things: Things) -> Figures:
    """Grain and width of edges of added things over those of recorded ones; 1 is right."""
    host = np.concatenate([grain_of(np.asarray(frame.image)) for frame in frames[::_EVERY]])
    width = np.nanmean([edge_width_px(np.asarray(f.image), real_things(f)) for f in frames[::_EVERY]])
    found = {}
    for kind, made in things.items():
        own = np.concatenate([grain_of(change.after, change.silhouette()) for change in made])
        found[f"grain of {kind} over the host's"] = grain_ratio(own, host)
        wide = [edge_width_px(c.after, _grown(c.silhouette())) for c in made]
        found[f"width of edges of {kind} over the host's"] = float(np.nanmedian(wide) / width)
    return found


def _grown(mask: Mask) -> Mask:
    return np.asarray(cv2.dilate(mask.astype(np.uint8), np.ones((5, 5), np.uint8)) != 0)


def whole_pictures(before: Sequence[Pixels], after: Sequence[Pixels]) -> Figures:
    """Return what tells changed pictures from recorded ones: frame by frame, each judged by trees that saw others.

    Windows are brought to one contrast, so that a change of light or contrast as a whole tells nothing.
    """
    corners = [corners_in(np.ones(p.shape[:2], bool), _SIDE_PX, _STEP_PX) for p in before]
    sets = [
        joined([windows(p, at, i, True, _SIDE_PX) for i, (p, at) in enumerate(zip(of, corners, strict=True))])
        for of in (before, after)
    ]
    host, changed = (np.concatenate([grain_of(p) for p in of]) for of in (before, after))
    new = [_new_edges(old, made) for old, made in zip(before, after, strict=True)]
    return {
        "told from recorded, by grain": told_apart(*sets, (GRAIN,)),
        "told from recorded, by edges": told_apart(*sets, (EDGES,)),
        "grain over the host's": grain_ratio(changed, host),
        "edges that the source has not, %": float(np.mean(new)),
    }


def _new_edges(old: Pixels, new: Pixels) -> float:
    """Return the share of edges of a changed picture, in %, where the source has none within some pixels.

    An edge of the source counts from two thirds of the strength on: light that is added may strengthen it.
    """
    slope = []
    for rgb in (old, new):
        luma = cv2.GaussianBlur((rgb @ LUMA).astype(np.float32), (0, 0), 1.0)
        slope.append(np.hypot(cv2.Sobel(luma, -1, 1, 0), cv2.Sobel(luma, -1, 0, 1)) / 8.0)
    near = cv2.dilate(slope[0], np.ones((2 * _SAME_PX + 1,) * 2, np.uint8)) > _FAINT
    strong = slope[1] > _VISIBLE
    return 100.0 * float((strong & ~near).sum() / max(int(strong.sum()), 1))


def by_operator(frames: Sequence[mt.Frame], chosen: Sequence[Operator], broken: Broken) -> dict[str, Figures]:
    """Return the figures of whole pictures by operator, ours and the peers', and how unsteady ours are."""
    poses, found = poses_of(frames), {}
    for operator in chosen:
        if operator.mutation.endswith(("_added", "_removed")):
            continue
        made = changes(frames, operator.mutation, operator.parameters, broken=broken)
        if len(made) < 2:
            print(f"{operator.name}: not measured: {len(made)} of {len(frames)} frames have a follow-up")
            continue
        some = made[::_EVERY] if len(made) > _EVERY else made
        before, after = [c.before for c in some], [c.after for c in some]
        found[operator.name] = whole_pictures(before, after) | unsteady(made, poses)
        for library, (name, run) in peers_of(operator.mutation).items():
            pictures = [run(np.ascontiguousarray(p)) for p in before]
            found[f"{operator.name}, {library} {name}"] = whole_pictures(before, pictures)
        print(f"{operator.name}: {found[operator.name]}", flush=True)
    return found


def hits_in_silhouette(things: Things) -> Figures:
    """Which share of the returns of added things lies where the picture shows them, in %, by kind.

    Returns that only the LiDAR can see, past or over what is nearer, do not count. The last figure holds the measure to
    account: the same returns half a metre aside.
    """
    found = {kind: _percent_inside(made, 0.0) for kind, made in things.items()}
    every = [change for made in things.values() for change in made]
    return found | {"all, half a metre aside": _percent_inside(every, 0.5)}


def _percent_inside(made: Sequence[Change], aside_m: float) -> float:
    """Return the share of the returns in the picture that lie in the silhouette, in %; NaN if none is there."""
    inside = [np.zeros(0, bool)]
    for change in made:
        hits = hits_of(change)
        hits = hits[~hidden_from_camera(change, hits)] + np.array([0.0, aside_m, 0.0])
        _, pixel, _ = in_picture(change.source, hits, "base_link")
        x, y = np.rint(pixel).astype(int).T
        inside.append(change.silhouette(least=1)[y, x])  # a black wheel before a black lorry changes little
    every = np.concatenate(inside)
    return 100.0 * float(every.mean()) if len(every) else float("nan")


def measured(frames: Sequence[mt.Frame], chosen: Sequence[Operator], broken: Broken) -> dict[str, Figures]:
    """Return all figures by what they are of, and count INVALID pairs in ``broken``."""
    start = max(0, (len(frames) - _FRAMES) // 2)
    some = frames[start : start + _FRAMES]
    things = dict(added_things(some, broken))
    if not things:
        raise SystemExit("picture_measure: nothing that is added is in full view of the camera; take another drive")
    figures = {
        "Added things told from recorded ones": things_told_apart(some, things),
        "Grain and edges of added things": thing_statistics(some, things),
        "Flicker of added things": thing_flicker(some, things),
        "Returns within the silhouette, %": hits_in_silhouette(things),
        "Flicker of depth": depth_flicker(some),
        **by_operator(some, chosen, broken),
    }
    return figures | {INVALID: {"guarantee broken": float(len(broken))}}


def main() -> int:
    """Put the figures of one state of the package beside those of others; return 1 if a pair was INVALID."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bag", type=Path, nargs="?", help="with LiDAR and camera (default: a generated drive)")
    parser.add_argument("--state", default="now", help="what the figures are of: 'before' or 'now' (default)")
    parser.add_argument("--json", type=Path, default=FIGURES, help=f"file to put them in (default: {FIGURES.name})")
    parser.add_argument("--names", default="", help="only operators whose name contains this; others' figures stay")
    args = parser.parse_args()
    print(f"peers: {described(installed())}")
    with tempfile.TemporaryDirectory() as scratch:
        frames = drive_of(args.bag, Path(scratch))
    chosen = [operator for operator in operators() if args.names in operator.name]
    name = args.bag.resolve().name if args.bag else "generated drive"
    known = json.loads(args.json.read_text(encoding="utf-8")) if args.json.exists() else {}
    broken, figures = Broken(), {}
    for part, of in measured(frames, chosen, broken).items():
        figures[part] = {k: _rounded(v) for k, v in of.items()}
    of_drive = known.setdefault(name, {})
    others = of_drive.get(args.state, {}) if args.names else {}
    of_drive[args.state] = others | figures | {INVALID: _most(others.get(INVALID, {}), figures[INVALID])}
    args.json.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    for part, of in figures.items():
        print(f"{part}: {of}")
    return int(bool(broken))


def _most(some: dict[str, float | None], others: dict[str, float | None]) -> dict[str, float | None]:
    """Return the larger figures: what a part of the operators says clears none of the others."""
    return {name: max(some.get(name) or 0.0, value or 0.0) for name, value in others.items()}


def _rounded(value: float) -> float | None:
    """Return a figure of four digits; None where nothing could be measured."""
    return float(f"{value:.4g}") if np.isfinite(value) else None


if __name__ == "__main__":
    sys.exit(main())
