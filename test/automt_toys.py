# SPDX-License-Identifier: Apache-2.0
"""Stacks of which it is known how they answer to a change, whatever it is; and a short bag to drive them by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.outputs import Control
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

FRAMES = 10
#: What makes most rules apply: nothing else says it of a generated drive.
FACTS = ("speed_kmh=60.0", "steering_rad=0.0", "time_of_day=day", "weather=clear", "roads=intersection")


class Toy:
    """Drives the same way as long as an instant looks as when it came first; then by so much slower and to the left.

    It serves both arms, so what comes first is the source. What is as small as noise is no other look.
    """

    def __init__(self, base: float = 10.0, slower: float = 0.0, left: float = 0.0) -> None:
        self._base, self._slower, self._left = base, slower, left
        self._first: dict[int, Any] = {}

    def __call__(self, given: dict[str, Any], stamp_ns: int) -> Control:
        points, image = given["points"], given["image"].astype(float)
        tiles = image[:96].reshape(6, 16, 10, 16, 3).mean(axis=(1, 3))
        look = np.array([len(points), *(100.0 * points[:, :3].mean(axis=0)), *tiles.ravel()])
        changed = bool(np.abs(look - self._first.setdefault(stamp_ns, look)).max() > 2.0)
        return Control(None, changed * self._left, self._base - changed * self._slower)


def toy(path: Path, name: str, **params: float) -> str:
    """Write the file of such a stack and return its path."""
    told = ", ".join(f"{key}: {value}" for key, value in params.items())
    file = path / f"{name}.yaml"
    file.write_text(
        f"name: {name}\ncallable: automt_toys:Toy\nparams: {{{told}}}\nstateless: true\n"
        "inputs: {lidar: /points, camera: /image}\noutputs: {control: /command}\n"
    )
    return str(file)


def short_bag(path: Path, frames: int = FRAMES) -> Path:
    """A drive past a few things, by a coarse LiDAR and a small camera."""
    lidar = replace(hdl_64e(), azimuths=300)
    write_bundles(path, generate_drive(frames, lidar=lidar, camera=CameraSensor(width=160, height=120)))
    return path
