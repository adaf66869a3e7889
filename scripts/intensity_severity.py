# SPDX-License-Identifier: Apache-2.0
"""Severity of weather and brightness of an added car, on one scene in the intensity conventions of several sensors."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from sensor_layouts import SENSOR_LAYOUTS, as_sensor

from mt_nodes.base.plugins import catalogue
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.scene.drive import generate_drive

Row = dict[str, float]
SIX = ("kitti", "velodyne", "ouster", "ouster_signal", "hesai", "livox")


def severities(bundle: Bundle, layouts: Iterable[str] = SIX, visibility_m: float = 100.0) -> dict[str, Row]:
    """Return by layout the shares of returns that fog takes and scatters, and how bright an added car is.

    One receiver is assumed for all, so that nothing but the meaning of the values differs. The car's brightness is the
    median reflectivity of its returns over that of the scene, both read by the convention that the cloud was made by,
    which the mutation was not told.

    Args:
        bundle: with one cloud whose intensities are understood.
    """
    return {name: _severity(replace(bundle, clouds=(as_sensor(bundle.clouds[0], name),)), name, visibility_m)
            for name in layouts}  # fmt: skip


def spread(rows: dict[str, Row], figure: str) -> float:
    """Return the largest relative deviation of a figure from its median over the layouts."""
    values = np.array([row[figure] for row in rows.values()])
    return float(np.abs(values / np.median(values) - 1.0).max()) if np.median(values) else float(np.ptp(values))


def _severity(bundle: Bundle, layout: str, visibility_m: float) -> Row:
    mutations, cloud = catalogue("mutations"), bundle.clouds[0]
    fog = MutationPipeline([mutations["fog"](visibility_m=visibility_m, sensor="generic")], 1, "fog").derive(bundle)
    car = MutationPipeline([mutations["object_added"](kind="car")], 1, "car").derive(bundle)
    assert fog.broken is None and car.broken is None, f"{layout}: {fog.broken or car.broken}"
    numbers = fog.effects.numbers
    drawn = {name.partition("|")[2]: value for name, value in car.draws[0].items()}
    row = SENSOR_LAYOUTS[layout].convention("intensity")
    scene = row.reflectivity(cloud.points["intensity"], np.linalg.norm(cloud.xyz, axis=1))
    shown = row.reflectivity(drawn["intensity"], drawn["range_m"])
    return {
        "lost": numbers["returns_lost"] / len(cloud),
        "scattered": numbers["returns_scattered"] / len(cloud),
        "car_over_scene": float(np.median(shown) / np.median(scene)),
    }


def main() -> None:
    """Print the figures of a generated street, or of a bag's first cloud."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bag", nargs="?", type=Path)
    parser.add_argument("--visibility", type=float, default=100.0, metavar="M")
    given = parser.parse_args()
    bundle = next(iter(generate_drive(1) if given.bag is None else BagSource(given.bag, limit=1)))
    rows = severities(replace(bundle, images=(), camera_infos=()), SENSOR_LAYOUTS, given.visibility)
    for name, row in rows.items():
        reading = as_sensor(bundle.clouds[0], name).echoes
        print(f"{name:15s}", *(f"{key} {value:.4f}" for key, value in row.items()), reading.assumption, sep="  ")
    print("spread", *(f"{key} {spread(rows, key):.1%}" for key in next(iter(rows.values()))), sep="  ")


if __name__ == "__main__":
    main()
