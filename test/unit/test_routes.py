# SPDX-License-Identifier: Apache-2.0
"""Relations between routes: what an honest planner holds, and what finds planted faults."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import main
from mt_nodes.data.hd_maps.hd_map import HdLane, HdMap
from mt_nodes.data.hd_maps.lane_graph import LaneGraph
from mt_nodes.data.verdict import Outcome
from mt_nodes.runs.routes.route_files import borough
from mt_nodes.runs.routes.route_planner import FAULTS, LanePlanner, load_planner
from mt_nodes.runs.routes.route_query import PlannedRoute, RoutePlace, RouteQuery
from mt_nodes.runs.routes.route_relations import RELATIONS, chosen_relations
from mt_nodes.runs.routes.route_run import RoutePair, execute, summarise


@cache
def graph() -> LaneGraph:
    return LaneGraph.of(borough())


def judged(planner: Any, *names: str, pairs: int = 40) -> tuple[list[RoutePair], dict[str, Any]]:
    relations, _ = chosen_relations(names, closes=True)
    found = list(execute(planner, graph(), relations, pairs, seed=0))
    return found, summarise(relations, found, interrupted=False)


def straight(lane_id: str, begin: tuple[float, float], end: tuple[float, float]) -> HdLane:
    line = np.array([begin, end], dtype=float)
    along = (line[1] - line[0]) / np.linalg.norm(line[1] - line[0])
    left = np.array([-along[1], along[0]]) * 1.75
    return HdLane(lane_id, "driving", line + left, line - left)


def test_the_reference_planner_holds_every_relation() -> None:
    pairs, table = judged(LanePlanner(graph()))
    assert table["exit_code"] == ExitCode.PASS
    assert {row["outcome"] for row in table["relations"].values()} == {"PASS"}
    assert all(row["decided"] >= 20 for row in table["relations"].values())
    assert not [pair for pair in pairs if pair.control]


@pytest.mark.parametrize(
    ("fault", "finder", "pairs"),
    [
        ("long_lanes_cheap", "route_by_another_place", 100),
        ("tiles_avoided", "route_road_closed", 300),
        ("goal_on_own_lane_behind", "route_destination_ahead", 25),
        ("goal_on_own_lane_behind", "route_stop_on_the_way", 40),
        ("closure_unread", "route_road_closed", 25),
        ("goal_near_junction_passed", "route_destination_moved", 40),
        ("left_turns_avoided", "route_way_back", 300),
    ],
)
def test_a_planted_fault_is_found(fault: str, finder: str, pairs: int) -> None:
    _, table = judged(LanePlanner(graph(), fault), finder, pairs=pairs)
    assert table["relations"][finder]["outcome"] == "FAIL", table
    assert table["exit_code"] == ExitCode.FAIL


def test_every_fault_is_tried_above() -> None:
    marks = test_a_planted_fault_is_found.pytestmark[0]  # type: ignore[attr-defined]
    assert {fault for fault, *_ in marks.args[1]} == set(FAULTS)


def test_ways_too_short_to_differ_decide_nothing() -> None:
    small = LaneGraph.of(HdMap("small", (straight("a", (0, 0), (50, 0)), straight("b", (50, 0), (50, 40)))))
    relations, _ = chosen_relations(("route_stop_on_the_way", "route_way_back"), closes=True)
    pairs = list(execute(LanePlanner(small), small, relations, 25, seed=0))
    assert {pair.outcome for pair in pairs} <= {Outcome.NOT_APPLICABLE, Outcome.HOLDS}
    assert sum(pair.outcome is Outcome.HOLDS for pair in pairs) < 40
    far = [pair for pair in pairs if pair.outcome is Outcome.HOLDS]
    assert all(pair.routes[0].length_m >= 60.0 for pair in far)
    tiny = LaneGraph.of(HdMap("tiny", (straight("a", (0, 0), (40, 0)),)))
    none = list(execute(LanePlanner(tiny), tiny, relations, 25, seed=0))
    assert {pair.outcome for pair in none} == {Outcome.NOT_APPLICABLE} and "60 m apart" in none[0].reason
    assert summarise(relations, none, interrupted=False)["exit_code"] == ExitCode.UNDECIDED


def test_one_drives_on_the_right_side_and_around_the_corner() -> None:
    lanes = (
        straight("east", (0, 0), (60, 0)),
        straight("north", (60, 0), (60, 50)),
        straight("west", (60, 3.5), (0, 3.5)),
        straight("second", (0, -3.5), (60, -3.5)),
    )
    small = LaneGraph.of(HdMap("small", lanes[:1] + lanes[2:]))
    assert small.shortest(small.nearest(50, 0, 0.0), small.nearest(10, 3.5, np.pi)) is None  # nobody turns on the road
    assert small.nearest(30.0, 1.0, np.pi) == small.nearest(30.0, 3.5)  # prefers its direction to the nearer lane
    changed = small.shortest(small.nearest(0, 0, 0.0), small.nearest(60, -3.5, 0.0))
    assert changed is not None and set(small.lane[changed]) == {0, 2}  # to the lane beside
    corner = LaneGraph.of(HdMap("corner", (lanes[0], straight("up", (60, 0), (95, 35)))))
    rows = corner.shortest(0, len(corner.places_m) - 1)
    assert rows is not None and PlannedRoute(corner.places_m[rows]).length_m == pytest.approx(60 + 35 * 2**0.5, abs=0.1)


def test_places_on_a_route_are_found_by_length() -> None:
    route = PlannedRoute.of([(0, 0, 9), (30, 0, 9), (30, 10, 9)])
    assert route.length_m == 40.0
    assert route.at(0.875).xy_m == (30.0, 5.0) and route.at(0.875).yaw_rad == pytest.approx(np.pi / 2)
    assert route.nearest_m(RoutePlace(20.0, -3.0)) == 3.0
    query = RouteQuery(RoutePlace(0.0, 5.0), RoutePlace(30.0, 40.0))
    assert route.misses(query) == "the route ends 30.0 m away from x 30.0, y 40.0 m"
    assert not PlannedRoute.of(None).found and PlannedRoute.of([]).length_m == float("inf")
    with pytest.raises(ValueError, match=r"shape \(3,\), expected finite points"):
        PlannedRoute.of([1.0, 2.0, 3.0])


def nowhere(query: RouteQuery) -> None:
    return None


def elsewhere(query: RouteQuery) -> np.ndarray:
    return np.array([[0.0, 0.0], [5000.0, 5000.0]])


def broken(query: RouteQuery) -> None:
    raise KeyError("no tile 7")


@pytest.mark.parametrize(
    ("planner", "outcome", "code", "reason"),
    [
        (nowhere, Outcome.NOT_APPLICABLE, ExitCode.UNDECIDED, "knows no route between the two places"),
        (elsewhere, Outcome.ERROR, ExitCode.INFRASTRUCTURE, "the route begins"),
        (broken, Outcome.ERROR, ExitCode.INFRASTRUCTURE, "the planner raised KeyError: 'no tile 7'"),
    ],
)
def test_a_planner_that_gives_no_routes_never_passes(planner: Any, outcome: Outcome, code: int, reason: str) -> None:
    pairs, table = judged(planner, "route_way_back", pairs=25)
    assert {pair.outcome for pair in pairs} == {outcome} and reason in pairs[0].reason
    assert table["exit_code"] == code and table["relations"]["route_way_back"]["outcome"] == "INCONCLUSIVE"


def test_a_planner_of_chance_is_unstable_and_not_blamed() -> None:
    honest, rng = LanePlanner(graph()), np.random.default_rng(5)

    def wandering(query: RouteQuery) -> Any:
        points = honest(query)
        if points is None or rng.random() < 0.6:
            return points
        return np.concatenate([points[:1], np.add(points[:1], (400.0, 0.0)), points])

    _, table = judged(wandering, "route_stop_on_the_way")
    row = table["relations"]["route_stop_on_the_way"]
    assert row["control_differs"] > 0 and row["outcome"] in ("UNSTABLE", "INCONCLUSIVE")


def test_relations_that_close_roads_are_left_out_where_a_planner_cannot() -> None:
    kept, left_out = chosen_relations((), closes=False)
    assert len(kept) == len(RELATIONS) - 1 and list(left_out) == ["route_road_closed"]
    with pytest.raises(UsageError, match="cannot be told of closed roads"):
        chosen_relations(("route_road_closed",), closes=False)
    with pytest.raises(UsageError, match="did you mean 'route_way_back'"):
        chosen_relations(("route_way_bac",), closes=True)


@pytest.mark.parametrize(
    ("name", "fault", "message"),
    [
        ("reference_route_planner", "closure", "has no fault 'closure'; did you mean 'closure_unread'"),
        ("mine:plan", "closure_unread", "faults are planted in reference_route_planner only"),
        ("mine", "", "expected reference_route_planner, MODULE:FUNCTION"),
        ("not_there:plan", "", "not_there"),
        ("ros:plan", "", "expected the absolute name of a service"),
    ],
)
def test_wrong_planners_are_refused(name: str, fault: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_planner(name, graph(), fault)


def test_the_command_judges_a_planner_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("beeline_planner.py").write_text(
        "def plan(query):\n"
        "    if query.closed:\n"
        "        return [query.start.xy_m, query.goal.xy_m]\n"  # straight over the closed place, or near it
        "    return [query.start.xy_m, (query.start.x_m, query.goal.y_m), query.goal.xy_m]\n"
    )
    command = ["experiment", "routes", "--planner", "beeline_planner:plan", "--pairs", "25", "--out", "out"]
    assert main([*command, "--relations", "route_road_closed,route_stop_on_the_way"]) == ExitCode.FAIL
    printed = capsys.readouterr().out
    assert "route_stop_on_the_way   PASS" in printed and "route_road_closed: FAIL" in printed
    result = read_result(Path("out/routes.json"))
    assert result["relations"]["route_road_closed"]["violated"] > 0 and len(result["cases"]) == 50
    assert Path("out/routes.png").read_bytes().startswith(b"\x89PNG")
    assert main([*command[:-1], "again", "--json", "--relations", "route_stop_on_the_way"]) == ExitCode.PASS
    assert json.loads(capsys.readouterr().out)["exit_code"] == 0
