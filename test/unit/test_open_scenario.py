# SPDX-License-Identifier: Apache-2.0
"""OpenSCENARIO files: what is read of them, and that nothing is left out silently."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
from scenario_texts import FOLDER

from mt_nodes.base.errors import UsageError
from mt_nodes.world.drive.scenario import Scenario, Trigger, Waypoint
from mt_nodes.world.scenarios.language import load_scenarios
from mt_nodes.world.scenarios.open_scenario import scenario_of
from mt_nodes.world.scenarios.open_scenario.source import value_of
from mt_nodes.world.weather_units import FOG_M

PATH = FOLDER / "child_crosses.xosc"
TEXT = PATH.read_text(encoding="utf-8")


def read(*changes: tuple[str, str], **parameters: str) -> Scenario:
    """Read the file after changes, each of which must change something."""
    text = TEXT
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return scenario_of(text, PATH.name, parameters)


def test_what_a_file_says_is_read() -> None:
    scenario = read()
    assert (scenario.name, scenario.road, scenario.duration_s) == ("child_crosses", "straight", 30.0)
    ego = scenario.ego
    assert (ego.start.x_m, ego.start.y_m, ego.speed_mps, ego.target) == (20.0, 0.0, 10.0, None)
    vehicle = ego.vehicle
    assert (vehicle.front_m, vehicle.rear_m, vehicle.wheelbase_m) == pytest.approx((3.55, 0.95, 2.98))
    assert (vehicle.width_m, vehicle.height_m, vehicle.steering_rad) == (1.8, 1.5, 0.5)
    lead, kid = scenario.actors
    assert (lead.name, lead.kind, lead.speed_mps, lead.size_m) == ("Lead", "car", 8.0, (4.5, 1.8, 1.5))
    assert (lead.start.x_m, lead.start.y_m) == pytest.approx((61.3, 3.5))
    assert (kid.kind, kid.mass_kg, kid.waypoints) == ("child", 30.0, (Waypoint(100.0, 5.0, 10.0 / 3.0),))
    assert kid.trigger == Trigger(after_s=1.0, ego_within_m=30.0)
    assert kid.person is not None
    assert kid.person.age_years == 7.0
    (cone,) = scenario.obstacles
    assert (cone.pose.x_m, cone.pose.y_m, cone.size_m) == (70.0, -1.0, (0.4, 0.4, 0.7))


def test_weather_is_of_the_scales_of_the_world() -> None:
    environment = read().environment
    assert (environment.hour, environment.rain, environment.snow, environment.cloudiness) == (18.5, 0.2, 0.0, 1.0)
    assert FOG_M[0] * (FOG_M[1] / FOG_M[0]) ** environment.fog == pytest.approx(200.0)
    snow = read(('"rain"', '"snow"'), ('cloudState="overcast"', 'fractionalCloudCover="twoOktas"')).environment
    assert (snow.rain, snow.snow, snow.cloudiness) == (0.0, 1.0, 0.25)
    old = read(
        ('precipitationIntensity="10"', 'intensity="0.7"'), ('visualRange="200"', 'visualRange="1e5"')
    ).environment
    assert (old.rain, old.fog) == (0.7, 0.0)
    wet = read(("<RoadCondition ", '<RoadCondition wetness="moist" '), ('visualRange="200"', 'visualRange="0"'))
    assert (wet.environment.wetness, wet.environment.fog) == (0.25, 1.0)


def test_parameters_are_given_from_outside() -> None:
    assert read(speed="12.5").ego.speed_mps == 12.5
    with pytest.raises(UsageError, match="unknown parameter 'sped'; did you mean 'speed'"):
        read(sped="3")


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ([('pedestrianCategory="pedestrian"', 'pedestrianCategory="wheelchair"')], "wheelchair_user"),
        ([('pedestrianCategory="pedestrian"', 'pedestrianCategory="animal"')], "deer"),
        ([('"pedestrian"', '"animal"'), ("moral:age", "moral:species"), ('"7"', '"boar"')], "boar"),
        ([('value="7"', 'value="70"')], "elderly"),
        ([("moral:age", "moral:build")], "adult"),
    ],
)
def test_people_and_animals_are_what_is_said(changes: list[tuple[str, str]], kind: str) -> None:
    kid = read(*changes).actor("Kid")
    assert kid.kind == kind
    assert (kid.person is None) == (kind in ("deer", "boar"))


def test_the_last_place_that_the_ego_is_to_reach_is_its_target() -> None:
    target = "<RoutingAction><AcquirePositionAction><Position><LanePosition roadId='lane_1' laneId='1' s='200'/>"
    target += "</Position></AcquirePositionAction></RoutingAction>"
    scenario = read(
        (
            "</TeleportAction>\n                    </PrivateAction>\n                </Private>\n"
            '                <Private entityRef="Lead">',
            f"</TeleportAction></PrivateAction><PrivateAction>{target}</PrivateAction></Private>"
            '<Private entityRef="Lead">',
        )
    )
    assert scenario.ego.target is not None
    assert scenario.ego.target.x_m == 200.0


def test_positions_relative_to_somebody_turn_with_them() -> None:
    turned = (
        ("RelativeWorldPosition", "RelativeObjectPosition"),
        ('x="20.0" y="0.0" z="0.0" h="0.0"', 'x="20.0" y="0.0" h="0.1"'),
    )
    (cone,) = read(*turned).obstacles
    assert cone.pose.x_m == pytest.approx(20.0 + 50.0 * math.cos(0.1) + math.sin(0.1))
    assert cone.pose.yaw_rad == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('name="Ego"', 'name="Car"', "entities called ego or hero"),
        ('roadId="lane_2"', 'roadId="lane_4"', "road 'lane_4' lane '-1', expected a lane of map 'straight'"),
        ("$speed", "$sped", "<AbsoluteTargetSpeed value='$sped'>, expected a declared parameter; did you mean 'speed'"),
        ("$speed", "${2 * $sped}", "parameter 'sped' is not declared"),
        ('value="8.0"', 'value="fast"', "<AbsoluteTargetSpeed value='fast'>, expected a number"),
        ('value="8.0"', 'value="inf"', "expected a number"),
        ("<WorldPosition", "<GeoPosition", "<GeoPosition>, expected one of WorldPosition"),
        ('entityRef="Ego" dx', 'entityRef="Igor" dx', "expected somebody who is placed before"),
        ('<Private entityRef="Lead">', '<Private entityRef="Leed">', "expected an entity; did you mean 'Lead'"),
        ("AbsoluteTargetSpeed", "RelativeTargetSpeed", "AbsoluteTargetSpeed"),
        ("FollowTrajectoryAction", "RandomRouteAction", "<RandomRouteAction>, expected one of AcquirePositionAction"),
        ("RoutingAction", "LateralAction", "<LateralAction> of 'Kid' in a Story"),
        ("Polyline", "Clothoid", "a trajectory of 'Kid' without vertices"),
        ("RelativeDistanceCondition", "CollisionCondition", "<CollisionCondition> for 'Kid'"),
        ('entityRef="Ego" rule', 'entityRef="Lead" rule', "expected that the ego comes nearer"),
        ('rule="lessThan"', 'rule="greaterThan"', "expected that the ego comes nearer"),
        ('time="3.0"', 'time="0.0"', "a way of 'Kid' without a speed"),
        ("BoundingBox", "Box", "without a BoundingBox"),
        ('vehicleCategory="car"', 'vehicleCategory="tram"', "vehicleCategory 'tram' of 'Lead'"),
        ('value="7"', 'value="young"', "moral:age 'young', expected a number"),
        ("2026-11-22T18:30:00", "evening", "expected a dateTime"),
        ("</Init>", "</Init", "not XML"),
        ("LogicFile", "SceneGraphFile", "no RoadNetwork/LogicFile"),
        ("maps/straight.xodr", "maps/strait.xodr", "did you mean 'straight'"),
        ('x="100.0" y="-5.0" z="0.0" h="1.57"', 'x="20.5" y="0.0"', "actors.Kid: it overlaps ego"),
    ],
)
def test_what_is_not_read_is_refused_by_name(before: str, after: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        read((before, after))
    assert told in str(caught.value)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(UsageError, match="2 problems") as caught:
        read(('roadId="lane_2"', 'roadId="lane_4"'), ('value="7"', 'value="young"'))
    assert "lane_4" in str(caught.value)
    assert "young" in str(caught.value)


def test_the_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scenariogeneration", None)
    with pytest.raises(UsageError, match=r"pip install 'mt_nodes\[openscenario\]'"):
        load_scenarios(PATH)


def test_files_are_held_against_the_schema_of_their_version(tmp_path: Path) -> None:
    pytest.importorskip("scenariogeneration", reason="the extra `openscenario` is not installed")
    assert load_scenarios(PATH, {"speed": "9"}) == (read(speed="9"),)
    for before, after, told in [
        ('value="8.0"', 'worth="8.0"', "not "),
        ("<CatalogLocations/>", "<Catalogs/>", "not "),
        ('revMinor="1"', 'revMinor="9"', "not OpenSCENARIO 1.x"),
    ]:
        damaged = tmp_path / "damaged.xosc"
        damaged.write_text(TEXT.replace(before, after), encoding="utf-8")
        with pytest.raises(UsageError, match=told):
            load_scenarios(damaged)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 * $speed", 20.0),
        ("$speed / 3.6", 10.0 / 3.6),
        ("round(-($speed - 2.6))+17", 10.0),
        ("max(1, 2) % 2 + 5", 5.0),
    ],
)
def test_expressions_are_arithmetic_over_parameters(expression: str, value: float) -> None:
    assert read(('value="$speed"', f'value="${{{expression}}}"')).ego.speed_mps == pytest.approx(value)


@pytest.mark.parametrize(
    "text", ["__import__('os')", "(1).real", "[1][0]", "1 if 1 else 2", "'a' * 3", "1 / 0", "1 +", "9**9"]
)
def test_what_is_no_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        value_of(text, {})


# --- catalogues

CATALOGUE = """<OpenSCENARIO><FileHeader/><Catalog name="Cars"><Vehicle name="small" vehicleCategory="van">
<ParameterDeclarations><ParameterDeclaration name="long" parameterType="double" value="3.0"/></ParameterDeclarations>
<BoundingBox><Center x="1.0" y="0" z="0.7"/><Dimensions width="1.6" length="$long" height="1.4"/></BoundingBox>
</Vehicle></Catalog></OpenSCENARIO>"""


def with_catalogue(folder: Path, entry: str = "small", assigned: str = "") -> Scenario:
    """Read the file with the car ahead in a catalogue."""
    (folder / "cars").mkdir()
    (folder / "cars" / "any.xosc").write_text(CATALOGUE, encoding="utf-8")
    begin, end = TEXT.index("<Vehicle", TEXT.index('name="Lead"')), TEXT.index("</Vehicle>", TEXT.index('name="Lead"'))
    reference = f'<CatalogReference catalogName="Cars" entryName="{entry}">{assigned}</CatalogReference>'
    text = TEXT[:begin] + reference + TEXT[end + len("</Vehicle>") :]
    place = '<CatalogLocations><VehicleCatalog><Directory path="cars"/></VehicleCatalog></CatalogLocations>'
    catalogues = TEXT[TEXT.index("<CatalogLocations") : TEXT.index("<RoadNetwork")]
    return scenario_of(text.replace(catalogues, place), PATH.name, {}, folder=folder)


def test_entities_of_catalogues_are_read_with_their_parameters(tmp_path: Path) -> None:
    lead = with_catalogue(tmp_path).actors[0]
    assert (lead.name, lead.kind, lead.size_m) == ("Lead", "van", (3.0, 1.6, 1.4))
    (tmp_path / "cars" / "any.xosc").unlink()
    (tmp_path / "cars").rmdir()
    assigned = '<ParameterAssignments><ParameterAssignment parameterRef="long" value="3.5"/></ParameterAssignments>'
    assert with_catalogue(tmp_path, assigned=assigned).actors[0].size_m == (3.5, 1.6, 1.4)


def test_an_entry_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"got entry 'smal' of catalogue 'Cars', expected one that is there.*'small'"):
        with_catalogue(tmp_path, "smal")
