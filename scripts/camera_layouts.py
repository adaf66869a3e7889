# SPDX-License-Identifier: Apache-2.0
"""Tries every mutation that changes pictures on fisheye cameras and rigs; ``--docs DIR`` writes what came out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from lidar_layouts import APPLIES, outcome, table, with_other_places

from mt_nodes.base.plugins import catalogue
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

PAGE = "camera_layouts.md"
#: Where four cameras of a rig stand: name, yaw in degrees, metres ahead and to the left.
_RIG = (("front", 0.0, 2.0, 0.0), ("left", 90.0, 0.5, 0.9), ("rear", 180.0, -2.0, 0.0), ("right", -90.0, 0.5, -0.9))
_SIZE = {"width": 240, "height": 180}
#: Coefficients of a fisheye (equidistant) and of a wide lens (plumb_bob), of the size that calibrations have (assumed).
_FISHEYE = {"model": "equidistant", "distortion": (0.02, -0.005, 0.001, 0.0), "field_of_view_deg": 190.0}
_WIDE = {"distortion": (-0.25, 0.06, 0.0005, -0.0005, 0.0), "field_of_view_deg": 90.0}


@dataclass(frozen=True)
class Layout:
    """Cameras of a vehicle, and what is special about them."""

    cameras: tuple[CameraSensor, ...]
    about: str


def _rig(**lens: object) -> tuple[CameraSensor, ...]:
    places = (
        {"name": name, "yaw_deg": yaw, "forward_m": ahead, "left_m": left, "height_m": 1.1}
        for name, yaw, ahead, left in _RIG
    )
    return tuple(CameraSensor(**_SIZE, **lens, **place) for place in places)  # type: ignore[arg-type]


LAYOUTS = {
    "wide lens": Layout((CameraSensor(**_SIZE, **_WIDE),), "`plumb_bob` with five coefficients, 90 degrees across"),  # type: ignore[arg-type]
    "fisheye": Layout((CameraSensor(**_SIZE, **_FISHEYE),), "`equidistant` with four coefficients, 190 degrees"),  # type: ignore[arg-type]
    "plain fisheye": Layout(
        (CameraSensor(**_SIZE, **{**_FISHEYE, "distortion": (0.0,) * 4, "field_of_view_deg": 150.0}),),  # type: ignore[arg-type]
        "`equidistant` with coefficients of 0 (r = f θ), 150 degrees",
    ),
    "four pinholes": Layout(
        _rig(field_of_view_deg=100.0), "ahead, left, behind, right; 100 degrees each: they overlap"
    ),
    "four fisheyes": Layout(_rig(**_FISHEYE), "the same with 190 degrees each: every place is in two pictures"),
}


@lru_cache
def bundles_of(name: str, seed: int = 1) -> tuple[Bundle, ...]:
    """Return two instants of a generated street, with the cloud of 64 beams."""
    lidar = replace(hdl_64e(), azimuths=900)
    return tuple(generate_drive(2, seed, lidar, LAYOUTS[name].cameras))


def camera_mutations() -> dict[str, Mutation]:
    """Return every mutation that changes pictures and needs no extra, with its defaults."""
    made = catalogue("mutations").items()
    found = {name: cls() for name, cls in made if "camera" in cls.sensors and not cls.extra}  # type: ignore[attr-defined]
    return with_other_places(found)


@lru_cache
def outcomes() -> dict[str, dict[str, str]]:
    """Return what came out, by mutation and by layout."""
    return {
        name: {layout: outcome(mutation, list(bundles_of(layout))) for layout in LAYOUTS}
        for name, mutation in sorted(camera_mutations().items())
    }


def page() -> str:
    """Return the page."""
    found = outcomes()
    refusals = [(name, layout, text) for name, row in found.items() for layout, text in row.items() if text != APPLIES]
    return "\n\n".join((*_head(), table(("mutation", *LAYOUTS), _rows(found)), *_reasons(refusals))) + "\n"


def _head() -> Iterator[str]:
    yield "# Mutations on fisheye cameras and rigs"
    yield (
        "This page lists which mutations of pictures work with fisheye lenses and with four cameras, and why one does "
        "not. `scripts/camera_layouts.py --docs docs` makes it: it renders a generated street for each layout, and "
        "derives and proves a follow-up with every mutation and its defaults."
    )
    yield (
        "One draw changes all cameras: what is in the world (an object, the sun, rain) is drawn once for a bundle, and "
        "every camera shows it from where it stands: an object, the sun and each drop at one place. The light of the "
        "air, the sky and the ground in weather is measured over all pictures that overlap, and shown by each camera "
        "at its own exposure, which the places that two cameras see tell; a camera that overlaps with none has its own "
        "horizon. What is on a lens is drawn for each. Fisheyes may see more than 180 degrees; `distortion_model` is "
        "`equidistant` or `fisheye`."
    )
    yield table(("cameras", "what they are"), ((name, layout.about) for name, layout in LAYOUTS.items()))
    yield "## Mutation by layout"


def _rows(found: dict[str, dict[str, str]]) -> Iterator[tuple[str, ...]]:
    for name, row in found.items():
        yield f"`{name}`", *("yes" if text == APPLIES else "no" for text in row.values())


def _reasons(refusals: list[tuple[str, str, str]]) -> Iterator[str]:
    if refusals:
        yield "## Why not"
        yield table(("mutation", "cameras", "NOT_APPLICABLE because"), ((f"`{n}`", c, why) for n, c, why in refusals))


def main() -> int:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path, metavar="DIR", help=f"write {PAGE} there")
    asked = parser.parse_args()
    if asked.docs is None:
        print(page())
    else:
        (asked.docs / PAGE).write_text(page(), encoding="utf-8")
    return int(any(text.startswith("BROKEN") for row in outcomes().values() for text in row.values()))


if __name__ == "__main__":
    raise SystemExit(main())
