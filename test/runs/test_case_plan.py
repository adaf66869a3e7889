# SPDX-License-Identifier: Apache-2.0
"""Plans of cases: written and read, cut out of bags and matched, and what is known of a case reaching conditions."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from made_rules import scene, some
from recordings import KITTI, needs_kitti

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.messages import Bundle, Odometry, WorldMessage
from mt_nodes.data.outputs import Control, Output
from mt_nodes.engine import case_plan
from mt_nodes.engine.case_plan import CasePlan, PlannedCase, load_cases, write_cases
from mt_nodes.relations.conditions.source_conditions import KnownToBe
from mt_nodes.relations.facts import scene_ego
from mt_nodes.relations.relation import load_relation
from mt_nodes.rules import bag_cases, rule_sets, shipped_rules
from mt_nodes.rules.case_planning import CaseFrames, choose
from mt_nodes.rules.matching import Choice
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.rule_store import Store
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

CHILD, SIGN_50, GREEN = "rule_germany_30", "rule_germany_1", "rule_california_3"
AT_30 = {"speed_kmh": 30.0, "moving": True}


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "drive"
    write_bundles(path, generate_drive(5, lidar=replace(hdl_64e(), azimuths=300)))
    return path


@pytest.fixture
def at_30_kmh(monkeypatch: pytest.MonkeyPatch) -> None:
    """What clouds tell of the motion takes a second, and is tested elsewhere."""
    told = Control(None, speed_mps=30.0 / 3.6, steering_rad=0.0)
    monkeypatch.setattr(scene_ego, "motion_by_clouds", lambda bundles: told)


def mt(*words: object) -> int:
    return main(["rules", "match", *map(str, words)])


# --- the file

_texts = st.text("abc_'\n: ü#-", max_size=12)
_values = st.one_of(
    st.booleans(), st.integers(-9, 9), st.floats(allow_nan=False, allow_infinity=False), _texts, st.lists(_texts)
)
_cases = st.builds(
    PlannedCase,
    name=_texts.filter(str.strip),
    bag=st.integers(0, 3),
    first=st.integers(0, 5),
    last=st.integers(5, 9),
    draw=st.integers(0, 1),
    relation=st.just(""),
    facts=st.dictionaries(st.sampled_from(["moving", "ego_heading", "path_clear", "no"]), _values),
    sources=st.dictionaries(st.sampled_from(["moving", "on"]), _texts),
    why=_texts.filter(lambda text: not text or text.strip()),
)


@settings(max_examples=25)
@given(st.lists(_cases, min_size=1, max_size=3))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[PlannedCase]) -> None:
    path = tmp_path_factory.getbasetemp() / "written.yaml"
    plan = CasePlan({"seed": 0, "facts": ["roads=crosswalk"]}, tuple(rows))
    write_cases(plan, path)
    assert load_cases(path) == plan and load_cases(path).sha256 == plan.sha256
    assert "&id" not in path.read_text(), "whoever reads it finds every case written out"


def made(path: Path, **changes: Any) -> Path:
    """A plan of two cases, the second with some changes."""
    case = {"name": "drive/0", "bag": 0, "first": 0, "last": 1, "relation": CHILD}
    path.write_text(yaml.safe_dump({"schema": 1, "cases": [{**case, "first": 2, "last": 3}, {**case, **changes}]}))
    return path


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"first": -1}, r"cases\[1\].first: got -1, expected a whole number"),
        ({"first": True}, r"cases\[1\].first: got True"),
        ({"last": None}, r"cases\[1\].last: got None"),
        ({"first": 4}, r"cases\[1\].last: got 1, expected at least first, 4"),
        ({"name": " "}, r"cases\[1\].name: got ' ', expected a text"),
        ({"frist": 1}, r"cases\[1\]: unknown key 'frist'; did you mean 'first'"),
        ({"facts": {"speed_kmh": None}}, r"cases\[1\].facts.speed_kmh: got None.* leave out what is not known"),
        ({"facts": {"speed_kmh": math.inf}}, r"cases\[1\].facts.speed_kmh: got inf"),
        ({"facts": {"speed_kmh": "fast"}}, r"cases\[1\].facts.speed_kmh: got 'fast', expected a finite number"),
        ({"facts": {"speed_kmh": True}}, r"cases\[1\].facts.speed_kmh: got True, expected a finite number"),
        ({"facts": {"has": "red_light"}}, r"cases\[1\].facts.has: got .red_light., expected a list of names"),
        ({"facts": {"moving": 10**400}}, r"cases\[1\].facts.moving: got 1"),
        ({"facts": {"weather": ["rain"]}}, r"cases\[1\].facts.weather: got \['rain'\], expected a name"),
        ({"facts": {3: 4}}, r"cases\[1\].facts.3: got 4, expected a flag, a finite number"),
        ({"facts": {"dark": {}}}, r"cases\[1\].facts.dark: got {}, expected a flag"),
        ({"facts": {"roads": [["a"]]}}, r"cases\[1\].facts.roads: got"),
        ({"facts": [1]}, r"cases\[1\].facts: got \[1\], expected a mapping"),
        ({"sources": {"speed_kmh": 3}}, r"cases\[1\].sources.speed_kmh: got 3, expected a text"),
        ({"last": 2}, r"cases\[0\]: got frames 2 to 3 of bag 0 for relation .*as cases\[1\] has in part; give one ano"),
    ],
)
def test_what_is_no_case_is_told_with_its_place(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=rf"cases.yaml: {told}"):
        load_cases(made(tmp_path / "cases.yaml", **changes))


@pytest.mark.parametrize(
    ("changes", "apart"),
    [({"draw": 1}, True), ({"bag": 1}, True), ({"relation": ""}, True), ({"relation": SIGN_50}, True), ({}, False)],
)
def test_cases_of_the_same_frames_must_be_told_apart(tmp_path: Path, changes: dict[str, Any], apart: bool) -> None:
    path = made(tmp_path / "cases.yaml", first=3, last=9, **changes)
    if apart:
        assert len(load_cases(path).cases) == 2
    else:
        with pytest.raises(UsageError, match="give one another draw"):
            load_cases(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "got list, expected a mapping"),
        ("schema: 2", "schema: got 2, expected 1"),
        ("{schema: 1, cases: []}", r"cases: got \[\], expected a list of cases; `mt rules match --plan` writes one"),
        ("{schema: 1, case: []}", "unknown key 'case'; did you mean 'cases'"),
        ("{schema: 1, cases: [a]}", r"cases\[0\]: got 'a', expected a mapping, such as"),
        ("{schema: 1, made_by: 3, cases: [{name: a, bag: 0, first: 0, last: 0}]}", "made_by: got 3"),
    ],
)
def test_what_is_no_plan_is_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "cases.yaml").write_text(text)
    with pytest.raises(UsageError, match=rf"cases.yaml: {told}"):
        load_cases(tmp_path / "cases.yaml")


def test_files_of_relations_are_looked_for_beside_the_plan(tmp_path: Path) -> None:
    plan = load_cases(made(tmp_path / "cases.yaml", relation="mine/own.yaml"))
    assert plan.relations == (CHILD, str(tmp_path / "mine" / "own.yaml"))


def test_a_plan_that_could_not_be_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_plan, "LARGEST_BYTES", 100)
    with pytest.raises(UsageError, match="a plan of 2 cases, more than"):
        write_cases(load_cases(made(tmp_path / "cases.yaml")), tmp_path / "large.yaml")
    assert not (tmp_path / "large.yaml").exists()


# --- what is known of a case reaches conditions

_ODOMETRY = WorldMessage("/odom", "odometry", 0, "map", Odometry("map", 0, 0.0, 0.0, 0.0, speed_mps=10.0))


def unmet(condition: str, facts: dict[str, Any], command: Control | None = None, odometry: bool = False) -> str | None:
    bundle = Bundle(0, 0, 0, facts=facts, world_messages=(_ODOMETRY,) if odometry else ())
    return KnownToBe(condition).unmet(bundle, Output(control=command))


@pytest.mark.parametrize(
    ("facts", "speed_mps", "odometry", "told"),
    [
        ({}, math.nan, False, "it is unknown whether speed_kmh > 50: speed_kmh not told"),
        ({}, 15.0, False, None),
        ({"speed_kmh": 60}, math.nan, False, None),
        ({"speed_kmh": 40}, math.nan, False, "it is not so that speed_kmh > 50 (speed_kmh 40.0)"),
        ({"speed_kmh": 40}, 15.0, False, "it is not so that speed_kmh > 50"),  # the command is what is tested
        ({"speed_kmh": 60}, 5.0, False, None),
        ({"speed_kmh": 60}, 15.0, True, "it is not so that speed_kmh > 50 (speed_kmh 36.0"),  # of this very frame
    ],
)
def test_odometry_counts_before_the_case_and_that_before_the_command(
    facts: dict[str, Any], speed_mps: float, odometry: bool, told: str | None
) -> None:
    why = unmet("speed_kmh > 50", facts, Control(0, speed_mps=speed_mps), odometry)
    assert why is None if told is None else (why or "").startswith(told)


def test_what_follows_from_what_is_known_is_known() -> None:
    assert unmet("moving and not dark", {"speed_kmh": 12, "time_of_day": "day"}) is None
    assert unmet("moving", {"speed_kmh": 0}) == "it is not so that moving (speed_kmh 0.0)"
    assert unmet("weather_clear", {"weather": "rain"}) == "it is not so that weather_clear ()"
    assert unmet("moving and not has(red_light)", {"speed_kmh": 12, "has": ["stop_sign"]}) is None
    assert unmet("not has(red_light)", {"has": ["red_light"]}) == "it is not so that not has(red_light) ()"
    assert unmet("not has(red_light)", AT_30) == "it is unknown whether not has(red_light): has(red_light) not told"


@pytest.mark.parametrize(
    ("relation", "facts", "holds"),
    [
        # AutoMT's two failure cases: a limit that is kept already, and a green light for who has stopped.
        (SIGN_50, {"speed_kmh": 40}, False),
        (SIGN_50, {"speed_kmh": 51}, True),
        (SIGN_50, {"has": []}, None),
        (GREEN, {"speed_kmh": 0, "path_clear": True, "has": []}, False),
        (GREEN, {"speed_kmh": 30, "path_clear": True, "has": []}, True),
        (GREEN, {"speed_kmh": 30, "path_clear": True, "has": ["red_light"]}, False),
        (GREEN, {"speed_kmh": 30}, None),
    ],
)
def test_the_failures_of_the_paper_are_not_judged(relation: str, facts: dict[str, Any], holds: bool | None) -> None:
    (condition,) = load_relation(relation).given
    why = condition.unmet(Bundle(0, 0, 0, facts=facts), Output())
    assert (why is None) == (holds is True)
    if holds is not True:
        assert (why or "").startswith("it is unknown" if holds is None else "it is not so")


# --- cut and matched


@pytest.mark.usefixtures("at_30_kmh")
def test_a_bag_is_cut_into_cases_and_the_plan_is_frozen(
    drive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "cases.yaml"
    words = (drive, drive, "--frames", 2, "--rounds", 2, "--stack", "reference_driver", "--plan", plan)
    assert mt(*words, "--fact", "roads=crosswalk", "--region", "california") == 0
    told = capsys.readouterr().out
    assert "8 cases of 2 frames: 8 with a relation" in told and "drive.0: 1 frame from 4 on left out" in told
    assert f"--cases {plan} --stack reference_driver" in told, "what is printed can be typed"
    assert "chosen: of " in told
    read = load_cases(plan)
    frames = [("drive.0/0", 0, 0, 1), ("drive.0/2", 0, 2, 3), ("drive.1/0", 1, 0, 1), ("drive.1/2", 1, 2, 3)]
    assert [(c.name, c.bag, c.first, c.last) for c in read.cases] == frames * 2
    assert [c.draw for c in read.cases] == [0] * 4 + [1] * 4
    assert len(read.relations) == 8, "those that were run least come first, over cases, bags and rounds"
    assert all("camera" not in load_relation(name).requires for name in read.relations)
    case = read.cases[0]
    assert case.facts["roads"] == ["crosswalk"] and case.sources["roads"] == "given by the user"
    assert case.facts["speed_kmh"] == pytest.approx(30.0) and "clouds" in case.sources["speed_kmh"]
    assert "weather" not in case.facts, "what is not known is not there"
    assert case.why.startswith("chosen: of ") and read.made_by["rounds"] == 2 and read.made_by["reference"] == 1
    assert str(tmp_path) not in plan.read_text(), "a plan names no place of the machine that made it"
    before = plan.read_text()
    assert mt(*words) == 2 and "exists already; choose another name" in capsys.readouterr().err
    assert plan.read_text() == before


@pytest.mark.usefixtures("at_30_kmh")
def test_the_same_is_matched_again_and_json_tells_every_candidate(
    drive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "other"):
        assert mt(drive, "--plan", tmp_path / f"{name}.yaml", "--frames", 2, "--json") == 0
    assert (tmp_path / "one.yaml").read_text() == (tmp_path / "other.yaml").read_text()
    rows = json.loads(capsys.readouterr().out.split("]\n[")[0].rstrip("[] \n") + "]")
    assert [(row["case"], row["first"], row["last"], row["draw"]) for row in rows] == [
        ("drive/0", 0, 1, 0),
        ("drive/2", 2, 3, 0),
    ]
    assert all(row["relation"] in row["relations"] and len(row["candidates"]) > 50 for row in rows)


@pytest.mark.usefixtures("at_30_kmh")
def test_relations_of_a_store_of_ones_own_are_files_beside_the_plan(drive: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "own.sqlite") as store:
        store.add(some()[3:])
    plan = tmp_path / "cases.yaml"
    words = (drive, "--frames", 5, "--store", tmp_path / "own.sqlite", "--plan", plan)
    assert mt(*words, "--count", "--fact", "roads=school_zone", "--rounds", 2) == 0
    named = [load_relation(name) for name in load_cases(plan).relations]
    assert sorted(one.id for one in named) == ["relation_1", "relation_2"]
    assert "relation: cases_relations/relation_1.yaml" in plan.read_text()
    with Store(tmp_path / "own.sqlite", write=False) as read:
        assert [entry.executions for entry in read.entries()] == [1, 1]


@pytest.mark.usefixtures("at_30_kmh")
def test_cases_that_none_applies_to_are_kept_with_the_reason(drive: Path, tmp_path: Path) -> None:
    plan = tmp_path / "cases.yaml"
    assert mt(drive, "--frames", 2, "--plan", plan, "--fact", "moving=false") == 3
    read = load_cases(plan)
    assert not read.relations and len(read.cases) == 2 and read.cases[0].why.startswith("none of ")


@pytest.mark.usefixtures("at_30_kmh")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--frames", 9), "--frames 9: got 5 frames in the longest bag, less than one case"),
        (("--frames", 2, "--reference", 2), "--reference: got 2, expected 0 to 1"),
        (("--frames", 2, "--frame", 1), "leave one out"),
        (("--rounds", 2), "are for whole bags; give --frames N or --plan FILE"),
        (("--frames", 0), "expected a whole number of at least 1"),
        (("--frames", 2, "--stack", "reference_drive"), "did you mean 'reference_driver'"),
        (("more.mcap",), "got 2 bags, expected one"),
    ],
)
def test_what_cannot_be_cut_is_told(
    drive: Path, words: tuple[object, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = mt(drive, *words)
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2 and told in capsys.readouterr().err


def test_a_relation_is_looked_into_once_however_many_cases_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules were read and relations bound anew for each case: five seconds of each."""
    bound, read = [], []
    monkeypatch.setattr(bag_cases, "of_entry", lambda entry: bound.append(entry) or shipped_rules.of_entry(entry))
    monkeypatch.setattr(rule_sets, "read_mapping", read.append)
    entries = shipped_rules.shipped_entries()
    chooses = bag_cases.matcher(load_ontology(), ("lidar", "camera"))
    with shipped_rules.scratch_store(entries) as store:
        choices = chooses.plan(store, {f"case {i}": scene((), speed_kmh=30.0) for i in range(3)})
    assert len({choice.index for choice in choices}) == 3
    assert len(bound) == len(entries) and not read


def test_lots_of_another_round_are_others() -> None:
    asked: list[list[str]] = []

    def plan(store: Any, named: dict[str, Any]) -> list[Choice]:
        asked.append([*named])
        return [Choice(name, None, 0, {}, ()) for name in named]

    store, chooses = SimpleNamespace(transaction=nullcontext), SimpleNamespace(plan=plan)
    found = choose([CaseFrames("drive/0", 0, 0, 1, 1, scene())], store, [chooses], 2)  # type: ignore[arg-type, list-item]
    assert asked == [["drive/0"], ["drive/0 round 1"]]
    assert [(turn, choice.case) for _, turn, choice in found] == [(0, "drive/0"), (1, "drive/0")]


@needs_kitti
def test_the_recorded_drive_is_matched(tmp_path: Path) -> None:
    plan = tmp_path / "cases.yaml"
    assert mt(KITTI, "--frames", 10, "--reference", 5, "--region", "germany", "--plan", plan) == 0
    read = load_cases(plan)
    assert [(case.first, case.last) for case in read.cases] == [(0, 9), (10, 19)]
    assert all(case.relation and 6.0 < case.facts["speed_kmh"] < 8.0 for case in read.cases)
