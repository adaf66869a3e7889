# SPDX-License-Identifier: Apache-2.0
"""Mutations that add points: noise, copies, density."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_bundles import LAYOUTS, TOPIC, made_bundle, made_cloud
from test_mutations_points import (
    FEW,
    ORGANISED,
    STREET,
    derive,
    derived,
    range_m,
    scan,
    two_walls,
)

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.lidar.density_increased import DensityIncreased
from mt_nodes.relations.mutations.lidar.drawn_returns import (
    PointsDuplicated,
)
from mt_nodes.relations.mutations.lidar.noise_clustered_outside_roi import NoiseClusteredOutsideRoi
from mt_nodes.relations.mutations.lidar.noise_inside_roi import NoiseInsideRoi
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.scan_limits import DensityDecreased

# --- points added


@FEW
@given(st.integers(1, 200), st.integers(0, 2**31), st.sampled_from(["velodyne", "ouster", "double", "organised"]))
def test_noise_inside_ends_beams_early(points: int, seed: int, layout: str) -> None:
    bundle = ORGANISED if layout == "organised" else made_bundle(made_cloud(layout))
    mutation = NoiseInsideRoi(points=points)
    old, (new, draw) = bundle.cloud(), derived(mutation, bundle, seed)
    rows = draw["rows"].astype(int)
    assert len(np.unique(rows)) == points and len(new) == len(old)
    xyz = new.xyz[rows].astype(float)
    assert ((xyz[:, 0] >= 0) & (xyz[:, 0] <= 40) & (np.abs(xyz[:, 1]) <= 10)).all()
    assert (range_m(new)[rows] < range_m(old)[rows]).all() and (range_m(new)[rows] >= 3.0).all()
    np.testing.assert_allclose(xyz / range_m(new)[rows, None], old.xyz[rows] / range_m(old)[rows, None], atol=1e-5)


def test_too_much_noise_inside_is_refused_with_numbers() -> None:
    with pytest.raises(NotApplicable, match=r"\d+ beams of .* can end early in region 'front_40m', 4000 are needed"):
        derive(NoiseInsideRoi(points=4000), made_bundle())


@FEW
@given(st.integers(1, 8), st.integers(1, 20), st.floats(0.05, 3.0), st.integers(0, 2**31))
def test_clumps_keep_together_and_outside(clusters: int, points_each: int, radius_m: float, seed: int) -> None:
    mutation = NoiseClusteredOutsideRoi(clusters=clusters, points_each=points_each, radius_m=radius_m)
    bundle = made_bundle()
    new, draw = derived(mutation, bundle, seed)
    rows = draw["rows"] + np.arange(len(draw["rows"]))
    xyz = new.xyz[rows].astype(float)
    assert len(new) == 4000 + clusters * points_each
    np.testing.assert_array_equal(np.bincount(draw["of"]), points_each)
    dx = np.maximum(np.maximum(-xyz[:, 0], xyz[:, 0] - 40.0), 0.0)
    assert (np.hypot(dx, np.maximum(np.abs(xyz[:, 1]) - 10.0, 0.0)) > 1.0).all()
    for cluster in range(clusters):
        own = xyz[draw["of"] == cluster]
        assert np.linalg.norm(own - own[0], axis=1).max() <= 2.0 * radius_m + 1e-3
    assert (np.diff(new.points["time"]) >= 0).all()


def test_clumps_fill_empty_returns_of_an_organised_cloud() -> None:
    mutation = NoiseClusteredOutsideRoi(clusters=4, points_each=25)
    new, draw = derived(mutation, ORGANISED)
    assert new.height == 64 and empty_returns(ORGANISED.cloud())[draw["rows"]].all()
    full = made_bundle(made_cloud("ouster", 8192, height=64))
    with pytest.raises(NotApplicable, match="0 empty returns, 100 are needed"):
        derive(mutation, full)


def test_a_point_outside_its_clump_is_seen() -> None:
    mutation = NoiseClusteredOutsideRoi(clusters=2, points_each=5, radius_m=0.5)
    followup, draw = derive(mutation, STREET)
    smaller = replace(mutation, radius_m=0.05)
    assert "from the centre of its clump" in str(smaller.guarantee(STREET, followup, draw))
    wider = replace(mutation, margin_m=90.0)
    assert "the margin is 90 m" in str(wider.guarantee(STREET, followup, draw))


def test_copies_are_right_behind_their_returns() -> None:
    bundle = made_bundle()
    old, (new, draw) = bundle.cloud(), derived(PointsDuplicated(share=0.25), bundle)
    assert len(new) == 5000
    same = np.flatnonzero(new.raw[1:] == new.raw[:-1])
    assert len(same) == 1000 and (np.sort(new.raw[same]) == np.sort(old.raw[draw["rows"]])).all()
    assert (np.diff(new.points["time"]) >= 0).all()


# --- density


@pytest.mark.parametrize("keep_every", [2, 3, 7])
def test_density_falls_in_every_ring(keep_every: int) -> None:
    new, _ = derived(DensityDecreased(keep_every=keep_every), STREET)
    before, after = (np.bincount(c.points["ring"], minlength=64) for c in (STREET.cloud(), new))
    np.testing.assert_array_equal(after, -(-before // keep_every))


def test_density_parts_are_the_whole() -> None:
    parts = [derived(DensityDecreased(keep_every=3, first=i), STREET)[0] for i in range(3)]
    joined = np.concatenate([p.raw for p in parts])
    assert sorted(joined.tolist()) == sorted(STREET.cloud().raw.tolist())


@pytest.mark.parametrize("bundle", [STREET, scan(two_walls)], ids=["street", "walls"])
def test_new_returns_lie_on_surfaces_and_on_beams_cones(bundle: Bundle) -> None:
    mutation = DensityIncreased(share=1.0, jump_m=0.05)
    old, (new, draw) = bundle.cloud(), derived(mutation, bundle)
    added = draw["earlier"].astype(int) + 1 + np.arange(len(draw["earlier"]))
    a, b, c = old.points[draw["earlier"]], old.points[draw["later"]], new.points[added]
    assert len(added) > 100 and len(new) == len(old) + len(added)
    assert (a["ring"] == b["ring"]).all() and (a["ring"] == c["ring"]).all()
    elevation = [np.arctan2(p["z"], np.hypot(p["x"], p["y"])) for p in (a, b, c)]
    np.testing.assert_allclose(elevation[2], (elevation[0] + elevation[1]) / 2, atol=2e-5)
    before, after = range_m(old), range_m(new)[added]
    low = np.minimum(before[draw["earlier"]], before[draw["later"]])
    assert ((after >= low - 1e-4) & (after <= low + 0.05 + 1e-3)).all()
    assert (np.diff(new.points["time"]) >= 0).all()


def test_nothing_is_put_across_a_depth_jump() -> None:
    new, _ = derived(DensityIncreased(share=1.0), scan(two_walls))
    r = range_m(new)
    assert not ((r > 10.2) & (r < 19.9)).any()
    assert len(new) == 4 * (90 + 44 + 44)


def test_a_return_in_a_depth_jump_is_seen() -> None:
    bundle = scan(two_walls)
    wide = DensityIncreased(share=1.0, jump_m=5.0)
    steep = scan(lambda azimuth, elevation: 10.0 + 2.0 * (azimuth > 0.0))
    followup, draw = derive(wide, steep)
    assert "depth jump of 2.00 m" in str(DensityIncreased(share=1.0).guarantee(steep, followup, draw))
    followup, draw = derive(wide, bundle)
    assert wide.guarantee(bundle, followup, draw) is None


def test_density_of_an_organised_cloud_rises_by_its_lost_returns() -> None:
    rows, columns = 8, 100
    azimuth, elevation = np.meshgrid(np.linspace(-0.3, 0.3, columns), np.linspace(-0.1, 0.1, rows))
    points = np.zeros(rows * columns, LAYOUTS["kitti"])
    for name, value in zip(
        "xyz",
        (np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)),
        strict=True,
    ):
        points[name] = 10.0 * value.ravel()
    points["intensity"] = 3.0
    holes = np.arange(7, rows * columns, 10)
    for name in "xyz":
        points[name][holes] = np.nan
    bundle = made_bundle(Cloud(TOPIC, 1_000, "velodyne", points, height=rows, is_dense=False))
    new, draw = derived(DensityIncreased(share=1.0, gap_deg=2.0), bundle)
    np.testing.assert_array_equal(np.sort(draw["earlier"]) + 1, holes)
    np.testing.assert_allclose(range_m(new), 10.0, rtol=1e-5)
    truth = np.arctan2(new.points["y"], new.points["x"])
    np.testing.assert_allclose(truth, azimuth.ravel(), atol=1e-4)
