# SPDX-License-Identifier: Apache-2.0
"""Mutations on LiDARs without rings: rosettes, rasters, pixels; what does not apply has a physical reason."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.lidar.scan_limits import BeamsLost, DensityDecreased, VerticalResolutionReduced
from mt_nodes.world.scene.scan_lines import BANDS, lasers_of, scan_lines_of

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import lidar_layouts  # noqa: E402
from lidar_layouts import LAYOUTS  # noqa: E402


@cache
def frame(name: str) -> Bundle:
    return next(lidar_layouts.bundles_of(LAYOUTS[name]))


def directions(cloud: Cloud) -> np.ndarray:
    xyz = cloud.xyz.astype(np.float64)
    return xyz / np.linalg.norm(xyz, axis=1)[:, None]


def test_one_laser_cannot_fail_in_part() -> None:
    with pytest.raises(NotApplicable, match="one laser fires every return of /points: field line is always 0"):
        lasers_of(frame("Livox Mid-40").cloud())


def test_lasers_are_told_by_their_field() -> None:
    bundle = frame("Livox Avia")
    cloud, mutation = bundle.cloud(), BeamsLost(rings=(2, 5))
    assert lasers_of(cloud).source == "field line" and lasers_of(cloud).rings.tolist() == list(range(6))
    draw = mutation.draw(np.random.default_rng(0), bundle, mutation.begin(np.random.default_rng(0), bundle))
    left = mutation.apply(bundle, draw).first.cloud()
    assert sorted(set(left.points["line"].tolist())) == [0, 1, 3, 4]
    assert len(left) == np.isin(cloud.points["line"], (2, 5), invert=True).sum()


@pytest.mark.parametrize("name", ["Livox Mid-40", "Luminar Iris"])
def test_bands_are_as_high_as_returns_are_apart(name: str) -> None:
    cloud = frame(name).cloud()
    lines = scan_lines_of(cloud)
    assert lines.source == BANDS and (lines.ring >= 0).all()
    elevation = np.arcsin(directions(cloud)[:, 2])
    heights = [np.ptp(elevation[lines.ring == band]) for band in lines.rings[1:-1]]
    apart = np.median(cKDTree(directions(cloud)).query(directions(cloud), k=2)[0][:, 1])
    assert 0.5 * apart < np.median(heights) < 8.0 * apart


@pytest.mark.parametrize("order", ["fired", "shuffled"])
def test_density_falls_evenly_in_angle_whatever_the_order(order: str) -> None:
    bundle = frame("Livox Mid-40")
    cloud = bundle.cloud()
    if order == "shuffled":
        cloud = cloud.with_raw(cloud.raw[np.random.default_rng(5).permutation(len(cloud))])
        bundle = bundle.with_clouds([cloud])
    mutation = DensityDecreased(keep_every=3)
    followup = mutation.apply(bundle, mutation.draw(np.random.default_rng(0), bundle, None))
    assert mutation.guarantee(bundle, followup, mutation.draw(np.random.default_rng(0), bundle, None)) is None
    left = followup.first.cloud()
    assert len(left) == pytest.approx(len(cloud) / 3.0, rel=0.05)
    # Every cell of 3 by 3 degrees loses its share: a random third would vary far more.
    cells = [np.floor(np.degrees(np.arcsin(directions(c)[:, 1:])) / 3.0).astype(int) for c in (cloud, left)]
    counts = [dict(zip(*np.unique(c @ [1000, 1], return_counts=True), strict=True)) for c in cells]
    dense = {cell: n for cell, n in counts[0].items() if n > 40}
    share = np.array([counts[1].get(cell, 0) / n for cell, n in dense.items()])
    chance = np.sqrt(1 / 3 * 2 / 3 / np.mean(list(dense.values())))
    assert len(dense) > 20 and np.std(share) < 0.7 * chance


def test_every_second_line_of_a_raster_stays() -> None:
    bundle = frame("Innoviz One")
    mutation = VerticalResolutionReduced(keep_every=2)
    left = mutation.apply(bundle, mutation.draw(np.random.default_rng(0), bundle, None)).first.cloud()
    full = np.isfinite(left.points["x"]).reshape(left.height, left.width).any(axis=1)
    before = np.isfinite(bundle.cloud().points["x"]).reshape(left.height, left.width).any(axis=1)
    assert full.sum() == pytest.approx(before.sum() / 2, abs=1) and not (full[1:] & full[:-1]).any()


def test_a_cloud_without_a_return_has_no_lines() -> None:
    cloud = frame("Livox Mid-40").cloud()
    with pytest.raises(NotApplicable, match="no return"):
        scan_lines_of(replace(cloud, points=cloud.points[:0]))
