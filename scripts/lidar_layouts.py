# SPDX-License-Identifier: Apache-2.0
"""Tries every LiDAR mutation on clouds of sensors without rings; ``--docs DIR`` writes what came out as a page."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sensor_models import sensor_model

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.plugins import catalogue
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.drive import LIDAR_HEIGHT_M
from mt_nodes.world.scene.raycast import cast
from mt_nodes.world.scene.street import EGO_SPEED_MPS, Street

PAGE = "lidar_layouts.md"
FRAMES, PERIOD_S, PERIOD_NS = 2, 0.1, 100_000_000
APPLIES = "applies"
Singles = npt.NDArray[np.float32]
#: An echo of a white surface at the full range has this brightness over the threshold (see ``in_scene.Sensor``).
_SENSITIVITY = 0.1


@dataclass(frozen=True)
class Layout:
    """Clouds of one sensor.

    Attributes:
        model: of :mod:`sensor_models`. about: what is special about it.
        fields: dtype of a point. organised: whether every ray has a place, empty or not.
        thin: of the rays of the model, one in so many is used, for speed; of rows and of columns in a raster.
    """

    model: str
    about: str
    fields: tuple[tuple[str, str], ...]
    organised: bool = False
    thin: int = 1


_XYZ = (("x", "<f4"), ("y", "<f4"), ("z", "<f4"))
_LIVOX = (*_XYZ, ("intensity", "<f4"), ("tag", "u1"), ("line", "u1"), ("offset_time", "<u4"))
LAYOUTS = {
    "Livox Mid-40": Layout("livox_mid_40", "rosette, one laser, `line` is always 0, `tag`, `offset_time`", _LIVOX),
    "Livox Avia": Layout("livox_avia", "rosette, six lasers in `line`, `tag`, `offset_time`", _LIVOX, thin=2),
    "Innoviz One": Layout(
        "innoviz_one", "MEMS raster, organised", (*_XYZ, ("reflectivity", "<u1"), ("timestamp", "<f8")), True, 5
    ),
    "Luminar Iris": Layout(
        "luminar_iris", "two mirrors, not organised, no rings", (*_XYZ, ("intensity", "<f4"), ("time", "<f4")), thin=3
    ),
    "SPAD flash": Layout("flash_spad", "matrix of pixels, all at one time", (*_XYZ, ("intensity", "<u2")), True),
}


def bundles_of(layout: Layout, seed: int = 1) -> Iterator[Bundle]:
    """Yield the bundles of a sensor that drives along a generated street."""
    mount = pose_matrix((0.0, 0.0, LIDAR_HEIGHT_M), (0.0, 0.0, 0.0, 1.0))
    tree = TransformTree([Transform("base_link", "lidar", mount)])
    street = Street(seed, FRAMES * PERIOD_S)
    for index in range(FRAMES):
        time_s = index * PERIOD_S
        mesh = meshes.merged(piece.mesh for piece in street.pieces(time_s))
        points, height = _scan(layout, mesh, EGO_SPEED_MPS * time_s, time_s, np.random.default_rng((seed, index)))
        cloud = Cloud("/points", index * PERIOD_NS, "lidar", points, height=height, is_dense=height == 1)
        yield Bundle(0, index, cloud.stamp_ns, (cloud,), transforms=tree)


def _directions(layout: Layout, start_s: float) -> tuple[npt.NDArray[np.float64], int]:
    """Return the rays of a frame (N, 3), and the number of their rows."""
    model, thin = sensor_model(layout.model), layout.thin
    rays = model.directions(start_s, PERIOD_S)
    if model.raster is None:
        # Whole groups of lasers stay together.
        lines = model.rosette.lines if model.rosette else 1
        return rays.reshape(-1, lines, 3)[::thin].reshape(-1, 3), 1
    grid = rays.reshape(model.raster.rows, model.raster.columns, 3)[::thin, ::thin]
    return grid.reshape(-1, 3), len(grid)


def _scan(layout: Layout, mesh: Any, x_m: float, start_s: float, rng: np.random.Generator) -> tuple[Any, int]:
    model, (rays, rows) = sensor_model(layout.model), _directions(layout, start_s)
    range_m, triangle, cosine = cast(mesh, (x_m, 0.0, LIDAR_HEIGHT_M), rays)
    hit = np.isfinite(range_m) & (range_m > model.range_min_m)
    bright = np.where(hit, mesh.reflectivity[triangle] * cosine, 0.0)
    hit &= bright >= _SENSITIVITY * np.square(np.where(hit, range_m, 0.0) / model.range_max_m)
    noisy = np.where(hit, range_m + np.clip(rng.normal(0.0, model.accuracy_m, len(rays)), -0.1, 0.1), np.nan)
    points = np.zeros(len(rays), dtype=list(layout.fields))
    for i, name in enumerate("xyz"):
        points[name] = rays[:, i] * noisy
    time_s = np.linspace(0.0, PERIOD_S, len(rays), endpoint=False)
    lines = model.rosette.lines if model.rosette else 1
    filled = {
        "intensity": np.rint(255.0 * bright),
        "reflectivity": np.rint(255.0 * bright),
        "tag": 16,
        "line": np.arange(len(rays)) % lines,
        "offset_time": time_s * 1e9,
        "timestamp": start_s + time_s,
        "time": time_s,
    }
    for name in set(filled) & set(points.dtype.names or ()):
        points[name] = filled[name]
    return (points, rows) if layout.organised else (points[hit], 1)


def lidar_mutations() -> dict[str, Mutation]:
    """Return every mutation that changes clouds, with its defaults.

    Added objects go along with the ego, whose motion nothing tells here, and stand in the view ahead.
    """
    found = {name: cls() for name, cls in catalogue("mutations").items() if "lidar" in cls.sensors}  # type: ignore[attr-defined]
    return with_other_places(found)


def with_other_places(found: dict[str, Mutation]) -> dict[str, Mutation]:
    """Return mutations whose added objects go along with the ego and stand in the view ahead."""
    along = {"frame_id": "base_link"}
    other = {
        "object_added": {"where": "bearing", "bearing_rad": (-0.25, 0.25), **along},
        "light_added": along,
        "sign_added": along,
    }
    return {name: replace(m, **other.get(name, {})) for name, m in found.items()}  # type: ignore[type-var]


def outcome(mutation: Mutation, bundles: list[Bundle]) -> str:
    """Return ``applies`` where a frame has a proven follow-up, else the reason of the last one."""
    pipeline, reason = MutationPipeline([mutation], 0, "layouts"), ""
    for bundle in bundles:
        try:
            _, (_, proof) = _derived(pipeline, bundle)
            broken = proof()
        except NotApplicable as refusal:
            reason = str(refusal)
            continue
        return APPLIES if broken is None else f"BROKEN: {broken}"
    return reason


def _derived(pipeline: MutationPipeline, bundle: Bundle) -> tuple[Any, tuple[Any, Callable[[], str | None]]]:
    return None, pipeline.derive_unproven(bundle, "0")


@lru_cache
def outcomes() -> dict[str, dict[str, str]]:
    """Return what came out, by mutation and by layout."""
    frames = {name: list(bundles_of(layout)) for name, layout in LAYOUTS.items()}
    return {
        name: {layout: outcome(mutation, bundles) for layout, bundles in frames.items()}
        for name, mutation in sorted(lidar_mutations().items())
    }


def page() -> str:
    """Return the page."""
    found = outcomes()
    refusals = [(name, layout, text) for name, row in found.items() for layout, text in row.items() if text != APPLIES]
    lines = [
        "# Mutations on LiDARs without rings",
        "This page lists which LiDAR mutations work on non-repetitive and solid-state sensors, and why one does not. "
        "`scripts/lidar_layouts.py --docs docs` makes it: it scans a generated street with each sensor's pattern, and "
        "derives and proves a follow-up with every mutation and its defaults.",
        "Where a mutation needs lines, it takes the rings of the cloud. A scan without rings is cut into bands of "
        "elevation as high as its returns are apart. Lasers come from a field that numbers them (`ring`, `channel`, "
        "`line`, `laser_id`).",
        table(("sensor", "pattern and fields"), ((name, layout.about) for name, layout in LAYOUTS.items())),
        "## Mutation by sensor",
        table(
            ("mutation", *LAYOUTS),
            ((f"`{n}`", *("yes" if text == APPLIES else "no" for text in row.values())) for n, row in found.items()),
        ),
        "## Why not",
        table(("mutation", "sensor", "NOT_APPLICABLE because"), ((f"`{n}`", s, why) for n, s, why in refusals)),
    ]
    return "\n\n".join(lines) + "\n"


def table(columns: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    cells = (columns, ("---",) * len(columns), *rows)
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells)


def main() -> int:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path, metavar="DIR", help=f"write {PAGE} there")
    asked = parser.parse_args()
    text = page()
    if asked.docs is None:
        print(text)
    else:
        (asked.docs / PAGE).write_text(text, encoding="utf-8")
    return int(any(text.startswith("BROKEN") for row in outcomes().values() for text in row.values()))


if __name__ == "__main__":
    raise SystemExit(main())
