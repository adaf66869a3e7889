# SPDX-License-Identifier: Apache-2.0
"""The maps that we ship hold together."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from mt_nodes.base.errors import UsageError
from mt_nodes.world.drive.map_mirror import mirrored
from mt_nodes.world.drive.map_parts import course, parallel_line
from mt_nodes.world.drive.maps import MAPS, load_map
from mt_nodes.world.drive.road_map import Lane, RoadMap
from mt_nodes.world.drive.scenario import Pose
from mt_nodes.world.drive.signals import colour_at
from mt_nodes.world.scene.faces import SIGNS

ALL = [*MAPS, *(f"{name}_mirrored" for name in MAPS)]


@pytest.fixture(params=ALL)
def road(request: pytest.FixtureRequest) -> RoadMap:
    return load_map(request.param)


def driven_on(road: RoadMap) -> list[Lane]:
    return [lane for lane in road.lanes.values() if lane.on_road]


def test_maps_have_their_names_and_are_made_once(road: RoadMap) -> None:
    assert load_map(road.name) is road and road.name in ALL
    assert all(name == lane.name for name, lane in road.lanes.items())


def test_a_numbered_town_has_the_streets_of_the_town_at_places_of_its_own() -> None:
    town, drawn, other = load_map("town"), load_map("town_3"), load_map("town_4")
    assert drawn.name == "town_3" and drawn is load_map("town_3")
    assert drawn.lanes.keys() == town.lanes.keys() == other.lanes.keys()
    lengths = [[road.lanes[name].length_m for name in ("d_e", "e_f", "d_a")] for road in (drawn, other)]
    assert all(90.0 - 16.0 <= length <= 140.0 - 16.0 for row in lengths for length in row)
    assert len({length for row in lengths for length in row}) == 6
    assert load_map("town_3_mirrored").lanes.keys() == town.lanes.keys()
    with pytest.raises(UsageError, match="got map 'town_x', which does not exist"):
        load_map("town_x")


def test_a_map_that_does_not_exist_is_named_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"got map 'tovn', which does not exist; did you mean 'town'\?"):
        load_map("tovn")


def test_each_lane_ends_where_those_begin_that_it_leads_to(road: RoadMap) -> None:
    for lane in road.lanes.values():
        for name in lane.next:
            end, begin = lane.pose_at(lane.length_m), road.lanes[name].pose_at(0.0)
            assert np.hypot(end.x_m - begin.x_m, end.y_m - begin.y_m) < 1e-6, (lane.name, name)
            assert np.cos(end.yaw_rad - begin.yaw_rad) > 0.99, (lane.name, name)


def test_lanes_beside_each_other_are_so_by_a_lanes_width(road: RoadMap) -> None:
    for lane in road.lanes.values():
        here = lane.pose_at(lane.length_m / 2.0)
        for name, sign in ((lane.left, 1.0), (lane.right, -1.0)):
            if name:
                off = road.lanes[name].station_of(here.x_m, here.y_m)[1]
                assert off == pytest.approx(-sign * lane.width_m), (lane.name, name)


def test_lanes_lie_on_the_carriageway_and_pavements_do_not(road: RoadMap) -> None:
    for lane in road.lanes.values():
        line = shapely.LineString(lane.line_m)
        if lane.on_road:
            band = line.buffer(lane.width_m / 2.0, cap_style="flat")
            assert band.difference(road.carriageway).area < 1e-3 * band.area, lane.name
        else:
            assert line.intersection(road.carriageway).length < 0.01 * line.length, lane.name


def test_bends_are_smooth(road: RoadMap) -> None:
    for lane in road.lanes.values():
        pieces = np.diff(lane.line_m, axis=0)
        turns = np.diff(np.unwrap(np.arctan2(pieces[:, 1], pieces[:, 0])))
        assert np.abs(turns).max(initial=0.0) < 0.2, lane.name


def test_kerbs_have_the_carriageway_to_their_left_and_the_pavement_to_their_right(road: RoadMap) -> None:
    assert road.kerbs_m
    for kerb in road.kerbs_m:
        for station in np.linspace(0.3, 0.7, 5):
            line = Lane("kerb", kerb)
            left, right = (line.pose_at(station * line.length_m, aside) for aside in (0.2, -0.2))
            assert road.carriageway.covers(shapely.Point(left.x_m, left.y_m))
            assert not road.carriageway.covers(shapely.Point(right.x_m, right.y_m))


def test_roads_are_open_where_they_end(road: RoadMap) -> None:
    kerbs = shapely.MultiLineString([shapely.LineString(kerb) for kerb in road.kerbs_m])
    for lane in driven_on(road):
        assert shapely.LineString(lane.line_m).distance(kerbs) > 1.0, lane.name


def test_houses_stand_apart_on_the_ground_and_off_the_road(road: RoadMap) -> None:
    houses = [shapely.Polygon(house.outline_m) for house in road.buildings]
    assert len(houses) >= 20
    assert all(house.distance(road.carriageway) > 3.0 for house in houses)
    assert all(house.exterior.is_ccw and house.area > 100.0 for house in houses)
    assert all(len(found) == 1 for found in (shapely.STRtree(houses).query(h, "intersects") for h in houses))
    ground = shapely.Polygon(road.ground_m)
    assert all(ground.covers(house) for house in houses) and ground.covers(road.carriageway)


def test_lights_stand_off_the_road_and_have_stop_lines_before_a_crossing(road: RoadMap) -> None:
    names = {signal.name for signal in road.signals}
    lit = [crossing for crossing in road.crossings if crossing.signal]
    assert {crossing.signal for crossing in lit} == {signal.name for signal in road.signals if not signal.lane}
    assert len(names) == len(road.signals)
    for signal in road.signals:
        assert not road.carriageway.covers(shapely.Point(signal.pose.x_m, signal.pose.y_m)), signal.name
        if signal.lane:
            lane = road.lanes[signal.lane]
            stop = lane.pose_at(signal.stop_m)
            assert np.cos(stop.yaw_rad - signal.pose.yaw_rad) > 0.99
            ahead = shapely.LineString([(p.x_m, p.y_m) for p in (stop, lane.pose_at(signal.stop_m + 3.0))])
            assert any(ahead.intersects(shapely.Polygon(crossing.outline_m)) for crossing in lit), signal.name


def test_no_light_for_people_is_green_while_that_of_the_lane_they_cross_is(road: RoadMap) -> None:
    lights = {signal.name: signal for signal in road.signals}
    for crossing in road.crossings:
        area = shapely.Polygon(crossing.outline_m)
        for signal in road.signals:
            stop = signal.lane and road.lanes[signal.lane].pose_at(signal.stop_m)
            if stop and crossing.signal and area.distance(shapely.Point(stop.x_m, stop.y_m)) < 2.0:
                for time_s in np.arange(0.0, 80.0, 0.25):
                    colours = {colour_at(lights[n].programme, time_s) for n in (crossing.signal, signal.name)}
                    assert colours != {"green"} and colours != {"green", "yellow"}, (crossing.name, time_s)


def test_signs_are_of_the_catalogue_and_beside_the_road(road: RoadMap) -> None:
    for sign in road.signs:
        assert sign.face in SIGNS
        assert 0.1 < shapely.Point(sign.pose.x_m, sign.pose.y_m).distance(road.carriageway) < 2.0


def test_a_mirrored_map_is_the_map_with_y_turned_round(road: RoadMap) -> None:
    other = mirrored(road)
    assert mirrored(other) == road and other.name != road.name
    for name, lane in road.lanes.items():
        there = other.lanes[name]
        assert np.array_equal(there.line_m, lane.line_m * (1.0, -1.0)) and there.left == lane.right
    assert other.carriageway.area == pytest.approx(road.carriageway.area)
    for signal, there_too in zip(road.signals, other.signals, strict=True):
        assert there_too.pose.yaw_rad == -signal.pose.yaw_rad and there_too.pose.y_m == -signal.pose.y_m


def test_the_town_can_be_driven_round() -> None:
    road = load_map("town")
    lane, seen = road.lanes["d_e"], [road.lanes["d_e"]]
    for after in ("d_e_f", "e_f", "e_f_c", "f_c", "f_c_b", "c_b", "c_b_a", "b_a", "b_a_d", "a_d", "a_d_e", "d_e"):
        assert after in lane.next
        lane = road.lanes[after]
        seen.append(lane)
    assert lane.name == "d_e"
    assert sum(each.length_m for each in seen[:-1]) == pytest.approx(600.0, abs=40.0)
    assert all(each.next for each in driven_on(road)), "no street of the town ends"


def test_every_way_over_the_junction_exists() -> None:
    road = load_map("junction")
    arms = ("west", "south", "east", "north")
    for arm in arms:
        to = {f"{arm}_middle_{other}" for other in arms if other != arm}
        assert set(road.lanes[f"{arm}_middle"].next) == to
    left, right = road.lanes["west_middle_north"], road.lanes["west_middle_south"]
    assert left.length_m > right.length_m and left.pose_at(99.0).yaw_rad == pytest.approx(np.pi / 2, abs=0.06)


def test_the_printed_example_lies_on_its_map_a_lane_for_each_of_the_two() -> None:
    road = load_map("san_francisco")
    ego, presley, pamela = (-228.81, 268.97), (-249.22, 250.08), (-246.10, 247.71)
    lanes = {place: road.nearest_lane(*place) for place in (ego, presley, pamela)}
    assert [lane.name for lane in lanes.values()] == ["lane_2", "lane_1", "lane_2"]
    stations = {place: lane.station_of(*place) for place, lane in lanes.items()}
    assert all(abs(left) < 0.75 for _, left in stations.values())
    assert stations[presley][0] == pytest.approx(stations[pamela][0], abs=0.05)
    assert stations[presley][0] - stations[ego][0] == pytest.approx(27.39, abs=0.05)
    area = shapely.Polygon(road.crossings[0].outline_m)
    assert area.covers(shapely.Point(presley)) and area.covers(shapely.Point(pamela))


def test_a_line_beside_a_bend_is_so_everywhere() -> None:
    line = course(Pose(1.0, 2.0, 0.3), [(10.0, 0.0), (30.0, 1 / 25.0), (20.0, -1 / 40.0), (5.0, 0.0)])
    there = shapely.LineString(parallel_line(line, 3.0))
    away = [there.distance(shapely.Point(place)) for place in line]
    assert away == pytest.approx([3.0] * len(away), abs=0.01)
    corner = parallel_line(np.array([(0.0, 0.0), (5.0, 0.0), (5.0, 5.0)]), 1.0)
    assert corner == pytest.approx(np.array([(0.0, 1.0), (4.0, 1.0), (4.0, 5.0)]))
    across = parallel_line(line, 3.0)[0] - line[0]
    assert across == pytest.approx((-3.0 * np.sin(0.3), 3.0 * np.cos(0.3)))


def test_a_course_turns_by_its_curvature_times_its_length() -> None:
    line = course(Pose(0.0, 0.0), [(np.pi * 20.0, 1 / 20.0)])
    assert line[-1] == pytest.approx((0.0, 40.0), abs=1e-9)
    assert np.hypot(line[:, 0], line[:, 1] - 20.0) == pytest.approx(np.full(len(line), 20.0))
