# SPDX-License-Identifier: Apache-2.0
"""Rings that are known beforehand are found again, and those that nobody can know are refused with numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drives import KITTI, street
from hypothesis import given, settings
from hypothesis import strategies as st
from made_bundles import LAYOUTS, made_cloud
from sensor_models import SENSORS, sensor_model

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.messages import Cloud
from mt_nodes.world.scene.beams import beams_of

SCAN = street().cloud()
RINGS = SCAN.points["ring"].astype(int)


def bare(cloud: Cloud, order: np.ndarray | None = None) -> Cloud:
    """The cloud without ring and time, in another order."""
    points = np.empty(len(cloud), dtype=LAYOUTS["kitti"])
    for name in points.dtype.names or ():
        points[name] = cloud.points[name]
    return replace(cloud, points=points if order is None else points[order])


def same_partition(found: np.ndarray, true: np.ndarray) -> float:
    """Share of the points whose found ring stands for their true one."""
    table = np.zeros((found.max() + 1, true.max() + 1), dtype=int)
    np.add.at(table, (found, true), 1)
    return float(table.max(axis=1).sum() / len(true))


def test_a_field_says_the_rings() -> None:
    beams = beams_of(SCAN)
    assert (beams.source, beams.quality, len(beams.rings)) == ("field ring", 1.0, 64)
    assert (beams.ring == RINGS).all()
    assert np.degrees(beams.elevations_rad[[0, 31, 63]]) == pytest.approx([2.02, -8.52, -24.71], abs=0.01)
    assert beams.upward.tolist() == list(range(63, -1, -1))
    assert beams_of(SCAN) is beams, "found once for each cloud"


@pytest.mark.parametrize("clockwise", [True, False])
@pytest.mark.parametrize("start_deg", [0.0, 90.0, 180.0, 200.0])
def test_rings_are_found_in_the_order_of_the_scan(clockwise: bool, start_deg: float) -> None:
    turned = np.radians(start_deg)
    azimuth = np.mod(np.arctan2(SCAN.points["y"], SCAN.points["x"]), 2.0 * np.pi)
    order = np.lexsort((-azimuth if clockwise else azimuth, RINGS))
    cloud = bare(SCAN, order)
    x, y = cloud.points["x"].copy(), cloud.points["y"].copy()
    cloud.points["x"], cloud.points["y"] = (
        np.cos(turned) * x - np.sin(turned) * y,
        np.sin(turned) * x + np.cos(turned) * y,
    )
    beams = beams_of(cloud)
    assert beams.source == "scan order" and len(beams.rings) == 64
    # Where no sensor has its seam, only the first ring tells of it, and its gaps are as long as that one's.
    assert same_partition(beams.ring, RINGS[order]) > (0.95 if start_deg == 200.0 else 0.999)


@pytest.mark.parametrize("order", ["firing", "shuffled"])
def test_rings_are_found_by_their_elevation(order: str) -> None:
    rows = np.arange(len(SCAN)) if order == "firing" else np.random.default_rng(1).permutation(len(SCAN))
    beams = beams_of(bare(SCAN, rows))
    assert beams.source == "elevation" and len(beams.rings) == 64 and beams.quality > 0.99
    known = beams.ring >= 0
    assert (63 - beams.ring[known] == RINGS[rows][known]).all(), "counted from the lowest up"


def test_rows_or_columns_of_an_organised_cloud_are_rings() -> None:
    points = made_cloud("kitti", 64 * 128).points
    lying = Cloud("/l", 0, "lidar", points, height=64)
    assert beams_of(lying).source == "rows"
    assert (beams_of(lying).ring.reshape(64, 128) == np.arange(64)[:, None]).all()
    standing = beams_of(Cloud("/l", 0, "lidar", points, height=128))
    assert standing.source == "columns" and (standing.ring.reshape(128, 64) == np.arange(64)).all()


def test_empty_returns_count_for_nothing() -> None:
    points = bare(SCAN).points.copy()
    points["x"][::3] = np.nan
    for name in "xyz":
        points[name][1::3] = 0.0
    beams = beams_of(replace(SCAN, points=points))
    assert len(beams.rings) == 64 and np.degrees(beams.elevations_rad[0]) == pytest.approx(-24.71, abs=0.01)
    assert (beams.ring[::3] == -1).all() and (beams.ring[1::3] == -1).all()


@pytest.mark.parametrize("count", [0, 1, 2, 50, 4000])
def test_what_nobody_can_tell_is_refused_with_numbers(count: int) -> None:
    cloud = made_cloud("kitti", count)
    with pytest.raises(NotApplicable, match=r"no beams can be told.* \d+ returns|no return"):
        beams_of(cloud)
    with pytest.raises(NotApplicable):
        beams_of(cloud)


@given(count=st.integers(2, 3000), seed=st.integers(0, 2**32 - 1), sort=st.booleans())
@settings(max_examples=40, deadline=None)
def test_chance_has_no_rings(count: int, seed: int, sort: bool) -> None:
    rng = np.random.default_rng(seed)
    azimuth, elevation = rng.uniform(-np.pi, np.pi, count), rng.uniform(-0.4, 0.2, count)
    points = np.empty(count, dtype=LAYOUTS["no_intensity"])
    azimuth = np.sort(azimuth) if sort else azimuth
    points["x"], points["y"], points["z"] = np.cos(azimuth), np.sin(azimuth), np.tan(elevation)
    with pytest.raises(NotApplicable):
        beams_of(Cloud("/l", 0, "lidar", points))


def test_the_recorded_drive_has_64_rings() -> None:
    if not KITTI.is_dir():
        pytest.skip(f"no recorded drive at {KITTI}")
    with BagSource(KITTI, limit=3) as source:
        for bundle in source:
            beams = beams_of(bundle.cloud())
            assert (beams.source, len(beams.rings)) == ("scan order", 64)
            assert beams.quality > 0.99
            assert (np.diff(beams.ring) >= 0).all()
            # The recording tilts by degrees, but over all azimuths the beams are in order but for neighbours.
            assert np.degrees(beams.elevations_rad[0]) > 3.0 > -22.0 > np.degrees(beams.elevations_rad[-1])
            assert (beams.elevations_rad[:-4] > beams.elevations_rad[4:]).all()


@pytest.mark.parametrize("name", SENSORS)
def test_a_model_is_what_its_maker_says(name: str) -> None:
    model = sensor_model(name)
    rings = {"hdl_64e": 64, "hdl_32e": 32, "vlp_16": 16, "os1_128": 128}.get(name, 0)
    assert len(model.elevations_deg) == rings and list(model.elevations_deg) == sorted(model.elevations_deg)
    assert 0.0 < model.range_min_m < model.range_max_m and model.accuracy_m > 0.0 and len(model.source) > 30
    directions = model.directions()
    assert np.linalg.norm(directions, axis=1) == pytest.approx(1.0)
    if rings:
        assert len(directions) == rings * round(360.0 / model.azimuth_step_deg)
        assert np.degrees(np.arcsin(directions[:rings, 2])) == pytest.approx(np.array(model.elevations_deg))


def test_a_rosette_fills_its_circle_and_does_not_repeat() -> None:
    model = sensor_model("livox_mid_40")
    first, second = model.directions(0.0), model.directions(0.1)
    assert len(first) == 10_000
    off_axis = np.degrees(np.arccos(first[:, 0]))
    assert 18.9 < off_axis.max() < 19.3 and off_axis.min() < 1.0
    assert np.abs(first - second).max() > 0.05


def test_an_unknown_model_suggests_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'vlp_16'"):
        sensor_model("vlp16")
