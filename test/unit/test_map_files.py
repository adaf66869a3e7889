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
from mt_nodes.data.outputs import Control
from mt_nodes.world.drive.map_furniture import phased
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.road_map import TrafficLight
from mt_nodes.world.drive.route import Route
from mt_nodes.world.drive.scenario import Pose
from mt_nodes.world.drive.signals import colour_at
from mt_nodes.world.drive.world import World
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


def open_scenario(folder: Path, road: str, places: dict[str, str], story: str = "") -> str:
    """Return an OpenSCENARIO text with cars at lane positions of a road, each with the rest of its Init."""
    text = (Path(__file__).parents[1] / "scenario_language" / "child_crosses.xosc").read_text(encoding="utf-8")
    text = text.replace("maps/straight.xodr", road)
    begin, end = text.index("<Entities>"), text.index("</OpenSCENARIO>")
    box = (
        '<BoundingBox><Center x="1.3" y="0" z="0.7"/><Dimensions width="1.8" length="4.5" height="1.5"/></BoundingBox>'
    )
    car = f'<Vehicle name="v" vehicleCategory="car">{box}</Vehicle>'
    objects = "".join(f'<ScenarioObject name="{name}">{car}</ScenarioObject>' for name in places)
    init = "".join(
        f'<Private entityRef="{name}"><PrivateAction><TeleportAction><Position>'
        f"<LanePosition {place}/></Position></TeleportAction></PrivateAction>"
        f"{SPEED if story else ''}</Private>"
        for name, place in places.items()
    )
    story = f"<Storyboard><Init><Actions>{init}</Actions></Init>{story}</Storyboard>"
    return f"{text[:begin]}<Entities>{objects}</Entities>{story}{text[end:]}"


def test_positions_of_open_scenario_lie_on_roads_of_open_drive(tmp_path: Path) -> None:
    open_drive(tmp_path)
    places = {"Ego": (5.0, -1), "Comer": (45.0, 1)}
    at = {name: f'roadId="7" laneId="{lane}" s="{s}" offset="0.5"' for name, (s, lane) in places.items()}
    text = open_scenario(tmp_path, "bend.xodr", at)
    scenario = scenario_of(text, "a.xosc", {}, folder=tmp_path)
    ego, (comer,) = scenario.ego.start, scenario.actors
    assert (ego.x_m, ego.y_m, ego.yaw_rad) == pytest.approx((5.0, -WIDTH_M / 2.0 + 0.5, 0.0), abs=0.03)
    assert comer.start.x_m == pytest.approx(45.0 - 1.3, abs=0.08)  # its centre lies ahead, and it comes the other way
    assert comer.start.y_m == pytest.approx(WIDTH_M / 2.0 + 0.5, abs=0.03)
    assert abs(comer.start.yaw_rad) == pytest.approx(np.pi, abs=0.02)


SPEED = (
    "<PrivateAction><LongitudinalAction><SpeedAction><SpeedActionTarget><AbsoluteTargetSpeed value='8'/>"
    "</SpeedActionTarget></SpeedAction></LongitudinalAction></PrivateAction>"
)
CUT_IN = """<Story name="s"><Act name="act"><ManeuverGroup maximumExecutionCount="1" name="g">
<Actors><EntityRef entityRef="Other"/></Actors><Maneuver name="m">
<Event name="change" priority="overwrite"><Action name="a"><PrivateAction><LateralAction><LaneChangeAction>
<LaneChangeActionDynamics dynamicsShape="sinusoidal" value="2" dynamicsDimension="time"/><LaneChangeTarget>
<RelativeTargetLane entityRef="Ego" value="0"/></LaneChangeTarget></LaneChangeAction></LateralAction></PrivateAction>
</Action><StartTrigger><ConditionGroup><Condition name="c" delay="0" conditionEdge="none"><ByEntityCondition>
<TriggeringEntities triggeringEntitiesRule="any"><EntityRef entityRef="Other"/></TriggeringEntities><EntityCondition>
<TimeHeadwayCondition entityRef="Ego" value="1.0" freespace="false" rule="greaterThan" alongRoute="true"/>
</EntityCondition></ByEntityCondition></Condition></ConditionGroup></StartTrigger></Event>
<Event name="brake" priority="overwrite"><Action name="b"><PrivateAction><LongitudinalAction><SpeedAction>
<SpeedActionDynamics dynamicsShape="linear" value="1" dynamicsDimension="time"/><SpeedActionTarget>
<RelativeTargetSpeed entityRef="Ego" value="-3" speedTargetValueType="delta" continuous="false"/>
</SpeedActionTarget></SpeedAction></LongitudinalAction></PrivateAction></Action><StartTrigger><ConditionGroup>
<Condition name="d" delay="0.5" conditionEdge="none"><ByValueCondition><StoryboardElementStateCondition
storyboardElementType="event" storyboardElementRef="change" state="completeState"/></ByValueCondition></Condition>
</ConditionGroup></StartTrigger></Event></Maneuver></ManeuverGroup><StartTrigger><ConditionGroup>
<Condition name="e" delay="0" conditionEdge="none"><ByValueCondition><SimulationTimeCondition value="1.5"
rule="greaterThan"/></ByValueCondition></Condition></ConditionGroup></StartTrigger></Act></Story>"""


def test_a_cut_in_of_open_scenario_is_driven(tmp_path: Path) -> None:
    two_lanes(tmp_path)
    places = {"Ego": 'roadId="3" laneId="-1" s="5"', "Other": 'roadId="3" laneId="-2" s="20"'}
    scenario = scenario_of(open_scenario(tmp_path, "lanes.xodr", places, CUT_IN), "a.xosc", {}, folder=tmp_path)
    change, brake = scenario.events[1:]
    assert [event.name for event in scenario.events] == ["start of act", "change", "brake"]
    assert (change.actor, change.over, change.shape) == ("Other", 2.0, "sinusoidal")
    assert change.aside_m == pytest.approx(3.25, abs=0.02), "half of either lane"
    assert (brake.relative_to, brake.speed_mps) == ("ego", -3.0)
    other = scenario.actors[0]
    assert other.waypoints[-1].x_m == pytest.approx(110.0, abs=0.1), "along its lane, to the end of the road"
    world = World(scenario, 0, load_map(scenario.road))
    rows = {}
    while not world.ended and world.state.time_s < 6.0:
        world.step(Control(None, steering_rad=0.0, acceleration_mps2=0.0), world.state.time_s + 0.1)
        rows[round(world.state.time_s, 1)] = world.state.actors[0]
    assert (rows[1.4][1], rows[1.4][3]) == pytest.approx((5.0 - 4.75, 8.0), abs=0.03)
    assert rows[4.0][1] == pytest.approx(5.0 - 1.5, abs=0.03) and rows[4.0][3] == pytest.approx(8.0)
    assert rows[5.4][3] == pytest.approx(5.0, abs=0.2)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('state="completeState"', 'state="standbyState"', "storyboardElementRef='change' state='standbyState'>"),
        ('storyboardElementRef="change"', 'storyboardElementRef="chang"', "did you mean 'change'"),
        ("LaneChangeAction", "LateralDistanceAction", "<LateralAction> of 'Other' in a Story: <LateralDistanceAction>"),
        ('entityRef="Ego" value="0"', 'entityRef="Ego" value="5"', "got lane 5 as target of 'Other', expected one of"),
        ("TimeHeadwayCondition", "OffroadCondition", "got <OffroadCondition>, expected one of SimulationTime"),
        ('name="change" priority', 'name="change" maximumExecutionCount="3" priority', "event 'change' up to 3 times"),
    ],
)
def test_what_is_not_read_of_events_is_refused(tmp_path: Path, before: str, after: str, told: str) -> None:
    two_lanes(tmp_path)
    places = {"Ego": 'roadId="3" laneId="-1" s="5"', "Other": 'roadId="3" laneId="-2" s="20"'}
    text = open_scenario(tmp_path, "lanes.xodr", places, CUT_IN.replace(before, after))
    with pytest.raises(UsageError) as caught:
        scenario_of(text, "a.xosc", {}, folder=tmp_path)
    assert told in str(caught.value)


SIGNALS = """<signals>
<signal id="8" s="50" t="-7.5" orientation="+" type="1000001" country="OpenDRIVE" dynamic="yes"/>
<signal id="9" s="70" t="-7.5" orientation="+" type="1000001" country="OpenDRIVE" dynamic="yes">
<validity fromLane="-2" toLane="-2"/></signal>
<signal id="10" s="20" t="-8" orientation="+" type="274" subtype="50" value="30" country="de" dynamic="no"/>
<signal id="11" s="20" t="-8" orientation="+" type="310" country="de" dynamic="no"/>
<signal id="12" s="20" t="4" orientation="-" type="206" country="de" dynamic="no"/></signals>"""


def furnished(folder: Path) -> Path:
    """The road of two lanes with signals and limits."""
    path = two_lanes(folder)
    text = path.read_text().replace("</lanes></road>", f"</lanes>{SIGNALS}</road>")
    kinds = '<type s="0" type="town"><speed max="30" unit="mph"/></type><type s="30" type="town">'
    text = text.replace("<planView>", f'{kinds}<speed max="60" unit="km/h"/></type><planView>')
    path.write_text(text)
    return path


def test_limits_lights_and_signs_of_open_drive_are_the_worlds(tmp_path: Path) -> None:
    road = load_map(str(furnished(tmp_path)))
    assert road.lanes["3/0/-1"].limit_mps == pytest.approx(30 * 0.44704)
    assert road.lanes["3/1/-1"].limit_mps == pytest.approx(60 / 3.6), "of the type that goes on"
    limits = [(one.pose.x_m, one.pose.y_m, one.limit_mps) for one in road.limits]
    assert limits == [pytest.approx((40.0, y, 60 / 3.6), abs=0.05) for y in (5.0 - 1.5, 5.0 - 4.75)]
    lights = {light.name: light for light in road.signals}
    assert list(lights) == ["8", "8@3/0/-2", "9"]
    assert [light.lane for light in lights.values()] == ["3/0/-1", "3/0/-2", "3/1/-2"]
    assert [light.stop_m for light in lights.values()] == pytest.approx([50.0, 50.0, 10.0], abs=0.15)
    for light in lights.values():
        assert light.pose.y_m == pytest.approx(5.0 - 7.5, abs=0.02) and light.pose.yaw_rad == pytest.approx(0.0)
    [sign] = road.signs
    assert (sign.face, sign.value) == ("speed_limit", 30), "no lane is for those who come"
    assert (sign.pose.x_m, sign.pose.y_m) == pytest.approx((30.0, -3.0), abs=0.05)


def test_lanes_have_limits_of_their_own(tmp_path: Path) -> None:
    path, wide = two_lanes(tmp_path), lane(-2, "driving", 3.5)
    speeds = '<speed sOffset="0" max="no limit"/><speed sOffset="20" max="5"/></lane>'
    path.write_text(path.read_text().replace(wide, wide.replace("</lane>", speeds), 1))
    road = load_map(str(path))
    assert [round(road.lanes[name].limit_mps, 1) for name in ("3/0/-1", "3/0/-2", "3/1/-2")] == [13.9, 36.1, 13.9]
    assert [round(one.limit_mps, 1) for one in road.limits] == [5.0]


def test_limits_and_lights_of_lanelets_are_the_worlds(tmp_path: Path) -> None:
    path = lanelets(tmp_path)
    light = (
        '<relation id="990" version="1"><member type="way" ref="100" role="refers"/>'
        '<tag k="type" v="regulatory_element"/><tag k="subtype" v="traffic_light"/></relation>'
    )
    ends = '<member type="relation" ref="990" role="regulatory_element"/><tag k="speed_limit" v="30"/></relation>'
    text = path.read_text().replace("</relation>", ends, 1).replace("</osm>", f"{light}</osm>")
    path.write_text(text)
    road = load_map(str(path))
    assert road.lanes["1000"].limit_mps == pytest.approx(30 / 3.6) != road.lanes["1001"].limit_mps
    [signal] = road.signals
    assert (signal.name, signal.lane, signal.stop_m) == ("990", "1000", pytest.approx(40.0))


def test_lights_across_are_green_at_other_times() -> None:
    along, across = (TrafficLight(name, Pose(0.0, 0.0, yaw), (), "a", 1.0) for name, yaw in (("a", 0.0), ("b", 1.6)))
    shown = {light.name: light.programme for light in phased([along, across])}
    assert [{colour_at(shown[name], time) for name in "ab"} for time in (5.0, 13.0, 20.0, 28.0)] == [
        *({"green", "red"}, {"yellow", "red"}, {"red", "green"}, {"red", "yellow"})
    ]
