# SPDX-License-Identifier: Apache-2.0
"""``mt_nodes.demo_drive``: a recording to begin with, generated."""

from __future__ import annotations

import os
from pathlib import Path

from mt_nodes.base.errors import UsageError

#: Frames and seed of `mt demo`.
FRAMES, SEED = 25, 1


def demo_drive(bag: str | os.PathLike[str], frames: int = FRAMES, seed: int = SEED, *, radar: bool = False) -> Path:
    """Write a bag with a generated drive: clouds of a 64-beam LiDAR in a street, 10 Hz; return its path.

    Args:
        bag: directory to write.
        frames: number of clouds; relations need 20.
        seed: of the street.
        radar: whether it has the detections of a front radar, too.

    Raises:
        UsageError: the directory exists, or there are no frames.
    """
    from mt_nodes.data.bags.bundles import write_bundles
    from mt_nodes.world.scene.drive import generate_drive
    from mt_nodes.world.scene.radar_model import front_radar

    if frames < 1:
        raise UsageError(f"demo_drive: frames: got {frames}, expected at least 1")
    path = Path(bag)
    write_bundles(path, generate_drive(frames, seed, radar=front_radar() if radar else None))
    return path
