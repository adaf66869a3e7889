# SPDX-License-Identifier: Apache-2.0
"""Times every mutation of clouds or streams on one cloud: processor time of one frame, proof beside it, and memory."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.plugins import catalogue
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e
from mt_nodes.world.scene.radar_model import front_radar

Row = dict[str, Any]

#: Columns of a revolution that make the generated street's cloud one of some 120,000 points.
AZIMUTHS = 2012
#: The frame that is measured comes after one that mutations may look back on.
FRAMES = 2
#: Meant to be kept by draw and apply together (median), by the package that a mutation is in; memory by all.
GOALS_MS = {"lidar": 5.0, "radar": 5.0, "stream": 5.0, "objects": 15.0, "joint": 25.0}
GOAL_MEMORY = 3.0
PERIOD_MS = 100.0

#: The same operation elsewhere, ms a frame, one core, on a recorded HDL-64E cloud of 120,268 points, November 2026.
PEERS: dict[str, str] = {
    "beams_lost": "MultiCorrupt beams 2.1",
    "cloud_rotated": "3D_Corruptions_AD, one box 288",
    "cloud_scaled": "3D_Corruptions_AD, one box 217",
    "crosstalk": "Robo3D 2.7; 3D_Corruptions_AD 3.1",
    "density_decreased": "3D_Corruptions_AD 3.6",
    "dust": "LISA haze 21",
    "extrinsic_shifted": "MultiCorrupt alignment 1.7",
    "field_of_view_limited": "3D_Corruptions_AD 4.0",
    "fog": "LISA average fog 36; MultiCorrupt 1,098; 3D_Corruptions_AD 1,139; LiDAR_fog_sim 1,195 to 1,219",
    "motion_distorted": "Robo3D 15; MultiCorrupt 21",
    "object_added": "semLidarFuzz, pedestrian 626",
    "object_removed": "semLidarFuzz, shadow alone 419",
    "points_dropped": "MultiCorrupt 6.1",
    "points_jittered": "3D_Corruptions_AD uniform 5.5, impulse 4.4, Gaussian 18",
    "rain": "LISA Goodin 36, whole frame 13,573",
    "region_cut_out": "3D_Corruptions_AD 43",
    "snow": "LISA 11,537; LiDAR_snow_sim 170,000 to 190,000 (extrapolated)",
    "sun_glare": "3D_Corruptions_AD 5.1",
    "wet_ground": "LiDAR_snow_sim's 18",
}
_FIGURES = ("p50_ms", "p95_ms", "goal_ms", "proof_p50_ms", "proof_p95_ms", "memory", "proof_memory")
COLUMNS = ("mutation", *(name.replace("_", " ") for name in _FIGURES), "goals", "elsewhere, ms")


@dataclass(frozen=True)
class _Cold:
    """The frame to measure; every round gets clouds of its own, so that nothing is remembered of an earlier round."""

    earlier: tuple[Bundle, ...]
    bundle: Bundle

    def fresh(self) -> Bundle:
        return replace(self.bundle, clouds=tuple(replace(c).read_as(c.reading) for c in self.bundle.clouds))


def measured() -> dict[str, Mutation]:
    """Return every mutation of clouds and radars, by name; there are no images here, nor navigation."""
    made = {name: cls() for name, cls in catalogue("mutations").items()}
    return {name: mutation for name, mutation in made.items() if {"lidar", "radar"} & {*mutation.sensors}}


def measure(rounds: int, bag: Path | None = None) -> Row:
    """Return the figures of every mutation measured, each with its defaults.

    Args:
        rounds: frames to time; one more warms up, one more is traced for its memory.
        bag: whose first frames are taken, in place of a generated street.
    """
    *earlier, bundle = _frames(bag)
    *earlier_radars, with_radar = generate_drive(FRAMES, radar=front_radar())
    frame, radar = _Cold(tuple(earlier), bundle), _Cold(tuple(earlier_radars), with_radar)
    of_radars = {name: tuple(mutation.sensors) == ("radar",) for name, mutation in measured().items()}
    found = {name: _of(m, radar if of_radars[name] else frame, rounds) for name, m in measured().items()}
    return {"points": len(bundle.cloud()), "bytes": bundle.cloud().points.nbytes, "rounds": rounds, "by_name": found}


def _frames(bag: Path | None) -> list[Bundle]:
    if bag is None:
        return list(generate_drive(FRAMES, lidar=replace(hdl_64e(), azimuths=AZIMUTHS)))
    with BagSource(bag, limit=FRAMES) as source:
        return list(source)


def _of(mutation: Mutation, frame: _Cold, rounds: int) -> Row:
    pipeline = MutationPipeline([mutation], 0, "bench")
    for bundle in frame.earlier:
        with suppress(NotApplicable):  # what counts is whether it is applicable to the frame that is timed
            pipeline.derive_unproven(bundle)
    try:
        _round(pipeline, frame, 0, _milliseconds)
        times = np.array([_round(pipeline, frame, number, _milliseconds) for number in range(rounds)])
        peaks = np.array(_round(pipeline, frame, 0, _peak_bytes)) / frame.bundle.cloud().points.nbytes
    except NotApplicable as reason:
        return {"not applicable": str(reason)}
    (p50, proof50), (p95, proof95) = np.percentile(times, (50, 95), axis=0).round(3).tolist()
    goal = GOALS_MS.get(type(mutation).__module__.rpartition(".")[0].rpartition(".")[2])  # none for a user's own
    made: Row = {"p50_ms": p50, "p95_ms": p95, "goal_ms": goal, "proof_p50_ms": proof50, "proof_p95_ms": proof95}
    made["memory"], made["proof_memory"] = peaks.round(2).tolist()
    return made | {"missed": list(_missed(made))}


def _round(
    pipeline: MutationPipeline, frame: _Cold, number: int, cost: Callable[[Callable[[], Any]], tuple[float, Any]]
) -> tuple[float, float]:
    """Return what making a follow-up costs, and what proving it does."""
    bundle = frame.fresh()
    made, (_, proof) = cost(lambda: pipeline.derive_unproven(bundle, str(number)))
    proved, broken = cost(proof)
    if broken is not None:
        raise SystemExit(f"bench: guarantee broken: {broken}")
    return made, proved


def _milliseconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time_ns()  # of all threads; what else runs on the machine does not count
    result = work()
    return (time.process_time_ns() - start) * 1e-6, result


def _peak_bytes(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    tracemalloc.start()
    try:
        result = work()
        return float(tracemalloc.get_traced_memory()[1]), result
    finally:
        tracemalloc.stop()


def _missed(row: Row) -> Iterator[str]:
    if row["goal_ms"] is not None and row["p50_ms"] > row["goal_ms"]:
        yield "time"
    for what in ("memory", "proof_memory"):
        if row[what] > GOAL_MEMORY:
            yield what.replace("_", "'s ")
    if row["p95_ms"] + row["proof_p95_ms"] > PERIOD_MS:
        yield "10 Hz"


def cells(part: Row) -> Iterator[tuple[str, ...]]:
    """Yield a row of texts, as :data:`COLUMNS` names them, for each mutation."""
    for name, row in part["by_name"].items():
        if "not applicable" in row:
            yield name, "not applicable:", *("",) * (len(COLUMNS) - 3), row["not applicable"]
            continue
        shown = ("" if row[figure] is None else f"{row[figure]:.1f}" for figure in _FIGURES)
        goals = "misses " + ", ".join(row["missed"]) if row["missed"] else "met"
        yield name, *shown, goals, PEERS.get(name, "")


def write_docs(path: Path, machine: Row, part: Row) -> None:
    """Write the figures as Markdown, with machine, date and command."""
    lines = [
        "# Performance",
        "This page gives the time and memory that each point cloud mutation needs per frame. Use it to choose "
        '`delay_s` and mutations for live tests. `make bench ARGS="--only mutations --docs docs"` measures and writes '
        "this page.",
        "Times are CPU time of draw and apply, and separately of the proof of the guarantee, for each mutation with "
        "its defaults. Memory is the largest amount that is allocated at once, including the follow-up, as a multiple "
        "of the cloud. Every round uses a new cloud, so that nothing is cached, as in a run.",
        f"{date.today().isoformat()}, {machine['cpu']}, {machine['cores']} cores shared with other work (load "
        f"{machine['load_1min']}), Python {machine['python']}, NumPy {machine['numpy']}; {part['points']:,} points of "
        f"{part['bytes'] // part['points']} bytes from a generated street, {part['rounds']} rounds.",
        f"Goals: {', '.join(f'{name} {goal:g} ms' for name, goal in GOALS_MS.items())} (median), memory "
        f"{GOAL_MEMORY:g} times the cloud, and with its proof within the {PERIOD_MS:g} ms of 10 Hz.",
        _markdown(COLUMNS, cells(part)),
        "*Elsewhere* gives the time of similar operations in public repositories (3D_Corruptions_AD, MultiCorrupt, "
        "Robo3D, LISA, LiDAR_fog_sim, LiDAR_snow_sim, semLidarFuzz), measured in November 2026 on one core with a "
        "recorded HDL-64E cloud of 120,268 points, on another day than the figures beside it; none of them proves "
        "its result.",
    ]
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")


def _markdown(columns: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    align = ["---", *["---:"] * (len(columns) - 3), "---", "---"]
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, align, *((f"`{n}`", *rest) for n, *rest in rows)))
