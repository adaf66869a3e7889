# SPDX-License-Identifier: Apache-2.0
"""Every manipulation that AutoMT names is here: bound, an alias, or unsupported with the reason."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import yaml

from mt_nodes.base import resources
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.plugins import name_of
from mt_nodes.cli import catalogue
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle
from mt_nodes.relations import manipulations as module
from mt_nodes.relations.manipulations import Manipulation, find, manipulations
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import load_relation
from mt_nodes.rules import shipped_rules
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

ALL = manipulations()
BOUND = {name: one for name, one in ALL.items() if not one.alias_of and not one.unsupported}

#: The 62 strings of its repository, by group, and the 46 labels of its figure 3, in snake case.
REPOSITORY_TEXT = """
    st_andrews_cross_sign bus_stop_sign red_and_white_regulatory_sign start_of_30_zone_sign maximum_speed_sign
    no_motor_vehicles_sign no_vehicles_of_any_kind_sign warning_sign right_of_way_sign stop_sign yield_sign
    five_sided_sign red_light yellow_light green_light red_arrow green_arrow crosswalk_markings limit_lines
    stopped_vehicle oncoming_vehicle oncoming_bicycle oncoming_bicyclist turning_vehicle rail_vehicle public_bus
    school_bus line_bus motor_vehicle multi_track_motor_vehicle emergency_vehicle tow_truck road_work_vehicle bicycle
    auxiliary_motor_bicycle electric_micro_vehicle driver_in_front vehicle_behind
    pedestrian roller_skater skateboarder disabled_person_with_wheelchair disabled_person_with_tricycle
    disabled_person_with_quadricycle child senior person_with_small_children bicyclist passenger
    railway_employee_with_flag obstacle road_narrowing heavy_traffic
    rain snow mud ice wet_road fog heavy_smoke high_winds low_light
"""
FIGURE_3_TEXT = """
    red_light yellow_light green_light stop_sign yield_sign work_zone_sign pedestrian road_work_vehicle
    emergency_vehicle_flashing_light heavy_traffic rainy_weather wet_road speed_limit_sign stopped_vehicle dust_storm
    foggy_weather traffic_break red_arrow_signal right_lane_must_turn_right_sign red_and_white_regulatory_sign
    wrong_way_sign no_entry_sign warning_sign person_walking person_traveling_on_bicycle pedestrian_on_road
    roller_skater wheelchair_user guide_dog_user emergency_vehicle stationary_flashing_vehicle flashing_lights_vehicle
    animal cyclist livestock school_bus_yellow_lights oncoming_vehicle_turns_left obstacle_ahead construction_vehicle
    night road_obstacle school_bus_red_lights collision snowy_weather drizzle_weather emergency_vehicle_ahead
"""
#: What no honest picture shows, each with its reason in the files.
UNSEEN = {"black_ice", "pedestrian_signal_indicators", "potholes"}
#: Behind the ego, where the camera does not look.
BEHIND = {"vehicle_behind", "emergency_vehicle_behind"}
REPOSITORY, FIGURE_3 = REPOSITORY_TEXT.split(), FIGURE_3_TEXT.split()
_TRIES = 6
#: Half as many columns as usual: twice as quick.
LIDAR = replace(hdl_64e(), azimuths=900)


@cache
def frames() -> tuple[Bundle, ...]:
    return tuple(generate_drive(2, lidar=LIDAR, camera=CameraSensor(width=480, height=360)))


@cache
def follow_up(name: str) -> tuple[Bundle, Bundle]:
    """Return a frame that the manipulation applies to and what becomes of it, proved."""
    reasons = []
    for seed in range(_TRIES):
        source = frames()[seed % 2]
        try:
            derived = MutationPipeline(ALL[name].mutations(), seed, name).derive(source)
        except NotApplicable as reason:
            reasons.append(str(reason))
            continue
        assert derived.broken is None, derived.broken
        return source, derived.followup.first
    pytest.fail(f"{name} applies to no frame: {reasons[-1]}")


def test_the_lists_are_complete() -> None:
    assert (len(REPOSITORY), len(FIGURE_3)) == (62, 46)
    for group, names in (("repository", REPOSITORY), ("figure_3", FIGURE_3)):
        assert sorted(name for name, one in ALL.items() if group in one.listed_in) == sorted(names)
    assert not [name for name in (*REPOSITORY, *FIGURE_3) if ALL[name].unsupported]


def test_what_nothing_shows_is_told_one_by_one() -> None:
    assert {name for name, one in ALL.items() if one.unsupported} == UNSEEN
    elements = load_ontology().elements
    for region in ("germany", "california"):
        assert {name for name, one in elements.items() if one.gap(region)} == {*UNSEEN, "traffic_light"}
    assert not [name for name, one in shipped_rules.born().items() if one.gap(load_ontology())]


def test_each_is_bound_or_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["name"]: row for row in catalogue.rows("manipulations")}
    assert set(rows) == set(ALL)
    for name, row in rows.items():
        assert bool(row["mutate"]) != bool(row["unsupported"])
        assert not row["alias_of"] or row["mutate"] == rows[row["alias_of"]]["mutate"]
        assert bool(row["sensors"]) == bool(row["mutate"]), name
    assert rows["red_arrow_signal"]["alias_of"] == "red_arrow"
    assert rows["stop_sign"]["sensors"] == ["lidar", "camera", "radar"]
    assert rows["black_ice"]["unsupported"]


def test_no_two_are_bound_alike() -> None:
    bound = [one.as_plain()["mutate"] for one in BOUND.values()]
    assert all(bound.count(one) == 1 for one in bound)


@pytest.mark.parametrize("name", BOUND)
def test_each_changes_what_its_sensors_see(name: str) -> None:
    source, made = follow_up(name)
    cloud = source.clouds[0].raw.tobytes() != made.clouds[0].raw.tobytes()
    image = bool(np.abs(_seen(source) - _seen(made)).max() > 8)
    assert cloud or image
    if name not in BEHIND:
        assert image, "nothing is to be seen in the picture"


def test_no_two_look_alike() -> None:
    """Two names that are not aliases give visibly different frames, in the picture or, behind the ego, in the cloud."""
    made = {name: follow_up(name) for name in BOUND}
    looks = {name: _seen(bundle) - _seen(source) for name, (source, bundle) in made.items()}
    names = list(looks)
    behind = [made[name][1].clouds[0].raw.tobytes() for name in BEHIND]
    assert len(set(behind)) == len(BEHIND)
    for i, one in enumerate(names):
        for other in (name for name in names[i + 1 :] if not {one, name} <= BEHIND):
            # Where some of the pixels tell already, the others need not be looked at.
            assert _apart(looks[one], looks[other], 6) or _apart(looks[one], looks[other]), (
                f"{one} and {other} look alike"
            )


def _apart(one: npt.NDArray[np.int16], other: npt.NDArray[np.int16], step: int = 1) -> bool:
    return bool((np.abs(one[::step, ::step] - other[::step, ::step]) > 8).sum() >= 8)


def _seen(bundle: Bundle) -> npt.NDArray[np.int16]:
    return decode(bundle.images[0]).rgb8().astype(np.int16)


def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "manipulations").mkdir()
    (tmp_path / "manipulations" / "own.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(resources, "config_dir", lambda: tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: {alias_of: b}", "alias_of: got 'b'"),
        ("a: {alias_of: b}\nb: {unsupported: no mesh}", "expected a name that is bound"),
        ("a: {unsupported: no mesh, alias_of: b}", "expected one of"),
        ("a: {}", "got nothing"),
        ("a: [x]", "expected a mapping"),
        ("a: {mutates: {fog: {}}}", "mutates"),
        ("a: {unsupported: no, listed_in: [nobody]}", "nobody"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str) -> None:
    write(tmp_path, monkeypatch, text)
    with pytest.raises(UsageError, match=told):
        manipulations.__wrapped__()


def test_wrong_parameters_and_unsupported_names_are_refused(tmp_path: Path) -> None:
    wrong = Manipulation("a", (("object_added", {"kind": "elephant"}),), "", "", (), tmp_path)
    with pytest.raises(UsageError, match="elephant"):
        wrong.mutations()
    with pytest.raises(UsageError, match="unsupported"):
        ALL["black_ice"].mutations()
    with pytest.raises(UsageError, match="did you mean"):
        module.find("stop_sgn")


def test_a_relation_may_name_a_manipulation(tmp_path: Path) -> None:
    about = {"id": "mine", "kind": "expected", "because": "a rule of the road", "check": "obstacles_kept"}
    path = tmp_path / "mine.yaml"
    for mutate, names in (
        (["red_light"], ["light_added"]),
        ([{"red_light": {}}, {"identity": {}}], ["light_added", "identity"]),
    ):
        path.write_text(yaml.safe_dump({**about, "mutate": mutate}))
        assert [name_of(type(m)) for m in load_relation(str(path)).mutate] == names
    assert load_relation(str(path)).mutate[0] == find("red_light").mutations()[0]
    for wrong, told in (
        ([{"red_light": {"kind": "green"}}], r"mine\.yaml: mutate: got kind for red_light, which is a manipulation"),
        (["black_ice"], "'black_ice' is unsupported"),
        (["red_ligt"], "no mutation|red_ligt"),
    ):
        path.write_text(yaml.safe_dump({**about, "mutate": wrong}))
        with pytest.raises(UsageError, match=told):
            load_relation(str(path))
