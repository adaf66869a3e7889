# SPDX-License-Identifier: Apache-2.0
"""What of a map is built: ground, paint, houses, posts."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
import shapely

from mt_nodes.world.drive.bodies import size_of
from mt_nodes.world.drive.looks import body_of, obstacle_body
from mt_nodes.world.drive.maps import MAPS, load_map
from mt_nodes.world.drive.markings import markings
from mt_nodes.world.drive.scenario import Actor, Obstacle, Pose
from mt_nodes.world.drive.scenery import GROUND, HOUSES, Scenery, scenery_of
from mt_nodes.world.drive.solids import Hits
from mt_nodes.world.scene.objects import KINDS


@lru_cache
def built(name: str) -> Scenery:
    return scenery_of(load_map(name))


def cast(scenery: Scenery, places_m: np.ndarray, direction: tuple[float, float, float], height_m: float) -> Hits:
    rays = np.zeros((len(places_m), 6), np.float32)
    rays[:, :2] = places_m - scenery.shift_m
    rays[:, 2], rays[:, 3:] = height_m, direction
    return scenery.solids.cast(rays)


def along(lane: object, every_m: float = 3.0) -> np.ndarray:
    poses = [lane.pose_at(s) for s in np.arange(1.0, lane.length_m - 1.0, every_m)]
    return np.array([(pose.x_m, pose.y_m) for pose in poses])


@pytest.mark.parametrize("name", MAPS)
def test_lanes_lie_on_the_road_and_people_walk_on_the_pavement(name: str) -> None:
    scenery, road = built(name), load_map(name)
    for lane in road.lanes.values():
        places = along(lane)
        hits = cast(scenery, places, (0.0, 0.0, -1.0), 1.0)
        assert (scenery.solids.of[hits.triangle] == GROUND).all()
        height_m = 1.0 - hits.range_m
        on_road = shapely.contains_xy(road.carriageway, places[:, 0], places[:, 1])
        assert height_m == pytest.approx(np.where(on_road, 0.0, 0.12), abs=1e-4)
        assert on_road.all() if lane.on_road else (~on_road).mean() > 0.5
        assert (scenery.solids.flat[hits.triangle] == (0.0, 0.0, 1.0)).all()


@pytest.mark.parametrize("name", MAPS)
def test_the_middle_of_lanes_is_bare_but_for_crossings_and_stop_lines(name: str) -> None:
    scenery, road = built(name), load_map(name)
    painted = shapely.union_all([shapely.Polygon(crossing.outline_m).buffer(1.0) for crossing in road.crossings])
    inner = [lane for lane in road.lanes.values() if lane.on_road and lane.length_m > 40.0]
    assert inner
    for lane in inner:
        places = along(lane)
        bare = ~shapely.contains_xy(painted, places[:, 0], places[:, 1])
        for signal in (s for s in road.signals if s.lane == lane.name):
            stop = lane.pose_at(signal.stop_m)
            bare &= np.hypot(places[:, 0] - stop.x_m, places[:, 1] - stop.y_m) > 1.5
        share = scenery.ground.painted(*places.astype(np.float32).T)
        assert share[bare].max() == 0.0


@pytest.mark.parametrize("name", MAPS)
def test_edges_of_lanes_are_painted_solid_or_dashed(name: str) -> None:
    scenery, road = built(name), load_map(name)
    for lane in (lane for lane in road.lanes.values() if lane.on_road and lane.length_m > 60.0):
        for left_m in (-lane.width_m / 2.0, lane.width_m / 2.0):
            poses = [lane.pose_at(s, left_m) for s in np.arange(15.0, lane.length_m - 15.0, 0.5)]
            places = np.array([(pose.x_m, pose.y_m) for pose in poses], np.float32)
            share = float((scenery.ground.painted(*places.T) > 0.4).mean())
            assert share > 0.9 or share == pytest.approx(1.0 / 3.0, abs=0.12)


def test_paint_looked_up_over_a_width_is_its_mean() -> None:
    ground = built("straight").ground
    x = np.full(1, 100.3, np.float32)
    y = np.full(1, -1.75, np.float32)
    assert ground.painted(x, y)[0] == 1.0
    wide = [float(ground.painted(x, y, np.full(1, width, np.float32))[0]) for width in (0.01, 0.5, 2.0)]
    assert wide[0] > 0.9 > wide[1] > wide[2] > 0.0
    assert wide[1] == pytest.approx(0.12 / 0.5, abs=0.15)


def test_stripes_lie_along_the_road_and_a_stop_line_across_its_lane() -> None:
    road = load_map("junction")
    outlines = [shapely.Polygon(outline) for outline in markings(road)]
    for crossing in road.crossings:
        area = shapely.Polygon(crossing.outline_m)
        stripes = [o for o in outlines if o.within(area.buffer(0.01)) and o.area > 1.0]
        assert len(stripes) >= 5
        lane = next(o for o in road.lanes.values() if o.on_road and shapely.LineString(o.line_m).intersects(area))
        assert sum(stripe.area for stripe in stripes) == pytest.approx(area.area / 2.0, rel=0.2)
        yaw = lane.pose_at(lane.station_of(area.centroid.x, area.centroid.y)[0]).yaw_rad
        way = np.array([np.cos(yaw), np.sin(yaw)])
        corners = np.asarray(stripes[0].exterior.coords)
        if abs(abs(way[0]) - 0.5) > 0.45:  # lanes that turn there say nothing
            assert np.ptp(corners @ way) > np.ptp(corners @ way[::-1])


def test_lights_and_signs_look_at_those_who_drive_by_them() -> None:
    road = load_map("junction")
    scenery = built("junction")
    assert set(scenery.lights) == {signal.name for signal in road.signals}
    for signal in road.signals:
        pose = signal.pose
        c, s = np.cos(pose.yaw_rad), np.sin(pose.yaw_rad)
        before = np.array([(pose.x_m - 3.0 * c, pose.y_m - 3.0 * s)])
        hits = cast(scenery, before, (float(c), float(s), 0.0), 0.12 + 2.55)
        assert scenery.solids.of[hits.triangle[0]] == scenery.lights[signal.name]
        assert hits.range_m[0] == pytest.approx(3.0 - 0.26, abs=0.02)  # the front of the housing


@pytest.mark.parametrize("name", MAPS)
def test_houses_are_closed_and_look_outward(name: str) -> None:
    scenery, road = built(name), load_map(name)
    assert road.buildings
    for house in road.buildings[:6]:
        outline = np.asarray(house.outline_m)
        middle = outline.mean(axis=0)
        for a, b in zip(outline, np.roll(outline, -1, axis=0), strict=True):
            out = (a + b) / 2.0 - middle
            out /= np.linalg.norm(out)
            place = ((a + b) / 2.0 + 0.5 * out)[None]
            hits = cast(scenery, place, (-float(out[0]), -float(out[1]), 0.0), 2.0)
            assert scenery.solids.of[hits.triangle[0]] == HOUSES
            assert hits.range_m[0] < 1.0
            assert scenery.solids.flat[hits.triangle[0], :2] @ out > 0.5
        top = cast(scenery, middle[None], (0.0, 0.0, -1.0), 30.0)
        assert 30.0 - top.range_m[0] == pytest.approx(house.height_m, abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_actors_stand_in_the_middle_of_their_size(kind: str) -> None:
    for size_m in (None, (2.0, 1.0, 1.5)):
        actor = Actor("a", kind, Pose(0.0, 0.0), size_m=size_m)
        low, high = (end(body_of(actor, 0.0).mesh.vertices_m, axis=0) for end in (np.min, np.max))
        slack = 0.8 if kind in ("adult", "child", "cyclist") else 1e-6  # limbs swing
        assert high - low == pytest.approx(size_of(actor), abs=slack)
        assert (low + high)[:2] / 2.0 == pytest.approx((0.0, 0.0), abs=slack)
        assert low[2] == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("shape", ["box", "cone", "cylinder", "sphere"])
def test_obstacles_have_the_size_that_is_told(shape: str) -> None:
    vertices = obstacle_body(Obstacle("o", shape, Pose(0.0, 0.0), (1.5, 0.8, 0.6))).mesh.vertices_m
    assert np.ptp(vertices, axis=0) == pytest.approx((1.5, 0.8, 0.6), rel=0.05)
    assert vertices[:, 2].min() == pytest.approx(0.0, abs=1e-9)
