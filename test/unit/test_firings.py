# SPDX-License-Identifier: Apache-2.0
"""Returns of one firing: found in the layouts of drivers, dropped together, hidden together."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_bundles import made_cloud
from sensor_layouts import SENSOR_LAYOUTS, as_sensor, dual_return

from mt_nodes.data.firings import Firings, return_pairs
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.mutations.lidar.drawn_returns import FarPointsDropped, PointsDropped
from mt_nodes.relations.mutations.lidar.returns_emptied import ReturnsEmptied
from mt_nodes.relations.mutations.lidar.scan_limits import BeamsLost, DensityDecreased
from mt_nodes.relations.mutations.objects.in_scene import one_echo_a_firing
from mt_nodes.relations.mutations.objects.object_added import ObjectAdded
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

STREET = next(iter(generate_drive(1, lidar=replace(hdl_64e(), azimuths=400))))
DUAL = sorted(name for name, row in SENSOR_LAYOUTS.items() if {"ring", "laser_number", "line"} & {*row.dtype.names})
TIMED = sorted(set(DUAL) - {"nuscenes", "ouster_signal"})


@lru_cache
def single(layout: str) -> Cloud:
    return as_sensor(STREET.cloud(), layout)


@lru_cache
def dual(layout: str = "velodyne") -> Cloud:
    return dual_return(single(layout), np.random.default_rng(3))


def split(firings: Firings, rows: np.ndarray) -> bool:
    return len(firings.whole(rows)) != len(rows)


def derive(mutation: Mutation, cloud: Cloud, seed: int = 1) -> tuple[Bundle, Bundle, dict[str, np.ndarray]]:
    source = STREET.with_clouds([cloud])
    derived = MutationPipeline([mutation], seed, "test").derive(source)
    assert derived.broken is None
    return source, derived.followup.first, {n.partition("|")[2]: v for n, v in derived.draws[0].items()}


@pytest.mark.parametrize("layout", SENSOR_LAYOUTS)
def test_single_return_is_told_from_dual(layout: str) -> None:
    assert not return_pairs(single(layout)).dual
    assert return_pairs(dual(layout)).dual
    assert len(np.unique(return_pairs(single(layout)).head)) == len(single(layout))


@pytest.mark.parametrize("layout", DUAL)
def test_each_firing_is_found_whole(layout: str) -> None:
    """Made pairs: the return before stands right before its own."""
    cloud, firings = dual(layout), return_pairs(dual(layout))
    made = len(cloud) - len(single(layout))
    assert (firings.sizes == 2).sum() == pytest.approx(2 * made, abs=0 if layout in TIMED else 0.01 * made)
    pairs = np.flatnonzero((firings.sizes == 2) & firings.first)
    np.testing.assert_array_equal(firings.head[pairs + 1], firings.head[pairs])
    assert firings.last[pairs + 1].all() and not firings.last[pairs].any() and not firings.first[pairs + 1].any()


def test_pairs_far_apart_in_memory_are_found_by_laser_and_time() -> None:
    """As of drivers that write all last returns, then all strongest ones."""
    cloud, rows = dual(), return_pairs(dual())
    order = np.concatenate([np.flatnonzero(rows.last), np.flatnonzero(~rows.last)])
    apart = return_pairs(replace(cloud, points=cloud.points[order]))
    assert apart.dual and (apart.sizes == 2).sum() == (rows.sizes == 2).sum()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), share=st.floats(0.05, 1.0))
def test_first_last_and_strongest_are_one_of_each_firing(seed: int, share: float) -> None:
    cloud = dual_return(single("velodyne"), np.random.default_rng(seed), share)
    firings = return_pairs(cloud)
    for one in (firings.first, firings.last, firings.strongest):
        heads, count = np.unique(firings.head[one], return_counts=True)
        assert (count == 1).all() and len(heads) == len(np.unique(firings.head))
    power = cloud.points["intensity"] / np.square(firings.range_m)
    for row in np.flatnonzero(firings.strongest & (firings.sizes == 2))[:20]:
        assert power[row] >= power[firings.head == firings.head[row]].max() * (1 - 1e-6)


@pytest.mark.parametrize("layout", ["velodyne", "livox", "ouster", "hesai"])
@pytest.mark.parametrize("mutation", [PointsDropped(share=0.3), DensityDecreased(keep_every=3), BeamsLost(count=3)])
def test_a_firing_is_lost_whole(mutation: Mutation, layout: str) -> None:
    cloud = dual(layout)
    source, new, _ = derive(mutation, cloud)
    left = np.isin(source.cloud().raw, new.cloud().raw)
    assert not split(return_pairs(cloud), np.flatnonzero(left))
    assert 0.02 < 1.0 - left.mean() < 0.8


def test_as_many_firings_are_dropped_as_of_a_single_return() -> None:
    count = len(single("velodyne"))
    left = return_pairs(derive(PointsDropped(share=0.25), dual())[1].cloud())
    assert np.count_nonzero(left.first) == count - round(0.25 * count)


def test_far_returns_are_lost_alone() -> None:
    """Fog takes the far return of a firing, and leaves the near one."""
    cloud, firings = dual(), return_pairs(dual())
    _, _, draw = derive(FarPointsDropped(from_m=5.0, half_m=5.0), cloud)
    lost = np.zeros(len(cloud), dtype=bool)
    lost[draw["rows"]] = True
    halves = np.bincount(firings.head[lost], minlength=len(cloud))[firings.head]
    alone = lost & (firings.sizes == 2) & (halves == 1)
    assert alone.sum() > 50 and firings.last[alone].mean() > 0.8


def test_emptied_firings_are_empty_whole() -> None:
    _, _, draw = derive(ReturnsEmptied(share=0.1), dual())
    assert not split(return_pairs(dual()), draw["rows"].astype(np.int64))


def test_an_object_answers_a_firing_once_and_hides_all_behind() -> None:
    cloud = dual_return(single("velodyne"), np.random.default_rng(3), 0.05)
    firings = return_pairs(cloud)
    _, _, draw = derive(ObjectAdded(kind="car", range_m=(8.0, 30.0)), cloud)
    rows, lost = draw["rows"].astype(np.int64), draw["lost"].astype(np.int64)
    heads = firings.head[rows]
    assert len(np.unique(heads)) == len(heads) > 30
    both = np.isin(firings.head[lost], heads)
    assert both.sum() > 0, "no firing lost its second return behind the object"


@pytest.mark.parametrize("repeats", [False, True])
def test_one_echo_is_reported_once_or_repeated(repeats: bool) -> None:
    """By hand: three firings, of which the object hides both returns, both undetected at first, and one."""
    cloud = dual()
    pairs = np.flatnonzero((return_pairs(cloud).sizes == 2) & return_pairs(cloud).first)[:3]
    if repeats:
        points = cloud.points.copy()
        other = return_pairs(cloud).head != np.arange(len(cloud))
        for name in "xyz":
            points[name][other] = points[name][return_pairs(cloud).head[other]]
        cloud = replace(cloud, points=points)
    assert return_pairs(cloud).repeats is repeats
    a, b, c = pairs.tolist()
    draw = {
        "rows": np.array([a, a + 1, b + 1, c + 1]),
        "range_m": np.array([1.0, 1.1, 2.0, 3.0], np.float32),
        "lost": np.array([b]),
        "intensity": np.array([10.0, 11.0, 20.0, 30.0], np.float32),
    }
    one = one_echo_a_firing(cloud, draw)
    assert one["rows"].tolist() == ([a, a + 1, c + 1] if repeats else [a, c + 1])
    assert one["lost"].tolist() == ([b, b + 1] if repeats else [a + 1, b, b + 1])
    assert one["range_m"].tolist() == ([1.0, 1.0, 3.0] if repeats else [1.0, 3.0])
    assert one["intensity"].tolist() == ([10.0, 10.0, 30.0] if repeats else [10.0, 30.0])


def test_a_time_of_many_firings_is_no_firing() -> None:
    """Points of a packet that share one time, on one ray or not, are not pairs."""
    cloud = made_cloud("velodyne")
    points = cloud.points.copy()
    points["time"], points["ring"] = 0.0, 0
    assert not return_pairs(replace(cloud, points=points)).dual
