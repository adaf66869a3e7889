# SPDX-License-Identifier: Apache-2.0
"""Generated drives with a radar, in the layouts that drivers publish."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from mt_nodes.data.cdr.further_messages import RADAR_SCAN, RETURN
from mt_nodes.data.messages import Bundle
from mt_nodes.data.radar import Radar
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.radar_model import front_radar

#: As of the files of nuScenes.
NUSCENES = np.dtype(
    [
        *((name, "<f4") for name in ("x", "y", "z")),
        *(("dyn_prop", "i1"), ("id", "<i2")),
        *((name, "<f4") for name in ("rcs", "vx", "vy", "vx_comp", "vy_comp")),
        ("is_quality_valid", "i1"),
    ]
)
SPEED_MPS = 8.0


@lru_cache
def drive(count: int = 3) -> tuple[Bundle, ...]:
    return tuple(generate_drive(count, radar=front_radar()))


def in_layout(bundle: Bundle, layout: str) -> Bundle:
    """Return a bundle of the drive with its radar in another layout."""
    made = {"points": lambda radar: radar, "scan": _scan, "nuscenes": _nuscenes}[layout]
    return replace(bundle, radars=tuple(map(made, bundle.radars)))


def _scan(radar: Radar) -> Radar:
    points = np.zeros(len(radar), RETURN)
    points["range"], points["azimuth"], points["elevation"] = radar.polar
    points["doppler_velocity"], points["amplitude"] = radar.doppler_mps, radar.strength_db
    return Radar(radar.topic, radar.stamp_ns, radar.frame_id, points, type=RADAR_SCAN)


def _nuscenes(radar: Radar) -> Radar:
    points, xy = np.zeros(len(radar), NUSCENES), radar.xyz[:, :2]
    for name in "xyz":
        points[name] = radar.points[name]
    ray = xy / np.linalg.norm(xy, axis=1)[:, None]
    points["vx"], points["vy"] = (ray * radar.doppler_mps[:, None]).T
    points["vx_comp"], points["vy_comp"] = (ray * (radar.doppler_mps + SPEED_MPS * ray[:, 0])[:, None]).T
    points["rcs"], points["id"], points["is_quality_valid"] = radar.strength_db, np.arange(len(radar)), 1
    return Radar(radar.topic, radar.stamp_ns, radar.frame_id, points)
