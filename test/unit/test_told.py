# SPDX-License-Identifier: Apache-2.0
"""What a world tells beside sensors: in bundles, in hashes, in stack files, given to callables."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from started_arms import started_arm
from told_worlds import START_NS, lanes_of, lights, people, told_bundle, without

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import plain
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.lanes import SignalStates
from mt_nodes.data.messages import Cloud, Odometry, WorldMessage
from mt_nodes.data.outputs import Control, Detections, Output
from mt_nodes.data.stack_topics import WORLD_TYPES, WorldTopic
from mt_nodes.engine import message_digests
from mt_nodes.engine.arm import UnansweredInput
from mt_nodes.engine.callable_arm import CallableArm
from mt_nodes.engine.judging import AnswerStatus
from mt_nodes.engine.plan import ReplayRequest, check_request
from mt_nodes.relations.mutations.stream.frame_mutations import FramesDropped
from mt_nodes.relations.mutations.stream.whole_stream import part_of, restamped, same, topics_of
from mt_nodes.runs.live.config import LiveConfig, check_live
from mt_nodes.stacks.stack import Stack, load_stack


def driven(told: Any, stamp_ns: int | None = None) -> Output:
    """A stack that says what it was given: the speed, and how many objects there are."""
    Path(os.environ["TOLD_TO"]).write_bytes(pickle.dumps(told))
    objects = told["objects"] if isinstance(told, dict) else told
    return Output(control=Control(None, speed_mps=float(len(objects)), yaw_rate_radps=0.0))


@pytest.fixture
def seen(tmp_path: Path) -> Callable[[], Any]:
    """Reads what the stack was given last."""
    return lambda: pickle.loads((tmp_path / "told").read_bytes())


@pytest.fixture
def stack(tmp_path: Path) -> Callable[..., Stack]:
    """Reads a stack file of given inputs."""

    def read(inputs: Any, **more: Any) -> Stack:
        file = tmp_path / "mine.yaml"
        given = {"callable": "test_told:driven", "inputs": inputs, "outputs": {"control": None}, **more}
        given["env"] = {"TOLD_TO": str(tmp_path / "told")}
        file.write_text(yaml.safe_dump(given))
        return load_stack(str(file))

    return read


def arm_of(made: Stack) -> CallableArm:
    names = [topic for topics in made.topics.values() for topic in topics]
    return started_arm("source", made, dict(zip(names, names, strict=True)))


# --- stack files


def test_a_role_alone_takes_topic_and_type_as_usual_and_both_may_be_others(stack: Callable[..., Stack]) -> None:
    made = stack({"objects": None, "odometry": "/odom", "route": {"type": "a/msg/Way"}})
    assert made.world_inputs == {
        "objects": WorldTopic("/perception/ground_truth/objects", "visualization_msgs/msg/MarkerArray"),
        "odometry": WorldTopic("/odom", "nav_msgs/msg/Odometry"),
        "route": WorldTopic("/planning/route", "a/msg/Way"),
    }
    assert (made.leading_input, made.leading_topic) == ("objects", "/perception/ground_truth/objects")
    assert made.topics["odometry"] == ("/odom",) and made.joins


def test_a_sensor_leads_where_there_is_one(stack: Callable[..., Stack]) -> None:
    assert stack({"objects": None, "lidar": "/points"}).leading_input == "lidar"


def test_what_is_saved_is_read_back(stack: Callable[..., Stack], tmp_path: Path) -> None:
    made = stack({"objects": None, "signals": {"topic": "/lights"}})
    file = tmp_path / "saved.yaml"
    file.write_text(yaml.safe_dump(plain(made)))
    assert load_stack(str(file)) == made


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"objects": ["/a", "/b"]}, r"inputs.objects: got \['/a', '/b'\], expected a topic or {topic: …, type: …}"),
        ({"objects": {"tpic": "/a"}}, "inputs.objects: unknown parameter 'tpic'; did you mean 'topic'"),
        ({"objects": "a"}, "inputs.objects.topic: got 'a', expected an absolute topic"),
        ({"objects": "/a", "route": "/a"}, "got /a more than once"),
        ({"odometry": None}, "got odometry, expected lidar, camera or radar among them, or objects"),
        ({"lidar": {"topic": "/a", "type": "b/msg/C"}}, "inputs.lidar: got .* expected an absolute topic"),
    ],
)
def test_what_a_stack_cannot_take_is_refused(stack: Callable[..., Stack], inputs: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        stack(inputs)


@pytest.mark.parametrize(("name", "more"), [("reference_planner", ", lanes"), ("reference_pilot", "")])
def test_neither_a_bag_nor_a_live_system_tells_such_things(name: str, more: str) -> None:
    told = f"'{name}' takes .*odometry, route, signals{more}, which only a simulated world has"
    with pytest.raises(UsageError, match=told):
        check_request(ReplayRequest(("bag",), stack=name), load_stack(name))
    with pytest.raises(UsageError, match=told):
        check_live(LiveConfig(stack=name), load_stack(name))


# --- bundles


def test_what_is_told_is_part_of_the_bundle_and_of_its_hash() -> None:
    bundle = told_bundle()
    assert {type(message) for message in bundle.messages} == {WorldMessage}
    assert message_digests.sha256_of(bundle) == message_digests.sha256_of(told_bundle())
    others = [
        told_bundle(objects=people((30.0, 4.0, 0.5, 0.0))),
        told_bundle(odometry=Odometry("map", None, 1.0, 0.25, 0.125, 8.5, 0.0625)),
        told_bundle(signals=lights(("red", 60.0), ("red", 90.0))),
        restamped(bundle, 1),
        without(bundle, "route"),
        told_bundle(lanes=lanes_of(here=0.0, back=3.5)),
    ]
    assert len({message_digests.sha256_of(b) for b in (bundle, *others)}) == 7


def test_only_what_changed_is_said_to_have_changed() -> None:
    bundle = told_bundle()
    first = replace(bundle.world_messages[0], data=people((31.0, 4.0, 0.0, 0.0)))
    changed = replace(bundle, world_messages=(first, *bundle.world_messages[1:]))
    assert changed.changed_topics(bundle) == {bundle.world_messages[0].topic}


def test_stamps_of_the_stream_move_those_of_what_is_told() -> None:
    bundle = told_bundle()
    later = restamped(bundle, 5)
    assert {message.stamp_ns for message in later.world_messages} == {START_NS + 5}
    assert later.world_messages[0].stamped.stamp_ns == START_NS + 5
    assert same(bundle, later, 5) is None
    assert topics_of(bundle, "all") == {m.topic for m in bundle.world_messages}
    assert topics_of(bundle, "camera") == topics_of(bundle, "lidar") == set()
    assert FramesDropped(of="camera").affected_topics(bundle) == frozenset()
    assert FramesDropped(of="all").affected_topics(bundle) == topics_of(bundle, "all")
    assert [m.role for m in part_of(bundle, frozenset({bundle.world_messages[2].topic})).world_messages] == ["route"]


def test_pieces_of_an_instant_come_together_and_are_taken_out_again() -> None:
    bundle = told_bundle()
    rest, late = without(bundle, "route"), part_of(bundle, frozenset({bundle.world_messages[2].topic}))
    assert [m.role for m in rest.joined_with([late]).world_messages] == [
        "objects",
        "odometry",
        "signals",
        "lanes",
        "route",
    ]
    assert rest.without_messages().messages == ()


def test_lights_have_as_many_names_as_colours() -> None:
    with pytest.raises(ValueError, match="got 2 names, 1 colours and 1 stop lines"):
        SignalStates.make("map", None, ["a", "b"], ["red"], [(0.0, 0.0, 0.0)])


# --- messages


def test_messages_have_the_usual_types_and_stamps() -> None:
    bundle = told_bundle(3)
    wires = {wire.topic: wire for wire in wires_of_bundle(bundle)}
    for message in bundle.world_messages:
        wire = wires[message.topic]
        assert wire.type == WORLD_TYPES[message.role]
        read = codec.decode(wire.type, wire.cdr)
        header = read.markers[0].header if hasattr(read, "markers") else read.header
        assert (codec.stamp_ns_of(header), header.frame_id) == (bundle.stamp_ns, message.frame_id)


def test_markers_hold_who_it_is_and_how_he_moves() -> None:
    bundle = told_bundle(objects=people((30.0, 4.0, 1.5, -0.25)))
    wire = wires_of_bundle(bundle)[0]
    marker = codec.decode(wire.type, wire.cdr).markers[1]
    assert (marker.ns, marker.text) == ("pedestrian", "score=1.0 track=person_0 velocity=1.5,-0.25,0.0")
    unknown = replace(people((30.0, 4.0, 0.0, 0.0)), velocity_mps=np.full((1, 3), np.nan))
    wire = wires_of_bundle(told_bundle(objects=unknown))[0]
    assert "velocity" not in codec.decode(wire.type, wire.cdr).markers[1].text


def test_lanes_are_bands_along_their_middles_in_the_order_of_driving() -> None:
    wire = next(w for w in wires_of_bundle(told_bundle(lanes=lanes_of(here=0.0, back=3.5))) if w.topic == "/map/lanes")
    here, back = codec.decode(wire.type, wire.cdr).markers[1:]
    assert [(m.ns, m.text, m.scale.x, m.type) for m in (here, back)] == [
        ("here", "own", 3.5, 4),
        ("back", "oncoming", 3.5, 4),
    ]
    assert (here.points[0].x, here.points[-1].x) == (-5.0, 115.0) == (back.points[-1].x, back.points[0].x)
    assert {point.y for point in back.points} == {3.5}


# --- callables


def test_a_callable_gets_by_role_what_was_told(stack: Callable[..., Stack], seen: Callable[[], Any]) -> None:
    arm = arm_of(stack(dict.fromkeys(("objects", "odometry", "route", "signals"))))
    bundle = told_bundle(2, objects=people((30.0, 4.0, 0.0, 0.0), (9.0, 1.0, 0.0, 0.0)))
    answer = arm.wait(arm.send(bundle, frozenset()))
    assert answer.status is AnswerStatus.ANSWERED and answer.output.control is not None
    assert (answer.output.control.speed_mps, answer.output.control.stamp_ns) == (2.0, bundle.stamp_ns)
    told = seen()
    assert set(told) == {"objects", "odometry", "route", "signals"}
    assert isinstance(told["objects"], Detections) and told["odometry"].speed_mps == 8.0
    assert told["signals"].colour.tolist() == ["red", "green"] and len(told["route"].pose) == 120
    assert {told[role].stamp_ns for role in told} == {bundle.stamp_ns}


def test_a_callable_of_objects_alone_gets_them_as_they_are(
    stack: Callable[..., Stack], seen: Callable[[], Any]
) -> None:
    arm = arm_of(stack("objects"))
    answer = arm.wait(arm.send(told_bundle(), frozenset()))
    assert answer.output.control is not None and answer.output.control.speed_mps == 1.0
    assert isinstance(seen(), Detections)


def test_without_a_part_no_answer_is_expected(stack: Callable[..., Stack]) -> None:
    arm = arm_of(stack({"objects": None, "odometry": None}))
    ticket = arm.send(without(told_bundle(), "odometry"), frozenset())
    assert isinstance(ticket, UnansweredInput) and "no message of /localization/odometry" in ticket.reason
    late = told_bundle()
    late = replace(
        late, world_messages=(late.world_messages[0], replace(late.world_messages[1], stamp_ns=START_NS + 30_000_000))
    )
    ticket = arm.send(late, frozenset())
    assert isinstance(ticket, UnansweredInput) and "+0.030 s off" in ticket.reason


def test_a_cloud_and_what_is_told_are_one_instant(stack: Callable[..., Stack], seen: Callable[[], Any]) -> None:
    made = stack({"lidar": "/points", "objects": None})
    points = np.zeros(3, dtype=[("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4")])
    bundle = replace(told_bundle(), clouds=(Cloud("/points", START_NS, "lidar", points),))
    arm = arm_of(made)
    answer = arm.wait(arm.send(bundle, frozenset()))
    assert answer.status is AnswerStatus.ANSWERED and seen()["points"].shape == (3, 4)
