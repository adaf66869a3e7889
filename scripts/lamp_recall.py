# SPDX-License-Identifier: Apache-2.0
"""Measures the recall of `reference_lamps`: lights put into pictures at known distances, and how many are found.

    .venv/bin/python scripts/lamp_recall.py BAG [--draws 6] [--far 40]

The lights are those of `light_added`, which shares no code with the detector. A light counts only where the
picture without it shows nothing of its colour at its place. The figures stand in config/stacks/reference_lamps.yaml.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.objects.post_added import LightAdded
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.stacks.reference.lamp_detector import LampDetector

_BINS_M = (0.0, 15.0, 25.0, 35.0, 50.0)


def main() -> None:
    """Print lights found of lights shown, by colour and distance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bag", type=Path)
    parser.add_argument("--draws", type=int, default=6, help="lights per picture and colour")
    parser.add_argument("--far", type=float, default=40.0, help="largest distance in metres")
    parser.add_argument("--every", type=int, default=5, help="use every so many pictures")
    args = parser.parse_args()
    for colour in ("red", "yellow", "green"):
        shown = found = 0
        by_range = np.zeros((len(_BINS_M) - 1, 2), dtype=int)
        with BagSource(args.bag, {}, None, require=("lidar", "camera")) as source:
            for bundle in source:
                if bundle.index % args.every:
                    continue
                for draw in range(args.draws):
                    looked = _looked(bundle, colour, draw, args.far)
                    if looked is None:
                        continue
                    ahead_m, hit = looked
                    shown, found = shown + 1, found + hit
                    by_range[np.searchsorted(_BINS_M, ahead_m) - 1] += (hit, 1)
        rows = ", ".join(f"to {far:g} m {a} of {b}" for far, (a, b) in zip(_BINS_M[1:], by_range, strict=True))
        print(f"{colour}: {found} of {shown} found ({rows})")


def _looked(bundle: Bundle, colour: str, draw: int, far_m: float) -> tuple[float, int] | None:
    """Return distance of a light and whether it is found, None where none is shown or something was there already."""
    mutation = LightAdded(kind=colour, range_m=(6.0, far_m))
    try:
        derived, _ = MutationPipeline([mutation], draw, "lamp_recall").derive_unproven(bundle)
    except NotApplicable:
        return None
    followup = derived.followup
    boxes, (volume,) = followup.effects.image_boxes, followup.effects.added[:1]
    if not boxes or boxes[0].visible < 0.9:
        return None
    before, after = (_inside(one, colour, boxes[0].box_px) for one in (bundle, followup.first))
    return None if before else (float(np.hypot(*np.asarray(volume.center_m)[:2])), int(after))


def _inside(bundle: Bundle, colour: str, box: tuple[float, ...]) -> bool:
    """Return whether something of a colour is found in the upper third of a box, where the lenses are."""
    given = {"image": decode(bundle.images[0]).rgb8(), "camera_info": bundle.camera_infos[0]}
    found = LampDetector()(given)
    rows = found.box_px[found.label == f"{colour}_light"]
    apart = (
        (rows[:, 0] > box[2])
        | (rows[:, 2] < box[0])
        | (rows[:, 1] > box[1] + (box[3] - box[1]) / 3.0)
        | (rows[:, 3] < box[1])
    )
    return bool((~apart).any())


if __name__ == "__main__":
    main()
