# SPDX-License-Identifier: Apache-2.0
"""Elements of a scene are present, absent, or nobody looked for them; the third never counts as the second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from made_rules import entry, index_by_letters, lamp_detector, scene
from recordings import KITTI, needs_kitti

from mt_nodes.base.errors import UsageError
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.detector_coverage import LEAST_SHARE, DetectorCoverage, read_coverage
from mt_nodes.data.ground_truth import GroundTruth
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, CameraInfo, Image
from mt_nodes.data.output_traits import OutputTraits
from mt_nodes.data.outputs import Control, Detections, ImageBoxes, Output
from mt_nodes.data.transforms import TransformTree
from mt_nodes.engine.case_plan import CasePlan, PlannedCase, load_cases, write_cases
from mt_nodes.relations.conditions.source_conditions import KnownToBe
from mt_nodes.relations.facts.condition import evaluate, missing
from mt_nodes.relations.facts.presence import agreed_presence, by_detector, by_labels
from mt_nodes.relations.facts.scene_facts import Fact, Facts, unknown
from mt_nodes.rules.bag_cases import facts as stated_facts
from mt_nodes.rules.matching import Matcher
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.rule_store import Store
from mt_nodes.rules.scene import describe
from mt_nodes.rules.scene_detector import SceneDetector
from mt_nodes.stacks.reference.lamp_detector import LampDetector
from mt_nodes.stacks.stack import load_stack

RED = "has(red_light)"
NO_RED = "not has(red_light)"
EVERYWHERE = DetectorCoverage(recall={"red_light": 0.97}, precision={"red_light": 0.95}, measured="a test")
LAMPS = OutputTraits({}, (), {"boxes": EVERYWHERE})


def boxes(*labels: str, score: float = 1.0) -> Output:
    return Output(boxes=ImageBoxes.make("", None, np.zeros((len(labels), 4)), labels, [score] * len(labels)))


def red(output: Output | None, traits: OutputTraits = LAMPS, **known: Any) -> Fact:
    return by_detector(output, traits, "'lamps'", known)[RED]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, None),
        ({RED: True}, False),
        ({RED: False}, True),
        ({"has(green_light)": False}, None),
        ({"has": ["dog"]}, True),
        ({"has": ["dog", "red_light"]}, False),
        ({"has": ["dog"], "looked_for": ["dog", "child"]}, None),
        ({"has": ["dog"], "looked_for": ["dog", "red_light"]}, True),
        ({"has": ["dog"], RED: True}, False),
        ({"has": "red_light"}, None),
        ({RED: "no"}, None),
    ],
)
def test_an_element_that_nobody_looked_for_is_not_absent(facts: dict[str, Any], expected: bool | None) -> None:
    assert evaluate(NO_RED, facts) is expected
    assert missing(NO_RED, facts) == ((RED,) if expected is None and RED not in facts else ())


def test_absence_by_a_detector_is_as_sure_as_its_recall_and_says_so() -> None:
    absent = red(boxes())
    assert absent.value is False
    assert "none in boxes of 'lamps' within 50 m, recall 0.97 (a test)" in absent.source
    assert red(boxes("red_light")).value is True


@hypothesis_given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.booleans())
def test_no_low_share_decides(recall: float, precision: float, shown: bool) -> None:
    coverage = replace(EVERYWHERE, recall={"red_light": recall}, precision={"red_light": precision})
    told = red(boxes(*["red_light"] * shown), OutputTraits({}, (), {"boxes": coverage}))
    sure = (precision if shown else recall) >= LEAST_SHARE
    assert told.value is (shown if sure else None)


@pytest.mark.parametrize(
    ("output", "coverage", "reason"),
    [
        (None, EVERYWHERE, "there are no boxes"),
        (Output(control=Control(None, 0.0, 1.0)), EVERYWHERE, "there are no boxes"),
        (boxes("red_light", score=0.6), EVERYWHERE, "may be one"),
        (boxes(), replace(EVERYWHERE, given="scene_bright"), "which is not known"),
        (boxes(), replace(EVERYWHERE, given="dark"), "which is not so"),
    ],
)
def test_a_detector_that_could_not_look_says_nothing(
    output: Output | None, coverage: DetectorCoverage, reason: str
) -> None:
    told = red(output, OutputTraits({}, (), {"boxes": coverage}), dark=False)
    assert told.value is None
    assert reason in told.source


def test_detections_beyond_its_range_are_no_answer_and_those_of_unknown_place_are() -> None:
    near = DetectorCoverage(range_m=20.0, field_of_view_deg=90.0, recall={"cyclist": 1.0}, measured="a test")
    traits = OutputTraits({}, (), {"detections": near})
    for place, expected in (
        ((50.0, 0, 0), False),
        ((5.0, 9.0, 0), False),
        ((9.0, 1.0, 0), None),
        ((np.nan,) * 3, None),
    ):
        rows = Detections.make("base_link", None, [place], label=["cyclist"])
        assert by_detector(Output(detections=rows), traits, "it", {})["has(cyclist)"].value is expected


def test_a_stack_without_coverage_says_of_nothing_that_it_is_absent() -> None:
    assert by_detector(boxes(), OutputTraits(), "it", {}) == {}


def test_the_learned_camera_detector_never_says_that_nobody_is_there() -> None:
    traits = load_stack("reference_yolo").traits
    told = by_detector(boxes(), traits, "'reference_yolo'", {})
    assert told["has(pedestrian)"].value is None
    assert "recall of 0.53, below 0.9" in told["has(pedestrian)"].source
    assert told["has(child)"].value is None


def labels(classes: set[str], *found: str) -> GroundTruth:
    rows = Detections.make("lidar", None, [(9.0, 0.0, 0.0)] * len(found), label=found)
    return GroundTruth(rows, frozenset(classes), np.full(len(found), -1))


def test_labels_know_what_they_label_and_nothing_else() -> None:
    told = by_labels(labels({"pedestrian", "car", "truck"}, "car"))
    assert told["has(pedestrian)"].value is False
    assert told["has(child)"].value is False
    assert told["has(motor_vehicle)"].value is True
    assert RED not in told
    assert by_labels(None) == {}
    # Whoever labels cars and no buses does not know that there is no motor vehicle; nor that an adult is a child.
    assert "has(motor_vehicle)" not in by_labels(labels({"car", "pedestrian"}, "pedestrian"))
    assert "has(child)" not in by_labels(labels({"pedestrian"}, "pedestrian"))


YES, NO = ({RED: Fact(value, "a test")} for value in (True, False))


@pytest.mark.parametrize(
    ("exact", "unsure", "expected"),
    [
        ([], [NO, YES], None),
        ([], [YES, NO], None),
        ([], [NO, {}], False),
        ([], [{RED: unknown("blind")}, NO], False),
        ([NO], [YES], False),
        ([YES, NO], [], True),
        ([{"has": Fact(frozenset(), "a world")}], [YES], None),
    ],
)
def test_where_detectors_contradict_each_other_it_is_unknown(
    exact: list[Facts], unsure: list[Facts], expected: bool | None
) -> None:
    assert agreed_presence(exact, unsure).get(RED, unknown("")).value is expected


def test_the_user_says_what_is_there_and_what_is_not() -> None:
    told = stated_facts({"absent": ["red_light", "dog"], "present": "child", "has(deer)": False}, load_ontology())
    assert {name: fact.value for name, fact in told.items()} == {
        RED: False,
        "has(dog)": False,
        "has(child)": True,
        "has(deer)": False,
    }
    for wrong, text in (
        ({"absent": "red_lamp"}, "no element 'red_lamp'"),
        ({"absent": "dog", "present": "dog"}, "present and absent"),
        ({"has(dog)": "no"}, "expected true"),
        ({"has(dgo)": False}, "did you mean"),
    ):
        with pytest.raises(UsageError, match=text):
            stated_facts(wrong, load_ontology())


def test_a_relation_applies_where_its_element_is_known_to_be_absent(tmp_path: Path) -> None:
    with Store(tmp_path / "rules.db", indexer=index_by_letters) as store:
        store.add([entry("red_light")])
        for facts, index in (({}, None), ({RED: True}, None), ({RED: False}, 1), ({"has(dog)": False}, None)):
            assert Matcher().choose(store, "case", scene((), **facts)).index == index


def test_a_condition_is_met_by_the_case_the_labels_or_the_stack_itself() -> None:
    moving = Output(control=Control(None, 0.0, 8.0))
    condition = KnownToBe("moving and not has(red_light)")
    bundle = Bundle(0, 0, 0)
    why = condition.unmet(bundle, moving)
    assert why is not None and "has(red_light) not told" in why
    assert condition.unmet(replace(bundle, facts={RED: False}), moving) is None
    assert "has(red_light) true" in str(condition.unmet(replace(bundle, facts={RED: True}), moving))
    child = KnownToBe("not has(child)")
    assert child.unmet(replace(bundle, truth=labels({"pedestrian"})), moving) is None
    of_stack = condition.of_stack(LAMPS)
    assert of_stack.unmet(bundle, replace(moving, boxes=boxes().boxes)) is None
    assert of_stack.unmet(bundle, replace(moving, boxes=boxes("red_light").boxes)) is not None
    assert "there are no boxes" in str(of_stack.unmet(bundle, moving))
    assert of_stack == condition  # coverage is no parameter: it is written into no file


def test_a_plan_keeps_what_is_absent(tmp_path: Path) -> None:
    case = PlannedCase("drive/0", 0, 0, 4, relation="rule_california_1", facts={RED: False})
    write_cases(CasePlan({}, (case,)), tmp_path / "cases.yaml")
    assert load_cases(tmp_path / "cases.yaml").cases[0].facts == {RED: False}
    text = (tmp_path / "cases.yaml").read_text().replace("has(red_light): false", "has(red_light): [no]")
    (tmp_path / "wrong.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"has\(red_light\): .* expected true \(present\) or false \(absent\)"):
        load_cases(tmp_path / "wrong.yaml")


def test_a_detector_beside_needs_coverage_and_single_frames(tmp_path: Path) -> None:
    for name in ("reference_camera", "reference_tracker"):
        with pytest.raises(UsageError, match="states no recall"):
            SceneDetector.named(name)
    own = tmp_path / "tracker.yaml"
    own.write_text(
        "callable: some:thing\ncoverage: {detections: {recall: {cyclist: 0.95}, measured: a test}}\nstateless: false\n"
    )
    with pytest.raises(UsageError, match="stateless: true"):
        SceneDetector.named(str(own))
    assert SceneDetector.named("reference_lamps").stack.coverage["boxes"].recall["red_light"] >= LEAST_SHARE
    for value, text in (
        ({"boxes": {"recall": {"dog": 2}, "measured": "x"}}, "share from 0 to 1"),
        ({"boxes": {"recall": {"dog": 0.9}}}, "without measured"),
        ({"lanes": {}}, "lanes"),
    ):
        with pytest.raises(UsageError, match=text):
            read_coverage(value, "coverage")


def picture(rgb: tuple[int, int, int], spot: tuple[int, int, int] | None = None) -> Bundle:
    pixels = np.full((120, 200, 3), rgb, dtype=np.uint8)
    if spot is not None:
        pixels[30:33, 150:153] = spot
    image = Image("/camera/image", 0, "camera", pixels, "rgb8")
    k = np.array([[200.0, 0.0, 100.0], [0.0, 200.0, 60.0], [0.0, 0.0, 1.0]])
    name = ("/camera/camera_info", 0, "camera", 200, 120, "plumb_bob", np.zeros(5))
    info = CameraInfo(*name, k, np.eye(3), np.column_stack([k, np.zeros(3)]))
    return Bundle(0, 0, 0, images=(image,), camera_infos=(info,), transforms=TransformTree([]))


def test_lamps_are_absent_only_in_pictures_in_which_they_would_be_seen() -> None:
    lamps = lamp_detector()
    day: dict[str, Any] = {"scene_bright": True, "visibility_good": True}
    sky = (180, 190, 200)
    assert lamps(picture(sky), day)[RED].value is False
    assert lamps(picture(sky, (250, 60, 40)), day)[RED].value is None
    for bundle, known in (
        (picture(sky), {}),
        (picture((0, 0, 0)), {**day, "scene_bright": False}),
        (Bundle(0, 0, 0), day),
    ):
        assert lamps(bundle, known)[RED].value is None
    described = describe([picture((0, 0, 0))] * 3, detectors=[lamps])
    assert described.value(RED) is None  # a black picture shows no red light, nor does it show that there is none


def test_a_model_that_names_an_object_contradicts_a_detector_that_finds_none() -> None:
    nobody: Facts = {"has(child)": Fact(False, "a detector")}
    for objects, expected in (({"child": 1}, None), ({"dog": 2}, False)):
        model: Facts = {"objects": Fact(objects, "a model")}
        described = describe([picture((9, 9, 9))], model_facts=model, detectors=[lambda bundle, known: nobody])
        assert described.value("has(child)") is expected


@needs_kitti
def test_the_red_lights_of_the_recorded_drive_are_never_told_absent() -> None:
    """Two lights shine red over its junction all the time, four pixels wide."""
    with BagSource(KITTI, {}, None, limit=26, require=("camera",)) as source:
        for bundle in source:
            if bundle.index % 8 == 1:
                found = LampDetector()(decode(bundle.images[0]).rgb8())
                x0, y0, x1, y1 = found.box_px[found.label == "red_light"].T
                over_junction = (x0 > 615) & (x1 < 632) & (y0 > 90) & (y1 < 120)
                assert over_junction.any(), bundle.index
                known = {"scene_bright": True, "visibility_good": True}
                assert lamp_detector()(bundle, known)[RED].value is None
