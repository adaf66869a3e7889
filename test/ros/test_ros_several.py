# SPDX-License-Identifier: Apache-2.0
"""Two LiDARs and two cameras over topics: a hosted callable is given all of them, what is not mutated passes as is."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from recordings import camera_info, cloud, image, stamp, write_bag
from ros_support import LIMIT_S, Heard, Peer, until
from several_sensors import CAMERAS, INFOS, LIDARS, bag, drive, fusion, jpeg
from started_arms import started_arm

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import plain
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import encode_message
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.engine.judging import AnswerStatus as Outcome
from mt_nodes.engine.plan import ArmPlan, stack_process
from mt_nodes.engine.send_order import split_followup
from mt_nodes.nodes import qos
from mt_nodes.nodes.arm_inputs import ArmDomain, ArmInputs
from mt_nodes.nodes.mutator import Mutator, MutatorParameters, followups_by_input
from mt_nodes.nodes.replayer import Replayer
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.relations.mutations.stream.frame_mutations import FramesDelayed
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.runs.replay.replay_run import as_recorded
from mt_nodes.stacks.stack import load_stack

TOPICS = (*LIDARS, *CAMERAS, *INFOS)


class Played:
    """An arm with the hosted callable, one in this process beside it, and all that is heard of the inputs."""

    def __init__(self, ending: ExitStack, place: Path, domain: int) -> None:
        stack = load_stack(fusion(place, ready_timeout_s=LIMIT_S, deadline_s=LIMIT_S))
        with BagSource(bag(place, 6), require=stack.topics) as source:
            self.bundles, info = list(source), source.info
        (place / "stack.yaml").write_text(json.dumps(plain(stack)))
        dump_transforms(self.bundles[0].transforms, place / "transforms.yaml")
        plan = ArmPlan("source", None)
        process = stack_process(stack, plan, domain, place, os.environ)
        topics = {topic: as_recorded(topic, row) for topic, row in info.items() if topic != "/tf_static"}
        self.arm = RosArm(plan, ArmDomain(domain), stack, process, ArmInputs(topics, frozenset(TOPICS)))
        ending.callback(self.arm.stop)
        self.here = started_arm("here", stack, {topic: topic for topic in TOPICS})
        self.arm.start()
        self.arm.ready()
        peer = Peer(ending, domain)
        self.heard: dict[str, Heard] = {t: peer.listen(topics[t].type, t, qos.REPLAY, raw=True) for t in TOPICS}
        until(lambda: all(self.arm._publisher.subscriber_count(topic) == 2 for topic in TOPICS), "stack and tester")
        until(lambda: all(heard.matched() for heard in self.heard.values()), "and the tester knows of it")

    def asked(self, bundle: Bundle, changed: frozenset[str] = frozenset()) -> tuple[Any, Any]:
        """Return what both arms say."""
        answers = [arm.wait(arm.send(bundle, changed)) for arm in (self.arm, self.here)]
        return answers[0], answers[1]


@pytest.fixture(scope="module")
def played(domains: tuple[int, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with ExitStack() as ending:
        yield Played(ending, tmp_path_factory.mktemp("several"), domains[1])


def hashes(messages: list[Any]) -> list[str]:
    return [hashlib.sha256(bytes(data)).hexdigest() for data in messages]


def alike(over_topics: Any, here: Any) -> None:
    boxes = [answer.output.detections for answer in (over_topics, here)]
    assert over_topics.status is Outcome.ANSWERED and len(boxes[0]) == len(boxes[1]) == 4
    np.testing.assert_allclose(boxes[0].center_m, boxes[1].center_m, atol=1e-6)


def test_an_instant_comes_whole_and_what_is_not_mutated_byte_for_byte(played: Played) -> None:
    bundle = played.bundles[0]
    alike(*played.asked(bundle))
    front = bundle.images[0]
    darker = replace(bundle, images=(replace(front, pixels=front.pixels // 2), bundle.images[1]))
    alike(*played.asked(darker, darker.changed_topics(bundle)))
    recorded = {wire.topic: hashlib.sha256(wire.cdr).hexdigest() for wire in bundle.wires}
    for topic, heard in played.heard.items():
        got = hashes(heard.wait(2))
        assert got[0] == recorded[topic] and (got[1] == recorded[topic]) == (topic != CAMERAS[0]), topic
    [_, sent] = played.heard[CAMERAS[0]].messages
    image = codec.image_from_msg(CAMERAS[0], codec.decode(codec.IMAGE, bytes(sent)))
    assert np.array_equal(image.pixels, front.pixels // 2)


def test_late_images_complete_their_instant(played: Played) -> None:
    bundle = played.bundles[1]
    derived = MutationPipeline([FramesDelayed(every=1, delay_s=0.03, of="camera")], 1, "r").derive(bundle)
    assert derived.broken is None
    others, [part] = split_followup(derived.followup, bundle)
    assert others is not None and [wire.topic for wire in others.wires] == ["/note"]
    alike(*(arm.wait(part.send(arm)) for arm in (played.arm, played.here)))
    assert played.arm._clock.now_ns is not None and played.arm._clock.now_ns >= bundle.stamp_ns + 30_000_000


def test_an_input_that_lacks_something_is_not_sent_and_not_waited_for(played: Played) -> None:
    bundle, whole, earlier = played.bundles[2], played.bundles[3], played.bundles[4]
    alike(*played.asked(earlier))
    for wire in earlier.wires:  # and whatever was sent before that on its topic
        if wire.topic in played.heard:
            until(lambda sent=wire: hashes([sent.cdr])[0] in hashes(played.heard[sent.topic].messages))
    before = [len(heard.messages) for heard in played.heard.values()]
    over_topics, here = played.asked(replace(bundle, images=bundle.images[:1]))
    assert over_topics.status is here.status is Outcome.NO_ANSWER_EXPECTED and over_topics.reason == here.reason
    assert "no message of /rear/image in this input" in here.reason
    alike(*played.asked(whole))
    sent = {wire.topic: wire.cdr for wire in whole.wires}
    for (topic, heard), count in zip(played.heard.items(), before, strict=True):
        assert hashes(heard.wait(count + 1)[count:][:1]) == hashes([sent[topic]]), "only the whole one was sent"


# --- the mutator alone


class Alone:
    """A mutator node of live topics, and what goes in and comes out of it in another domain."""

    def __init__(self, ending: ExitStack, domains: tuple[int, ...], messages: Sequence[Any], **parameters: Any) -> None:
        here, there = Peer(ending, domains[1]), Peer(ending, domains[2], "other")
        types = {message.topic: codec.type_of(message) for message in messages}
        self.ledger = here.listen("std_msgs/msg/String", "/mt/ledger", qos.JOURNAL)
        self.inputs = {topic: here.publisher(kind, topic, qos.REPLAY) for topic, kind in types.items()}
        topics = {"input_topic": ",".join(types), "output_topic": ",".join(types), "output_domain": domains[2]}
        topics["control_every"] = 0
        words = [w for name, value in {**topics, **parameters}.items() for w in ("-p", f"{name}:={value}")]
        rclpy.init(args=["--ros-args", *words], domain_id=domains[1])
        ending.callback(rclpy.try_shutdown)
        node = Mutator()
        ending.callback(node.destroy_node)
        executor, over = SingleThreadedExecutor(), threading.Event()
        executor.add_node(node)
        thread = threading.Thread(
            target=lambda: [executor.spin_once(0.1) for _ in iter(over.is_set, True)], daemon=True
        )
        thread.start()
        ending.callback(thread.join)
        ending.callback(over.set)
        self.outputs = {topic: there.listen(kind, topic, qos.REPLAY, raw=True) for topic, kind in types.items()}
        until(lambda: all(each.offered for each in node._inputs.inputs), "the mutator knows what comes")
        until(lambda: all(p.get_subscription_count() for p in self.inputs.values()), "and taps it")
        until(lambda: all(node._publisher(topic).get_subscription_count() for topic in types), "and is heard")
        until(lambda: all(h.matched() for h in (*self.outputs.values(), self.ledger)), "by those who know of it, too")

    def send(self, messages: Sequence[Any]) -> None:
        for message in messages:
            self.inputs[message.topic].publish(encode_message(message))

    def told(self, messages: Sequence[Any], count: int) -> list[dict[str, Any]]:
        """Send, and once more when the best-effort taps missed something, until the ledger has so many lines."""
        due_s = [0.0]

        def heard() -> bool:
            if time.monotonic() >= due_s[0]:
                self.send(messages)
                due_s[0] = time.monotonic() + 15.0
            return len(self.ledger.messages) >= count

        until(heard, f"for {count} lines of the ledger")
        return self.lines(count)

    def lines(self, count: int) -> list[dict[str, Any]]:
        return [json.loads(m.data) for m in self.ledger.wait(count)]


def test_the_mutator_joins_live_topics_of_every_kind(
    ending: ExitStack, domains: tuple[int, ...], tmp_path: Path
) -> None:
    messages = [cloud(0, LIDARS[0]), image(0, CAMERAS[0]), jpeg(0, CAMERAS[1]), camera_info(0, INFOS[0])]
    given = {"id": "frozen", "kind": "expected", "because": "x", "check": "obstacle_count_not_less"}
    mutate = [{"frames_frozen": {"every": 2, "of": "camera"}}]
    (tmp_path / "frozen.yaml").write_text(json.dumps({**given, "mutate": mutate}))
    alone = Alone(ending, domains, messages, relation=tmp_path / "frozen.yaml")
    later = [cloud(1, LIDARS[0]), image(1, CAMERAS[0]), jpeg(1, CAMERAS[1]), camera_info(1, INFOS[0])]
    alone.told(messages, 1)
    first, second = alone.told(later[::-1], 2)
    assert {first["stamp_ns"], second["stamp_ns"]} == {stamp(0), stamp(1)}
    assert [line.get("reason") for line in (first, second)] == [None, None]
    for old, new in zip(messages, later, strict=True):
        got = [bytes(data) for data in alone.outputs[old.topic].wait(2)]
        shown = new if isinstance(new, Cloud) else replace(old, stamp_ns=new.stamp_ns)
        assert got == [encode_message(old), encode_message(shown)], old.topic


@pytest.mark.parametrize(("mutation", "changed"), [("brightness_changed", True), ("points_dropped", False)])
def test_frames_of_a_camera_that_is_faster_go_along_with_the_next_instant(
    mutation: str, changed: bool, ending: ExitStack, domains: tuple[int, ...], tmp_path: Path
) -> None:
    """Three frames a cloud: the stack gets each, changed where the relation changes pictures, as recorded elsewhere."""
    given = {"id": "between", "kind": "expected", "because": "x", "check": "obstacle_count_not_less"}
    (tmp_path / "between.yaml").write_text(json.dumps({**given, "mutate": [{mutation: {}}]}))
    slope = np.add.outer(np.arange(24), np.arange(32)).astype(np.uint8)[..., None].repeat(3, axis=2)

    def picture(i: float) -> Any:
        return replace(image(i, CAMERAS[0]), pixels=slope + np.uint8(30 * i))

    rows = [[cloud(i, LIDARS[0]), *(picture(i + part / 3) for part in range(3))] for i in range(2)]
    alone = Alone(ending, domains, rows[0][:2], relation=tmp_path / "between.yaml")
    alone.send(rows[0])
    first = alone.lines(1)
    alone.send(rows[1])
    second = alone.lines(2)[1]
    assert "outcome" not in first[0] and "outcome" not in second, second
    frames = [codec.image_from_msg("", codec.decode(codec.IMAGE, bytes(m))) for m in alone.outputs[CAMERAS[0]].wait(4)]
    assert [frame.stamp_ns for frame in frames] == [stamp(0), stamp(1 / 3), stamp(2 / 3), stamp(1)]
    given_pixels = [message.pixels for message in (*rows[0][1:], rows[1][1])]
    assert [not np.array_equal(a.pixels, b) for a, b in zip(frames, given_pixels, strict=True)] == [changed] * 4


def test_the_mutator_changes_images_alone_and_tells_of_what_it_cannot_read(
    ending: ExitStack, domains: tuple[int, ...]
) -> None:
    pixels = np.full((24, 32, 3), 90, np.uint8)
    pixels[0] = 0  # one grey all over shows nothing
    front = replace(image(0, CAMERAS[0]), pixels=pixels)
    alone = Alone(ending, domains, [front], relation="brightness_raised_lane")
    [line] = alone.told([front], 1)
    assert "outcome" not in line, line["reason"]
    [sent] = alone.outputs[CAMERAS[0]].wait(1)
    brighter = codec.image_from_msg(CAMERAS[0], codec.decode(codec.IMAGE, bytes(sent)))
    assert brighter.stamp_ns == stamp(0) and brighter.pixels.mean() > 100
    wrong = encode_message(replace(front, stamp_ns=stamp(1))).replace(b"bgr8", b"nv12")
    alone.inputs[CAMERAS[0]].publish(wrong)
    alone.lines(2)  # a tap holds but one message
    dark = replace(image(2, CAMERAS[0]), encoding="16UC1", pixels=np.zeros((6, 8), np.uint16))
    _, unread, depth = alone.told([dark], 3)
    assert unread["outcome"] == "ERROR" and unread["stamp_ns"] == stamp(1)
    assert "cannot be read: /front/image: got image encoding 'nv12', expected" in unread["reason"]
    assert depth["outcome"] == "NOT_APPLICABLE" and "got encoding '16UC1', expected one of light" in depth["reason"]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"input_topic": "/a,/b"}, "expected one output for each input"),
        ({"input_topic": "/a,/a", "output_topic": "/b,/c"}, "expected one output for each input, all different"),
        ({"input_topic": "/a,/b", "output_topic": "/c,/a"}, "output_topic is input_topic; set another"),
    ],
)
def test_topics_of_the_mutator_that_do_not_go_together_are_refused(parameters: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        followups_by_input(MutatorParameters(**parameters))


def test_the_replayer_plays_cameras_alone(ending: ExitStack, domains: tuple[int, ...], tmp_path: Path) -> None:
    rows = [row for row in drive(3) if row.topic in CAMERAS]
    path = write_bag(tmp_path / "bag", rows)
    words = [
        w
        for name, value in {"bag": path, "camera_topic": ",".join(CAMERAS)}.items()
        for w in ("-p", f"{name}:={value}")
    ]
    # In the others' domain this module's arm plays the same topics and its stack reads them: both would be counted.
    rclpy.init(args=["--ros-args", *words, "-p", "rate:=20.0"], domain_id=domains[0])
    ending.callback(rclpy.try_shutdown)
    node = Replayer()
    ending.callback(node.destroy_node)
    peer = Peer(ending, domains[0])
    heard = {row.topic: peer.listen(row.type, row.topic, qos.REPLAY, raw=True) for row in rows[:2]}
    until(
        lambda: all(node._publisher.subscriber_count(t) and h.matched() for t, h in heard.items()),
        "for both sides to know",
    )
    assert all((node._publisher.subscriber_count(t), h.matched()) == (1, 1) for t, h in heard.items()), (
        "and nobody else is there"
    )
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    for _ in iter(lambda: node.finished, True):
        executor.spin_once(0.1)
    for topic, came in heard.items():
        assert [bytes(data) for data in came.wait(3)] == [row.cdr for row in rows if row.topic == topic]


def test_the_replayer_asks_which_camera_leads(ending: ExitStack, domains: tuple[int, ...], tmp_path: Path) -> None:
    path = write_bag(tmp_path / "bag", [row for row in drive(1) if row.topic in CAMERAS])
    rclpy.init(args=["--ros-args", "-p", f"bag:={path}"], domain_id=domains[1])
    ending.callback(rclpy.try_shutdown)
    with pytest.raises(UsageError, match=r"several topics can be the camera: /front/image .*, /rear/image"):
        Replayer()
