# SPDX-License-Identifier: Apache-2.0
"""Draws every manipulation of a frame on one sheet, to look at: `scripts/contact_sheet.py --out sheet.png`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.manipulations import Manipulation, manipulations
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive

Tile = npt.NDArray[np.uint8]
_WIDTH, _COLUMNS, _LINE = 420, 5, 22


def main() -> int:
    """Draw the sheet; the exit code says whether every manipulation has a follow-up or a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="picture to write")
    parser.add_argument("--bag", type=Path, help="a bag with camera and LiDAR (default: a generated drive)")
    parser.add_argument("--frame", type=int, default=0, help="number of the frame, from 0")
    parser.add_argument("--seed", type=int, default=0, help="what every draw depends on")
    parser.add_argument("--names", default="", help="only those whose name contains this")
    args = parser.parse_args()
    bundle = _frame(args.bag, args.frame)
    chosen = [m for m in manipulations().values() if not m.alias_of and not m.unsupported and args.names in m.name]
    tiles = [_tile(bundle.images[0] and decode(bundle.images[0]).rgb8(), "source")]
    refused = 0
    for manipulation in chosen:
        try:
            made = follow_up(manipulation, bundle, args.seed)
        except (NotApplicable, UsageError) as reason:
            print(f"{manipulation.name}: {reason}")
            refused += 1
            continue
        tiles.append(_tile(decode(made.images[0]).rgb8(), manipulation.name))
    cv2.imwrite(str(args.out), _sheet(tiles)[..., ::-1])
    print(f"{args.out}: {len(tiles) - 1} manipulations, {refused} without a follow-up of this frame")
    return 0


def follow_up(manipulation: Manipulation, bundle: Bundle, seed: int) -> Bundle:
    """Return what a manipulation makes of a frame, proved.

    Raises:
        NotApplicable: it has no honest follow-up.
        UsageError: its guarantee is broken.
    """
    derived = MutationPipeline(manipulation.mutations(), seed, manipulation.name).derive(bundle)
    if derived.broken is not None:
        raise UsageError(f"guarantee broken: {derived.broken}")
    return derived.followup.first


def _frame(bag: Path | None, number: int) -> Bundle:
    if bag is None:
        return list(generate_drive(number + 1, camera=CameraSensor()))[number]
    from mt_nodes.data.bags.bundles import BagSource

    with BagSource(bag, require=("lidar", "camera", "camera_info"), limit=number + 1) as source:
        return list(source)[number]


def _tile(rgb: Tile, name: str) -> Tile:
    height = round(rgb.shape[0] * _WIDTH / rgb.shape[1])
    small = cv2.resize(rgb, (_WIDTH, height), interpolation=cv2.INTER_AREA)
    title = np.zeros((_LINE, _WIDTH, 3), np.uint8)
    cv2.putText(title, name, (4, _LINE - 7), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (255, 255, 255), 1, cv2.LINE_AA)
    return np.vstack([title, small])


def _sheet(tiles: list[Tile]) -> Tile:
    empty = np.zeros_like(tiles[0])
    padded = tiles + [empty] * (-len(tiles) % _COLUMNS)
    return np.vstack([np.hstack(padded[i : i + _COLUMNS]) for i in range(0, len(padded), _COLUMNS)])


if __name__ == "__main__":
    sys.exit(main())
