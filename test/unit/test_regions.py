# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from made_bundles import made_bundle

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import plain
from mt_nodes.data.regions import Region, RegionUnavailable, load_optional_region, load_region

ARROW = [[0, 0], [10, 5], [0, 10], [3, 5]]  # not convex


def test_default_region_is_forty_metres_ahead() -> None:
    region = load_region("front_40m")
    assert (region.frame_id, region.bounds, region.rectangular) == ("base_link", (0.0, -10.0, 40.0, 10.0), True)


def test_every_shipped_region_loads() -> None:
    assert resources.shipped("regions")
    for name in resources.shipped("regions"):
        assert load_region(name).name == name


@pytest.mark.parametrize(
    "value",
    [
        "front_40m",
        "topic:/roi",
        {"frame_id": "map", "polygon_m": [ARROW, [[20, 0], [30, 0], [30, 9]]], "z_m": [0, "inf"]},
    ],
)
def test_what_is_written_down_loads_again(value: object) -> None:
    region = load_region(value)
    assert load_region(json.loads(json.dumps(plain(region)))) == region


def test_box_polygon_and_file_agree(tmp_path: Path) -> None:
    box = load_region({"frame_id": "f", "box_m": {"x": [0, 4], "y": [-1, 1]}})
    polygon = load_region({"frame_id": "f", "polygon_m": [[0, -1], [4, -1], [4, 1], [0, 1]]})
    path = tmp_path / "mine.yaml"
    path.write_text("frame_id: f\nbox_m: {x: [0, 4], y: [-1, 1]}\n", encoding="utf-8")
    assert box == polygon == replace(load_region(str(path)), name="inline")
    assert load_region(str(path)).name == "mine"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("front_40", "did you mean 'front_40m'"),
        (7, "expected a region's name"),
        ("topic:roi", "absolute"),
        ({"frame_id": "f"}, "exactly one of polygon_m and box_m"),
        ({"polygon_m": ARROW}, "frame_id"),
        ({"frame_id": "f", "polygn_m": ARROW}, "did you mean 'polygon_m'"),
        ({"frame_id": "f", "polygon_m": []}, "expected a list"),
        ({"frame_id": "f", "polygon_m": [[0, 0], [1, 1]]}, "three corners"),
        ({"frame_id": "f", "polygon_m": [[0, 0], [1, 1], [2, 2]]}, "no simple polygon"),
        ({"frame_id": "f", "polygon_m": [[0, 0], [1, 1], [1, 0], [0, 1]]}, "no simple polygon"),
        ({"frame_id": "f", "polygon_m": [[0, 0], [1, 0], [1, float("nan")]]}, "finite"),
        ({"frame_id": "f", "polygon_m": [["a", 0], [1, 0], [1, 1]]}, "corners"),
        ({"frame_id": "f", "box_m": {"x": [0, 1]}}, "box_m"),
        ({"frame_id": "f", "box_m": {"x": [1, 0], "y": [0, 1]}}, "low below high"),
        ({"frame_id": "f", "polygon_m": ARROW, "z_m": 3}, "[low, high]"),
    ],
)
def test_errors_say_what_is_wrong(value: object, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_region(value, "here")
    assert text in str(caught.value)
    assert "here" in str(caught.value)


def test_optional_region() -> None:
    assert load_optional_region(None) is None
    assert isinstance(load_optional_region("front_40m"), Region)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_distance_and_inside_agree_with_shapely(seed: int, box: bool) -> None:
    shape = {"box_m": {"x": [-3, 4], "y": [1, 6]}} if box else {"polygon_m": [ARROW, [[-9, -9], [-5, -9], [-5, -2]]]}
    region = load_region({"frame_id": "f", **shape})
    xy = np.random.default_rng(seed).uniform(-12, 12, (50, 2))
    union = shapely.union_all([shapely.Polygon(p) for p in region.polygon_m])
    inside = np.array([union.contains(shapely.Point(p)) for p in xy])
    to_outline = np.array([union.boundary.distance(shapely.Point(p)) for p in xy])
    assert (region.contains(xy) == inside).all()
    np.testing.assert_allclose(region.signed_distance(xy), np.where(inside, -to_outline, to_outline), atol=1e-9)


def test_outline_counts_as_inside_and_nan_does_not() -> None:
    for region in (load_region("front_40m"), load_region({"frame_id": "f", "polygon_m": ARROW})):
        xyz = np.array([[0.0, 0.0, 1.0], [np.nan, 5.0, 0.0], [5.0, 5.0, np.nan]], dtype=np.float32)
        assert region.contains(xyz).tolist() == [True, False, True]


def test_height_limits() -> None:
    region = load_region({"frame_id": "f", "box_m": {"x": [0, 9], "y": [0, 9]}, "z_m": [0, 2]})
    xyz = np.array([[5, 5, 1.0], [5, 5, 2.5], [5, 5, np.nan]])
    assert region.contains(xyz).tolist() == [True, False, False]
    assert region.contains(xyz[:, :2]).all()


def test_hole_between_polygons_is_outside() -> None:
    sides = [[0, 0, 9, 1], [0, 8, 9, 9], [0, 0, 1, 9], [8, 0, 9, 9]]
    ring = [[[a, b], [c, b], [c, d], [a, d]] for a, b, c, d in sides]
    region = load_region({"frame_id": "f", "polygon_m": ring})
    middle = np.array([[4.5, 4.5]])
    assert not region.contains(middle)[0]
    assert region.signed_distance(middle)[0] == pytest.approx(3.5)


def test_buffered_grows_and_shrinks() -> None:
    region = load_region("front_40m")
    assert region.buffered(1.0).bounds == (-1.0, -11.0, 41.0, 11.0)
    assert region.buffered(-1.0).bounds == (1.0, -9.0, 39.0, 9.0)
    assert region.buffered(-10.0).is_empty


def test_region_of_a_topic_follows_the_bundle() -> None:
    region, bundle = load_region("topic:/roi"), made_bundle()
    with pytest.raises(RegionUnavailable, match=r"no polygon on /roi by bundle 0; topics with polygons: \(none\)"):
        region.resolve(bundle)
    outline = np.array([[0, 0, 5], [2, 0, 5], [2, 2, 5]], dtype=np.float64)
    resolved = region.resolve(replace(bundle, regions={"/roi": ("map", outline)}))
    assert (resolved.frame_id, resolved.bounds, resolved.topic) == ("map", (0.0, 0.0, 2.0, 2.0), "")
    with pytest.raises(RegionUnavailable, match="three corners"):
        region.resolve(replace(bundle, regions={"/roi": ("map", outline[:2])}))


def test_a_box_is_fast() -> None:
    region, xyz = load_region("front_40m"), np.random.default_rng(0).uniform(-60, 60, (120_000, 3)).astype(np.float32)
    region.contains(xyz)
    began_s = time.process_time()
    for _ in range(20):
        region.contains(xyz)
    # All together: on some machines the clock of a process moves in steps of milliseconds.
    assert (time.process_time() - began_s) / 20 < 0.003


@given(st.sampled_from([ARROW, [[0, 0], [10, 0], [10, 4], [0, 4]]]), st.floats(0.0, 20.0), st.integers(0, 2**32 - 1))
def test_beyond_is_a_limit_of_the_distance(outline: list[list[float]], away_m: float, seed: int) -> None:
    region = load_region({"frame_id": "f", "polygon_m": outline})
    xy = np.random.default_rng(seed).uniform(-25.0, 35.0, (50, 2))
    assert region.beyond(xy, away_m).tolist() == (region.signed_distance(xy) > away_m).tolist()
