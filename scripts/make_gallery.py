# SPDX-License-Identifier: Apache-2.0
"""Makes docs/gallery/: a picture of what each mutation does to one frame of the generated drive."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from PIL import Image

from mt_nodes.base.plugins import catalogue
from mt_nodes.engine.bag_mutation import RELATION
from mt_nodes.relations.mutations.stream.whole_stream import SENSORS
from mt_nodes.report.mutation_picture import draw
from mt_nodes.report.pictures.frame_inspection import AFTER, BEFORE, inspect
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.radar_model import front_radar

PLACE = Path(__file__).resolve().parents[1] / "docs" / "gallery"
#: The street's objects overlap, so that none can be taken out of the picture cleanly: clouds show these.
SETTINGS = {name: {"pictures": "stay"} for name in ("object_moved", "object_removed", "object_replaced")}
FRAME, DPI, COLOURS, CAMERA = BEFORE, 76, 112, CameraSensor(width=480, height=320)


def main(argv: list[str] | None = None) -> int:
    """Draw every mutation of the catalogue, or those named; remove pictures of what is gone."""
    parser = argparse.ArgumentParser(prog="make_gallery", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these (default: all)")
    names = parser.parse_args(argv).names or drawn_by_default()
    drives = {
        False: list(generate_drive(FRAME + AFTER + 1, camera=CAMERA)),
        True: list(generate_drive(FRAME + AFTER + 1, radar=front_radar())),
    }
    PLACE.mkdir(parents=True, exist_ok=True)
    for name in names:
        mutation = catalogue("mutations")[name](**SETTINGS.get(name, {}))
        bundles = drives[tuple(mutation.sensors) == ("radar",)]
        figure = draw(inspect(bundles, [mutation], name, RELATION, FRAME, seed=0))
        drawn = io.BytesIO()
        figure.savefig(drawn, dpi=DPI)
        # Few colours are a third of the bytes; this way of choosing them keeps rare ones, such as of a few points.
        small = (
            Image.open(drawn)
            .convert("RGB")
            .quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)
        )
        small.save(PLACE / f"{name}.png", optimize=True)
    for path in PLACE.glob("*.png"):
        if path.stem not in catalogue("mutations"):
            path.unlink()
    return 0


def drawn_by_default() -> list[str]:
    """Return the names of what needs no extra of the package, and shows in a cloud or a picture."""
    found = catalogue("mutations").items()
    return [name for name, cls in found if not cls.extra and {*SENSORS} & {*cls.sensors}]  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main())
