# SPDX-License-Identifier: Apache-2.0
"""Typical mistakes of a first day: what is printed names the place, and says what to type."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_bundles import made_bundle

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.yaml_files import read, read_identifier
from mt_nodes.cli.options import settings
from mt_nodes.data.bags.reader import Topic
from mt_nodes.data.bags.topic_roles import MissingSensor, choose
from mt_nodes.data.output_traits import OutputTraits, Thresholds
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.transforms import Transform, TransformTree
from mt_nodes.engine.compatibility import stack_for
from mt_nodes.engine.followups import FollowupMaker
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.summary.score_range import score_line, score_notes
from mt_nodes.relations.checks.camera_and_lidar_agree import CameraAndLidarAgree
from mt_nodes.relations.relation import Suite, load_relation, of_stack
from mt_nodes.runs.replay.unused_transforms import unused_frames
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.callables import load_callable
from mt_nodes.stacks.message_adapter import adapter_for
from mt_nodes.stacks.stack import Stack

FUNCTIONS = """
def forgets_return(points):
    [points[0]]

def takes_nothing():
    return []

def takes_two(points, image):
    return []

class Model:
    def __init__(self, weights):
        open(weights)
"""


def stack_of(place: Path, monkeypatch: pytest.MonkeyPatch, name: str, **more: object) -> Stack:
    module = f"beginner_{place.name.replace('-', '_')}"
    (place / f"{module}.py").write_text(FUNCTIONS)
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    return replace(Stack(name="mine", callable=f"{module}:{name}", inputs={"lidar": "/points"}), **more)  # type: ignore[arg-type]


def test_a_forgotten_return_is_named_at_the_first_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = CallableHost.make(stack_of(tmp_path, monkeypatch, "forgets_return"))
    bundle = made_bundle()
    with pytest.raises(InfrastructureError, match=r"forgets_return returned None; is a return statement missing\?"):
        host(bundle.clouds[0], bundle.transforms)


def test_where_silence_has_no_meaning_none_is_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = CallableHost.make(stack_of(tmp_path, monkeypatch, "forgets_return", publishes_when_empty=False))
    bundle = made_bundle()
    assert host(bundle.clouds[0], bundle.transforms).silent


@pytest.mark.parametrize(("name", "got"), [("takes_nothing", "too many"), ("takes_two", "missing")])
def test_a_callable_that_cannot_be_called_is_refused_when_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, got: str
) -> None:
    stack = stack_of(tmp_path, monkeypatch, name)
    with pytest.raises(UsageError, match=rf"{name}\(.*\) cannot be called: {got}.*one argument \(lidar\)"):
        CallableHost.make(stack)


def test_what_a_constructor_raises_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = stack_of(tmp_path, monkeypatch, "Model", params={"weights": "nowhere.pt"})
    with pytest.raises(UsageError, match=r"FileNotFoundError: .*nowhere\.pt.* \(beginner_\w+\.py:13\)"):
        load_callable(stack)


def test_a_module_that_is_not_there_is_told_with_where_it_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = stack_of(tmp_path, monkeypatch, "Model")
    module = stack.callable.partition(":")[0]
    with pytest.raises(UsageError, match=f"searched {tmp_path} .*did you mean '{module}'"):
        load_callable(replace(stack, callable=f"{module}s:Model"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\n\tb: 2\n", r"in line 2, column 1 'b: 2': .*indent with spaces, not tabs"),
        ("callable my:x\ninputs: {}\n", r"in line 2, .*does the line before lack its colon"),
        ("a: [1, 2\n", "in what begins in line 1; close every bracket"),
        ('a: "x\n', "close every quotation mark"),
        ("a: \0\n", "#x0000 at position 3"),
        ("a: 2001-13-45\n", "month must be in 1..12; quote what is meant as a text"),
        ("a: !!timestamp foo\n", r"does not fit the tag \(!!…\) before it; write plain values only"),
        ("a: !!int\n", r"does not fit the tag \(!!…\) before it"),
        (f"a: {'[' * 2000}\n", "inside each other too deeply"),
    ],
)
def test_bad_yaml_is_told_with_its_file_and_what_to_do(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=rf"mine\.yaml: not valid YAML.*{says}") as told:
        read(file)
    assert "unicode string" not in str(told.value)


@pytest.mark.parametrize("value", ["", "a/b", "a b", "a,b", "a@b", "a\0b", "\ud800", "a\n", 3, None, b"a", ["a"]])
def test_what_cannot_name_anything_is_no_id(value: object) -> None:
    with pytest.raises(UsageError, match=r"here: id: got .*, expected a text without"):
        read_identifier(value, "here")
    assert read_identifier("fog_40m-Ö.2", "here") == "fog_40m-Ö.2"


def test_bad_yaml_of_an_option_names_the_option() -> None:
    with pytest.raises(UsageError, match=r"--set a: '\[1': not valid YAML in line 1"):
        settings(["a=[1"])


@pytest.mark.parametrize(
    ("has", "wants", "stack"),
    [
        ("sensor_msgs/msg/Image", "lidar", "reference_camera"),
        ("sensor_msgs/msg/PointCloud2", "camera", "reference_detector"),
    ],
)
def test_a_recording_of_another_sensor_is_told_the_stack_for_it(has: str, wants: str, stack: str) -> None:
    with pytest.raises(MissingSensor) as told:
        choose({"/front": Topic(has, 3, ())}, {}, [wants], "bag")
    assert stack_for(told.value.roles) == f"; for what it has there is --stack {stack}"
    assert not stack_for(["camera_info"])


def test_transforms_of_frames_that_nothing_is_in_are_found() -> None:
    bundle = made_bundle()
    frame = bundle.clouds[0].frame_id
    rows = [("base_link", "mount"), ("mount", frame), ("base_link", "ldar"), ("base_link", "grid")]
    given = TransformTree(Transform(parent, child, np.eye(4)) for parent, child in rows)
    joined = replace(bundle, transforms=bundle.transforms.extended(given.transforms))
    assert unused_frames(given, joined, ["grid"]) == ["ldar"]


def test_a_type_as_ros_1_writes_it_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'visualization_msgs/msg/MarkerArray'\?"):
        adapter_for("detections", "visualization_msgs/MarkerArray")


@pytest.mark.parametrize(
    ("scale", "yaw_rad", "doubt"),
    [
        (1.0, 3.1, ""),
        (1000.0, 0.0, r"sizes of 4,000 m, distances of 12,000 m; .*millimetres"),
        (1.0, 90.0, "yaw of 90 rad"),
    ],
)
def test_another_unit_is_doubted_early(scale: float, yaw_rad: float, doubt: str) -> None:
    boxes = Detections.make("base_link", None, [[12.0 * scale, 0, 0]], [[4.0 * scale, 2, 1.5]], [yaw_rad])
    warnings: list[str] = []
    listen = score_notes(lambda line: None, warnings.append)
    for index in range(5):
        listen(json.dumps(score_line((0, index), Output(detections=boxes), {})))
    assert len(warnings) == bool(doubt)
    if doubt:
        assert re.search(doubt, warnings[0])


def test_agreement_of_camera_and_lidar_takes_the_scores_of_the_stack() -> None:
    traits = OutputTraits({"boxes": Thresholds(0.4, 0.1)})
    check = CameraAndLidarAgree().of_stack(traits)
    assert (check.detections_from, check.boxes_from) == (0.3, 0.1)
    own = CameraAndLidarAgree(score_low=0.6).of_stack(traits)
    assert (own.detections_from, own.boxes_from) == (0.6, 0.6)


def test_a_class_that_the_stack_never_reports_comes_before_a_place_that_is_not_free() -> None:
    bundle = made_bundle()
    crowded = replace(bundle, clouds=(), wires=())
    reasons = {}
    for classes in ((), ("car",), ("person",)):
        relation = of_stack(load_relation("object_found_person"), OutputTraits({}, classes))
        suite = Suite((relation,), load_relation("identity"), load_relation("points_permuted"))
        reasons[classes] = FollowupMaker(suite, 0)(Offer(relation, (relation,)), crowded).reason
    assert reasons["car",] == "what was added is a pedestrian, and the stack reports car only (classes in its file)"
    assert "has no cloud" in reasons[()]
