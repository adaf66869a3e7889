# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from recordings import cloud, image, tree

from mt_nodes.base import resources
from mt_nodes.base.errors import InfrastructureError, StackError, UsageError
from mt_nodes.base.params import plain
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control, Detections, Output
from mt_nodes.engine.arm import start
from mt_nodes.engine.callable_arm import CallableArm
from mt_nodes.engine.judging import AnswerStatus
from mt_nodes.stacks.callable_host import CallableHost, as_output
from mt_nodes.stacks.callables import load_callable, with_faults
from mt_nodes.stacks.stack import Stack, load_stack

MINE = {"callable": "my_model:detect", "inputs": {"lidar": "/points"}, "stateless": True}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(data: Any, name: str = "mine.yaml") -> str:
        path = tmp_path / name
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def module(tmp_path: Path) -> Any:
    """Writes a Python module of a name that no other test has, beside the stack file, and gives its name."""

    def module(code: str) -> str:
        name = f"model_of_{tmp_path.name}".replace("-", "_")
        (tmp_path / f"{name}.py").write_text(code)
        return name

    return module


def test_shipped_stacks_load_and_name_themselves() -> None:
    names = list(resources.shipped("stacks"))
    assert {"reference_detector", "reference_tracker", "reference_whole_cloud"} <= set(names)
    for name in names:
        stack = load_stack(name)
        assert stack.name == name and stack.summary and stack.directory == ""


def test_five_lines_are_enough(write: Any, tmp_path: Path) -> None:
    stack = load_stack(write(MINE))
    assert (stack.name, stack.answers, stack.leading_input) == ("mine", ("detections",), "lidar")
    assert stack.inputs == {"lidar": "/points"} and stack.directory == str(tmp_path)
    assert stack.outputs["detections"].type == "visualization_msgs/msg/MarkerArray"
    assert not stack.external and stack.publishes_when_empty


def test_a_role_alone_takes_its_usual_topic(write: Any) -> None:
    stack = load_stack(write({**MINE, "inputs": "camera", "outputs": "control"}))
    assert stack.inputs == {"camera": "/sensing/camera/image"} and stack.leading_input == "camera"
    assert stack.outputs["control"].topic == "/control/command"
    named = load_stack(write({**MINE, "outputs": {"detections": "/boxes"}}))
    assert named.outputs["detections"].topic == "/boxes" and "MarkerArray" in named.outputs["detections"].type


@pytest.mark.parametrize("name", ["reference_tracker", "full"])
def test_what_is_saved_is_read_back(name: str, write: Any) -> None:
    full = {
        "command": ["run", "{remap}"],
        "env": {"MODEL": "small", "THREADS": 2},
        "domain": {"source": 41},
        "isolation": "remap",
        "inputs": {"lidar": "/points", "camera": "/image"},
        "outputs": {"detections": {"topic": "/o", "type": "a/msg/B", "adapter": "c"}, "control": None},
        "answer": ["detections"],
        "match": "order",
        "publishes_when_empty": False,
        "deadline_s": 2,
        "nodes": ["/a"],
        "allow_nodes": ["/b"],
    }
    stack = load_stack(name if name != "full" else write(full))
    again = load_stack(write(plain(stack), "saved.yaml"))
    assert again == stack


ENV = {"A": 1, "B": 0.5, "C": "text"}


def test_a_command_may_be_told_on_several_topics(write: Any) -> None:
    speed, angle = (
        {"topic": "/v", "type": "a/msg/B"},
        {"topic": "/s", "type": "a/msg/C", "fields": {"steering_rad": "x"}},
    )
    stack = load_stack(write({"command": ["x"], "inputs": "lidar", "outputs": {"control": [speed, angle]}}))
    assert (
        [row.topic for row in stack.outputs["control"].rows] == [row.topic for row in stack.published] == ["/v", "/s"]
    )
    assert stack.message_types == {"/v": "a/msg/B", "/s": "a/msg/C"} and stack.answers == ("control",)
    assert stack.published[1].fields == {"steering_rad": "x"}
    assert load_stack(write(plain(stack), "saved.yaml")) == stack
    alone = load_stack(write({**MINE, "outputs": {"control": [speed]}}))
    assert alone.outputs["control"].rows == (alone.outputs["control"],)


def test_numbers_of_the_environment_become_texts(write: Any) -> None:
    assert load_stack(write({**MINE, "env": ENV})).env == {"A": "1", "B": "0.5", "C": "text"}


EXTERNAL = {"start": "external", "stateless": True, "domain": {"source": 41, "followup": 42}, "nodes": ["/a"]}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing starts it": ({"stateless": True}, "got 0 ways to start, expected one of callable, command"),
    "two ways": ({**MINE, "command": ["x"]}, "got 2 ways to start"),
    "no colon": ({**MINE, "callable": "my_model.detect"}, "expected package.module:name"),
    "unknown key": ({**MINE, "calable": "x"}, "unknown parameter 'calable'; did you mean 'callable'?"),
    "command as text": ({"command": "python3 x.py"}, "command: got 'python3 x.py', expected a list"),
    "wrong type": ({**MINE, "stateless": "yes"}, "stateless: got str 'yes', expected bool"),
    "out of range": ({**MINE, "deadline_s": 0}, r"deadline_s: got 0 s, expected 0.01 to 600 s"),
    "choice": ({**MINE, "match": "time"}, "match: got 'time', expected one of stamp, order"),
    "role": ({**MINE, "inputs": {"lydar": "/p"}}, "unknown .*'lydar'.*did you mean 'lidar'"),
    "relative topic": ({**MINE, "inputs": {"lidar": "points"}}, "got 'points', expected an absolute topic"),
    "no mapping": ({**MINE, "inputs": ["/points"]}, "inputs: got .*expected a mapping such as"),
    "no output": ({**MINE, "outputs": {}}, "outputs: got .*expected a mapping such as"),
    "output key": ({**MINE, "outputs": {"control": {"tpic": "/c"}}}, "unknown parameter 'tpic'; did you mean 'topic'"),
    "output as list": ({**MINE, "outputs": {"detections": ["/a"]}}, "detections: got .*expected a topic or"),
    "several that are merged by nobody": (
        {**MINE, "outputs": {"boxes": ["/a", "/b"]}},
        r"boxes: got \['/a', '/b'\], expected a topic .* as only control may, a list of several",
    ),
    "no command": ({**MINE, "outputs": {"control": []}}, "control: got .*expected a topic"),
    "one output twice": ({"command": ["x"], "outputs": {"control": ["/a", "/a"]}}, "control: got /a more than once"),
    "command of a callable": ({**MINE, "outputs": {"control": ["/a", "/b"]}}, "a callable has one"),
    "mistake in a list": ({"command": ["x"], "outputs": {"control": ["/a", {"tpic": "/b"}]}}, r"control\[1\]: unknown"),
    "answer": ({**MINE, "answer": ["control"]}, "answer: unknown .*'control'"),
    "reset": ({**MINE, "stateless": False, "reset": "none"}, "reset: none is only for a stateless stack"),
    "domain range": ({**MINE, "domain": {"source": 102, "followup": 1}}, "source: got 102, expected a ROS domain"),
    "domain key": ({**MINE, "domain": {"sorce": 1}}, "unknown .*'sorce'.*did you mean 'source'"),
    "domain of one": ({**MINE, "domain": {"followup": 1}}, "expected one for source"),
    "domain as number": ({**MINE, "domain": 4}, r"domain: got 4, expected \{source: 41, followup: 42\}"),
    "external without nodes": ({**EXTERNAL, "nodes": []}, "an external stack needs domain: .* and nodes:"),
    "external without domain": ({**EXTERNAL, "domain": {}}, "an external stack needs domain: .* and nodes:"),
    "remap without rules": ({"command": ["x"], "isolation": "remap"}, "isolation: remap needs {remap} in command"),
    "environment list": ({**MINE, "env": ["A=1"]}, "env: got .*expected a mapping such as"),
    "environment flag": ({**MINE, "env": {"A": True}}, "env.A: got True, expected a text"),
    "arms in one domain": ({**MINE, "env": {"ROS_DOMAIN_ID": 0}}, "env: ROS_DOMAIN_ID .*set it with domain:"),
    "one topic twice": ({**MINE, "inputs": {"lidar": ["/p", "/q"], "camera": "/p"}}, "inputs: got /p more than once"),
    "no topic": ({**MINE, "inputs": {"lidar": ["/p", "q"]}}, r"inputs.lidar\[1\]: got 'q', expected an absolute topic"),
    "no sensor": (
        {**MINE, "inputs": {"camera_info": "/i"}},
        "got camera_info, expected lidar, camera or",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_name_the_file_the_key_and_what_was_expected(case: str, write: Any) -> None:
    data, message = WRONG[case]
    path = write(data)
    with pytest.raises(UsageError, match=message) as caught:
        load_stack(path)
    assert path in str(caught.value)


def test_files_that_are_no_stack(write: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not valid YAML"):
        load_stack(write("{a: ["))
    with pytest.raises(UsageError, match="got list, expected a mapping"):
        load_stack(write("[1]"))
    with pytest.raises(UsageError, match="no file"):
        load_stack(str(tmp_path / "none.yaml"))
    with pytest.raises(UsageError, match="no stack 'reference_detectr'; did you mean 'reference_detector'"):
        load_stack("reference_detectr")


# --- callables


def test_a_module_beside_the_stack_file_is_found_from_anywhere(write: Any, module: Any) -> None:
    name = module("def detect(points): return len(points)")
    stack = load_stack(write({**MINE, "callable": f"{name}:detect"}))
    assert load_callable(stack)([1, 2]) == 2


def test_classes_factories_and_dataclasses_are_made_with_params(write: Any, module: Any) -> None:
    name = module(
        "from dataclasses import dataclass\n"
        "class Plain:\n    def __init__(self, k=1): self.k = k\n    def __call__(self, p): return self.k\n"
        "def factory(k): return lambda p: k\n"
        "@dataclass(frozen=True)\nclass Typed:\n    k: int = 1\n    def __call__(self, p): return self.k\n"
    )

    def made(what: str, **params: Any) -> Any:
        return load_callable(load_stack(write({**MINE, "callable": f"{name}:{what}", "params": params})))(None)

    assert [made("Plain"), made("Plain", k=2), made("factory", k=3), made("Typed", k=4)] == [1, 2, 3, 4]
    for what, params, message in (
        ("Plain", {"z": 1}, "unexpected keyword argument 'z'"),
        ("Typed", {"z": 1}, "unknown parameter 'z'"),
        ("Typed", {"k": "x"}, "got str 'x', expected int"),
    ):
        with pytest.raises(UsageError, match=message):
            made(what, **params)


@pytest.mark.parametrize(
    ("code", "attribute", "message"),
    [
        ("x = 1", "detect", "cannot be imported: AttributeError: .*no attribute 'detect'"),
        ("import no_such_module_at_all", "detect", "cannot be imported: ModuleNotFoundError"),
        ("def detect(:", "detect", "cannot be imported: SyntaxError"),
        ("raise RuntimeError('no GPU')", "detect", "cannot be imported: RuntimeError: no GPU"),
        ("detect = 3", "detect", "is a int, not callable"),
    ],
)
def test_a_callable_that_cannot_be_used(write: Any, module: Any, code: str, attribute: str, message: str) -> None:
    stack = load_stack(write({**MINE, "callable": f"{module(code)}:{attribute}"}))
    with pytest.raises(UsageError, match=f"stack 'mine': .*{message}"):
        load_callable(stack)


def test_faults_are_for_reference_stacks(write: Any) -> None:
    planted = with_faults(load_stack("reference_detector"), ("grid_index_wrap",))
    assert planted.params["faults"] == ["grid_index_wrap"]
    assert with_faults(planted, ()) is planted
    with pytest.raises(UsageError, match="'mine' is not a reference stack"):
        with_faults(load_stack(write(MINE)), ("grid_index_wrap",))


STACK = Stack(name="s", callable="x:y", inputs={"lidar": "/points"})


def host(function: Any, **changes: Any) -> CallableHost:
    return CallableHost(function, Stack(**{**vars(STACK), **changes}), takes_stamp=False)


def test_points_come_in_the_frame_asked_for() -> None:
    given, here = cloud(0), []
    host(lambda p: here.append(p) or [])(given, tree())
    assert here[0].shape == (50, 4) and here[0].dtype == np.float32
    np.testing.assert_array_equal(here[0][:, :3], given.xyz)
    assert (here[0][:, 3] == 0).all(), "this cloud has no intensity"
    moved = host(lambda p: here.append(p) or [], points_frame="base_link")(given, tree())
    expected = np.column_stack([1 - given.points["y"], 2 + given.points["x"], 1.7 + given.points["z"]])
    np.testing.assert_allclose(here[1][:, :3], expected, atol=1e-5)
    assert moved.detections is not None and moved.detections.frame_id == "base_link"


def test_an_image_comes_as_pixels() -> None:
    seen: list[Any] = []
    output = host(lambda pixels: seen.append(pixels) or [], inputs={"camera": "/i"})(image(0), tree())
    assert seen[0].shape == (6, 8, 3)
    assert output.detections is not None and output.detections.frame_id == "camera"


def test_a_callable_that_asks_for_the_stamp_gets_it(write: Any, module: Any) -> None:
    name = module("def detect(points, stamp_ns): return [[stamp_ns % 1000, 0, 0, 1, 1, 1, 0]]")
    made = CallableHost.make(load_stack(write({**MINE, "callable": f"{name}:detect"})))
    output = made(cloud(0.5), tree())
    assert output.detections is not None
    assert output.detections.center_m[0, 0] == cloud(0.5).stamp_ns % 1000


ROW = [1, 2, 3, 4, 5, 6, 0.5]


@pytest.mark.parametrize(
    ("said", "count", "score", "label"),
    [
        ([], 0, None, None),
        (np.empty((0, 7)), 0, None, None),
        ([ROW], 1, 1.0, "unknown"),
        ([[*ROW, 0.25]], 1, 0.25, "unknown"),
        (np.array([[*ROW, 0.25, 3]], dtype=np.float32), 1, 0.25, "3"),
        (Detections.make("", None, [[1, 2, 3]], label=["car"]), 1, 1.0, "car"),
        (Output(detections=Detections.none("", None)), 0, None, None),
    ],
)
def test_what_a_callable_may_return(said: Any, count: int, score: float | None, label: str | None) -> None:
    output = as_output(said, "base_link", 77)
    assert output.detections is not None and len(output.detections) == count
    assert (output.detections.frame_id, output.detections.stamp_ns) == ("base_link", 77)
    if count:
        assert (output.detections.score[0], output.detections.label[0]) == (score, label)


def test_commands_are_stamped_too() -> None:
    for said in (Control(None, speed_mps=3.0), Output(control=Control(None, speed_mps=3.0))):
        output = as_output(said, "base_link", 77)
        assert output.control is not None and (output.control.stamp_ns, output.control.speed_mps) == (77, 3.0)
    assert as_output(None, "base_link", 77).silent


@pytest.mark.parametrize("said", [[1, 2, 3], [[1, 2, 3]], np.zeros((2, 10)), 3.0])
def test_arrays_of_another_shape_are_refused(said: Any) -> None:
    with pytest.raises(InfrastructureError, match=r"returned an array of shape .* expected \(M, 7\)"):
        as_output(said, "base_link", 77)


def test_a_callable_must_say_what_its_stack_file_promises() -> None:
    with pytest.raises(InfrastructureError, match="stack 's': the callable returned no detections"):
        host(lambda p: Control(None))(cloud(0), tree())


@pytest.fixture
def arm(write: Any, module: Any, tmp_path: Path) -> Iterator[Any]:
    """Makes an arm of a stack that answers as the code says, and ends it."""
    with ExitStack() as ending:

        def arm(answer: str) -> CallableArm:
            stack = load_stack(write({**MINE, "callable": f"{module(f'def detect(points): return {answer}')}:detect"}))
            made = CallableArm("source", stack, {"/points": stack.leading_topic}, tmp_path / "log")
            start(made)
            ending.callback(made.stop)
            return made

        yield arm


BUNDLE = Bundle(0, 0, 1, (cloud(0),), (image(0),), transforms=tree())


def test_an_arm_without_topics_calls_and_times(arm: Any) -> None:
    made = arm(f"[{ROW}]")
    answer = made.wait(made.send(BUNDLE, frozenset()))
    assert answer.status is AnswerStatus.ANSWERED and answer.output.answer_ms is not None
    assert answer.output.detections.center_m.tolist() == [ROW[:3]]


def test_an_arm_whose_callable_says_nothing_is_silent(arm: Any) -> None:
    made = arm("__import__('mt_nodes.data.outputs', fromlist=['Output']).Output()")
    assert made.wait(made.send(BUNDLE, frozenset())).status is AnswerStatus.SILENT


def test_an_arm_whose_callable_returns_none_is_told_at_once(arm: Any) -> None:
    made = arm("None")
    with pytest.raises(StackError, match=r"returned None; is a return statement missing\?"):
        made.wait(made.send(BUNDLE, frozenset()))


def test_inputs_are_answered_in_their_order(arm: Any) -> None:
    made = arm("[[points[0, 0], 0, 0, 1, 1, 1, 0]]")
    bundles = [Bundle(0, i, 1, (cloud(i),), transforms=tree()) for i in range(3)]
    tickets = [made.send(bundle, frozenset()) for bundle in bundles]
    seen = [made.wait(ticket).output.detections.center_m[0, 0] for ticket in reversed(tickets)]
    assert seen == [float(bundle.cloud().points["x"][0]) for bundle in reversed(bundles)]


def test_a_callable_that_raises_fails_at_that_input_and_goes_on(arm: Any, tmp_path: Path) -> None:
    made = arm("1 // 0")
    for _ in range(2):
        answer = made.wait(made.send(BUNDLE, frozenset()))
        assert answer.status is AnswerStatus.FAILED and "raised ZeroDivisionError" in answer.reason
    assert (tmp_path / "log").read_text().count("Traceback") == 2


def test_a_callable_that_exits_is_the_death_of_the_stack(arm: Any) -> None:
    made = arm("exit(3)")
    with pytest.raises(StackError, match="raised SystemExit: 3"):
        made.wait(made.send(BUNDLE, frozenset()))


def test_what_a_stack_answers_never_brings_its_code_here(write: Any, module: Any, tmp_path: Path) -> None:
    code = """
        from mt_nodes.data.outputs import Detections
        class Mine(Detections): pass
        def detect(points): return Mine.make("", None, [[1, 2, 3]])
        """
    stack = load_stack(write({**MINE, "callable": f"{module(textwrap.dedent(code))}:detect"}))
    made = CallableArm("source", stack, {"/points": stack.leading_topic}, tmp_path / "log")
    start(made)
    with pytest.raises(StackError, match="expected the package's own types"):
        made.wait(made.send(BUNDLE, frozenset()))
    made.stop()
