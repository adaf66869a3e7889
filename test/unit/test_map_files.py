# SPDX-License-Identifier: Apache-2.0
"""Users' maps as worlds: lanes, neighbours, successors and surfaces of files whose lanes are known, and drives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely
from looped import driven
from test_hd_maps import RADIUS_M, STRAIGHT_M, WIDTH_M, lane, lanelets, open_drive

from mt_nodes.base.errors import UsageError
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.route import Route
from mt_nodes.world.drive.scenario import Pose
from mt_nodes.world.scenarios.language import load_scenarios, problems_of
from mt_nodes.world.scenarios.open_scenario import scenario_of

pytest.importorskip("pyxodr", reason="needs the extra 'maps'")
pytest.importorskip("lanelet2", reason="needs the extra 'maps'")

SCRIPT = """ego = AV(("7/0/-1" -> 5.0, , 6.0), ("7/0/-1" -> 80.0));
around_the_bend = CreateScenario {
    load("bend.xodr");
    ego;
    {};
    {};
    {};
    {};
    {Duration(25)};
};
"""


def two_lanes(folder: Path) -> Path:
    """A road of two sections with two lanes to the right in each, and a taper of no width."""
    right = lane(-1, "driving", 3.0) + lane(-2, "driving", 3.5) + lane(-3, "shoulder", 1.5)
    side = f"<center>{lane(0, 'none', 0)}</center><right>{right}</right>"
    sections = "".join(f'<laneSection s="{s}">{side}</laneSection>' for s in (0, 60))
    plan = '<planView><geometry s="0" x="10" y="5" hdg="0" length="100"><line/></geometry></planView>'
    road = f'<road name="" length="100" id="3" junction="-1">{plan}<lanes>{sections}</lanes></road>'
    path = folder / "lanes.xodr"
    path.write_text(f"<OpenDRIVE><header revMajor='1' revMinor='4'/>{road}</OpenDRIVE>")
    return path


def test_lanes_of_open_drive_are_the_worlds(tmp_path: Path) -> None:
    road = load_map(str(open_drive(tmp_path)))
    right, left, pavement = (road.lanes[f"7/0/{number}"] for number in (-1, 1, -2))
    assert right.width_m == left.width_m == pytest.approx(WIDTH_M, abs=0.01)
    assert (right.on_road, left.on_road, pavement.on_road) == (True, True, False)
    assert right.line_m[0] == pytest.approx([0.0, -WIDTH_M / 2.0], abs=0.02)
    assert right.length_m == pytest.approx(STRAIGHT_M + np.pi / 2.0 * (RADIUS_M + WIDTH_M / 2.0), rel=2e-3)
    assert left.line_m[-1] == pytest.approx([0.0, WIDTH_M / 2.0], abs=0.02)  # traffic keeps to the right
    area = 2.0 * WIDTH_M * (STRAIGHT_M + np.pi / 2.0 * RADIUS_M)
    assert road.carriageway.area == pytest.approx(area, rel=0.01)
    assert road.kerbs_m
    assert not road.buildings


def test_sections_lead_on_and_lanes_lie_beside_each_other(tmp_path: Path) -> None:
    road = load_map(str(two_lanes(tmp_path)))
    assert set(road.lanes) == {f"3/{section}/{number}" for section in (0, 1) for number in (-1, -2)}
    inner, outer = road.lanes["3/0/-1"], road.lanes["3/0/-2"]
    assert (inner.next, outer.next) == (("3/1/-1",), ("3/1/-2",))
    assert (inner.left, inner.right, outer.left, outer.right) == ("", "3/0/-2", "3/0/-1", "")
    assert road.carriageway.contains(shapely.Point(50.0, 5.0 - 3.0 - 3.5 - 1.0))  # the shoulder
    route = Route(road, Pose(12.0, 3.5), Pose(105.0, 3.5))
    assert route.lanes == ("3/0/-1", "3/1/-1")


def test_lanelets_are_the_worlds(tmp_path: Path) -> None:
    road = load_map(str(lanelets(tmp_path)))
    # lanelet2 tells directions by degrees, which are all alike in this file: it comes to drive west.
    assert road.lanes["1001"].next == ("1000",)
    assert not road.lanes["1002"].on_road
    degrees = lanelets(tmp_path, local=False)
    with pytest.raises(UsageError, match="origin_deg"):
        load_map(str(degrees))
    with pytest.raises(UsageError, match="No such file"):
        load_map(f"{tmp_path / 'none.osm'}@49.0,8.4")


def test_the_ego_drives_along_the_lanes_of_a_users_map(tmp_path: Path) -> None:
    open_drive(tmp_path)
    (tmp_path / "s.scenario").write_text(SCRIPT, encoding="utf-8")
    (scenario,) = load_scenarios(tmp_path / "s.scenario")
    assert scenario.road == str(tmp_path / "bend.xodr")
    drive = driven(scenario)
    assert drive.trace.ended == "target"
    assert np.abs(drive.left_m).max() < 0.6
    mirrored = load_map(f"{scenario.road}_mirrored")
    assert mirrored.lanes["7/0/-1"].line_m[0] == pytest.approx([0.0, WIDTH_M / 2.0], abs=0.02)


def test_a_map_that_cannot_be_read_is_a_problem_of_the_script(tmp_path: Path) -> None:
    (found, *_) = problems_of(SCRIPT, path=tmp_path / "s.scenario")
    assert "bend.xodr' , expected" in str(found) or "No such file" in str(found)


def test_positions_of_open_scenario_lie_on_roads_of_open_drive(tmp_path: Path) -> None:
    open_drive(tmp_path)
    text = (Path(__file__).parents[1] / "scenario_language" / "child_crosses.xosc").read_text(encoding="utf-8")
    text = text.replace("maps/straight.xodr", "bend.xodr")
    begin, end = text.index("<Entities>"), text.index("</OpenSCENARIO>")
    box = (
        '<BoundingBox><Center x="1.3" y="0" z="0.7"/><Dimensions width="1.8" length="4.5" height="1.5"/></BoundingBox>'
    )
    car = f'<Vehicle name="v" vehicleCategory="car">{box}</Vehicle>'
    places = {"Ego": (5.0, -1), "Comer": (45.0, 1)}
    objects = "".join(f'<ScenarioObject name="{name}">{car}</ScenarioObject>' for name in places)
    init = "".join(
        f'<Private entityRef="{name}"><PrivateAction><TeleportAction><Position>'
        f'<LanePosition roadId="7" laneId="{number}" s="{s}" offset="0.5"/>'
        "</Position></TeleportAction></PrivateAction></Private>"
        for name, (s, number) in places.items()
    )
    story = f"<Storyboard><Init><Actions>{init}</Actions></Init></Storyboard>"
    text = f"{text[:begin]}<Entities>{objects}</Entities>{story}{text[end:]}"
    scenario = scenario_of(text, "a.xosc", {}, folder=tmp_path)
    ego, (comer,) = scenario.ego.start, scenario.actors
    assert (ego.x_m, ego.y_m, ego.yaw_rad) == pytest.approx((5.0, -WIDTH_M / 2.0 + 0.5, 0.0), abs=0.03)
    assert comer.start.x_m == pytest.approx(45.0 - 1.3, abs=0.08)  # its centre lies ahead, and it comes the other way
    assert comer.start.y_m == pytest.approx(WIDTH_M / 2.0 + 0.5, abs=0.03)
    assert abs(comer.start.yaw_rad) == pytest.approx(np.pi, abs=0.02)
