# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.engine.compatibility import check_requirements, default_relations, incompatibility
from mt_nodes.relations.default_relations import DEFAULT
from mt_nodes.relations.named_suites import names_from_suite_file
from mt_nodes.relations.relation import (
    CONTROL,
    SHAM,
    SHAMS,
    load_relation,
    load_suite,
    shipped_relations,
)
from mt_nodes.stacks.stack import load_stack

NOISE = {"noise_outside_roi": {"points": 5}}
MINE: dict[str, Any] = {
    "id": "mine",
    "kind": "necessary",
    "because": "a rule",
    "mutate": [NOISE],
    "check": {"obstacles_kept": {"within_m": 30}},
}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(data: Any, name: str = "mine.yaml") -> str:
        path = tmp_path / name
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        return str(path)

    return write


def without(key: str) -> dict[str, Any]:
    return {k: v for k, v in MINE.items() if k != key}


def test_every_shipped_relation_loads_under_its_file_name_and_says_why() -> None:
    made = shipped_relations()
    assert {r.id for r in made} == set(resources.shipped("relations")) >= {CONTROL, SHAM, *DEFAULT}
    for relation in made:
        assert len(relation.because) > 30 and relation.kind in ("necessary", "expected")
    roles = {r.id: r.role for r in made if r.role != "relation"}
    assert roles == {CONTROL: "control", **dict.fromkeys(SHAMS, "sham")}
    assert len(set(SHAMS)) == 3


def test_what_an_expected_relation_tolerates(write: Any) -> None:
    expected = {**MINE, "kind": "expected"}
    for rate in (0, 0.2, 0.999):
        relation = load_relation(write({**expected, "tolerated_rate": rate}))
        assert relation.tolerated_rate == rate and relation.as_plain()["tolerated_rate"] == rate
    assert load_relation(write(expected)).tolerated_rate is None
    assert "tolerated_rate" not in load_relation(write(expected)).as_plain()


@pytest.mark.parametrize("rate", [1, 1.0, -0.1, "0.2", True, [0.2], float("nan"), float("inf")])
def test_what_cannot_be_tolerated(write: Any, rate: Any) -> None:
    path = write({**MINE, "kind": "expected", "tolerated_rate": rate})
    with pytest.raises(
        UsageError, match=r"mine\.yaml: tolerated_rate: got .*, expected a number of at least 0 and below"
    ):
        load_relation(path)


def test_a_necessary_relation_tolerates_nothing(write: Any) -> None:
    with pytest.raises(UsageError, match="tolerated_rate: a necessary relation tolerates no violated pair"):
        load_relation(write({**MINE, "tolerated_rate": 0.2}))


def test_a_relation_of_ones_own(write: Any) -> None:
    relation = load_relation(write({**MINE, "given": [{"points_at_least": {"points": 9}}], "requirement": ["R1"]}))
    assert (relation.id, relation.role, relation.min_decided) == ("mine", "relation", 20)
    assert relation.check is not None and relation.check.within_m == 30.0  # type: ignore[attr-defined]
    assert relation.given[0].points == 9 and relation.requirement == ("R1",)  # type: ignore[attr-defined]


def test_plain_names_stand_for_defaults(write: Any) -> None:
    bare = load_relation(write({**MINE, "mutate": ["identity"], "check": "obstacles_kept"}))
    assert bare.as_plain()["mutate"] == [{"identity": {}}]


def test_what_is_shown_is_what_would_be_read(write: Any) -> None:
    relation = load_relation(write(MINE))
    shown = relation.as_plain()
    assert load_relation(write(shown, "again.yaml")).as_plain() == shown


WRONG: dict[str, tuple[Any, str]] = {
    "unknown key": ({**MINE, "mutat": []}, "unknown .*'mutat'.*did you mean 'mutate'"),
    "missing keys": ({"id": "x"}, "missing kind, because, mutate"),
    "kind": ({**MINE, "kind": "sure"}, "kind: got 'sure', expected necessary or expected"),
    "no check": (without("check"), "missing check"),
    "two checks": ({**MINE, "check": [{"obstacles_kept": {}}, {"obstacle_count_not_less": {}}]}, "got 2 checks"),
    "no mutation": ({**MINE, "mutate": []}, "mutate: got an empty list, expected at least one mutation"),
    "unknown mutation": ({**MINE, "mutate": [{"noise_outside_ro": {}}]}, "did you mean 'noise_outside_roi'"),
    "unknown check": ({**MINE, "check": {"obstacles_kep": {}}}, "no check .*did you mean 'obstacles_kept'"),
    "unknown condition": ({**MINE, "given": [{"obstacle_within": {}}]}, "did you mean 'obstacles_within'"),
    "unknown parameter": ({**MINE, "check": {"obstacles_kept": {"withn_m": 3}}}, "'withn_m'; did you mean 'within_m'"),
    "wrong type": ({**MINE, "mutate": [{"noise_outside_roi": {"points": "five"}}]}, "got str 'five', expected int"),
    "fraction": ({**MINE, "mutate": [{"noise_outside_roi": {"points": 1.5}}]}, "points: got float 1.5, expected int"),
    "out of range": ({**MINE, "mutate": [{"noise_outside_roi": {"points": -1}}]}, "points: got -1, expected"),
    "not a number": ({**MINE, "check": {"obstacles_kept": {"within_m": float("nan")}}}, "got NaN, expected a number"),
    "parameters as list": ({**MINE, "mutate": [{"noise_outside_roi": [5]}]}, r"got list \[5\], expected a mapping"),
    "id with a slash": ({**MINE, "id": "a/b"}, "id: got 'a/b', expected a text without"),
    "id as number": ({**MINE, "id": 3}, "id: got 3, expected a text"),
    "requires": ({**MINE, "requires": ["lidr"]}, "requires: unknown .*'lidr'.*did you mean 'lidar'"),
    "requires as text": ({**MINE, "requires": "lidar"}, "requires: got 'lidar', expected a list of texts"),
    "minimum of none": ({**MINE, "min_decided": 0}, "min_decided: got 0, expected a whole number of at least 1"),
    "minimum as flag": ({**MINE, "min_decided": True}, "min_decided: got True"),
    "region": ({**MINE, "check": {"obstacles_kept": {"region": "front_40"}}}, "did you mean 'front_40m'"),
    "no mapping": ("- 1", "got list, expected a mapping"),
    "no YAML": ("{a: [", "not valid YAML"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_name_the_file_and_what_was_expected(case: str, write: Any) -> None:
    data, message = WRONG[case]
    path = write(data)
    with pytest.raises(UsageError, match=message) as caught:
        load_relation(path)
    assert path in str(caught.value)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UsageError, match="no relation 'noise_outside_roi_11'; did you mean 'noise_outside_roi_1"):
        load_relation("noise_outside_roi_11")


def test_a_suite_always_has_control_and_sham_first(write: Any) -> None:
    suite = load_suite(["noise_outside_roi_10", write(MINE)])
    assert [r.id for r in suite.all] == ["identity", "points_permuted", "noise_outside_roi_10", "mine"]
    assert [r.id for r in load_suite(["identity", "noise_outside_roi_10"]).relations] == ["noise_outside_roi_10"]


@pytest.mark.parametrize("names", [[], ["identity"], ["identity", "points_permuted"]])
def test_a_suite_without_a_relation_is_no_suite(names: list[str]) -> None:
    with pytest.raises(UsageError, match="got no relation to judge"):
        load_suite(names)


def test_a_relation_named_twice_would_be_judged_twice(write: Any) -> None:
    with pytest.raises(UsageError, match="relation 'mine' is named twice"):
        load_suite([write(MINE), write(MINE, "other.yaml")])


def test_the_files_of_a_suite_file_are_beside_it(write: Any, tmp_path: Path) -> None:
    write(MINE)
    names = names_from_suite_file(Path(write({"relations": ["noise_outside_roi_10", "mine.yaml"]}, "suite.yaml")))
    assert names == ["noise_outside_roi_10", str(tmp_path / "mine.yaml")]
    assert [r.id for r in load_suite(names).relations] == ["noise_outside_roi_10", "mine"]
    with pytest.raises(UsageError, match=r"unknown .*'relation'.*did you mean 'relations'"):
        names_from_suite_file(Path(write({"relation": []}, "bad.yaml")))
    with pytest.raises(UsageError, match="relations: got 'x', expected a list of texts"):
        names_from_suite_file(Path(write({"relations": "x"}, "worse.yaml")))


@pytest.mark.parametrize("name", resources.shipped("stacks"))
def test_every_stack_that_a_bag_can_feed_has_relations_of_its_own(name: str) -> None:
    stack = load_stack(name)
    names = default_relations(stack)
    fits = [incompatibility(load_relation(each), stack) is None for each in names]
    if stack.world_inputs:
        return  # only a world can
    assert names and all(fits), f"{name}: {names}"
    assert (names == DEFAULT) == ("lidar" in stack.inputs and "detections" in stack.answers)


@pytest.mark.parametrize(
    ("stack", "name", "says"),
    [
        ("reference_fused", "cloud_mirrored", "in clouds alone: the radar would go on to show it where it was"),
        ("reference_both", "cloud_translated_ahead", "the camera would go on to show it where it was"),
        ("reference_both", "image_mirrored_lane", "in pictures alone: the lidar would go on to show it as it was"),
        ("reference_fused", "object_removed", "what object_removed does to a radar is not known"),
        ("reference_fused", "time_shifted_50ms", r"\+0.05 s off those of the radar, .* up to 0.02 s apart"),
        ("reference_fused", "clock_drifted", r"stamps of the lidar would be \+0.02 s off those of the radar"),
    ],
)
def test_a_change_that_other_sensors_contradict_is_refused_at_once(stack: str, name: str, says: str) -> None:
    with pytest.raises(UsageError, match=rf"'{name}' does not fit stack '{stack}', .*{says}"):
        check_requirements(load_suite([name]), load_stack(stack))
    alone = "reference_camera" if name.startswith("image") else "reference_detector"
    assert incompatibility(load_relation(name), load_stack(alone)) is None


def test_what_every_sensor_shows_is_not_refused() -> None:
    fused, both = load_stack("reference_fused"), load_stack("reference_both")
    for name in ("object_added_car", "rain_keeps_obstacles", "beams_lost_4", "extrinsic_shifted_yaw"):
        assert incompatibility(load_relation(name), fused) is None, name
    for name in ("object_removed", "clock_drifted_camera", "image_rotated_little_lane"):
        assert incompatibility(load_relation(name), both) is None, name
    wide = replace(load_stack("reference_fused"), sync_s=0.1)
    assert incompatibility(load_relation("time_shifted_50ms"), wide) is None
