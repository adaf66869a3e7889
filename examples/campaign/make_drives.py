# SPDX-License-Identifier: Apache-2.0
"""Writes drives/1, drives/2 …: generated streets with a 64-beam LiDAR, to try a campaign without a recording."""

from __future__ import annotations

import argparse
from pathlib import Path

from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.world.scene.drive import generate_drive


def main() -> None:
    """Write as many as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drives", type=int, default=4)
    parser.add_argument("--clouds", type=int, default=6, help="of each drive, 10 a second")
    given = parser.parse_args()
    for seed in range(1, given.drives + 1):
        write_bundles(Path("drives") / str(seed), generate_drive(given.clouds, seed))


if __name__ == "__main__":
    main()
