# SPDX-License-Identifier: Apache-2.0
"""What control and sham are asked: something that they can hold and violate, of the class that is added."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_checks import STREET, judge
from test_checks_camera import BUNDLE, OTHER, PERSON, SEEN, WALKER, both, boxes, moved, put
from test_checks_control import plans, says
from test_checks_scene import tracked
from test_checks_sequence import TABLE as SERIES
from test_checks_sequence import course, stretch
from test_loop_checks import TABLE as DRIVES
from test_loop_checks import braking
from test_perception_checks import BOX, SOURCE, TRACKS, changed, grid, lights, lines, objects, predicted, street, way

from mt_nodes.base import plugins
from mt_nodes.data.arm_series import SeriesWindow
from mt_nodes.data.effects import Effects
from mt_nodes.data.outputs import Control, ImageBoxes, Output
from mt_nodes.data.verdict import Outcome
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.boxes import BoxFound
from mt_nodes.relations.checks.camera_and_lidar_agree import CameraAndLidarAgree
from mt_nodes.relations.checks.object_found import ObjectFound
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.checks.signal_checks import SignalFound
from mt_nodes.relations.checks.trace_check import TraceCheck
from mt_nodes.relations.mutations.objects.object_added import ObjectAdded
from mt_nodes.relations.mutations.objects.object_replaced import ObjectReplaced
from mt_nodes.relations.mutations.objects.post_added import LightAdded
from mt_nodes.relations.relation import LOOP_FOLDER, Relation, load_relation, shipped_relations
from mt_nodes.relations.world_changes.base import WorldEffects
from mt_nodes.world.scene.objects import KINDS

HOLDS, VIOLATED, NOTHING = Outcome.HOLDS, Outcome.VIOLATED, Outcome.NOT_APPLICABLE
#: Relations whose check demands what the mutation added, so that a drive may leave control and sham nothing.
MAY_LACK_A_BACKGROUND = {
    "light_found_green",
    "light_found_red",
    "object_agreed_person",
    "object_found_car",
    "object_found_child",
    "object_found_cyclist",
    "object_found_deer",
    "object_found_deer_crossing",
    "object_found_motorcyclist",
    "object_found_person",
    "object_found_truck",
    "object_replaced_child",
    "object_replaced_deer",
    "object_replaced_truck",
    "object_replaced_van",
    "object_seen_person",
    "radar_object_found_car",
}


def everybody(scores: float = 0.95, **columns: Any) -> Output:
    """One of each class in the region ahead, named and sure, and boxes of each class in the picture."""
    rows = [("car", 12.0, 3.0), ("pedestrian", 23.1, 5.0), ("cyclist", 8.0, -6.0), ("unknown", 30.0, 0.0)]
    made = tracked([(*row, scores) for row in rows])
    labels = ["car", "pedestrian", "cyclist", "animal"]
    spots = [moved((300.0, 100.0, 360.0, 380.0), 80.0 * i - 200.0) for i in range(4)]
    return Output(made.detections, boxes=ImageBoxes.make("camera", 0, spots, labels, [scores] * 4), **columns)


def one_of(label: str) -> Output:
    """An obstacle of a class: cars and pedestrians are all that a stack may know."""
    walker = both([SEEN], [WALKER.center_m])
    assert walker.detections is not None and walker.boxes is not None
    made = type(walker.detections).make("base_link", 0, [[10.0, 1.0, 0.9]], [WALKER.size_m], label=[label])
    return Output(made, boxes=ImageBoxes.make("camera", 0, [SEEN], [label]))


def rolling(speed_mps: float) -> Output:
    """One car ahead, of a speed."""
    made = tracked([("car", 12.0, 3.0)])
    assert made.detections is not None
    return Output(replace(made.detections, velocity_mps=np.array([[speed_mps, 0.0, 0.0]])))


EMPTY = Output(everybody().detections.take([]), boxes=ImageBoxes.none("camera", 0))  # type: ignore[union-attr, arg-type]
DRIVING = says(0.1, v=8.0, a=0.0, throttle=0.2, brake=0.0)
#: Pairs of answers to one input: the same twice, and everything that may become another.
SAME = [
    *(one_of(label) for label in ("car", "truck", "motorcycle", "animal", "cyclist", "pedestrian")),
    everybody(),
    tracked([("car", 17.0, 2.0)]),  # within what is watched of what stands afar
    rolling(5.0),
    DRIVING,
    plans(),
]
PERCEPTION = [
    lines(),
    *(lights((state, BOX)) for state in ("red", "green")),
    grid(street()),
    Output(tracks=objects(*TRACKS)),
    SOURCE,
]
PAIRS: list[tuple[Output, Output]] = [
    *((output, output) for output in SAME),
    *((output, EMPTY) for output in SAME if output.detections is not None),
    (EMPTY, everybody()),
    (tracked(STREET), tracked([("pedestrian", *row[1:]) for row in STREET])),
    (tracked(STREET), tracked([(row[0], row[1] + 0.7, row[2]) for row in STREET])),
    (tracked(STREET), tracked(STREET, [str(9 - i) for i in range(len(STREET))])),
    (everybody(0.6), everybody(0.95)),
    (both([SEEN], [WALKER.center_m]), both([moved(SEEN, 60)], [WALKER.center_m])),
    (rolling(5.0), rolling(8.0)),
    (DRIVING, Output(control=Control(0, 0.5, 30.0, 5.0, throttle=1.0, brake=0.0))),
    (plans(), plans(3.0)),
    *((output, output) for output in PERCEPTION),
    (lines(), lines(0.5)),
    *((lights((state, BOX)), lights(("yellow", BOX))) for state in ("red", "green")),
    (grid(street()), changed(slice(6, 10), slice(20, 24), 0)),
    (grid(street()), changed(slice(0, 16), slice(0, 12), 100)),
    (Output(tracks=objects(*TRACKS)), Output(tracks=objects())),
    (SOURCE, predicted((way(10.0, 2.0, 9.0),), (way(20.0, -3.0, -9.0),))),
]


def measured(check: SequenceCheck, ids: list[str]) -> SeriesWindow:
    """Two instants in which the follow-up arm sees the same pedestrian, with these ids."""
    source, measure = tracked([("pedestrian", 12.0, 1.0)], ["own"]), check.measure()
    rows = [measure(source, tracked([("pedestrian", 12.0, 1.0)], [own]), Effects(), BUNDLE) for own in ids]
    columns = dict(zip(check.measures, np.array(rows).T, strict=True))
    return replace(stretch(course(2), course(2)), measured=columns)


def background_outcomes(check: Check) -> set[Outcome]:
    """How pairs of control and sham may end that are judged for a check."""
    asked = check.background
    if isinstance(asked, SequenceCheck) and asked.measures:
        return {asked.judge_series(measured(asked, ids)).outcome for ids in (["a", "a"], ["a", "b"])}
    if isinstance(asked, SequenceCheck):
        return {asked.judge_series(stretch(a, b, change)).outcome for _, a, b, change, _, _ in [*SERIES, *SLOW]}
    if isinstance(asked, TraceCheck):
        return {asked.judge_drives(a, b, WorldEffects()).outcome for _, a, b, _, _, _ in [*DRIVES, LATE]}
    answers = [(a, b) for a, b in PAIRS if all(getattr(o, n) is not None for o in (a, b) for n in asked.needs)]
    return {asked.judge(a, b, Effects(), BUNDLE).outcome for a, b in answers}


#: Stretches of whom hardly anything is heard any more, and late, and a drive that brakes much later.
SLOW: list[Any] = [
    (None, course(), course(silent=range(4, 40)), 0, None, None),
    (None, course(answer_ms=20.0), course(answer_ms=9000.0), 0, None, None),
]
LATE: Any = (None, braking(5), braking(25), None, None, None)


@pytest.mark.parametrize("name", plugins.catalogue("checks"))
def test_control_and_sham_can_hold_and_violate_every_check(name: str) -> None:
    """What can only hold, or is never decided, is no measure of a relation's violations."""
    assert background_outcomes(plugins.find("checks", name, "test")()) >= {HOLDS, VIOLATED}


RELATIONS = [r for folder in ("relations", LOOP_FOLDER) for r in shipped_relations(folder) if r.check is not None]


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.id)
def test_control_and_sham_can_hold_and_violate_every_shipped_relation(relation: Relation) -> None:
    assert relation.check is not None
    assert background_outcomes(relation.check) >= {HOLDS, VIOLATED}


def test_relations_that_may_lack_a_background_say_what_they_tolerate_and_no_others() -> None:
    own = {r.id for r in RELATIONS if r.check is not None and r.check.demands_of_itself}
    assert own - {"object_moved"} == {r.id for r in RELATIONS if r.tolerated_rate is not None} == MAY_LACK_A_BACKGROUND
    # What is moved is of any class: control and sham are asked for everything.
    assert load_relation("object_moved").check.background_label == ""  # type: ignore[union-attr]


@pytest.mark.parametrize("state", ["red", "green"])
def test_control_and_sham_are_about_the_state_of_the_light_that_is_added(state: str) -> None:
    relation = load_relation(f"light_found_{state}")
    (mutation,), check = relation.mutate, relation.check
    assert isinstance(mutation, LightAdded) and isinstance(check, SignalFound)
    assert mutation.kind == check.state == state and relation.tolerated_rate == 0.2
    other = lights(("yellow", BOX))
    assert check.judge(other, lights(), Effects(), BUNDLE).outcome is NOTHING


@pytest.mark.parametrize("name", sorted(name for name in MAY_LACK_A_BACKGROUND if name.startswith(("object", "radar"))))
def test_control_and_sham_are_about_the_class_that_the_mutation_adds(name: str) -> None:
    relation = load_relation(name)
    (mutation,), check = relation.mutate, relation.check
    assert isinstance(mutation, ObjectAdded | ObjectReplaced)
    added = KINDS[mutation.kind if isinstance(mutation, ObjectAdded) else mutation.by].label
    assert isinstance(check, ObjectFound | BoxFound | CameraAndLidarAgree)
    assert added == (check.label if isinstance(check, BoxFound) else check.background_label)
    assert relation.kind == "expected" and relation.tolerated_rate == 0.2


def test_who_is_of_another_class_is_nothing_to_control_and_sham() -> None:
    check = ObjectFound(background_label="Pedestrian")
    without = [row for row in STREET if row[0] != "pedestrian"]
    assert judge(check, STREET, STREET).outcome is HOLDS
    assert judge(check, STREET, without).reason == "lost pedestrian at (23.1, 5.0) m"
    assert judge(check, STREET, STREET[1:]).outcome is HOLDS  # a car is lost
    nothing = judge(check, without, without)
    assert nothing.outcome is NOTHING and nothing.reason.startswith("no Pedestrian with a score of 0.5 or more")
    assert judge(ObjectFound(), without, without).outcome is HOLDS
    car = ObjectFound(background_label="car")
    assert judge(car, STREET, STREET[1:]).outcome is VIOLATED


def test_who_is_of_another_class_need_not_agree() -> None:
    seen, parted = both([SEEN], [WALKER.center_m]), both([moved(SEEN, 60)], [WALKER.center_m])
    for label, outcome in (("pedestrian", VIOLATED), ("Pedestrian", VIOLATED), ("", VIOLATED), ("car", NOTHING)):
        check = CameraAndLidarAgree(background_label=label)
        assert check.judge(seen, parted, Effects(), BUNDLE).outcome is outcome


def test_whose_boxes_are_of_another_class_leave_nothing_to_find_again() -> None:
    cars = boxes(PERSON, OTHER, label="car")
    assert BoxFound(label="pedestrian").judge(cars, boxes(), Effects(), BUNDLE).outcome is NOTHING
    assert BoxFound(label="car").judge(cars, boxes(), Effects(), BUNDLE).outcome is VIOLATED
    # What was added is demanded whoever is there besides.
    assert BoxFound(label="pedestrian").judge(cars, cars, put(moved(PERSON, 200.0)), BUNDLE).outcome is VIOLATED


def test_demands_of_itself_is_said_of_what_is_demanded_in_the_follow_up_alone() -> None:
    own = {name for name, cls in plugins.catalogue("checks").items() if cls.demands_of_itself}  # type: ignore[attr-defined]
    assert own == {"box_found", "camera_and_lidar_agree", "object_found", "signal_found"}
