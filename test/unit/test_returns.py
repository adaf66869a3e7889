# SPDX-License-Identifier: Apache-2.0
"""Parts of clouds found without a look at all of them, and clouds whose returns are lost, moved and added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_bundles import made_cloud

from mt_nodes.data.messages import Cloud
from mt_nodes.data.transforms import move, pose_matrix
from mt_nodes.relations.mutations.objects.changed_returns import changed, replaced_and_added, source_rows
from mt_nodes.world.scene.beams import Beams
from mt_nodes.world.scene.returns import box_around, places, returns_at, within_box, within_cone

LAYOUT = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "u1"), ("tag", "<u2")])
CLOUDS = {"kitti": made_cloud("kitti", 400), "ouster": made_cloud("ouster", 512, height=16, holes=0.3)}


def numbered(count: int) -> Cloud:
    points = np.zeros(count, LAYOUT)
    points["x"], points["tag"] = 10.0 + np.arange(count), np.arange(count)
    return Cloud("/points", 0, "lidar", points)


@st.composite
def draws(draw: st.DrawFn) -> tuple[Cloud, dict[str, Any]]:
    """A cloud of some points; of each it says whether it stays, moves nearer or is lost, and what comes after it."""
    fates = draw(st.lists(st.tuples(st.sampled_from(["stay", "move", "lose"]), st.integers(0, 2)), max_size=12))
    moved, lost = (np.array([i for i, (f, _) in enumerate(fates) if f == fate], int) for fate in ("move", "lose"))
    again = np.array([i for i, (_, more) in enumerate(fates) for _ in range(more)], int)
    new = draw(st.permutations(list(range(len(again)))))
    xyz = np.column_stack([5.0 + np.arange(len(again)), np.zeros((len(again), 2))])
    return numbered(len(fates)), {
        "rows": moved.astype(np.uint8),
        "range_m": np.full(len(moved), 2.0, np.float32),
        "intensity": np.full(len(moved), 7, np.uint8),
        "lost": lost.astype(np.uint8),
        "new_rows": again[new].astype(np.uint8),
        "new_xyz": xyz.astype(np.float32),
        "new_intensity": np.arange(len(again), dtype=np.uint8),
    }


@settings(max_examples=60, deadline=None)
@given(draws())
def test_changed_cloud_is_what_one_gets_point_by_point(given_: tuple[Cloud, dict[str, Any]]) -> None:
    cloud, draw = given_
    expected = []
    for i, (x, _, _, intensity, tag) in enumerate(cloud.points.tolist()):
        if i not in draw["lost"]:
            expected.append((2.0, 0.0, 0.0, 7, tag) if i in draw["rows"] else (x, 0.0, 0.0, intensity, tag))
        after = np.flatnonzero(draw["new_rows"] == i)
        expected += [(*draw["new_xyz"][k].tolist(), int(draw["new_intensity"][k]), tag) for k in after]
    new = changed(cloud, draw)
    assert new.points.tolist() == expected
    replaced, added, broken = replaced_and_added(cloud, new, draw)
    assert broken is None
    assert (replaced == np.array([[2.0, 0.0, 0.0]] * len(draw["rows"])).reshape(-1, 3)).all()
    assert (added == draw["new_xyz"]).all()
    stay = np.setdiff1d(np.arange(len(cloud)), draw["lost"])
    assert (source_rows(np.arange(len(stay)), draw["lost"].astype(int)) == stay).all()


@settings(max_examples=40, deadline=None)
@given(draws(), st.integers(0, 1000))
def test_any_other_change_is_told(given_: tuple[Cloud, dict[str, Any]], which: int) -> None:
    cloud, draw = given_
    new = changed(cloud, draw)
    stays = np.flatnonzero(np.isin(new.points["x"], cloud.points["x"]) & (new.points["x"] >= 10.0))
    added = {float(x) for x in draw["new_xyz"][:, 0]}
    stays = [i for i in stays.tolist() if float(new.points["x"][i]) not in added]
    if stays:
        raw = new.raw.copy()
        raw.view(LAYOUT)["tag" if which % 2 else "x"][stays[which % len(stays)]] += 1
        assert "something else changed" in str(replaced_and_added(cloud, new.with_raw(raw), draw)[2])
    if len(new):
        assert "points, expected" in str(replaced_and_added(cloud, new.with_raw(new.raw[1:]), draw)[2])
    if len(draw["rows"]):
        assert "drawn twice" in str(replaced_and_added(cloud, new, {**draw, "lost": draw["rows"]})[2])


@pytest.mark.parametrize("name", CLOUDS)
def test_parts_of_a_cloud_are_those_that_a_look_at_every_point_finds(name: str) -> None:
    cloud, rng = CLOUDS[name], np.random.default_rng(4)
    every = np.arange(len(cloud))
    xyz = places(cloud, every)
    assert np.array_equal(xyz, np.stack([cloud.points[n] for n in "xyz"], axis=1).astype(float), equal_nan=True)
    known = np.isfinite(xyz).all(axis=1) & (xyz != 0).any(axis=1)
    assert (returns_at(cloud, every)[0] == every[known]).all()
    low, high = np.array([-20.0, -15.0, -1.0]), np.array([15.0, 30.0, 0.5])
    rows, inside = within_box(cloud, low, high)
    assert 0 < len(rows) < len(cloud) and (inside == xyz[rows]).all()
    assert (rows == np.flatnonzero(((xyz >= low) & (xyz <= high)).all(axis=1))).all()
    for way in rng.normal(size=(5, 3)):
        axis = way / np.linalg.norm(way)
        cosine = np.divide(xyz @ axis, np.linalg.norm(xyz, axis=1), out=np.full(len(xyz), -1.0), where=known)
        found = within_cone(cloud, axis, 0.8)
        assert (found == np.flatnonzero(cosine >= 0.8)).all()


def test_a_box_of_a_turned_frame_lies_within_the_one_around_it() -> None:
    pose = pose_matrix((1.0, 2.0, 3.0), (0.1, 0.2, 0.3, np.sqrt(0.86)))
    low, high = np.array([-1.0, -2.0, 0.0]), np.array([4.0, 1.0, 2.0])
    inside = np.random.default_rng(0).uniform(low, high, (200, 3))
    least, most = box_around(pose, low, high)
    back = move(np.linalg.inv(pose), inside)
    assert (back >= least).all() and (back <= most).all()


@settings(max_examples=60, deadline=None)
@given(st.floats(-7.0, 7.0), st.floats(0.0, 4.0))
def test_a_window_of_azimuth_may_lie_over_the_seam_and_all_around(bearing: float, half: float) -> None:
    azimuth = np.append(np.linspace(-np.pi, np.pi, 721), np.nan).astype(np.float32)
    ring = np.zeros(len(azimuth), np.int16)
    beams = Beams(ring, azimuth, np.array([0]), np.zeros(1), "field ring", 1.0)
    rows, aside = beams.within(bearing, half)
    off = np.angle(np.exp(1j * (azimuth.astype(float) - bearing)))
    surely, maybe = np.flatnonzero(np.abs(off) < half - 1e-5), np.flatnonzero(np.abs(off) <= half + 1e-5)
    assert set(surely) <= set(rows) <= set(maybe) and (np.diff(rows) > 0).all()
    assert np.abs(np.exp(1j * aside.astype(float)) - np.exp(1j * off[rows])).max(initial=0.0) < 1e-5
