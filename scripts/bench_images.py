# SPDX-License-Identifier: Apache-2.0
"""Times every mutation that changes images: processor time of one frame by size, its proof beside it, and peers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import cv2
import numpy as np
from picture_peers import LIBRARIES, described, installed, peers_of

from mt_nodes.base.environment import keep_freed_memory
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.plugins import catalogue
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive

Row = dict[str, Any]
#: Rounds of each mutation if nothing else is asked; one more warms up.
ROUNDS = 5
#: A peer that takes longer is timed once, after its warm-up.
SLOW_NS = 250_000_000
#: A peer that loops over pixels in Python is timed on a corner of the picture, of so many times less width and height,
#: and its time is multiplied: imagecorruptions' glass blur takes half a minute a picture.
CORNERS = {("lens_film", "imagecorruptions"): 8}
NONE_BESIDE: Mapping[str, Callable[[], Any]] = MappingProxyType({})
#: Width and height of a picture.
Size = tuple[int, int]
SIZES: tuple[Size, ...] = ((1920, 1280), (640, 480))
#: Meant to be kept at the first size by draw and apply together (median), by the package that a mutation is in…
GOALS_MS = {"camera": 5.0, "joint": 25.0, "objects": 40.0}
#: … but for those that are weather or objects in the package of what cameras alone see.
GOALS_MS_OF = {"night": 25.0, "dusk": 25.0, "low_sun": 25.0, "road_painted": 40.0}
#: Where defaults show nothing in the generated street: its camera looks ahead, the sun stands aside.
SETTINGS: dict[str, Row] = {"sun_glare": {"azimuth_rad": 0.0, "elevation_rad": 0.25}}
#: The same operation elsewhere, ms at 1920x1280 / 640x480, one core, November 2026.
PEERS = {
    "brightness_changed": "albumentations 2.5/0.3; imagecorruptions 2322/146; MultiCorrupt 2269/156",
    "fog": "albumentations 1335/155; imagecorruptions 236/34; imgaug 550/41; 3DC 320/44; Automold 426/12",
    "rain": "albumentations 24/2.8; imgaug 785/31; 3DC 362/42; Automold 94/12",
    "snow": "albumentations 29/3.3 (bleach), 239/22; imagecorruptions 1113/117; imgaug 507/39; Automold 74/6",
    "sun_glare": "albumentations 502/61; 3DC 844/82; Automold 122/14",
    "low_sun": "albumentations shadow 87/6",
    "image_motion_blurred": "albumentations 11/1.6, one direction for all; imagecorruptions 771/70",
    "sensor_noise": "albumentations ISO 251/22",
    "night": "MultiCorrupt dark 1079/117; Automold darken 59/6",
    "lens_flare": "albumentations 502/61; Automold 122/14",
}


def measured() -> dict[str, Mutation]:
    """Return every mutation that changes what images show and needs no extra, by name."""
    return {
        name: cls(**SETTINGS.get(name, {}))
        for name, cls in catalogue("mutations").items()
        if "camera" in cls.sensors  # type: ignore[attr-defined]
        and cls.role == "relation"  # type: ignore[attr-defined]
        and not cls.extra  # type: ignore[attr-defined]
        and _package(cls) != "stream"
    }


def measure(rounds: int, sizes: Sequence[Size] = SIZES) -> Row:
    """Return the figures of every mutation that changes images, and of the peers that are installed.

    A peer takes its turn after each round of the mutation that it is nearest to, so that both meet the same machine.

    Args:
        rounds: frames to time; one more warms up.
        sizes: of the pictures; goals are for the first of :data:`SIZES`.
    """
    keep_freed_memory()  # as every process of ours that derives follow-ups
    cv2.setNumThreads(1)
    mutations = measured()
    found: Row = {name: {"goal_ms": _goal(name, type(mutation)), "sizes": []} for name, mutation in mutations.items()}
    peers: dict[str, dict[str, list[float | None]]] = {library: {} for library in LIBRARIES}
    for width, height in sizes:
        frames = list(generate_drive(2, camera=CameraSensor(width, height)))
        beside = [replace(frame, clouds=(), extra_clouds=frame.clouds) for frame in frames]
        pixels = np.ascontiguousarray(np.asarray(frames[-1].images[0].pixels)[..., ::-1])
        for name, mutation in mutations.items():
            joint = "lidar" in mutation.sensors
            corners = {library: CORNERS.get((name, library), 1) for library in LIBRARIES}
            others = {
                library: partial(run, _corner(pixels, corners[library])) for library, (_, run) in peers_of(name).items()
            }
            row = _of(mutation, beside, rounds, others)
            took_ms = row.pop("peers_ms", {})
            for library in others:  # None at a size that the mutation is not applicable to
                own_ms = took_ms.get(library)
                peers[library].setdefault(name, []).append(own_ms and own_ms * corners[library] ** 2)
            found[name]["sizes"].append(row | {"with_clouds": _of(mutation, frames, rounds) if joint else None})
    return {
        "rounds": rounds,
        "sizes": [list(size) for size in sizes],
        "points": len(frames[-1].cloud()),
        "by_name": found,
        **peers,
    }


def _package(cls: type) -> str:
    return cls.__module__.rpartition(".")[0].rpartition(".")[2]


def _goal(name: str, cls: type) -> float | None:
    return GOALS_MS_OF.get(name, GOALS_MS.get(_package(cls)))  # none for a user's own


def _of(
    mutation: Mutation, frames: list[Bundle], rounds: int, others: Mapping[str, Callable[[], Any]] = NONE_BESIDE
) -> Row:
    pipeline = MutationPipeline([mutation], 0, "bench")
    times: list[tuple[int, ...]] = []
    for bundle in frames[:-1]:
        with suppress(NotApplicable):  # what counts is whether it is applicable to the frame that is timed
            pipeline.derive_unproven(bundle)
    try:
        for number in range(rounds + 1):
            # Nothing is known of a frame that was not seen before: neither its pixels decoded nor its depth.
            bundle = replace(frames[-1], images=tuple(replace(image) for image in frames[-1].images))
            start = time.process_time_ns()
            _, proof = pipeline.derive_unproven(bundle, str(number))
            made = time.process_time_ns()
            if broken := proof():
                raise SystemExit(f"bench: guarantee broken: {broken}")
            proved = time.process_time_ns()
            before = times[-1][2:] if number > 1 else (0,) * len(others)  # the first round warms up
            times.append((made - start, proved - made, *map(_again_ns, others.values(), before)))
    except NotApplicable as reason:
        return {"not applicable": str(reason)}
    p50, proof_p50, *peers = (np.median(np.array(times[1:]), axis=0) * 1e-6).round(2).tolist()
    took: Row = {"p50_ms": p50, "proof_p50_ms": proof_p50}
    return took | {"peers_ms": dict(zip(others, peers, strict=True))} if others else took


def _corner(pixels: Any, times: int) -> Any:
    """Return the corner of a picture (H, W, 3) that is so many times less wide and high."""
    height, width = (side // times for side in pixels.shape[:2])
    return np.ascontiguousarray(pixels[:height, :width])


def _again_ns(run: Callable[[], Any], before_ns: int) -> int:
    """Return the time of a peer's round: as before if that was long."""
    if before_ns > SLOW_NS:
        return before_ns
    start = time.process_time_ns()
    run()
    return time.process_time_ns() - start


def columns(part: Row) -> tuple[str, ...]:
    """Return the names of what :func:`cells` yields."""
    named = (f"{width} x {height}" for width, height in part["sizes"])
    figures = (text for size in named for text in (f"{size}, ms", "proof, ms", "with clouds, ms"))
    return "mutation", *figures, "goal, ms", "goal", "elsewhere, ms"


def cells(part: Row) -> Iterator[tuple[str, ...]]:
    """Yield a row of texts, as :func:`columns` names them, for each mutation."""
    for name, row in part["by_name"].items():
        here = (_beside(library, part.get(library, {}).get(name, ()), row["sizes"]) for library in LIBRARIES)
        elsewhere = "; ".join(filter(None, (*here, PEERS.get(name))))
        shown = (text for size in row["sizes"] for text in _figures(size))
        reasons = (size["not applicable"] for size in row["sizes"] if "not applicable" in size)
        yield name, *shown, *_met(row, part["sizes"]), next(reasons, elsewhere)


def _beside(library: str, peer_ms: Sequence[float | None], sizes: Sequence[Row]) -> str:
    """Return what a peer took at each size, and how many times as long as the mutation."""
    if not any(peer_ms):
        return ""
    both = list(zip(peer_ms, (size.get("p50_ms") for size in sizes), strict=True))
    times = "/".join(f"{took / own:.2g}" if took and own else "?" for took, own in both)
    return f"{library} here {'/'.join('?' if took is None else f'{took:g}' for took in peer_ms)}: {times} times ours"


def _figures(row: Row) -> Iterator[str]:
    both = row["with_clouds"] or {}
    for figure in (row.get("p50_ms"), row.get("proof_p50_ms"), both.get("p50_ms")):
        yield "" if figure is None else f"{figure:.1f}"


def _met(row: Row, sizes: list[list[int]]) -> tuple[str, str]:
    """Return a mutation's goal, and whether it was met: only told of the size that it is for."""
    took_ms = row["sizes"][0].get("p50_ms")
    if row["goal_ms"] is None or took_ms is None or tuple(sizes[0]) != SIZES[0]:
        return "", ""
    return f"{row['goal_ms']:g}", "met" if took_ms <= row["goal_ms"] else "missed"


def write_docs(path: Path, machine: Row, part: Row) -> None:
    """Write the figures as Markdown, with machine, date and command."""
    lines = [
        "# Performance: images",
        "This page gives the time that each image mutation needs per frame. For point clouds, see "
        '[performance](performance.md). `OMP_NUM_THREADS=1 make bench ARGS="--only images --docs docs"` measures and '
        "writes this page, with albumentations and imagecorruptions for comparison if they are installed "
        "([how](pictures.md#other-libraries)): each takes its turn after each round of the mutation, once if it takes "
        f"more than {SLOW_NS * 1e-6:g} ms.",
        "Times are CPU time of draw and apply on one core, including decoding and encoding of the raw `bgr8` image and "
        "the depth of its cloud, and separately of the proof of the guarantee, for each mutation with its defaults "
        "(for sun glare, with the sun in the image). *With clouds* is the time of image and cloud together, if a "
        "mutation changes both.",
        f"{date.today().isoformat()}, {machine['cpu']}, {machine['cores']} cores shared with other work (load "
        f"{machine['load_1min']}), Python {machine['python']}, OpenCV {cv2.__version__}, "
        f"{described(installed())}; images and clouds of "
        f"{part['points']:,} points of a generated street, {part['rounds']} rounds.",
        f"Goals of the images at {SIZES[0][0]} x {SIZES[0][1]}: "
        f"{', '.join(f'{name} {goal:g} ms' for name, goal in GOALS_MS.items())}; weather and "
        "light mutations of cameras alone count as joint, paint on the road as objects.",
        _markdown(part),
        "*Elsewhere* gives the time of similar operations in public libraries at both sizes, measured in November 2026 "
        "on one core, on another day than the other figures unless marked *here*; none of them proves its result.",
        "Rain of albumentations draws lines over a darker picture, at every depth alike, in 7 to 9 ms at "
        f"{SIZES[0][0]} x {SIZES[0][1]}. Of ours, the depth takes some 14 ms, which all mutations of a picture share; "
        "light, wet road and veil of the cells 8, drops 5, and passes over the picture 6 to 7 (27 November 2026). "
        "Memory is not what takes so long: a copy of the picture takes 0.2 ms, and stripes that fit the caches save no "
        "time. The passes that any rain by depth makes take 6.5 ms by themselves, as long as that rain as a whole: "
        "means of cells 1.1, slope and level enlarged 2.3, multiplied and added 1.1, drops enlarged 0.5 and blended "
        "1.5. It cannot be reached with OpenCV's functions on one core. Neither can 5 ms by blur and rolling shutter, "
        "which follow the depth, nor by a lens's remapping, of which OpenCV's function alone takes 5.5 ms.",
    ]
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")


def _markdown(part: Row) -> str:
    names = columns(part)
    align = ("---", *["---:"] * (len(names) - 3), "---", "---")
    rows = (names, align, *((f"`{name}`", *rest) for name, *rest in cells(part)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
