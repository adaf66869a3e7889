# SPDX-License-Identifier: Apache-2.0
"""Measures how well objects are removed from pictures, where the truth is known: generated streets without them.

Usage: ``removal_calibration.py [BAG]``: prints the table of docs/removal.md; a recorded drive adds its errors beside
objects, where the truth is known on any drive.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.seeds import generator
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.ego.ego_motion import EgoMotion
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.objects.object_removed import ObjectRemoved
from mt_nodes.relations.mutations.objects.removal_in_pictures import PictureFill, fill_of, returns_of
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.camera.fill_quality import errors_of
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.camera_rendering import CameraSensor, photograph
from mt_nodes.world.scene.drive import PERIOD_NS, generate_drive
from mt_nodes.world.scene.street import EGO_SPEED_MPS, PERSON, VEHICLE, Street

CAMERA, FRAMES, SEEDS, EVERY = CameraSensor(), 30, (1, 2, 3, 4), 3
OBJECTS = 5


@dataclass(frozen=True)
class Case:
    """One object in one picture: what the test beside it measured, and the true error where it is known."""

    drive: str
    clean: bool
    tested: float
    true: float
    recalled: float


def generated(seed: int) -> Iterator[Case]:
    """Yield the cases of a generated street."""
    street = Street(seed, FRAMES * PERIOD_NS * 1e-9)
    for bundle in looked_back(moving(bundle) for bundle in generate_drive(FRAMES, seed, camera=CAMERA)):
        if bundle.index % EVERY:
            continue
        for outline, fill in fills(bundle):
            true = picture_without(street, seed, bundle.index, outline)
            if true is None:
                continue
            window, hole = fill.silhouette.window, fill.silhouette.hole
            error = errors_of(np.clip(fill.filled.pixels, 0, 1), true[window].astype(np.float32) / 255.0, hole)
            yield case("generated", fill, error.light)


def recorded(bag: Path) -> Iterator[Case]:
    """Yield the cases of a recorded drive."""
    with BagSource(bag) as source:
        for bundle in looked_back(iter(source)):
            for _, fill in fills(bundle):
                yield case("recorded", fill, float("nan"))


def case(drive: str, fill: PictureFill, true: float) -> Case:
    """Return what is known of a fill."""
    quality = fill.quality
    return Case(drive, quality.refusal() is None, quality.light, true, quality.recalled)


def fills(bundle: Bundle) -> Iterator[tuple[npt.NDArray[np.float64], PictureFill]]:
    """Yield the nearest objects of a bundle's picture, with their fills."""
    removed = ObjectRemoved()
    view = View.of(bundle, bundle.images[0])
    for thing in islice(removed.things(bundle), OBJECTS):
        exchange = removed.exchange_of(bundle, *thing)
        returns = returns_of(bundle, removed.standing_rows(bundle, exchange.body))
        fill = fill_of(view, exchange.body, returns, removed.ego_frame_id)
        if isinstance(fill, PictureFill):
            yield thing[0], fill


def looked_back(bundles: Iterator[Bundle]) -> Iterator[Bundle]:
    """Yield bundles with their earlier ones."""
    pipeline = MutationPipeline([ObjectRemoved()], 0, "calibration")
    yield from map(pipeline.meet, bundles)


def moving(bundle: Bundle) -> Bundle:
    """Return a bundle of a generated street with the ego's true motion."""
    pose = np.eye(4)
    pose[0, 3] = EGO_SPEED_MPS * bundle.index * PERIOD_NS * 1e-9
    motion = EgoMotion(pose, np.array([EGO_SPEED_MPS, 0.0, 0.0]), 0.0, "tf", "the generated street")
    return replace(bundle, motion=motion)


def picture_without(
    street: Street, seed: int, index: int, outline: npt.NDArray[np.float64]
) -> npt.NDArray[np.uint8] | None:
    """Return the picture of a street without the one object in an outline; None if there is not exactly one."""
    time_s = index * PERIOD_NS * 1e-9
    ego_m, pieces = EGO_SPEED_MPS * time_s, street.pieces(time_s)
    around = shapely.Polygon(outline).buffer(0.3)
    gone = [
        piece
        for piece in pieces
        if piece.kind in (VEHICLE, PERSON)
        and around.contains(shapely.Point(piece.mesh.vertices_m[:, :2].mean(axis=0) - (ego_m, 0.0)))
    ]
    if len(gone) != 1:
        return None
    left = [piece for piece in pieces if piece is not gone[0]]
    mesh = street.road.on_road(meshes.merged(piece.mesh for piece in left), ego_m)
    return photograph(left, mesh, ego_m, CAMERA, generator(seed, "camera", 0, index, "noise"))


def rows(cases: list[Case]) -> Iterator[str]:
    """Yield the lines of the table."""
    names = ("drive", "fills", "objects", "error beside it, median (90 %)", "true error, median (90 %, largest)")
    yield f"| {' | '.join(names)} | from earlier pictures |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for drive in dict.fromkeys(one.drive for one in cases):
        for clean in (True, False):
            own = [one for one in cases if (one.drive, one.clean) == (drive, clean)]
            if own:
                yield row(drive, "clean" if clean else "refused", own)


def row(drive: str, what: str, own: list[Case]) -> str:
    """Return one line of the table."""
    tested, true = (np.array([getattr(one, name) for one in own]) for name in ("tested", "true"))
    tested, true = tested[np.isfinite(tested)], true[np.isfinite(true)]
    beside = "" if not len(tested) else f"{np.median(tested):.3f} ({np.quantile(tested, 0.9):.3f})"
    truth = "unknown" if not len(true) else f"{np.median(true):.3f} ({np.quantile(true, 0.9):.3f}, {true.max():.3f})"
    earlier = float(np.mean([one.recalled for one in own]))
    return f"| {drive} | {what} | {len(own)} | {beside} | {truth} | {earlier:.0%} |"


def main() -> None:
    """Print the table."""
    cases = [one for seed in SEEDS for one in generated(seed)]
    for bag in sys.argv[1:]:
        cases += recorded(Path(bag))
    print("\n".join(rows(cases)))


if __name__ == "__main__":
    main()
