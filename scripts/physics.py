# SPDX-License-Identifier: Apache-2.0
"""Measures how natural changed clouds and pictures are, and holds each figure to its goal: `make physics`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from intensity_severity import severities, spread
from joint_changes import joint_changes
from physics_bodies import complete_cars
from scipy.spatial.distance import pdist

import mt_nodes as mt
from mt_nodes.base.errors import NotApplicable

Floats = npt.NDArray[np.float64]
Figures = dict[str, float]
Frames = Sequence[mt.Frame]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "physics.md"
#: The same figures of version 0.1.0 before its clouds were changed by the laws that they are now.
BEFORE = Path(__file__).with_name("physics_before.json")
HEAD = """# Physics in figures

This page gives figures of changed clouds and pictures that show how natural they are: before and after the physics was
made what [the mutations](mutations.md) describe. Use it to judge whether a violation can come from a change that no
sensor would show. The input is the recorded drive `{bag}`. Poses that places are compared by come from point-to-plane
ICP of each cloud with the first one, which the package does not use for its own.

`make physics ARGS=BAG` measures them on another drive. It exits with 1 if a figure misses its goal.

| change | figure | before | now | goal |
| --- | --- | --- | --- | --- |
"""
VISIBILITIES_M = tuple(float(v) for v in np.geomspace(40.0, 300.0, 24))


def poses_by_icp(clouds: Sequence[Floats]) -> list[Floats]:
    """Return the pose (4, 4) of each cloud (N, 3) in the frame of the first, by Open3D's point-to-plane ICP.

    Every cloud is registered with the first one directly, so that errors do not add up.
    """
    import open3d as o3d

    icp, poses, target = o3d.pipelines.registration, [np.eye(4)], None
    for xyz in clouds:
        far = np.linalg.norm(xyz, axis=1)
        cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(xyz[(far > 4.0) & (far < 60.0)]))
        cloud = cloud.voxel_down_sample(0.2)
        if target is None:
            cloud.estimate_normals(o3d.geometry.KDTreeSearchParamHybrid(1.0, 30))
            target = cloud
            continue
        kernel = icp.TransformationEstimationPointToPlane(icp.TukeyLoss(0.1))
        pose = poses[-1]
        for reach_m in (1.0, 0.4):
            pose = icp.registration_icp(cloud, target, reach_m, pose, kernel).transformation
        poses.append(np.asarray(pose))
    return poses


def world_fixed(frames: Frames) -> Figures:
    """Where added pedestrians stand in the world, one after another, by poses that the package does not know."""
    poses = poses_by_icp([frame.points_in("base_link")[:, :3].astype(np.float64) for frame in frames])
    places: dict[int, list[Floats]] = {}
    for frame, pose in zip(frames, poses, strict=True):
        try:
            changed = mt.mutate(frame, "object_added", seed=0)
        except NotApplicable:
            continue
        since = next(int(value) for name, value in changed.draws[0].items() if name.endswith("|since_bundle"))
        places.setdefault(since, []).append((pose @ [*changed.effects.added[0].center_m, 1.0])[:3])
    spreads_m = [float(pdist(np.array(own)).max()) for own in places.values() if len(own) > 1]
    count = sum(map(len, places.values()))
    return {
        "frames": count,
        "frames with one, %": 100.0 * count / len(frames),
        "frames with the same one, on average": count / max(1, len(places)),
        "ego drove, m": float(np.linalg.norm(poses[-1][:3, 3])),
        "places in the world differ by, m": max(spreads_m, default=float("nan")),
    }


def ego_motion(frames: Frames) -> Figures:
    """How far a place 15 m ahead moves in the world over the drive, by the ego motion that mutations go by."""
    poses = poses_by_icp([frame.points_in("base_link")[:, :3].astype(np.float64) for frame in frames])
    place, off_m, sources = np.array([15.0, 3.0, 1.0, 1.0]), [], set()
    for frame, pose in zip(frames, poses, strict=True):
        track = frame.bundle.track
        motion = None if track is None else track.at(frame.bundle)
        if motion is None or motion.pose is None:
            return {"frames without ego motion": float(len(frames)), "place off by, m": float("nan")}
        sources.add(motion.source)
        off_m.append(np.linalg.norm(np.linalg.solve(motion.pose, place) - np.linalg.solve(pose, place)))
    return {"sources": float(len(sources)), "place off by, m": float(max(off_m))}


def fog_shares(frame: mt.Frame, visibility_m: float) -> tuple[float, float]:
    """Return the shares of a frame's returns that fog loses and replaces by an echo of the air."""
    numbers = mt.mutate(frame, "fog", visibility_m=visibility_m, patchiness=0.0).effects.numbers
    returns = len(frame.points)
    return numbers["returns_lost"] / returns, numbers["returns_scattered"] / returns


def fog_chance(frames: Frames) -> Figures:
    """How smoothly losses and echoes of fog pass over visibilities from 40 to 300 m."""
    lost, scattered = np.array([fog_shares(frames[0], v) for v in VISIBILITIES_M]).T
    both = np.count_nonzero((lost > 0.0) & (scattered > 0.0))
    steps = np.abs(np.diff([lost, scattered], axis=1)).max()
    return {
        "visibilities with losses and echoes, %": 100.0 * both / len(lost),
        "largest step from one to the next, points of %": 100.0 * float(steps),
        "echoes at one range, at most, %": 100.0 * max(at_one_range(frames[0], v) for v in (30.0, 60.0, 100.0)),
    }


def at_one_range(frame: mt.Frame, visibility_m: float) -> float:
    """Return the share of a fog's echoes in the millimetre with the most of them."""
    echo_m = echoes_m(frame, mt.mutate(frame, "fog", visibility_m=visibility_m, patchiness=0.0))
    return float(np.bincount(np.rint(1000.0 * echo_m).astype(int)).max() / len(echo_m))


def echoes_m(source: mt.Frame, changed: Any) -> Floats:
    """Return the ranges (n,) of the added points of a changed frame's first cloud."""
    return np.asarray(np.linalg.norm(changed.effects.added_points[source.bundle.clouds[0].topic], axis=1))


def rain_and_snow(frames: Frames) -> Figures:
    """Losses by heavy rain, and how far away flakes are seen."""
    rain = mt.mutate(frames[0], "rain", rain_mm_per_h=50.0).effects.numbers
    snow_m = echoes_m(frames[0], mt.mutate(frames[0], "snow"))
    return {
        "lost in rain of 50 mm/h, %": 100.0 * rain["returns_lost"] / len(frames[0].points),
        "echoes of snow beyond 6 m, %": 100.0 * float(np.mean(snow_m > 6.0)),
    }


def one_scene(frames: Frames) -> Figures:
    """How much fog and an added car differ over six sensors' conventions of the intensities of one scene, in %."""
    rows = severities(replace(frames[0].bundle, images=(), camera_infos=()))
    return {f"{name.replace('_', ' ')}, %": 100.0 * spread(rows, name) for name in rows["kitti"]}


def messages_untouched(frames: Frames) -> Figures:
    """How many messages joint changes leave as they are, of every fourth frame."""
    return joint_changes(frames[::4])


def organised(frame: mt.Frame) -> mt.Frame:
    """Return a frame whose cloud is an organised one of 64 beams and 1024 columns with empty rays, as an Ouster's."""
    points = np.zeros(64 * 1024, frame.bundle.clouds[0].points.dtype)
    xyz = frame.points[:, :3].astype(np.float64)
    away = np.linalg.norm(xyz, axis=1)
    column = np.floor((np.arctan2(xyz[:, 1], xyz[:, 0]) / (2 * np.pi) + 0.5) * 1024).astype(int) % 1024
    tilt = np.degrees(np.arcsin(xyz[:, 2] / away))
    row = np.clip(np.rint((10.0 - tilt) / 35.0 * 63), 0, 63).astype(int)
    at = row * 1024 + column
    azimuth = ((np.arange(64 * 1024) % 1024 + 0.5) / 1024 - 0.5) * 2 * np.pi
    elevation = np.radians(10.0 - np.arange(64 * 1024) // 1024 * 35.0 / 63)
    source = frame.bundle.clouds[0].points
    unit = np.stack([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])
    for name in set(points.dtype.names or ()) - set("xyz"):
        points[name][at] = source[name]
    for i, name in enumerate("xyz"):
        points[name][at] = (unit[i][at] * away).astype(points.dtype[name])
    cloud = replace(frame.bundle.clouds[0], points=points, height=64, is_dense=False)
    return mt.Frame(replace(frame.bundle, clouds=(cloud,), wires=()))


def empty_beams(frames: Frames) -> Figures:
    """Which share of the beams gets an echo of thick fog: those without a return beside those with a far one."""
    changed = mt.mutate(organised(frames[0]), "fog", visibility_m=30.0, patchiness=0.0)
    (old,), (new,) = changed.source.bundle.clouds, changed.bundle.clouds
    before, after = (np.linalg.norm(np.asarray(c.xyz, np.float64), axis=1) for c in (old, new))
    empty, far = before == 0.0, before > 25.0
    echo = (after > 0.0) & (after < np.where(empty, np.inf, before) - 1e-3)
    return {
        "with an echo, of beams without a return, %": 100.0 * float(echo[empty].mean()),
        "with an echo, of beams with one beyond 25 m, %": 100.0 * float(echo[far].mean()),
    }


@dataclass(frozen=True)
class Part:
    """Figures that one function measures, with the limits (lowest, highest) of those that have a goal."""

    title: str
    measure: Callable[[Frames], Figures]
    goals: dict[str, tuple[float, float]]


PARTS = (
    Part("Ego motion from the clouds", ego_motion, {"place off by, m": (0.0, 0.05)}),
    Part(
        "An added pedestrian in the world",
        world_fixed,
        {
            "frames with one, %": (80.0, 100.0),
            # One in each frame would not be compared with itself.
            "frames with the same one, on average": (5.0, np.inf),
            "places in the world differ by, m": (0.0, 0.05),
        },
    ),
    Part(
        "Fog of a visibility of 40 to 300 m",
        fog_chance,
        {
            "visibilities with losses and echoes, %": (100.0, 100.0),
            "largest step from one to the next, points of %": (0.0, 4.0),
            "echoes at one range, at most, %": (0.0, 1.0),
        },
    ),
    Part(
        "Rain and snow",
        rain_and_snow,
        {"lost in rain of 50 mm/h, %": (0.01, 100.0), "echoes of snow beyond 6 m, %": (0.01, 100.0)},
    ),
    Part("Cars, recorded and added, at equal range", complete_cars, {"ratio": (0.8, 1.2)}),
    Part(
        "One scene in six intensity conventions, largest deviation",
        one_scene,
        dict.fromkeys(("lost, %", "scattered, %", "car over scene, %"), (0.0, 10.0)),
    ),
    Part(
        "Joint changes of clouds and pictures",
        messages_untouched,
        {"messages unchanged, without a reason": (0.0, 0.0)},
    ),
    Part("Beams without a return, in fog", empty_beams, {"with an echo, of beams without a return, %": (1.0, 100.0)}),
)


def measured(frames: Frames) -> dict[str, Figures]:
    """Return all figures by part."""
    return {part.title: part.measure(frames) for part in PARTS}


def missed(found: dict[str, Figures]) -> list[str]:
    """Return the figures that miss their goals, in words; a figure that is no number misses it, too."""
    return [
        f"{part.title}: {name}: {found[part.title][name]:.3g}, expected {_limits(*limits)}"
        for part in PARTS
        for name, limits in part.goals.items()
        if not limits[0] <= found[part.title][name] <= limits[1]
    ]


def page(found: dict[str, Figures], before: dict[str, Figures], bag: str) -> str:
    """Return docs/physics.md."""
    lines = []
    for part in PARTS:
        for name, now in found[part.title].items():
            old, limits = before.get(part.title, {}).get(name), part.goals.get(name)
            cells = (
                part.title,
                name,
                "" if old is None else f"{old:.3g}",
                f"{now:.3g}",
                _limits(*limits) if limits else "",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return HEAD.format(bag=bag) + "\n".join(lines) + "\n"


def _limits(low: float, high: float) -> str:
    if low == high:
        return f"{low:g}"
    return (
        f"up to {high:g}" if low == 0.0 else f"{low:g} or more" if high in (np.inf, 100.0) else f"{low:g} to {high:g}"
    )


def main() -> int:
    """Measure; write the page if asked to; return 1 if a figure misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bag", type=Path, help="a recorded drive with a LiDAR, such as that of docs/real_data.md")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--page", action="store_true", help="write docs/physics.md")
    args = parser.parse_args()
    found = measured(list(mt.frames(args.bag)))
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    text = page(found, before, args.bag.name)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if args.page:
        PAGE.write_text(text, encoding="utf-8")
    print(text)
    for line in (wrong := missed(found)):
        print(f"missed: {line}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
