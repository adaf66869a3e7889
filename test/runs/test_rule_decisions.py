# SPDX-License-Identifier: Apache-2.0
"""A part of the table of `scripts/rule_decisions.py`: where statements decide, and which planted fault breaks them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from found_once import obstacles_found_once, people_found_once, worlds_seen_once
from made_drives import made_run, setting, with_faults
from made_rules import lamp_detector

from mt_nodes.base.jsonl import read_lines
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.run_record import write_record
from mt_nodes.rules.bag_cases import Recording, facts, matcher
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.shipped_rules import ids_of, scratch_store, shipped_entries
from mt_nodes.runs.loop.episode_conductor import execute, in_process_arms
from mt_nodes.stacks import callables
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive

pytestmark = pytest.mark.usefixtures("stacks_here")


@pytest.fixture(scope="module", autouse=True)
def remembered() -> Iterator[None]:
    with worlds_seen_once(), obstacles_found_once(), people_found_once():
        yield


#: A child, an animal and somebody with a guide dog beside the road, a vehicle ahead on it.
RELATIONS = ("rule_germany_30", "rule_california_57", "rule_california_51", "rule_germany_4")
#: A warning sign, and heavy fog: for a driver with a camera.
SEEN = ("rule_california_36", "rule_california_27")
LONG = replace(setting(), scenario=replace(setting().scenario, duration_s=9.0))
#: Signs and fog are seen at once; a second of a drive with a camera takes two of a processor.
SHORT = replace(setting(), scenario=replace(setting().scenario, duration_s=4.0))


@pytest.mark.parametrize(
    ("name", "relations", "faults", "broken"),
    [
        ("reference_careful", RELATIONS, (), set()),
        ("reference_careful", RELATIONS, ("only_own_lane_counts",), {*RELATIONS[:3]}),
        # Blind to people: the dog beside a blind person, the animal and the vehicle still count.
        ("reference_careful", RELATIONS, ("blind_to",), {RELATIONS[0]}),
        ("reference_careful_camera", SEEN, ("signs_unseen", "weather_unnoticed"), {*SEEN}),
        # Each breaks its own and no other; a drive with a camera takes ten seconds.
        pytest.param("reference_careful_camera", SEEN, ("signs_unseen",), {SEEN[0]}, marks=pytest.mark.long),
        pytest.param("reference_careful_camera", SEEN, ("weather_unnoticed",), {SEEN[1]}, marks=pytest.mark.long),
    ],
)
def test_a_careful_driver_holds_what_the_fault_breaks(
    name: str, relations: tuple[str, ...], faults: tuple[str, ...], broken: set[str], tmp_path: Path
) -> None:
    stack = load_stack(name)
    run = made_run(tmp_path, [SHORT if relations == SEEN else LONG], relations, with_faults(stack, *faults))
    write_record(tmp_path, run.request, run.suite.all, run.stack, {})
    execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, lambda lines: None)
    lines = [line for line in read_lines(tmp_path / "result.jsonl") if line["type"] == "verdict"]
    told = {Pair.parse(line["pair"]).relation: line["outcome"] for line in lines}
    assert {one: told[one] for one in relations} == {one: "VIOLATED" if one in broken else "HOLDS" for one in relations}


def test_a_fault_is_meant_for_every_closed_loop_relation_of_a_rule() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
    import rule_decisions

    stack = load_stack("reference_careful_camera")
    planted = {name: rule_decisions.faults_for(one) for name, one in rule_decisions.loop_relations().items()}
    assert len(planted) >= 60 and all(planted.values())
    for (faults,) in planted.values():
        callables.load_callable(callables.with_faults(stack, faults))
    assert planted["rule_california_51"] == [("blind_to:what=pedestrian", "blind_to:what=animal")]
    assert planted["rule_california_3"] == [("light_confused:shown=green,taken_for=red",)] and planted[
        "rule_germany_12"
    ] == [("blind_to:what=limit",)]


def test_the_red_light_of_the_paper_is_added_where_a_detector_finds_none(tmp_path: Path) -> None:
    bag, ontology = tmp_path / "drive", load_ontology()
    write_bundles(bag, generate_drive(3, 1, camera=CameraSensor(480, 270)))
    lamps = (lamp_detector(),)
    told = facts({"surface_dry": True}, ontology)
    applies = {}
    with scratch_store(shipped_entries()) as store:
        entries = {entry.index: entry for entry in store.entries()}
        for name, recording in (
            ("alone", Recording(bag, {}, known_facts=told)),
            ("lamps", Recording(bag, {}, known_facts=told, detectors=lamps)),
        ):
            (scene,) = recording.scenes([1]).values()
            choice = matcher(ontology, recording.sensors, [load_stack("reference_camera")]).choose(store, "case", scene)
            applies[name] = {i for c in choice.candidates if c.applies for i in ids_of(entries[c.index])}
    assert "rule_california_1" in applies["lamps"] - applies["alone"]
    assert applies["alone"] <= applies["lamps"]
